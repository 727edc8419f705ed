//! The report. Its fields are the keys of the JSON object; a mean or share without cases is null.

use super::evaluation::NetworkEvaluation;
use crate::statistics::{CalibrationReport, Share, line, mean, percent, write_calibration};
use engine::record::EvaluatorId;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// The whole report, of the turns after the setups.
#[derive(Debug, Serialize)]
pub(super) struct JudgeReport {
    /// The evaluator that was judged.
    evaluator: EvaluatorId,
    /// Games that were read and replayed without a fault; only these count below.
    games: u64,
    /// Games and frames that could not be read or break the rules.
    faults: u64,
    /// The turns of those games.
    turns: u64,
    /// Gold's win probabilities at the starts of turns, against the results of games that were won on the board or by resignation.
    values: CalibrationReport,
    policy: PolicyReport,
    goals: GoalReport,
}

/// How well the policy predicts the played steps.
#[derive(Debug, Serialize)]
struct PolicyReport {
    /// Played steps; the end of a shorter turn is a step too.
    steps: u64,
    /// The share of them that the policy finds likeliest.
    likeliest: Option<f64>,
    /// The mean of -ln of their probabilities, in nats.
    loss: Option<f64>,
    /// The same for equal probabilities of all legal steps.
    even_loss: Option<f64>,
}

/// How often the policy finds a goal within reach.
#[derive(Debug, Serialize)]
struct GoalReport {
    /// Turns that began with a goal within reach of the side to move.
    turns: u64,
    /// Those in which the policy's first choice, the likeliest step each time, wins.
    won: u64,
    /// Their share.
    share: Option<f64>,
    /// Its 95% interval (Wilson).
    interval: Option<[f64; 2]>,
}

impl JudgeReport {
    pub(super) fn new(evaluator: EvaluatorId, evaluation: &NetworkEvaluation, faults: u64) -> Self {
        let Share { part, whole } = evaluation.goals;
        let steps = evaluation.likeliest.whole;
        Self {
            evaluator,
            games: evaluation.games,
            faults,
            turns: evaluation.turns,
            values: evaluation.values.report(),
            policy: PolicyReport {
                steps,
                likeliest: evaluation.likeliest.value(),
                loss: mean(evaluation.losses, steps),
                even_loss: mean(evaluation.even_losses, steps),
            },
            goals: GoalReport {
                turns: whole,
                won: part,
                share: evaluation.goals.value(),
                interval: evaluation.goals.interval(),
            },
        }
    }
}

impl Display for JudgeReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let EvaluatorId { name, identity } = &self.evaluator;
        line(f, "judged", format_args!("{name} ({identity})"))?;
        let (games, turns) = (self.games, self.turns);
        line(
            f,
            "games",
            format_args!("{games}, {turns} turns after the setups"),
        )?;
        write_calibration(f, "its", &self.values)?;
        let policy = &self.policy;
        if let (Some(likeliest), Some(loss), Some(even)) =
            (policy.likeliest, policy.loss, policy.even_loss)
        {
            let (steps, likeliest) = (policy.steps, 100.0 * likeliest);
            line(
                f,
                "policy",
                format_args!(
                    "of {steps} steps played {likeliest:.1}% were the likeliest; log loss {loss:.3} nats, {even:.3} for all steps alike"
                ),
            )?;
        }
        let goals = &self.goals;
        if let (Some(share), Some(interval)) = (goals.share, goals.interval) {
            let (won, turns) = (goals.won, goals.turns);
            let share = percent(share, interval);
            line(
                f,
                "goals",
                format_args!(
                    "the policy's first choice wins in {won} of {turns} turns with a goal within reach, {share}"
                ),
            )?;
        }
        Ok(())
    }
}
