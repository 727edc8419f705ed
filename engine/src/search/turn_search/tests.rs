//! Tests of the search for a turn.

use super::super::testing::{Hashed, answer, learning, random_game};
use super::super::tree::NodeKind;
use super::super::{Budget, Noise, StateTarget, Uniform};
use super::*;
use crate::config::{AutoOr, Config, PolicyTargetKind, SearchConfig, SearchMode};
use arimaa::rules::{Action, Board, Game, Piece, Side, Square, TURN_STEPS, Turn, goal_in};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

fn options(evaluations: u32) -> SearchOptions {
    let config = SearchConfig {
        mode: AutoOr::Fixed(SearchMode::Puct),
        ..SearchConfig::default()
    };
    SearchOptions::strongest(&config, evaluations)
}

fn exploring(evaluations: u32) -> SearchOptions {
    learning(SearchMode::Puct, evaluations)
}

fn position(side: Side, pieces: &[(&str, char)]) -> Position {
    let pieces = pieces.iter().map(|(square, letter)| {
        (
            square.parse::<Square>().unwrap(),
            Piece::from_letter(*letter).unwrap(),
        )
    });
    Position::new(pieces.collect::<Board>(), side).unwrap()
}

fn said(value: f32, priors: &[f32]) -> Evaluation<'_> {
    Evaluation { value, priors }
}

/// Answers as [`Uniform`] does until the turn is decided.
fn answer_all(search: &mut Search, history: &History, rng: &mut ChaCha8Rng) {
    loop {
        let counts: Vec<usize> = search
            .leaves(history, rng)
            .iter()
            .map(|query| query.legal.count())
            .collect();
        if counts.is_empty() {
            return;
        }
        // In any order.
        for (index, count) in counts.into_iter().enumerate().rev() {
            let priors = vec![1.0 / count as f32; count];
            search.answer(index, "test", said(0.5, &priors)).unwrap();
        }
    }
}

fn decide(position: &Position, options: SearchOptions, seed: u64) -> Decision {
    let mut history = History::default();
    history.push(position);
    search_turn(
        &mut Uniform,
        position,
        &history,
        options,
        &mut ChaCha8Rng::seed_from_u64(seed),
    )
    .unwrap()
}

#[test]
fn whole_games_are_legal_and_their_targets_fit() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut game = Game::new();
        let mut search: Option<Search> = None;
        // Few visits end inside the first step, more at different depths.
        let options = exploring([1, 2, 5, 16, 40][seed as usize % 5]);
        while game.outcome().is_none() && game.turns().len() < 60 {
            let (position, history) = (*game.position(), game.history().clone());
            let search = match &mut search {
                Some(search) => {
                    search.restart(&position, &history, options).unwrap();
                    search
                }
                None => search.insert(Search::new(&position, &history, options).unwrap()),
            };
            answer_all(search, &history, &mut rng);
            let decision = search.decision().unwrap().clone();
            check_targets(&decision, &position, &history);
            game.play(&decision.turn).unwrap();
        }
    }
}

