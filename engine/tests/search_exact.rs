//! What the search decides is held against trying every turn and every reply.

#[path = "../arimaa/tests/boards/mod.rs"]
mod boards;
mod exact;

use arimaa::rules::{
    Bitboard, Board, History, Kind, Piece, Position, Reason, Side, Square, StepState, TURN_STEPS,
    elimination_in, goal_in,
};
use boards::playable;
use engine::config::SearchMode;
use engine::search::SearchOptions;
use exact::{Judge, Judged, MODES, Purpose, Worth, decide_unaided, history_of, options};
use rand::rngs::ChaCha8Rng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// What a position asks of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// To go to the goal.
    Goal,
    /// To win without a goal: to take the enemy's last rabbit, to leave it without a turn, or without a turn that doesn't lose.
    OtherWin,
    /// To avoid a loss, which most turns are, mostly by a goal.
    AvoidGoal,
    /// To avoid a loss, which most turns are, mostly without a goal.
    AvoidOtherLoss,
    /// To find the one turn that doesn't lose; the game so far forbids all others.
    OneWayOut,
    /// Nothing: every turn loses.
    Lost,
    /// Nothing: hardly any turn loses.
    Quiet,
}

/// How many positions of each class are compared.
const SHARES: [(Class, usize); 7] = [
    (Class::Goal, 35),
    (Class::OtherWin, 45),
    (Class::AvoidGoal, 45),
    (Class::AvoidOtherLoss, 12),
    (Class::OneWayOut, 35),
    (Class::Lost, 30),
    (Class::Quiet, 8),
];

/// A position with the game so far and the worth of all its turns.
#[derive(Debug, Clone)]
struct Case {
    class: Class,
    position: Position,
    history: History,
    turns: Vec<Judged>,
}

/// The most pairs of a turn and a turn of the enemy that a case may have: every pair is tried.
const MAX_PAIRS: usize = 10_000;

/// A random position with three to six pieces, a rabbit of each side among them, which stand close to what decides games: the
/// rabbit of the enemy to its goal, that of the mover anywhere; or both to traps. Officers stand close to the rabbits.
fn few_pieces(rng: &mut ChaCha8Rng) -> Position {
    let side = *Side::ALL.choose(rng).unwrap();
    let near_traps = rng.random_bool(0.3);
    let mut board = Board::EMPTY;
    for (of, ranks) in [(side, 0..=6), (side.opponent(), 4..=6)] {
        let place = if near_traps {
            Bitboard::TRAPS | Bitboard::TRAPS.neighbours()
        } else {
            on_ranks(of, ranks)
        };
        put_on(&mut board, place, Piece::new(of, Kind::Rabbit), rng);
    }
    let mut near = board.occupied();
    for _ in 0..rng.random_range(1..=2) {
        near |= near.neighbours();
    }
    // The fewer pieces the enemy has, the more often the mover wins; with more of them, the mover seldom has a way out.
    let movers_share = *[0.3, 0.7, 0.9].choose(rng).unwrap();
    for _ in 0..rng.random_range(1..=4) {
        let of = if rng.random_bool(movers_share) {
            side
        } else {
            side.opponent()
        };
        let piece = Piece::new(of, *Kind::ALL.choose(rng).unwrap());
        put_on(&mut board, near & !Bitboard::goal(of), piece, rng);
    }
    playable(board, side).unwrap_or_else(|| few_pieces(rng))
}

/// These ranks, 0 to 7, as a side sees the board.
fn on_ranks(side: Side, ranks: RangeInclusive<u8>) -> Bitboard {
    Square::all()
        .filter(|square| ranks.contains(&square.seen_by(side).rank()))
        .map(Bitboard::of)
        .fold(Bitboard::EMPTY, |all, square| all | square)
}

/// Puts a piece on a random empty square of a set, if there is one.
fn put_on(board: &mut Board, place: Bitboard, piece: Piece, rng: &mut ChaCha8Rng) {
    if let Some(square) = (place & board.empty()).into_iter().choose(rng) {
        board.put(square, piece);
    }
}

