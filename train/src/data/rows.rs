//! The rows of one game as they lie in memory: row by row, and in one arena where they differ in length.

use super::targets::{GameTargets, Target, TargetOptions, has_replies};
use engine::encoding::{InputRow, LegalMask, encode};
use engine::record::{GameRecord, ReplayError, RowRecord, TurnRecord, replay};
use network::{Head, HeadLoss, HeadOutput, PerHead, RowWeight};

/// The rows of one game that have a weight.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GameRows {
    rows: Box<[Row]>,
    /// The shares of policies, one row's behind the other's; the replies of a turn's rows are the same ones.
    shares: Box<[u16]>,
}

/// One row in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    input: InputRow,
    legal: LegalMask,
    /// The weight in the record.
    pub(super) weight: f32,
    /// The weights in the losses, of a row that weighs 1.
    weights: [f32; RowWeight::ALL.len()],
    /// How often it is drawn.
    pub(super) draws: u16,
    /// A number's bits, a class, a bitboard, or where the shares are: the first one in the upper half, their count in the lower.
    targets: PerHead<u64>,
}

/// A row of a game in memory, as a batch takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRef<'a> {
    game: &'a GameRows,
    row: &'a Row,
    weight: f32,
    mirrored: bool,
}

/// A row's weight is counted in so many parts of 1.
pub(super) const WEIGHT_UNITS: u32 = 256;

/// No row weighs more than this: whatever a file says, no row is drawn more often in an epoch.
const MAX_WEIGHT: f32 = 1_000.0;

/// The rows that a sum of weights stands for.
pub(super) fn rows_of_weight(weight: u64) -> u64 {
    let units = u64::from(WEIGHT_UNITS);
    weight.saturating_add(units / 2) / units
}

/// The bytes of a game in a pool beside its rows: two allocations and their places.
pub(super) const BYTES_PER_GAME: usize = size_of::<GameRows>() + 2 * 32;

/// The bytes of each draw of a row in a pool.
pub(super) const BYTES_PER_DRAW: usize = 8;

/// The index's numbers of a game: the sum of its rows' weights in [`WEIGHT_UNITS`]ths, and the bytes that they take in a pool at
/// most. Both are right for a legal game; others are refused when they are read.
pub(super) fn game_weight(record: &GameRecord) -> (u32, u32) {
    let mut weight = 0.0;
    let mut bytes = BYTES_PER_GAME;
    for (index, turn) in record.turns.iter().enumerate() {
        let rows = turn.rows.iter().filter(|row| row.weight > 0.0);
        let bytes_before = bytes;
        for row in rows {
            let row_weight = row.weight.min(MAX_WEIGHT);
            weight += f64::from(row_weight);
            bytes += size_of::<Row>() + size_of_val(&row.policy[..]);
            bytes += row_weight.ceil() as usize * BYTES_PER_DRAW;
        }
        if bytes > bytes_before {
            let next = record.turns.get(index + 1);
            let next = next.filter(|_| has_replies(record.ending));
            let shares = next.map_or(0, |next| first_row(next).map_or(1, |row| row.policy.len()));
            bytes += shares * size_of::<[u16; 2]>();
        }
    }
    // Too much for the type becomes the most that it holds.
    let weight = (weight * f64::from(WEIGHT_UNITS)).round() as u32;
    (weight, u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// The row at the start of a turn.
fn first_row(turn: &TurnRecord) -> Option<&RowRecord> {
    turn.rows.first().filter(|row| row.step == 0)
}

/// How often a row is drawn in an epoch: as often as its weight says, and once more with the chance of the rest. `random` draws from
/// 0 to 1.
pub(super) fn draws_of(weight: f32, random: impl FnOnce() -> f32) -> u16 {
    let weight = weight.min(MAX_WEIGHT);
    let (whole, rest) = (weight.trunc(), weight.fract());
    whole as u16 + u16::from(rest > 0.0 && random() < rest)
}

impl GameRows {
    /// All rows of a game that have a weight.
    ///
    /// # Errors
    /// The game breaks the rules, or its record contradicts itself.
    pub(crate) fn all(record: &GameRecord, options: TargetOptions) -> Result<Self, ReplayError> {
        Self::drawn(record, options, |_| 1)
    }

    /// Some rows of a game: `draws` says how often a row of some weight is drawn.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub(super) fn drawn(
        record: &GameRecord,
        options: TargetOptions,
        mut draws: impl FnMut(f32) -> u16,
    ) -> Result<Self, ReplayError> {
        let turns = replay(record)?;
        let targets = GameTargets::new(&turns, options);
        let mut rows = Vec::new();
        let mut shares = Shares::default();
        for (index, turn) in turns.iter().enumerate() {
            let weighty = turn.rows.iter().filter(|row| row.weight > 0.0);
            let share = 1.0 / weighty.clone().count().max(1) as f32;
            let mut targets_of_turn = None;
            for row in weighty {
                let draws = draws(row.weight);
                if draws == 0 {
                    continue;
                }
                let targets = targets_of_turn.get_or_insert_with(|| targets.turn(index));
                rows.push(Row {
                    input: encode(&row.state, turn.repetitions),
                    legal: LegalMask::new(&row.legal, turn.position.side()),
                    weight: row.weight,
                    weights: RowWeight::ALL.map(|of| targets.weight(of, share)),
                    draws,
                    targets: PerHead::from_fn(|head| shares.keep(targets.of(head, row))),
                });
            }
        }
        Ok(Self {
            rows: rows.into(),
            shares: shares.all.into(),
        })
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Its rows in order, with their recorded weights.
    pub(crate) fn rows(&self) -> impl Iterator<Item = RowRef<'_>> {
        self.rows.iter().map(|row| RowRef {
            game: self,
            row,
            weight: row.weight,
            mirrored: false,
        })
    }

    /// A row that counts as one that weighs 1.
    pub(super) fn row(&self, index: usize) -> RowRef<'_> {
        RowRef {
            game: self,
            row: &self.rows[index],
            weight: 1.0,
            mirrored: false,
        }
    }

    /// How often each row is drawn.
    pub(super) fn draws(&self) -> impl Iterator<Item = u16> {
        self.rows.iter().map(|row| row.draws)
    }
}

