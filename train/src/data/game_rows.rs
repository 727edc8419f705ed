//! The rows of one game as they lie in a pool: column by column where they differ in length, and drawn by their weights.

use super::outcomes::Outcomes;
use super::{TargetOptions, TrainingRow};
use arimaa::rules::{Action, Side, Turn};
use engine::encoding::{InputRow, LegalMask, POLICY_SIZE, encode};
use engine::shard::{Ending, GameRecord, ReplayError, ReplayedTurn, RowRecord, TurnRecord, replay};

/// The rows of one game side by side in memory, without those that weigh nothing. All weights but [`GameRow::weight`] are those of
/// a row that weighs 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GameRows {
    pub(super) rows: Box<[GameRow]>,
    /// The targets of the policy, one row's behind the other's.
    policies: Box<[u16]>,
    /// The targets of the replies: those of a turn's rows are the same ones.
    replies: Box<[(u16, u16)]>,
}

/// What is kept of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GameRow {
    pub(super) input: InputRow,
    pub(super) legal: LegalMask,
    pub(super) taken: u64,
    /// The weight in the record.
    pub(super) weight: f32,
    pub(super) value: f32,
    pub(super) value_weight: f32,
    pub(super) turns_left: f32,
    pub(super) outcome_weight: f32,
    /// Where its part of the policies begins; it has as many as there are legal entries.
    policy: u32,
    reply: u32,
    reply_entries: u16,
    /// How often it is drawn.
    pub(super) draws: u16,
    pub(super) ending: u8,
}

/// A row wherever it is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowView<'a> {
    pub(super) input: &'a InputRow,
    pub(super) legal: &'a LegalMask,
    pub(super) policy: &'a [u16],
    pub(super) weight: f32,
    pub(super) value: f32,
    pub(super) value_weight: f32,
    pub(super) turns_left: f32,
    pub(super) ending: u8,
    pub(super) taken: u64,
    pub(super) outcome_weight: f32,
    pub(super) reply: &'a [(u16, u16)],
    pub(super) reply_weight: f32,
}

/// A row's weight is counted in so many parts of 1.
pub(super) const WEIGHT_UNITS: u32 = 256;

/// No row weighs more than this: whatever a file says, no row is drawn more often in an epoch.
const GREATEST_WEIGHT: f32 = 1_000.0;

/// What a game takes in a pool beside its rows: three allocations and their places.
pub(super) const BYTES_PER_GAME: usize = size_of::<GameRows>() + 3 * 32;

/// What each draw of a row takes in a pool.
pub(super) const BYTES_PER_DRAW: usize = 8;