/// The class of a position with such turns, unless it is between the classes.
fn classify(turns: &[Judged]) -> Option<Class> {
    let best = turns.iter().map(|turn| turn.worth).max()?;
    let of_best = |turn: &&Judged| turn.worth == best;
    let losing: Vec<&Judged> = turns
        .iter()
        .filter(|turn| turn.worth == Worth::Loss)
        .collect();
    let share = losing.len() as f32 / turns.len() as f32;
    match best {
        Worth::Loss => Some(Class::Lost),
        Worth::Win => {
            let goal = |turn: &Judged| turn.by == Some(Reason::Goal);
            let by_goal = turns.iter().filter(of_best).any(goal);
            Some(if by_goal {
                Class::Goal
            } else {
                Class::OtherWin
            })
        }
        Worth::Undecided if share < 0.05 => Some(Class::Quiet),
        Worth::Undecided if share < 0.5 => None,
        Worth::Undecided => {
            let goal = |turn: &&&Judged| turn.by == Some(Reason::Goal);
            let by_goal = losing.iter().filter(goal).count();
            Some(if 2 * by_goal > losing.len() {
                Class::AvoidGoal
            } else {
                Class::AvoidOtherLoss
            })
        }
    }
}

/// A random case, of a position with few enough turns that is of a class.
fn random_case(seed: u64, judge: &mut Judge) -> Option<Case> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let position = few_pieces(&mut rng);
    let mut history = history_of(&position);
    let (turns, replies) = judge.count_turns(&position);
    if position.outcome(&history).is_some() || turns * replies > MAX_PAIRS {
        return None;
    }
    // Most positions are won at once; not all of them are worth the time.
    let state = StepState::new(&position);
    let is_won = goal_in(&state, TURN_STEPS).or_else(|| elimination_in(&state, TURN_STEPS));
    if is_won.is_some() && !seed.is_multiple_of(8) {
        return None;
    }
    let mut turns = judge.judge(&position, &history);
    let mut class = classify(&turns)?;
    let holding = match class {
        Class::Goal | Class::OtherWin | Class::Lost => None,
        _ => Some(holding_turn(&turns, &history, judge)?),
    };
    let avoids = matches!(class, Class::AvoidGoal | Class::AvoidOtherLoss);
    if let Some(holding) = holding.filter(|_| avoids && rng.random_bool(0.35)) {
        let ways_out = turns.iter().filter(|turn| turn.worth == Worth::Undecided);
        for closed in ways_out.filter(|turn| turn.end != holding) {
            history.push(&closed.end);
            history.push(&closed.end);
        }
        turns = judge.judge(&position, &history);
        class = Class::OneWayOut;
    }
    Some(Case {
        class,
        position,
        history,
        turns,
    })
}

/// The end of a turn with which the mover holds out for four turns, looked for among the first undecided ones. Without such a turn
/// a search that sees that far has no reason to prefer one of them.
fn holding_turn(turns: &[Judged], history: &History, judge: &mut Judge) -> Option<Position> {
    let undecided = turns.iter().filter(|turn| turn.worth == Worth::Undecided);
    let mut ends = undecided.map(|turn| turn.end).take(4);
    ends.find(|end| judge.holds_out(end, history))
}

/// As many random cases of each class as there are to be.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(random_cases);

fn random_cases() -> Vec<Case> {
    let mut left = SHARES;
    let mut cases = Vec::new();
    for batch in 0..100 {
        let seeds = batch * 256..(batch + 1) * 256;
        let found: Vec<Option<Case>> = seeds
            .into_par_iter()
            .map_init(Judge::default, |judge, seed| random_case(seed, judge))
            .collect();
        for case in found.into_iter().flatten() {
            let share = left.iter_mut().find(|(class, _)| *class == case.class);
            if let Some((_, left)) = share.filter(|(_, left)| *left > 0) {
                *left -= 1;
                cases.push(case);
            }
        }
        if left.iter().all(|&(_, left)| left == 0) {
            return cases;
        }
    }
    panic!("too few positions of a class: {left:?} are missing");
}

