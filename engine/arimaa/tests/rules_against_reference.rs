//! The rules agree with a second, plain writing of them: on random positions of all densities, and in random games in which
//! positions repeat.

mod boards;
mod reference;

use arimaa::notation::parse_turn;
use arimaa::rules::{
    Board, Game, History, Kind, Outcome, Position, Reason, Side, Square, StepState, distinct_turns,
};
use boards::{position, random_position};
use rand::rngs::ChaCha8Rng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{RngExt, SeedableRng};
use reference::{Letters, Past, Turn};
use std::collections::{BTreeMap, BTreeSet};

fn letters(board: &Board) -> Letters {
    let mut letters = [b' '; 64];
    for square in Square::all() {
        if let Some(piece) = board.piece_at(square) {
            letters[square.index()] = piece.letter() as u8;
        }
    }
    letters
}

/// What was met on the way: a run that never meets a thing does not test it.
#[derive(Debug, Default)]
struct Met {
    states: usize,
    dead_ends: usize,
    repetitions: usize,
    /// Steps and ends that only the history forbids.
    forbidden_steps: usize,
    forbidden_ends: usize,
    ends: usize,
    /// The positions of which all ends were compared.
    positions_with_ends: usize,
    wins: BTreeSet<&'static str>,
}

/// Compares the legal actions of a state; returns the reference's turns after each.
fn compare_state(
    state: &StepState,
    turn: &Turn,
    history: &History,
    past: &Past,
    met: &mut Met,
) -> BTreeMap<String, Turn> {
    let legal = state.legal_actions(history);
    let found: Vec<String> = legal.steps().map(|step| format!("{step:?}")).collect();
    let expected: BTreeMap<String, Turn> = turn.legal_steps(past).into_iter().collect();
    assert_eq!(found.len(), expected.len(), "{state:?}");
    assert!(
        found.iter().all(|step| expected.contains_key(step)),
        "{state:?}"
    );
    assert_eq!(letters(state.board()), turn.letters, "{state:?}");
    if !state.is_complete() {
        assert_eq!(legal.end, turn.may_end(past), "{state:?}");
    }
    assert_eq!(state.can_end(history), turn.may_end(past), "{state:?}");
    met.states += 1;
    let elsewhere = state.legal_actions(&History::default());
    met.forbidden_steps += elsewhere.steps().count() - found.len();
    met.forbidden_ends += usize::from(elsewhere.end && !legal.end);
    met.dead_ends += turn.count_possible() - expected.len();
    expected
}

/// Plays one random turn, comparing at every step.
fn compare_walk(
    position: &Position,
    history: &History,
    past: &Past,
    rng: &mut ChaCha8Rng,
    met: &mut Met,
) {
    let mut state = StepState::new(position);
    let mut turn = Turn::new(letters(position.board()), position.side().letter());
    loop {
        let mut turns = compare_state(&state, &turn, history, past, met);
        let Some(step) = state.legal_actions(history).steps().choose(rng) else {
            return;
        };
        state = state.after_step(step);
        turn = turns.remove(&format!("{step:?}")).unwrap();
    }
}

fn compare_outcome(position: &Position, history: &History, past: &Past, met: &mut Met) {
    let found = position
        .outcome(history)
        .map(|Outcome { winner, reason }| (winner.letter(), reason.to_string()));
    let expected = reference::outcome(&letters(position.board()), position.side().letter(), past);
    assert_eq!(
        found,
        expected.map(|(winner, reason)| (winner, reason.to_owned())),
        "{position}"
    );
    met.wins.extend(expected.map(|(_, reason)| reason));
}

fn compare_ends(position: &Position, history: &History, past: &Past, met: &mut Met) {
    let turns = distinct_turns(position, history);
    let found: BTreeSet<Letters> = turns.iter().map(|(end, _)| letters(end.board())).collect();
    assert_eq!(found.len(), turns.len(), "each end once");
    let expected = Turn::new(letters(position.board()), position.side().letter()).ends(past);
    assert!(found == expected, "{position}");
    for (end, turn) in turns.iter().step_by(turns.len() / 8 + 1) {
        assert_eq!(position.after_turn(turn, history).as_ref(), Ok(end));
    }
    met.ends += found.len();
}

/// Forbids some ends of a position's turns: those of single steps, of any turns, or all of them.
fn forbid_some(position: &Position, rng: &mut ChaCha8Rng) -> (History, Past) {
    let ends: Vec<Position> = distinct_turns(position, &History::default())
        .into_iter()
        .map(|(end, _)| end)
        .collect();
    let forbidden = match rng.random_range(0..4) {
        // Shortest turns come first.
        0 => ends.iter().take(30).sample(rng, 3),
        1 if ends.len() <= 12 => ends.iter().collect(),
        _ => ends.sample(rng, ends.len().min(40)).collect(),
    };
    let (mut history, mut past) = (History::default(), Past::new());
    for end in forbidden {
        for _ in 0..2 {
            history.push(end);
            past.push((letters(end.board()), end.side().letter()));
        }
    }
    (history, past)
}