/// What the index holds of a game: the sum of its rows' weights in [`WEIGHT_UNITS`]ths, and the bytes that they take in a pool at
/// most. Both are right for a game that is one under the rules; others are refused when they are read.
pub(super) fn game_weight(record: &GameRecord) -> (u32, u32) {
    let mut weight = 0.0;
    let mut bytes = BYTES_PER_GAME;
    for (index, turn) in record.turns.iter().enumerate() {
        let rows = turn.rows.iter().filter(|row| row.weight > 0.0);
        let bytes_before = bytes;
        for row in rows {
            let row_weight = row.weight.min(GREATEST_WEIGHT);
            weight += f64::from(row_weight);
            bytes += size_of::<GameRow>() + size_of_val(&row.policy[..]);
            bytes += row_weight.ceil() as usize * BYTES_PER_DRAW;
        }
        if bytes > bytes_before {
            let next = record.turns.get(index + 1).filter(|_| has_replies(record));
            let entries = next.map_or(0, |next| first_row(next).map_or(1, |row| row.policy.len()));
            bytes += entries * size_of::<(u16, u16)>();
        }
    }
    // Too much for the type becomes the most that it holds.
    let weight = (weight * f64::from(WEIGHT_UNITS)).round() as u32;
    (weight, u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// Whether the rows of a game teach what the opponent replies: those of an unfinished one teach the policy and the search's value alone.
fn has_replies(record: &GameRecord) -> bool {
    !matches!(record.ending, Ending::Unfinished { .. })
}

/// The row at the start of a turn.
fn first_row(turn: &TurnRecord) -> Option<&RowRecord> {
    turn.rows.first().filter(|row| row.step == 0)
}

/// How often a row is drawn in an epoch: as often as its weight says, and once more with the chance of the rest. `random` draws from
/// 0 to 1.
pub(super) fn draws_of(weight: f32, random: impl FnOnce() -> f32) -> u16 {
    let weight = weight.min(GREATEST_WEIGHT);
    let (whole, rest) = (weight.trunc(), weight.fract());
    whole as u16 + u16::from(rest > 0.0 && random() < rest)
}

impl GameRows {
    /// The rows of a game, which is checked under the rules; `draws` says how often a row of some weight is drawn, and those that
    /// are not are left out.
    pub(super) fn of(
        record: &GameRecord,
        options: TargetOptions,
        mut draws: impl FnMut(f32) -> u16,
    ) -> Result<Self, ReplayError> {
        let turns = replay(record)?;
        let outcomes = Outcomes::of(&turns, options);
        let next = |index: usize| turns.get(index + 1).filter(|_| has_replies(record));
        let (mut count, mut entries, mut reply_entries) = (0, 0, 0);
        for (index, turn) in turns.iter().enumerate() {
            let before = count;
            for row in turn.rows.iter().filter(|row| row.weight > 0.0) {
                count += 1;
                entries += row.policy.len();
            }
            if count > before {
                let first = next(index).and_then(|next| next.rows.first());
                reply_entries += first.map_or(1, |row| row.policy.len());
            }
        }
        let mut rows = Vec::with_capacity(count);
        let mut policies = Vec::with_capacity(entries);
        let mut replies = Vec::with_capacity(reply_entries);
        for (index, turn) in turns.iter().enumerate() {
            let targets = outcomes.turn(index);
            let side = turn.position.side();
            let weighty = turn.rows.iter().filter(|row| row.weight > 0.0);
            let share = 1.0 / weighty.clone().count().max(1) as f32;
            let mut reply = None;
            for row in weighty {
                let draws = draws(row.weight);
                if draws == 0 {
                    continue;
                }
                let begin = replies.len();
                let (reply, reply_entries) = *reply.get_or_insert_with(|| {
                    replies.extend(reply_to(next(index)));
                    (begin as u32, (replies.len() - begin) as u16)
                });
                rows.push(GameRow {
                    input: encode(&row.state, turn.repetitions),
                    legal: LegalMask::new(&row.legal, side),
                    taken: targets.taken(&row.state),
                    weight: row.weight,
                    value: targets.value,
                    value_weight: targets.value_weight * share,
                    turns_left: targets.turns_left,
                    outcome_weight: targets.outcome_weight * share,
                    policy: policies.len() as u32,
                    reply,
                    reply_entries,
                    draws,
                    ending: targets.ending,
                });
                policies.extend_from_slice(row.policy);
            }
        }
        Ok(Self {
            rows: rows.into(),
            policies: policies.into(),
            replies: replies.into(),
        })
    }

    /// A row that counts as one that weighs 1.
    pub(super) fn view(&self, row: usize) -> RowView<'_> {
        let row = &self.rows[row];
        let (policy, reply) = (row.policy as usize, row.reply as usize);
        RowView {
            input: &row.input,
            legal: &row.legal,
            policy: &self.policies[policy..policy + row.legal.count()],
            weight: 1.0,
            value: row.value,
            value_weight: row.value_weight,
            turns_left: row.turns_left,
            ending: row.ending,
            taken: row.taken,
            outcome_weight: row.outcome_weight,
            reply: &self.replies[reply..reply + usize::from(row.reply_entries)],
            reply_weight: f32::from(u8::from(row.reply_entries > 0)),
        }
    }

    /// What they take in memory.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        BYTES_PER_GAME
            + size_of_val(&self.rows[..])
            + size_of_val(&self.policies[..])
            + size_of_val(&self.replies[..])
    }
}

impl<'a> From<&'a TrainingRow> for RowView<'a> {
    fn from(row: &'a TrainingRow) -> Self {
        Self {
            input: &row.input,
            legal: &row.legal,
            policy: &row.policy,
            weight: row.weight,
            value: row.value,
            value_weight: row.value_weight,
            turns_left: row.helpers.turns_left,
            ending: row.helpers.ending,
            taken: row.helpers.taken,
            outcome_weight: row.helpers.outcome_weight,
            reply: &row.helpers.reply,
            reply_weight: row.helpers.reply_weight,
        }
    }
}

/// An entry of the opponent's policy as the entry of the same action as a mover sees the board: ranks flipped, north and south
/// exchanged. Its own inverse.
const SEEN_BY_OPPONENT: [u16; POLICY_SIZE] = {
    let mut entries = [0; POLICY_SIZE];
    let mut index = 0;
    while index < POLICY_SIZE {
        if let Some(action) = Action::from_index(index, Side::Silver) {
            entries[index] = action.index(Side::Gold) as u16;
        }
        index += 1;
    }
    entries
};

/// What the mover should expect the opponent to do first: the target of the policy at the start of the next turn, or the action
/// that was played there; nothing where the game ended before. Entries are as the mover of the turn before sees them.
fn reply_to(next: Option<&ReplayedTurn>) -> Vec<(u16, u16)> {
    let Some(next) = next else {
        return Vec::new();
    };
    let side = next.position.side();
    match next.rows.first().filter(|row| row.state.steps_used() == 0) {
        Some(row) => {
            let entries = LegalMask::new(&row.legal, side).indices();
            let shares = entries.zip(row.policy.iter().copied());
            let shares = shares.filter(|&(_, share)| share > 0);
            shares
                .map(|(entry, share)| (SEEN_BY_OPPONENT[entry], share))
                .collect()
        }
        None => first_action(&next.turn, side)
            .map(|action| (SEEN_BY_OPPONENT[action.index(side)], u16::MAX))
            .into_iter()
            .collect(),
    }
}