/// The visits that suffice to see all that happens in two turns.
const LARGE_BUDGET: u32 = 20_000;

/// Why a decision is wrong, if it is.
fn fault(case: &Case, mode: SearchMode, merges: bool, parallel_leaves: u32) -> Option<String> {
    let purpose = Purpose::StrongestOf(case.turns.len());
    let options = SearchOptions {
        merges,
        parallel_leaves,
        ..options(mode, purpose, LARGE_BUDGET)
    };
    let (decision, end) = decide_unaided(&case.position, &case.history, options);
    let best = case.turns.iter().map(|turn| turn.worth).max().unwrap();
    let chosen = case.turns.iter().find(|turn| turn.end == end).unwrap();
    let as_good = case.turns.iter().filter(|turn| turn.worth == best).count();
    (chosen.worth < best).then(|| {
        format!(
            "{mode:?}, {:?}, {:?} instead of one of {as_good} in {}, value {}: {} in {}",
            case.class,
            chosen.worth,
            case.turns.len(),
            decision.value,
            decision.turn,
            case.position,
        )
    })
}

#[test]
fn the_exact_worth_agrees_with_the_solvers() {
    let mut compared = [0; 3];
    let of_case = |case: &'static Case| case.turns.iter().map(move |turn| (case, turn));
    for (case, turn) in CASES.iter().flat_map(of_case) {
        if turn.end.outcome(&case.history).is_some() {
            continue;
        }
        let reply = StepState::new(&turn.end);
        let is_goal = goal_in(&reply, TURN_STEPS).is_some();
        let is_elimination = elimination_in(&reply, TURN_STEPS).is_some();
        match (turn.worth, turn.by) {
            (Worth::Loss, Some(Reason::Goal)) => assert!(is_goal, "{}", turn.end),
            (Worth::Loss, Some(Reason::Elimination)) => {
                assert!(!is_goal && is_elimination, "{}", turn.end);
            }
            _ => assert!(!is_goal && !is_elimination, "{}", turn.end),
        }
        compared[usize::from(is_goal) + 2 * usize::from(is_elimination && !is_goal)] += 1;
    }
    assert!(compared.iter().all(|&count| count > 100), "{compared:?}");
}

#[test]
fn with_few_pieces_the_turn_is_as_good_as_the_best_of_all() {
    check_all(1);
}

#[test]
fn with_many_leaves_in_flight_it_is_too() {
    check_all(32);
}

fn check_all(leaves: u32) {
    let cases = &CASES;
    assert!(cases.len() >= 200);
    let few = |case: &Case| case.position.board().occupied().count() <= 6;
    assert!(cases.iter().all(few));
    for mode in MODES {
        let faults: Vec<String> = cases
            .par_iter()
            .filter_map(|case| fault(case, mode, true, leaves))
            .collect();
        assert!(
            faults.is_empty(),
            "{} of {}:\n{}",
            faults.len(),
            cases.len(),
            faults.join("\n")
        );
    }
}

/// A tree in which every order of steps has its own nodes is far larger, and must find the same where it sees all that matters: in
/// small positions whose best turns the solvers of goals and eliminations tell from the others. Where it takes all replies to see
/// a loss, no budget would do: each order of a turn and of its replies has to be seen for itself.
#[test]
fn without_merging_solved_positions_are_decided_as_well() {
    let is_solved = |case: &&Case| {
        let by_replies = [Class::OneWayOut, Class::AvoidOtherLoss];
        case.turns.len() <= 60 && !by_replies.contains(&case.class)
    };
    let cases: Vec<&Case> = CASES.iter().filter(is_solved).collect();
    assert!(cases.len() >= 40, "{}", cases.len());
    for mode in MODES {
        let faults: Vec<String> = cases
            .par_iter()
            .filter_map(|case| fault(case, mode, false, 1))
            .collect();
        let count = faults.len();
        let all = cases.len();
        assert!(
            faults.is_empty(),
            "{count} of {all}:\n{}",
            faults.join("\n")
        );
    }
}
