//! Searches, and what they are held against: the exact value of every turn of a position, by trying all turns and all replies.
#![allow(dead_code, reason = "each test program uses what it needs")]

use arimaa::rules::{Game, History, Outcome, Position, Reason, TurnEnumerator, distinct_turns};
use engine::config::{AutoOr, SearchConfig, SearchMode};
use engine::search::{Decision, Evaluator, Noise, SearchOptions, Uniform, search_turn};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// Both modes.
pub(crate) const MODES: [SearchMode; 2] = [SearchMode::Puct, SearchMode::Gumbel];

/// What a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The strongest turn: no noise, no temperature, every check unbounded.
    Strongest,
    /// The strongest turn of a position with this many distinct turns, none of which may be left out of consideration.
    StrongestOf(usize),
    /// Games to learn from, with noise and temperature.
    Learning,
}

/// Options of play to learn from: noise, temperature 1, a limited proof of losses.
pub(crate) fn learning(mode: SearchMode, evaluations: u32) -> SearchOptions {
    SearchOptions {
        mode,
        temperature: 1.0,
        gumbel_noise: 1.0,
        noise: Some(Noise {
            share: 0.25,
            concentration: 10.0,
        }),
        loss_proof_limit: Some(20_000),
        ..SearchOptions::strongest(&SearchConfig::default(), evaluations)
    }
}

/// The options that all these tests search with.
pub(crate) fn options(mode: SearchMode, purpose: Purpose, evaluations: u32) -> SearchOptions {
    let mut options = match purpose {
        Purpose::Strongest | Purpose::StrongestOf(_) => {
            SearchOptions::strongest(&SearchConfig::default(), evaluations)
        }
        Purpose::Learning => learning(mode, evaluations),
    };
    options.mode = mode;
    if let Purpose::StrongestOf(turns) = purpose {
        options.gumbel.candidates = AutoOr::Fixed(turns as u32);
    }
    options
}

/// The history of a game that starts in a position.
pub(crate) fn history_of(position: &Position) -> History {
    Game::from_position(*position).history().clone()
}

/// Decides a turn of a game that starts in the position.
pub(crate) fn decide(
    evaluator: &mut dyn Evaluator,
    position: &Position,
    options: SearchOptions,
    seed: u64,
) -> Decision {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let history = history_of(position);
    search_turn(evaluator, position, &history, options, &mut rng).unwrap()
}

/// Decides a turn of a game with this history, knowing nothing but the rules. Returns the position that the turn ends in, too.
pub(crate) fn decide_unaided(
    position: &Position,
    history: &History,
    options: SearchOptions,
) -> (Decision, Position) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let decision = search_turn(&mut Uniform, position, history, options, &mut rng).unwrap();
    let end = position.after_turn(&decision.turn, history).unwrap();
    (decision, end)
}

/// What a turn is worth to its mover after the best reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Worth {
    /// The enemy wins at once or with its reply.
    Loss,
    /// The game continues.
    Undecided,
    /// The mover wins at once, or whatever the enemy replies.
    Win,
}

/// A turn, named by the position that it ends in, and its worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    /// Where it ends.
    pub(crate) end: Position,
    /// Its worth.
    pub(crate) worth: Worth,
    /// How the game ends where it is decided; of several ways by goal, or else by elimination.
    pub(crate) by: Option<Reason>,
}

/// Judges turns by the rules alone. No solver of goals or eliminations has a say, only [`Position::outcome`] after all turns.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    turns: TurnEnumerator,
    replies: TurnEnumerator,
}

impl Judge {
    /// How many turns a position has, and how many the enemy would have in it.
    pub(crate) fn count_turns(&mut self, position: &Position) -> (usize, usize) {
        let other = Position::in_play(*position.board(), position.side().opponent());
        let nothing = History::default();
        (
            self.turns.enumerate(position, &nothing).len(),
            self.replies.enumerate(&other, &nothing).len(),
        )
    }

    /// All distinct turns of a position in which the game is not over; the history holds the position.
    pub(crate) fn judge(&mut self, position: &Position, history: &History) -> Vec<Judged> {
        let mut history = history.clone();
        let turns = self.turns.enumerate(position, &history);
        let mut judged = Vec::with_capacity(turns.len());
        for (end, _) in turns {
            history.push(&end);
            judged.push(judge_end(&mut self.replies, end, &mut history));
            history.pop(&end);
        }
        judged
    }

    /// Whether an undecided turn that ends here still leaves its mover a turn that doesn't lose after every reply: whether the
    /// mover holds out for four turns. The history holds the position before the turn.
    pub(crate) fn holds_out(&mut self, end: &Position, history: &History) -> bool {
        let mut history = history.clone();
        history.push(end);
        let replies = distinct_turns(end, &history);
        replies.into_iter().all(|(reply_end, _)| {
            history.push(&reply_end);
            let has_way_out = match reply_end.outcome(&history) {
                Some(outcome) => outcome.winner == reply_end.side(),
                None => self.has_way_out(&reply_end, &mut history),
            };
            history.pop(&reply_end);
            has_way_out
        })
    }

    /// Whether some turn doesn't lose.
    fn has_way_out(&mut self, position: &Position, history: &mut History) -> bool {
        let mut turns = self.turns.enumerate(position, history).into_iter();
        turns.any(|(end, _)| {
            history.push(&end);
            let judged = judge_end(&mut self.replies, end, history);
            history.pop(&end);
            judged.worth > Worth::Loss
        })
    }
}

/// Judges the turn that ends here; the history holds this position, and is left as it was.
fn judge_end(replies: &mut TurnEnumerator, end: Position, history: &mut History) -> Judged {
    let mover = end.side().opponent();
    let decided_by = |outcome: Option<Outcome>| match outcome {
        None => (Worth::Undecided, None),
        Some(outcome) if outcome.winner == mover => (Worth::Win, Some(outcome.reason)),
        Some(outcome) => (Worth::Loss, Some(outcome.reason)),
    };
    let at_once = end.outcome(history);
    let replies = match at_once {
        Some(_) => None,
        None => Some(replies.enumerate(&end, history)),
    };
    let worst_reply = replies.and_then(|replies| {
        let judged = replies.into_iter().map(|(reply_end, _)| {
            history.push(&reply_end);
            let outcome = reply_end.outcome(history);
            history.pop(&reply_end);
            decided_by(outcome)
        });
        judged.min_by_key(|&(worth, by)| (worth, by.map(|reason| reason as u8)))
    });
    let (worth, by) = worst_reply.unwrap_or_else(|| decided_by(at_once));
    Judged { end, worth, by }
}