/// The action that a turn begins with; a setup as [`Setup::placements`](arimaa::rules::Setup::placements) orders it.
fn first_action(turn: &Turn, side: Side) -> Option<Action> {
    match turn {
        Turn::Setup(setup) => setup
            .placements(side)
            .first()
            .map(|&square| Action::Place(square)),
        Turn::Steps(steps) => steps.first().map(|&step| Action::Step(step)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::samples::{game, targets};
    use arimaa::rules::Phase;
    use engine::shard::TurnOrigin;

    /// The rows of a game with the turn that each is of.
    fn rows(record: &GameRecord) -> (GameRows, Vec<usize>) {
        let turns = record.turns.iter().enumerate();
        let turns = turns.flat_map(|(index, turn)| vec![index; turn.rows.len()]);
        let rows = GameRows::of(record, targets(0.0), |_| 1).unwrap();
        (rows, turns.collect())
    }

    #[test]
    fn the_reply_is_the_next_turns_first_target_as_the_mover_sees_it() {
        let record = game(5, 1_000);
        assert!(matches!(record.ending, Ending::Won(_)));
        let replayed = replay(&record).unwrap();
        let (game, turns) = rows(&record);
        for (number, turn) in turns.into_iter().enumerate() {
            let row = game.view(number);
            let Some(next) = replayed.get(turn + 1) else {
                assert!(row.reply.is_empty() && row.reply_weight == 0.0);
                continue;
            };
            let (mover, opponent) = (replayed[turn].position.side(), next.position.side());
            let first = &next.rows[0];
            let mut expected: Vec<(u16, u16)> = first
                .legal
                .in_index_order(opponent)
                .map(|action| action.index(mover) as u16)
                .zip(first.policy.iter().copied())
                .filter(|&(_, share)| share > 0)
                .collect();
            let mut reply = row.reply.to_vec();
            reply.sort_unstable();
            expected.sort_unstable();
            assert_eq!(reply, expected);
            assert_eq!(row.reply_weight, 1.0);
        }
        // By hand: Silver's first placement on a8 is one on a1 in her eyes, and on a8 in Gold's.
        let first = game.view(0).reply;
        assert!(
            first
                .iter()
                .all(|&(entry, _)| (256 + 48..256 + 64).contains(&entry))
        );
    }

    #[test]
    fn where_the_next_turn_has_no_such_row_the_reply_is_what_was_played() {
        let mut record = game(5, 1_000);
        for turn in &mut record.turns {
            turn.rows.retain(|row| row.step != 0);
        }
        let replayed = replay(&record).unwrap();
        let (game, turns) = rows(&record);
        for (number, turn) in turns.into_iter().enumerate() {
            let Some(next) = record.turns.get(turn + 1) else {
                continue;
            };
            let opponent = replayed[turn + 1].position.side();
            let [(entry, share)] = game.view(number).reply else {
                panic!("{:?}", game.view(number).reply);
            };
            assert_eq!(*share, u16::MAX);
            // Placements are replayed in the setup's order, not in the recorded one.
            if replayed[turn + 1].position.phase() == Phase::Play {
                let played = Action::from_index(next.actions[0].into(), opponent).unwrap();
                assert_eq!(usize::from(*entry), played.index(opponent.opponent()));
            }
        }
    }

    #[test]
    fn an_unfinished_game_teaches_no_replies() {
        let (game, turns) = rows(&game(5, 20));
        assert!((0..turns.len()).all(|number| game.view(number).reply_weight == 0.0));
    }

    #[test]
    fn a_game_takes_no_more_than_the_index_says() {
        for counter in 0..20 {
            let mut record = game(counter, [100, 1_000][counter as usize % 2]);
            for (number, turn) in record.turns.iter_mut().enumerate() {
                match number % 4 {
                    0 => turn.rows.retain(|row| row.step != 0),
                    1 => turn.rows.iter_mut().for_each(|row| row.weight = 0.0),
                    2 => turn.origin = TurnOrigin::Given,
                    _ => turn.rows.iter_mut().for_each(|row| row.weight = 2.5),
                }
            }
            let game = GameRows::of(&record, targets(0.0), |weight| weight.ceil() as u16).unwrap();
            let draws: usize = game.rows.iter().map(|row| usize::from(row.draws)).sum();
            let (weight, bytes) = game_weight(&record);
            let taken = game.bytes() + draws * BYTES_PER_DRAW;
            // Entries of a reply that have no share are left out.
            assert!(taken <= bytes as usize && taken > bytes as usize * 9 / 10);
            let weights: f32 = game.rows.iter().map(|row| row.weight).sum();
            assert_eq!(weight, (weights * 256.0) as u32);
            let half = GameRows::of(&record, targets(0.0), |weight| (weight > 1.0).into()).unwrap();
            assert!(half.bytes() < game.bytes());
            let rows = half.rows.iter().map(|row| row.weight);
            assert!(rows.clone().count() > 0 && rows.into_iter().all(|weight| weight == 2.5));
        }
    }

    #[test]
    fn a_game_that_breaks_the_rules_is_refused() {
        let mut record = game(1, 10);
        record.turns[3].actions[0] = 320;
        assert!(GameRows::of(&record, targets(0.0), |_| 1).is_err());
    }
}
