//! Tests of the evaluation by hand.

use super::*;
use crate::config::{AutoOr, SearchConfig, SearchMode};
use crate::encoding::samples::{random_states, state};
use crate::search::{SearchOptions, Uniform, search_turn};
use arimaa::rules::{
    ActionSet, Bitboard, Board, Game, History, Piece, Position, SETUP_ORDER, Setup, Turn,
};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

fn query(state: StepState, legal: ActionSet) -> Query {
    Query {
        state,
        legal,
        repetitions: 0,
    }
}

fn start(state: StepState) -> Query {
    query(state, state.legal_actions(&History::default()))
}

/// The queries of random games: setups, states inside turns, pushes that are pending.
fn random_queries() -> Vec<Query> {
    random_states(41, 4000)
        .into_iter()
        .map(|sample| query(sample.state, sample.legal))
        .collect()
}

fn evaluate(queries: &[Query]) -> Evaluations {
    let mut out = Evaluations::default();
    Material::default().evaluate(queries, &mut out).unwrap();
    assert_eq!(out.len(), queries.len());
    out
}

/// The prior of each legal action, in index order.
fn priors(query: &Query) -> Vec<(Action, f32)> {
    let out = evaluate(&[*query]);
    let actions = query.legal.in_index_order(query.side());
    actions
        .zip(out.get(0).unwrap().priors.iter().copied())
        .collect()
}

fn prior(priors: &[(Action, f32)], action: &str) -> f32 {
    let action: Action = action.parse().unwrap();
    priors
        .iter()
        .find(|&&(other, _)| other == action)
        .unwrap()
        .1
}

fn gold_score(pieces: &str) -> i32 {
    score(state(Side::Gold, pieces).board(), Side::Gold)
}

#[test]
fn answers_are_probabilities_and_the_priors_sum_to_one() {
    let queries = random_queries();
    let out = evaluate(&queries);
    let mut phases = [0; 2];
    for (index, query) in queries.iter().enumerate() {
        let answer = out.get(index).unwrap();
        answer.check("material", query).unwrap();
        let sum: f64 = answer.priors.iter().map(|&prior| f64::from(prior)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum} in {query:?}");
        assert!(answer.priors.iter().all(|&prior| prior > 0.0));
        assert!(answer.value > 0.0 && answer.value < 1.0);
        phases[query.state.phase() as usize] += 1;
    }
    assert!(phases.iter().all(|&count| count > 100), "{phases:?}");
}

#[test]
fn exchanged_colours_exchange_the_value_and_nothing_else() {
    let queries = random_queries();
    let swap = |query: &Query| {
        let side = query.side();
        // What Gold sees is what Silver sees with the colours exchanged.
        let legal = query.legal.seen_by(side).seen_by(side.opponent());
        Query {
            state: query.state.swap_colours(),
            legal,
            ..*query
        }
    };
    let swapped: Vec<Query> = queries.iter().map(swap).collect();
    let (out, swapped_out) = (evaluate(&queries), evaluate(&swapped));
    for (index, query) in queries.iter().enumerate() {
        let (answer, swapped) = (out.get(index).unwrap(), swapped_out.get(index).unwrap());
        assert_eq!(swapped.value, 1.0 - answer.value, "{query:?}");
        assert_eq!(answer.value, 1.0 - swapped.value, "{query:?}");
        assert_eq!(swapped.priors, answer.priors, "{query:?}");
    }
}

#[test]
fn the_mirror_moves_the_priors_and_changes_nothing() {
    let queries = random_queries();
    let mirror = |query: &Query| Query {
        state: query.state.mirror(),
        legal: query.legal.mirror(),
        ..*query
    };
    for query in &queries {
        let mirrored = mirror(query);
        let out = evaluate(&[*query, mirrored]);
        let (answer, other) = (out.get(0).unwrap(), out.get(1).unwrap());
        assert_eq!(other.value, answer.value);
        let actions: Vec<Action> = mirrored.legal.in_index_order(query.side()).collect();
        for (action, prior) in query.legal.in_index_order(query.side()).zip(answer.priors) {
            let place = actions.iter().position(|&other| other == action.mirror());
            assert_eq!(other.priors[place.unwrap()], *prior, "{action:?} {query:?}");
        }
    }
}

