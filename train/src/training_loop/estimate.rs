//! A rough estimate of the loop's time before its first games, from the speed of the network.

use crate::commands::run::Workplace;
use crate::error::TrainError;
use arimaa::rules::{Game, StepState};
use engine::config::{Config, PlayerSpec};
use engine::search::{Evaluations, Evaluator, Query};
use network::{Network, NetworkError, NetworkEvaluator, Precision};
use std::path::Path;
use std::time::{Duration, Instant};

/// Turns of a game between untrained networks.
const TURNS: f64 = 60.0;

/// Rows of a turn.
const ROWS: f64 = 3.5;

/// The cost of an evaluation in a game, in bare evaluations of the network: search and small batches included.
const IN_A_GAME: f64 = 1.6;

/// The cost of training on a row, in evaluations of the network.
const TRAINED_ROW: f64 = 6.0;

/// How long the network's speed is measured.
const MEASURED: Duration = Duration::from_millis(300);

/// Positions in a batch of the measurement.
const BATCH: usize = 64;

/// The time for all generations after `trained`; `network` is like those that will play, and `first_games` are played without one.
/// None on a GPU: the measurement would take memory that the generator needs.
pub(super) fn of_generations(
    network: &Path,
    config: &Config,
    trained: u32,
    first_games: u32,
    workplace: Workplace,
) -> Result<Option<Duration>, TrainError> {
    if workplace.device.is_cuda() {
        return Ok(None);
    }
    let settings = &config.training_loop;
    let left = f64::from(settings.generations.saturating_sub(trained));
    // Games without a network take little time, but their rows are trained on like others.
    let without_network = f64::from(first_games);
    let playing = left - f64::from(u8::from(without_network > 0.0));
    let turns = playing * f64::from(settings.games_per_generation) * TURNS;
    let rows = (turns + without_network * TURNS) * ROWS * f64::from(config.train.reuse_factor);
    // The players of each match that use a network.
    let of_anchor = |anchor: &PlayerSpec| match anchor.player.as_str() {
        "first" => 2.0,
        _ => 1.0,
    };
    let askers = 2.0 * f64::from(settings.match_opponents)
        + settings.anchors.iter().map(of_anchor).sum::<f64>();
    let pit_games =
        (left - 1.0) * f64::from(settings.match_games) + f64::from(settings.final_match_games);
    let gate_games = if settings.gate_score > 0.0 {
        left * f64::from(settings.gate_games)
    } else {
        0.0
    };
    let in_matches =
        (pit_games * askers / 2.0 + gate_games) * TURNS * f64::from(settings.match_evaluations);
    let in_games = turns * f64::from(config.selfplay.evaluations) + in_matches;
    let evaluations = in_games * IN_A_GAME + rows * TRAINED_ROW;
    let network = Network::load(network)?.network;
    let speed = evaluations_per_second(&network, config.network.precision, workplace)?;
    let seconds = (evaluations / speed).min(1e12);
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// How many positions the network evaluates in a second, on all threads.
fn evaluations_per_second(
    network: &Network,
    precision: Precision,
    workplace: Workplace,
) -> Result<f64, TrainError> {
    let mut evaluator = NetworkEvaluator::new(network, precision, "estimate")?;
    let game = Game::new();
    let state = StepState::new(game.position());
    let query = Query {
        state,
        legal: state.legal_actions(game.history()),
        repetitions: 0,
    };
    let queries = vec![query; BATCH];
    let mut answers = Evaluations::default();
    let mut evaluate = || {
        let result = evaluator.evaluate(&queries, &mut answers);
        result.map_err(|error| NetworkError::Torch(error.to_string()))
    };
    // The first batch is slow: memory is taken, kernels are chosen.
    evaluate()?;
    let begun = Instant::now();
    let mut batches = 0;
    while begun.elapsed() < MEASURED {
        evaluate()?;
        batches += 1;
    }
    let of_one_thread = f64::from(batches) * BATCH as f64 / begun.elapsed().as_secs_f64();
    Ok(of_one_thread * workplace.thread_count() as f64)
}