/// Compares random positions, the first of every two without history: steps, dead ends and outcomes of all, the ends of the
/// turns of those that have up to so many. Of every fortieth position and the one after it they are compared however many.
fn compare_positions(seed: u64, positions: usize, ends: usize) -> Met {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut met = Met::default();
    for index in 0..positions {
        let position = random_position(&mut rng);
        let (history, past) = match index % 2 {
            0 => Default::default(),
            _ => forbid_some(&position, &mut rng),
        };
        compare_outcome(&position, &history, &past, &mut met);
        for _ in 0..2 {
            compare_walk(&position, &history, &past, &mut rng, &mut met);
        }
        let few = distinct_turns(&position, &history).len() <= ends;
        if few || index % 40 < 2 {
            met.positions_with_ends += 1;
            compare_ends(&position, &history, &past, &mut met);
        }
    }
    met
}

/// Compares random games in which the sides like to go back to positions that have stood.
fn compare_games(seed: u64, games: usize) -> Met {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut met = Met::default();
    let mut played = 0;
    while played < games {
        let start = random_position(&mut rng);
        let mut game = Game::from_position(start);
        if game.outcome().is_some() || distinct_turns(&start, game.history()).len() > 300 {
            continue;
        }
        played += 1;
        let mut past: Past = vec![(letters(start.board()), start.side().letter())];
        for _ in 0..32 {
            compare_outcome(game.position(), game.history(), &past, &mut met);
            if game.outcome().is_some() {
                break;
            }
            let walks = if game.history().forbids_any() { 8 } else { 1 };
            for _ in 0..walks {
                compare_walk(game.position(), game.history(), &past, &mut rng, &mut met);
            }
            let turns = distinct_turns(game.position(), game.history());
            if turns.len() < 100 {
                compare_ends(game.position(), game.history(), &past, &mut met);
            }
            // Back to where the game has been, or to where the side began, else off with any piece but a rabbit, so that games
            // last and repeat.
            let mover = game.position().side();
            let choose = |wanted: &dyn Fn(&Position) -> bool| -> Vec<_> {
                turns.iter().filter(|(end, _)| wanted(end)).collect()
            };
            let mut choices = choose(&|end| game.history().count(end) == 1);
            if choices.is_empty() {
                choices = choose(&|end| end.board().side(mover) == start.board().side(mover));
            }
            if choices.is_empty() || rng.random_bool(0.1) {
                let rabbits = game.position().board().kind(Kind::Rabbit);
                choices = choose(&|end| end.board().kind(Kind::Rabbit) == rabbits);
                choices.truncate(2);
            }
            if choices.is_empty() {
                choices = choose(&|_| true);
            }
            let (end, turn) = choices.choose(&mut rng).unwrap();
            met.repetitions += usize::from(game.history().count(end) == 1);
            game.play(turn).unwrap();
            past.push((letters(end.board()), end.side().letter()));
        }
    }
    met
}

#[test]
fn random_positions_agree() {
    let met = compare_positions(1, 1_000, 1_000);
    assert!(met.states > 8_000, "{met:?}");
    assert!(met.dead_ends > 100, "{met:?}");
    assert!(met.ends > 10_000, "{met:?}");
    assert_eq!(met.wins.len(), 3, "{met:?}");
}

#[test]
fn random_games_with_repetition_agree() {
    let met = compare_games(2, 120);
    assert!(met.repetitions > 200, "{met:?}");
    assert!(met.forbidden_steps > 40, "{met:?}");
    assert!(met.forbidden_ends > 100, "{met:?}");
}

#[test]
#[ignore = "minutes: twenty times the positions of the other test, most with all their turns, and more games"]
fn many_random_positions_and_games_agree() {
    for seed in 100..120 {
        println!("{:?}", compare_positions(seed, 1_000, 5_000));
        println!("{:?}", compare_games(seed, 60));
    }
}

/// Gold can only shuffle its elephant between a1 and b1, Silver goes to and fro: in the end Gold's only turn would be a third
/// occurrence.
#[test]
fn a_side_whose_every_turn_is_a_forbidden_repetition_has_lost() {
    let start = position(Side::Silver, "Eb1 Ra2 Rb2 ra3 rb3 rc2 ec1 ch8");
    let mut game = Game::from_position(start);
    let mut past: Past = vec![(letters(start.board()), 's')];
    let mut met = Met::default();
    for text in ["ch8w", "Eb1w", "cg8e", "Ea1e", "ch8w", "Eb1w", "cg8e"] {
        assert_eq!(game.outcome(), None, "{text}");
        let turn = parse_turn(text, game.position()).unwrap();
        game.play(&turn).unwrap();
        past.push((
            letters(game.position().board()),
            game.position().side().letter(),
        ));
        compare_outcome(game.position(), game.history(), &past, &mut met);
        compare_ends(game.position(), game.history(), &past, &mut met);
    }
    assert_eq!(
        game.outcome(),
        Some(Outcome {
            winner: Side::Silver,
            reason: Reason::Immobilization
        })
    );
    let alone = Game::from_position(*game.position());
    assert_eq!(alone.outcome(), None, "the same position standing first");
}