fn check_targets(decision: &Decision, position: &Position, history: &History) {
    let mut state = StepState::new(position);
    let mut targets = decision.targets.iter().peekable();
    for step in 0..=decision.actions.len() {
        if let Some(target) = targets.next_if(|target| usize::from(target.step) == step) {
            assert_eq!(target.policy.len(), state.legal_actions(history).count());
            assert!((target.policy.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
        if let Some(action) = decision.actions.get(step) {
            state = state.after(*action);
        }
    }
    assert!(targets.next().is_none());
    assert!((0.0..=1.0).contains(&decision.value));
}

/// Where all values are equal the improved policy is the evaluator's, and not the noisy one that the search went by; the visits
/// follow the noise.
#[test]
fn noise_gets_into_the_visits_and_not_into_the_improved_policy() {
    let game = Game::new();
    let noise = Noise {
        share: 1.0,
        concentration: 1.0,
    };
    let targets = |policy_target| {
        let options = SearchOptions {
            noise: Some(noise),
            policy_target,
            target_value_scale: 10.0,
            ..options(40)
        };
        decide(game.position(), options, 3).targets
    };
    let even = |target: &StateTarget| {
        let share = 1.0 / target.policy.len() as f32;
        target.policy.iter().all(|&p| (p - share).abs() < 1e-5)
    };
    let improved = targets(PolicyTargetKind::Improved);
    assert!(!improved.is_empty() && improved.iter().all(even));
    assert!(!targets(PolicyTargetKind::Visits).iter().all(even));
}

/// The winner at the end of a decided turn.
fn winner(position: &Position, decision: &Decision) -> Option<Side> {
    let end = position
        .after_turn(&decision.turn, &History::default())
        .unwrap();
    end.outcome_on_board().map(|outcome| outcome.winner)
}

#[test]
fn a_rabbit_that_can_reach_its_goal_needs_no_evaluation() {
    let gold = position(
        Side::Gold,
        &[("d6", 'R'), ("a1", 'R'), ("h2", 'r'), ("e5", 'c')],
    );
    for (position, side, value) in [
        (gold, Side::Gold, 1.0),
        (gold.swap_colours(), Side::Silver, 0.0),
    ] {
        let decision = decide(&position, exploring(64), 1);
        assert_eq!(winner(&position, &decision), Some(side));
        assert_eq!(
            (decision.value, decision.visits, decision.evaluations),
            (value, 0, 0)
        );
        // The two steps of the run, and the end of the turn behind them.
        let mut state = StepState::new(&position);
        let wanted = decision.actions.iter().copied().chain([Action::End]);
        assert_eq!(decision.targets.len(), 3);
        for (target, wanted) in decision.targets.iter().zip(wanted) {
            assert!(target.proven);
            let legal = state.legal_actions(&History::default());
            let chosen = legal
                .in_index_order(side)
                .zip(&target.policy)
                .filter(|(_, share)| **share > 0.0);
            assert_eq!(chosen.collect::<Vec<_>>(), [(wanted, &1.0)]);
            state = state.after(wanted);
        }
    }
}

#[test]
fn a_goal_that_takes_more_than_the_rabbit_is_proven_too() {
    // The dog must pull the cat out of the way first.
    let gold = position(
        Side::Gold,
        &[
            ("a7", 'R'),
            ("a8", 'c'),
            ("b8", 'D'),
            ("b7", 'r'),
            ("h1", 'R'),
            ("h7", 'r'),
        ],
    );
    let gold = Position::new(*gold.board(), Side::Gold).unwrap();
    for (position, side) in [(gold, Side::Gold), (gold.swap_colours(), Side::Silver)] {
        let decision = decide(&position, options(400), 1);
        assert_eq!(winner(&position, &decision), Some(side), "{decision:?}");
        assert_eq!(decision.value, if side == Side::Gold { 1.0 } else { 0.0 });
        assert_eq!((decision.actions.len(), decision.evaluations), (3, 0));
    }
}

#[test]
fn a_turn_that_lets_the_enemy_reach_its_goal_is_avoided() {
    // Only the dog on b3 keeps the rabbit on a3 from its goal, by freezing it.
    let gold = position(
        Side::Gold,
        &[
            ("b3", 'D'),
            ("h1", 'R'),
            ("g2", 'C'),
            ("a3", 'r'),
            ("h8", 'r'),
        ],
    );
    for seed in 0..8 {
        let decision = decide(&gold, options(600), seed);
        let end = gold
            .after_turn(&decision.turn, &History::default())
            .unwrap();
        let goal = goal_in(&StepState::new(&end), TURN_STEPS);
        assert_eq!(goal, None, "{decision:?}");
    }
}

#[test]
fn the_same_seed_decides_the_same() {
    let position = Position::INITIAL;
    assert_eq!(
        decide(&position, exploring(64), 7),
        decide(&position, exploring(64), 7)
    );
    let turns: Vec<Turn> = (0..8)
        .map(|seed| decide(&position, exploring(64), seed).turn)
        .collect();
    assert!(turns.iter().any(|turn| *turn != turns[0]));
}

#[test]
fn invalid_evaluations_are_refused_and_the_search_continues() {
    let mut history = History::default();
    history.push(&Position::INITIAL);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut search = Search::new(&Position::INITIAL, &history, options(8)).unwrap();
    let count = search.leaves(&history, &mut rng)[0].legal.count();
    let good = vec![1.0 / count as f32; count];
    let mut negative = good.clone();
    negative[0] = -0.5;
    let nan = vec![f32::NAN; count];
    for (value, priors, part) in [
        (f32::NAN, &good, "value NaN"),
        (1.5, &good, "value 1.5"),
        (0.5, &nan, "prior NaN"),
        (0.5, &negative, "prior -0.5"),
        (0.5, &good[1..].to_vec(), "15 priors came for 16"),
        (0.5, &vec![0.0; count], "sum to 0"),
    ] {
        let message = search
            .answer(0, "bad", said(value, priors))
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("bad: ") && message.contains(part),
            "{message}"
        );
    }
    assert_eq!(search.leaves(&history, &mut rng).len(), 1, "still awaited");
    search.answer(0, "good", said(0.5, &good)).unwrap();
    answer_all(&mut search, &history, &mut rng);
    assert_eq!(search.decision().unwrap().evaluations, 8);
}

#[test]
fn a_game_that_is_over_and_an_empty_budget_are_errors() {
    let over = position(Side::Silver, &[("d8", 'R'), ("h7", 'r')]);
    let history = History::default();
    let error = Search::new(&over, &history, options(8))
        .unwrap_err()
        .to_string();
    assert!(error.contains("the game is over in s ["), "{error}");
    let error = Search::new(&Position::INITIAL, &history, options(0)).unwrap_err();
    assert!(matches!(error, SearchError::NoBudget));
}

/// What the tree holds of the evaluator's priors: 11 bits of each.
fn check_priors_are_the_evaluators(search: &Search, history: &History) {
    let tree = &search.state.tree;
    for node in tree.node_ids() {
        if tree.node(node).kind != NodeKind::Expanded {
            continue;
        }
        let state = tree.state(node);
        let legal = state.legal_actions(history);
        let (_, priors) = Hashed::default().judge(&state, legal.count());
        for (action, prior) in legal.in_index_order(state.side()).zip(priors) {
            let index = action.index(state.side());
            let kept = tree.edges(node).iter().find(|edge| edge.index() == index);
            let kept = kept.unwrap().prior();
            assert!(
                (kept / prior - 1.0).abs() < 1.0 / 4_000.0,
                "{kept}, {prior}"
            );
        }
    }
}

/// Turns with and without noise follow each other in one tree, whose stored priors stay the evaluator's. A turn that begins anew sees
/// nothing of what was before.
#[test]
fn turns_with_and_without_noise_alternate_in_one_search() {
    let noise = Noise {
        share: 1.0,
        concentration: 1.0,
    };
    let config = Config::default().selfplay;
    let modes = [SearchMode::Puct, SearchMode::Gumbel];
    for (noisy_mode, plain_mode) in modes
        .into_iter()
        .flat_map(|one| modes.map(|two| (one, two)))
    {
        let with_noise = SearchOptions {
            mode: noisy_mode,
            noise: Some(noise),
            prior_temperature: 2.0,
            ..SearchOptions::exploring(&config, 200, 1.0)
        };
        let plain = SearchOptions {
            mode: plain_mode,
            temperature: 1.0,
            ..SearchOptions::strongest(&config.search, 50)
        };
        let mut game = random_game(2, &mut ChaCha8Rng::seed_from_u64(12));
        let mut search = Search::new(game.position(), game.history(), with_noise).unwrap();
        let (mut noisy, mut kept) = (0, 0);
        for turn in 0..12 {
            let (position, history) = (*game.position(), game.history().clone());
            let mut rng = ChaCha8Rng::seed_from_u64(turn);
            let (is_new, is_noisy) = (turn % 3 == 0, turn % 3 < 2);
            let mut anew = None;
            if is_new {
                search.restart(&position, &history, with_noise).unwrap();
                let fresh = Search::new(&position, &history, with_noise).unwrap();
                anew = Some(fresh);
            } else {
                let options = if is_noisy { with_noise } else { plain };
                search.reuse_tree(&position, &history, options).unwrap();
                kept += u32::from(search.state.tree.len() > 1);
                check_priors_are_the_evaluators(&search, &history);
            }
            while answer(&mut search, Hashed::default(), &history, &mut rng) {}
            check_priors_are_the_evaluators(&search, &history);
            let state = &mut search.state;
            for node in state.tree.node_ids() {
                // Those of turns with noise were drawn on the way; those of others must not be there.
                let options = state.options;
                let priors = state.root_priors.of(&state.tree, node, &options, &mut rng);
                assert!(is_noisy || priors.is_none());
                noisy += u32::from(priors.is_some());
            }
            if let Some(mut fresh) = anew {
                let mut rng = ChaCha8Rng::seed_from_u64(turn);
                while answer(&mut fresh, Hashed::default(), &history, &mut rng) {}
                assert_eq!(fresh.decision(), search.decision());
            }
            game.play(&search.decision().unwrap().turn.clone()).unwrap();
        }
        assert!(noisy > 0 && kept > 4, "{noisy} and {kept}");
    }
}

#[test]
fn a_full_tree_ends_a_search_that_only_time_limits() {
    let game = random_game(5, &mut ChaCha8Rng::seed_from_u64(12));
    let time = Duration::from_secs(60);
    let budget = Budget {
        evaluations: None,
        time: Some(time),
        memory_mib: 1,
        ..options(1).budget
    };
    let options = SearchOptions {
        budget,
        ..options(1)
    };
    let mut search = Search::new(game.position(), game.history(), options).unwrap();
    answer_all(
        &mut search,
        game.history(),
        &mut ChaCha8Rng::seed_from_u64(0),
    );
    assert!(search.decision().is_some() && search.time() < time);
}

#[test]
fn a_resumed_search_keeps_its_tree() {
    let game = random_game(4, &mut ChaCha8Rng::seed_from_u64(12));
    let mut search = Search::new(game.position(), game.history(), options(100)).unwrap();
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    answer_all(&mut search, game.history(), rng);
    let (nodes, root) = (search.nodes(), search.state().root);
    let visits = |search: &Search| search.state().tree.node(root).visits;
    let before = visits(&search);
    search.resume(game.history(), options(50)).unwrap();
    assert_eq!((search.nodes(), search.state().root), (nodes, root));
    assert!(search.decision().is_none());
    answer_all(&mut search, game.history(), rng);
    assert!(search.nodes() > nodes);
    assert!(
        visits(&search) > before + 10,
        "{before}, {}",
        visits(&search)
    );
}

#[test]
fn a_lost_turn_teaches_the_priors() {
    let lost = position(Side::Gold, &[("h1", 'R'), ("a3", 'r')]);
    for evaluations in [20, 100] {
        let decision = decide(&lost, exploring(evaluations), 3);
        assert_eq!(decision.proven_winner, Some(Side::Silver));
        assert!(!decision.targets.is_empty());
        for target in &decision.targets {
            let share = 1.0 / target.policy.len() as f32;
            assert!(
                target.policy.iter().all(|of| (of - share).abs() < 1e-6) && target.surprise < 1e-6,
                "{target:?}"
            );
        }
    }
}