/// The arena of a game's shares while it is filled.
#[derive(Default)]
struct Shares {
    all: Vec<u16>,
    /// Where the last reply is.
    last_reply: (usize, usize),
}

impl Shares {
    /// Keeps a target: see [`Row::targets`].
    fn keep(&mut self, target: Target) -> u64 {
        match target {
            Target::Number(number) => number.to_bits().into(),
            Target::Class(class) => class.into(),
            Target::Squares(squares) => squares,
            Target::LegalShares(shares) => {
                let begin = self.all.len();
                self.all.extend_from_slice(shares);
                place(begin, shares.len())
            }
            Target::Shares(shares) => {
                let numbers = shares.as_flattened();
                let (begin, count) = self.last_reply;
                if self.all[begin..begin + count] != *numbers {
                    self.last_reply = (self.all.len(), numbers.len());
                    self.all.extend_from_slice(numbers);
                }
                place(self.last_reply.0, numbers.len())
            }
        }
    }
}

fn place(begin: usize, count: usize) -> u64 {
    (begin as u64) << 32 | count as u64
}

impl<'a> RowRef<'a> {
    /// The state as the network sees it.
    pub(crate) fn input(&self) -> &'a InputRow {
        &self.row.input
    }

    /// The legal entries of the policy.
    pub(crate) fn legal(&self) -> &'a LegalMask {
        &self.row.legal
    }

    /// Whether a batch takes it mirrored; the values of this type are not.
    pub(super) fn is_mirrored(&self) -> bool {
        self.mirrored
    }

    /// The same row, to be mirrored or not.
    pub(crate) fn mirrored(self, mirrored: bool) -> Self {
        Self { mirrored, ..self }
    }

    /// The weight in a loss.
    pub(crate) fn weight(&self, of: RowWeight) -> f32 {
        self.weight * self.row.weights[of as usize]
    }

    /// The target of a head.
    pub(crate) fn target(&self, head: Head) -> Target<'a> {
        let (kept, spec) = (self.row.targets[head], head.spec());
        match spec.output {
            HeadOutput::Logit | HeadOutput::Count { .. } => {
                Target::Number(f32::from_bits(kept as u32))
            }
            HeadOutput::Classes(_) => Target::Class(kept as u8),
            HeadOutput::Squares => Target::Squares(kept),
            HeadOutput::Policy => {
                let (begin, count) = ((kept >> 32) as usize, kept as u32 as usize);
                let shares = &self.game.shares[begin..begin + count];
                match spec.loss {
                    HeadLoss::LegalCrossEntropy => Target::LegalShares(shares),
                    _ => Target::Shares(shares.as_chunks().0),
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::data::samples::{self, targets};
    use arimaa::rules::{Action, Phase, Side};
    use engine::record::{Ending, GameId, TurnOrigin, samples::random_game};

    impl GameRows {
        /// Rows with targets and weights of a test's own.
        pub(crate) fn replaced<'a>(
            rows: impl IntoIterator<Item = RowRef<'a>>,
            mut target: impl FnMut(RowRef<'a>, Head, &mut dyn FnMut(Target)),
        ) -> Self {
            let mut shares = Shares::default();
            let rows = rows.into_iter().map(|row| Row {
                weight: 1.0,
                weights: [1.0; RowWeight::ALL.len()],
                targets: PerHead::from_fn(|head| {
                    let mut kept = 0;
                    target(row, head, &mut |target| kept = shares.keep(target));
                    kept
                }),
                ..*row.row
            });
            Self {
                rows: rows.collect(),
                shares: shares.all.into(),
            }
        }

        /// Gives a row other weights.
        pub(crate) fn set_weights(&mut self, row: usize, weights: [f32; RowWeight::ALL.len()]) {
            self.rows[row].weights = weights;
        }

        /// What they take in memory.
        pub(in super::super) fn bytes(&self) -> usize {
            BYTES_PER_GAME + size_of_val(&self.rows[..]) + size_of_val(&self.shares[..])
        }
    }

    impl RowRef<'_> {
        pub(crate) fn number(&self, head: Head) -> f32 {
            match self.target(head) {
                Target::Number(number) => number,
                other => panic!("{head:?}: {other:?}"),
            }
        }

        pub(crate) fn squares(&self, head: Head) -> u64 {
            match self.target(head) {
                Target::Squares(squares) => squares,
                other => panic!("{head:?}: {other:?}"),
            }
        }

        pub(crate) fn class(&self, head: Head) -> u8 {
            match self.target(head) {
                Target::Class(class) => class,
                other => panic!("{head:?}: {other:?}"),
            }
        }

        pub(crate) fn policy(&self) -> &[u16] {
            match self.target(Head::Policy) {
                Target::LegalShares(shares) => shares,
                other => panic!("{other:?}"),
            }
        }

        fn reply(&self) -> &[[u16; 2]] {
            match self.target(Head::Reply) {
                Target::Shares(shares) => shares,
                other => panic!("{other:?}"),
            }
        }
    }

    fn game(max_turns: usize) -> GameRecord {
        let id = GameId {
            generator: 1,
            counter: 2,
        };
        random_game(id, 3, max_turns)
    }

    fn all(record: &GameRecord, search_value_share: f32) -> GameRows {
        GameRows::all(record, targets(search_value_share)).unwrap()
    }

    /// The turn of each row of a record.
    fn turns_of_rows(record: &GameRecord) -> Vec<usize> {
        let turns = record.turns.iter().enumerate();
        let turns = turns.flat_map(|(index, turn)| vec![index; turn.rows.len()]);
        turns.collect()
    }

    #[test]
    fn every_target_is_kept_as_it_is() {
        let record = game(1_000);
        let turns = replay(&record).unwrap();
        let targets = GameTargets::new(&turns, targets(0.25));
        let game = all(&record, 0.25);
        let mut rows = game.rows();
        for (index, turn) in turns.iter().enumerate() {
            let of_turn = targets.turn(index);
            for row in &turn.rows {
                let kept = rows.next().unwrap();
                for head in Head::ALL {
                    assert_eq!(kept.target(head), of_turn.of(head, row), "{head:?}");
                }
            }
        }
        assert!(rows.next().is_none());
    }

    #[test]
    fn every_recorded_row_comes_with_its_own_target() {
        let mut record = game(1_000);
        // A target that differs from others.
        for (number, row) in record
            .turns
            .iter_mut()
            .flat_map(|turn| &mut turn.rows)
            .enumerate()
        {
            row.policy.fill(0);
            let count = row.policy.len();
            row.policy[number % count] = u16::MAX;
            row.weight = 2.0;
        }
        let game = all(&record, 0.0);
        let recorded: Vec<_> = record.turns.iter().flat_map(|turn| &turn.rows).collect();
        assert_eq!(game.len(), recorded.len());
        for (number, (row, recorded)) in game.rows().zip(recorded).enumerate() {
            let policy = row.policy();
            assert_eq!(*policy, recorded.policy[..]);
            assert_eq!(row.legal().count(), policy.len());
            assert_eq!(policy[number % policy.len()], u16::MAX);
            assert_eq!(row.weight(RowWeight::Policy), 2.0);
        }
        let turn_weights: f32 = game.rows().map(|row| row.weight(RowWeight::Value)).sum();
        assert!((turn_weights - 2.0 * record.turns.len() as f32).abs() < 1e-2);
    }

    #[test]
    fn the_value_is_the_movers_mix_of_result_and_search() {
        let record = game(1_000);
        let Ending::Won(outcome) = record.ending else {
            panic!("the game of this seed ends by the rules");
        };
        let values = |share| {
            let game = all(&record, share);
            let mut rows = game.rows();
            let turns = record.turns.iter();
            turns
                .map(|turn| {
                    let last = rows.by_ref().take(turn.rows.len()).last();
                    last.unwrap().number(Head::Value)
                })
                .collect::<Vec<f32>>()
        };
        for (index, ((result, mix), turn)) in values(0.0)
            .iter()
            .zip(values(0.25))
            .zip(&record.turns)
            .enumerate()
        {
            let mover = Side::ALL[index % 2];
            let (gold, won) = (mover == Side::Gold, outcome.winner == mover);
            assert_eq!(*result, if won { 1.0 } else { 0.0 });
            let value = turn.search().unwrap().value;
            let searched = if gold { value } else { 1.0 - value };
            let expected = 0.75 * result + 0.25 * searched;
            assert!((mix - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn an_unfinished_game_teaches_policy_and_search_value_alone() {
        let mut record = game(9);
        assert!(matches!(record.ending, Ending::Unfinished { .. }));
        let weights =
            |game: &GameRows, of| -> Vec<f32> { game.rows().map(|row| row.weight(of)).collect() };
        let none = |weights: Vec<f32>| weights.iter().all(|&weight| weight == 0.0);
        assert!(none(weights(&all(&record, 0.25), RowWeight::Reply)));
        let winner = Side::Silver;
        for ending in [record.ending, Ending::Forfeited { winner }] {
            record.ending = ending;
            let mixed = all(&record, 0.25);
            assert!(none(weights(&mixed, RowWeight::Outcome)));
            assert!(
                weights(&mixed, RowWeight::Policy)
                    .iter()
                    .all(|&weight| weight > 0.0)
            );
            // A quarter of a turn is left, over the turn's eight rows.
            let first = mixed.rows().next().unwrap();
            assert_eq!(first.weight(RowWeight::Value), 0.25 / 8.0);
            let searched = record.turns[0].search().unwrap().value;
            assert_eq!(first.number(Head::Value), searched);
            assert!(none(weights(&all(&record, 0.0), RowWeight::Value)));
        }
        record.ending = Ending::Resigned { winner };
        let resigned = all(&record, 0.0);
        assert!(
            weights(&resigned, RowWeight::Value)
                .iter()
                .all(|&weight| weight > 0.0)
        );
        assert!(none(weights(&resigned, RowWeight::Outcome)));
        let first = resigned.rows().next().unwrap();
        assert_eq!(first.number(Head::Value), 0.0, "Gold has lost");
    }

    #[test]
    fn rows_that_weigh_nothing_are_none() {
        let mut record = game(9);
        let whole = all(&record, 1.0);
        record.turns[2].rows[0].weight = 0.0;
        let fewer = all(&record, 1.0);
        assert_eq!(fewer.len(), whole.len() - 1);
        // The others of the turn share its value among them.
        let of_turn: f32 = fewer
            .rows()
            .skip(16)
            .take(3)
            .map(|row| row.weight(RowWeight::Value))
            .sum();
        let left = record.turns[2].rows.len() as f32 - 1.0;
        assert!((of_turn - 3.0 / left).abs() < 1e-6);
    }

    #[test]
    fn the_turns_of_others_are_learned_with_the_result_alone() {
        let mut record = game(1_000);
        let searched = all(&record, 0.5);
        for turn in &mut record.turns {
            turn.origin = TurnOrigin::Given;
        }
        let given = all(&record, 0.5);
        assert_eq!(given, all(&record, 0.0));
        assert_ne!(given, searched);
    }

    #[test]
    fn the_reply_is_the_next_turns_first_target_as_the_mover_sees_it() {
        let record = samples::game(5, 1_000);
        assert!(matches!(record.ending, Ending::Won(_)));
        let replayed = replay(&record).unwrap();
        let game = all(&record, 0.0);
        for (row, turn) in game.rows().zip(turns_of_rows(&record)) {
            let Some(next) = replayed.get(turn + 1) else {
                assert!(row.reply().is_empty() && row.weight(RowWeight::Reply) == 0.0);
                continue;
            };
            let (mover, opponent) = (replayed[turn].position.side(), next.position.side());
            let first = &next.rows[0];
            let mut expected: Vec<[u16; 2]> = first
                .legal
                .in_index_order(opponent)
                .map(|action| action.index(mover) as u16)
                .zip(first.policy.iter().copied())
                .filter(|&(_, share)| share > 0)
                .map(|(index, share)| [index, share])
                .collect();
            let mut reply = row.reply().to_vec();
            reply.sort_unstable();
            expected.sort_unstable();
            assert_eq!(reply, expected);
            assert_eq!(row.weight(RowWeight::Reply), 1.0);
        }
        // By hand: Silver's first placement on a8 is one on a1 in her eyes, and on a8 in Gold's.
        let first = game.row(0);
        assert!(
            first
                .reply()
                .iter()
                .all(|&[index, _]| (256 + 48..256 + 64).contains(&index))
        );
    }

    #[test]
    fn where_the_next_turn_has_no_such_row_the_reply_is_what_was_played() {
        let mut record = samples::game(5, 1_000);
        for turn in &mut record.turns {
            turn.rows.retain(|row| row.step != 0);
        }
        let replayed = replay(&record).unwrap();
        let game = all(&record, 0.0);
        for (row, turn) in game.rows().zip(turns_of_rows(&record)) {
            let Some(next) = record.turns.get(turn + 1) else {
                continue;
            };
            let opponent = replayed[turn + 1].position.side();
            let [[index, share]] = row.reply() else {
                panic!("{:?}", row.reply());
            };
            assert_eq!(*share, u16::MAX);
            // Placements are replayed in the setup's order, not in the recorded one.
            if replayed[turn + 1].position.phase() == Phase::Play {
                let played = Action::from_index(next.actions[0].into(), opponent).unwrap();
                assert_eq!(usize::from(*index), played.index(opponent.opponent()));
            }
        }
    }

    #[test]
    fn a_game_takes_no_more_than_the_index_says() {
        for counter in 0..20 {
            let mut record = samples::game(counter, [100, 1_000][counter as usize % 2]);
            for (number, turn) in record.turns.iter_mut().enumerate() {
                match number % 4 {
                    0 => turn.rows.retain(|row| row.step != 0),
                    1 => turn.rows.iter_mut().for_each(|row| row.weight = 0.0),
                    2 => turn.origin = TurnOrigin::Given,
                    _ => turn.rows.iter_mut().for_each(|row| row.weight = 2.5),
                }
            }
            let drawn =
                |draws: fn(f32) -> u16| GameRows::drawn(&record, targets(0.0), draws).unwrap();
            let game = drawn(|weight| weight.ceil() as u16);
            let draws: usize = game.draws().map(usize::from).sum();
            let (weight, bytes) = game_weight(&record);
            let taken = game.bytes() + draws * BYTES_PER_DRAW;
            // Actions of a reply that have no share are left out.
            assert!(taken <= bytes as usize && taken > bytes as usize * 9 / 10);
            let weights: f32 = game.rows.iter().map(|row| row.weight).sum();
            assert_eq!(weight, (weights * 256.0) as u32);
            let half = drawn(|weight| (weight > 1.0).into());
            assert!(half.bytes() < game.bytes());
            let rows = half.rows.iter().map(|row| row.weight);
            assert!(rows.clone().count() > 0 && rows.into_iter().all(|weight| weight == 2.5));
        }
    }

    #[test]
    fn a_game_that_breaks_the_rules_is_refused() {
        let mut record = samples::game(1, 10);
        record.turns[3].actions[0] = 320;
        assert!(GameRows::all(&record, targets(0.0)).is_err());
    }
}
