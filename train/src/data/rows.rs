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
pub(crate) mod tests;