#[test]
fn a_score_that_a_person_can_check() {
    // Gold: no enemy is stronger than the elephant, one rabbit (0), two pieces; the rabbit on rank 5 can step ahead, and its file
    // is empty. Silver: one enemy is stronger than the camel, two rabbits, three pieces; the camel stands beside the trap f6, as
    // the only friend of the trap.
    let gold = 3860 + 1225 + 3 * 70;
    let silver = 1140 + 1225 + 1942 + 30 + 20;
    // The elephant on f5 stands beside the same trap, alone, and next to no piece.
    assert_eq!(gold_score("Ef5 Ra5 me6 rh8 rb7"), gold + 50 + 20 - silver);
    // On e5 it freezes the camel, and could push it into the trap.
    let pressed = silver - 220 - 1200;
    assert_eq!(gold_score("Ee5 Ra5 me6 rh8 rb7"), gold - pressed);
    // With a friend beside the camel it is not frozen, but in danger still; with a second friend of the trap it is frozen only. The
    // dog adds its own worth, the elephant alone being stronger, and that of four pieces instead of three.
    let dog = 1140 + 2451 - 1942;
    assert_eq!(
        gold_score("Ee5 Ra5 me6 de7 rh8 rb7"),
        gold - (silver + dog - 1200)
    );
    assert_eq!(
        gold_score("Ee5 Ra5 me6 df7 rh8 rb7"),
        gold - (silver + dog + 10 + 45 - 20 - 220)
    );
    // With a cat on the trap the camel is in no danger, but the cat, whose only friend it is. The cat's worth is the dog's.
    assert_eq!(
        gold_score("Ee5 Ra5 me6 cf6 rh8 rb7"),
        gold - (silver + dog - 300)
    );
}

#[test]
fn a_piece_more_is_worth_more() {
    let random = random_states(42, 4000);
    let mut tried = [0; 6];
    for sample in random.iter().filter(|s| s.state.phase() == Phase::Play) {
        let board = sample.state.board();
        for side in Side::ALL {
            for (square, piece) in board.iter().filter(|(_, piece)| piece.side == side) {
                let mut without = *board;
                without.take(square);
                // A piece can stand in a rabbit's way or spoil a trap: only the count is compared, so none with a neighbour,
                // and none beside a trap.
                let here = Bitboard::of(square);
                let beside = board.occupied() | Bitboard::TRAPS;
                if !(here.neighbours() & beside).is_empty() {
                    continue;
                }
                tried[piece.kind.index()] += 1;
                assert!(
                    score(board, side) > score(&without, side),
                    "{piece} on {square}: {board:?}"
                );
            }
        }
    }
    assert!(tried.iter().all(|&count| count > 20), "{tried:?}");
}

#[test]
fn rabbits_are_worth_more_the_fewer_there_are() {
    let files = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    let scores: Vec<i32> = (1..=8)
        .map(|count| {
            let mut board: Board =
                "[rrrr                                                        EDD ]"
                    .parse()
                    .unwrap();
            for file in &files[..count] {
                let square: Square = format!("{file}2").parse().unwrap();
                board.put(square, Piece::new(Side::Gold, Kind::Rabbit));
            }
            score(&board, Side::Gold)
        })
        .collect();
    for window in scores.windows(3) {
        let (first, second) = (window[1] - window[0], window[2] - window[1]);
        assert!(first > second && second > 0, "{scores:?}");
    }
}

#[test]
fn a_rabbit_nearing_its_goal_is_worth_more() {
    let value_at = |rank: u8, guard: &str| {
        value(&state(
            Side::Gold,
            &format!("Ed1 Rh1 ed8 rg8 Ra{rank} {guard}"),
        ))
    };
    for rank in 2..7 {
        assert!(value_at(rank + 1, "") > value_at(rank, ""), "{rank}");
    }
    // The last step before the goal is worth more than all before it.
    let early = value_at(5, "") - value_at(2, "");
    assert!(value_at(7, "") - value_at(6, "") > early);
    // A cat in the way, and one that freezes.
    for rank in 4..7 {
        let blocked = value_at(rank, &format!("ca{}", rank + 1));
        let elsewhere = value_at(rank, "ch5");
        assert!(blocked < elsewhere, "{rank}");
    }
}

#[test]
fn priors_prefer_taking_a_piece_to_losing_one() {
    // Gold's elephant can push the dog from d6 into the trap c6; Gold's cat on the trap f3 hangs on the rabbit on f2.
    let query = start(state(Side::Gold, "Ee6 Cf3 Rf2 Ra1 dd6 ee3 rh8 ra8 rb8"));
    let priors = priors(&query);
    let (capture, loss) = (prior(&priors, "d6w"), prior(&priors, "f2e"));
    let mean = 1.0 / priors.len() as f32;
    assert!(capture > 3.0 * mean, "{priors:?}");
    assert!(loss < mean / 3.0, "{priors:?}");
    let best = priors.iter().max_by(|one, two| one.1.total_cmp(&two.1));
    assert_eq!(best.unwrap().0, "d6w".parse().unwrap());
}

#[test]
fn a_setup_loses_nothing_and_prefers_the_usual_places() {
    let mut state = StepState::new(&Position::INITIAL);
    let usual = ["d2", "e2", "b2", "g2", "d1", "e1", "c2", "f2"];
    for (place, twin) in usual
        .into_iter()
        .zip(["e2", "e2", "g2", "g2", "e1", "e1", "f2", "f2"])
    {
        let query = start(state);
        let out = evaluate(&[query]);
        assert_eq!(out.get(0).unwrap().value, 0.5);
        let priors = priors(&query);
        let action = |square: &str| Action::Place(square.parse().unwrap());
        let of = |square: &str| priors.iter().find(|p| p.0 == action(square)).unwrap().1;
        let best = priors.iter().map(|prior| prior.1).fold(0.0, f32::max);
        assert_eq!((of(place), of(twin)), (best, best), "{place}");
        assert!(priors.iter().all(|prior| prior.1 > best / 30.0), "broad");
        state = state.after(action(place));
    }
}

fn random_setup(rng: &mut ChaCha8Rng) -> Turn {
    let mut kinds = [Kind::Rabbit; 16];
    kinds[..SETUP_ORDER.len()].copy_from_slice(&SETUP_ORDER);
    kinds.shuffle(rng);
    Turn::Setup(Setup::new(kinds).unwrap())
}

/// Plays from random setups, 64 visits a turn; who wins, if anybody has after 300 turns.
fn winner(evaluators: [&mut dyn Evaluator; 2], rng: &mut ChaCha8Rng) -> Option<Side> {
    let config = SearchConfig {
        mode: AutoOr::Fixed(SearchMode::Puct),
        ..SearchConfig::default()
    };
    let options = SearchOptions::strongest(&config, 64);
    let mut game = Game::new();
    for _ in Side::ALL {
        game.play(&random_setup(rng)).unwrap();
    }
    while game.outcome().is_none() && game.turns().len() < 300 {
        let evaluator = &mut *evaluators[game.position().side().index()];
        let decision =
            search_turn(evaluator, game.position(), game.history(), options, rng).unwrap();
        game.play(&decision.turn).unwrap();
    }
    game.outcome().map(|outcome| outcome.winner)
}

#[test]
fn it_beats_the_uniform_evaluator() {
    let (mut material, mut uniform) = (Material::default(), Uniform);
    let mut wins = 0;
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for side in Side::ALL {
            let won = match side {
                Side::Gold => winner([&mut material, &mut uniform], &mut rng),
                Side::Silver => winner([&mut uniform, &mut material], &mut rng),
            };
            wins += u32::from(won == Some(side));
        }
    }
    // It wins 97 games in 100.
    assert!(wins >= 34, "{wins} of 40");
}
