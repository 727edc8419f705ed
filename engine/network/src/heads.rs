//! The table of the heads: [`HEADS`] lists for each head what it predicts, how it is trained and which rows count.
//!
//! The policy head and the value head play. The others are auxiliary heads: only training computes them, so that the tower learns
//! more of each game.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// The turns that one unit of the turns-left head stands for, in its output and in its loss: weights and errors stay small.
const TURNS_SCALE: f64 = 20.0;

/// How a game can end on the board: goal, elimination, immobilization.
pub const END_REASONS: i64 = 3;

/// A head of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// The next action.
    Policy,
    /// The mover's win probability.
    Value,
    /// The turns of both sides until the game's end, this one included.
    TurnsLeft,
    /// How the game ends: goal, elimination or immobilization where the mover wins, then the same where the opponent does.
    Ending,
    /// Which pieces will be captured before the game's end. Squares are as the mover sees the board; empty squares mean nothing.
    Captures,
    /// The policy at the start of the opponent's next turn; actions are as the mover of this row sees the board.
    Reply,
}

/// What is fixed of a head.
#[derive(Debug, Clone, Copy)]
pub struct HeadSpec {
    /// Its name in the configuration (`train.heads`), in logs and in files.
    pub name: &'static str,
    /// The prefix of its tensors' names in the weights file.
    pub(super) prefix: &'static str,
    /// What it gives for each row.
    pub output: HeadOutput,
    /// The loss that trains it.
    pub loss: HeadLoss,
    /// The weights of rows in the mean of that loss.
    pub row_weight: RowWeight,
}

/// What a head gives for each row of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeadOutput {
    /// Logits of all actions, legal or not: `[batch, 321]`, float.
    Policy,
    /// The logit of a probability: `[batch]`, float.
    Logit,
    /// A number that is never below 0, the softplus of the last layer times `scale`: `[batch]`, float.
    Count {
        /// What one unit of the last layer stands for.
        scale: f64,
    },
    /// Logits of classes: `[batch, classes]`, float.
    Classes(i64),
    /// A logit for each square: `[batch, 64]`, float.
    Squares,
}

/// The loss of a row, in nats unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeadLoss {
    /// Cross-entropy of a policy over the legal actions.
    LegalCrossEntropy,
    /// Cross-entropy of a policy over all actions.
    CrossEntropy,
    /// Binary cross-entropy of one logit.
    BinaryCrossEntropy,
    /// Cross-entropy of a class.
    ClassCrossEntropy,
    /// Binary cross-entropy of the squares with pieces: their mean.
    PieceCrossEntropy,
    /// Huber loss in units of `scale`: quadratic up to an error of `delta`, linear behind. Without unit.
    Huber {
        /// The error that counts as 1.
        scale: f64,
        /// The error at which the loss becomes linear.
        delta: f64,
    },
}

/// Which rows count in the mean of a loss, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowWeight {
    /// Each row by its recorded weight.
    Policy,
    /// Each turn once, if there is a target for its value.
    Value,
    /// As the value, for games that were won on the board without a random turn behind the row.
    Outcome,
    /// As the policy, where the opponent has replied.
    Reply,
}

impl RowWeight {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Policy, Self::Value, Self::Outcome, Self::Reply];

    /// The name in files.
    pub fn name(self) -> &'static str {
        ["weight", "value_weight", "outcome_weight", "reply_weight"][self as usize]
    }
}

/// All heads, in the order of [`Head`].
pub const HEADS: [HeadSpec; 6] = [
    HeadSpec {
        name: "policy",
        prefix: "policy",
        output: HeadOutput::Policy,
        loss: HeadLoss::LegalCrossEntropy,
        row_weight: RowWeight::Policy,
    },
    HeadSpec {
        name: "value",
        prefix: "value",
        output: HeadOutput::Logit,
        loss: HeadLoss::BinaryCrossEntropy,
        row_weight: RowWeight::Value,
    },
    HeadSpec {
        name: "turns_left",
        prefix: "helpers.turns_left",
        output: HeadOutput::Count { scale: TURNS_SCALE },
        // Scale and delta are those of Leela Chess Zero's moves-left head (lczero-training, `moves_left_loss`).
        loss: HeadLoss::Huber {
            scale: TURNS_SCALE,
            delta: 10.0,
        },
        row_weight: RowWeight::Outcome,
    },
    HeadSpec {
        name: "ending",
        prefix: "helpers.ending",
        output: HeadOutput::Classes(2 * END_REASONS),
        loss: HeadLoss::ClassCrossEntropy,
        row_weight: RowWeight::Outcome,
    },
    HeadSpec {
        name: "captures",
        // Its former name: a change would make weights files unreadable.
        prefix: "helpers.taken",
        output: HeadOutput::Squares,
        loss: HeadLoss::PieceCrossEntropy,
        row_weight: RowWeight::Outcome,
    },
    HeadSpec {
        name: "reply",
        prefix: "helpers.reply",
        output: HeadOutput::Policy,
        loss: HeadLoss::CrossEntropy,
        row_weight: RowWeight::Reply,
    },
];

impl Head {
    /// The number of heads.
    pub const COUNT: usize = HEADS.len();

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Policy,
        Self::Value,
        Self::TurnsLeft,
        Self::Ending,
        Self::Captures,
        Self::Reply,
    ];

    /// Its row of [`HEADS`].
    pub fn spec(self) -> &'static HeadSpec {
        &HEADS[self as usize]
    }

    /// Its name in the configuration, in logs and in files.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Whether only training computes it.
    pub fn is_auxiliary(self) -> bool {
        !matches!(self, Self::Policy | Self::Value)
    }

    /// Whether a tensor of the weights file is this head's.
    pub(super) fn has_tensor(self, name: &str) -> bool {
        name.starts_with(self.spec().prefix)
    }
}

/// Whether a tensor is an auxiliary head's.
pub(super) fn is_auxiliary(name: &str) -> bool {
    Head::ALL
        .into_iter()
        .any(|head| head.is_auxiliary() && head.has_tensor(name))
}

/// One value for each head; serialised by the heads' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerHead<T>([T; Head::COUNT]);

impl<T> PerHead<T> {
    /// The value of each head, in order.
    pub fn from_fn(of: impl FnMut(Head) -> T) -> Self {
        Self(Head::ALL.map(of))
    }

    /// The heads with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Head, &T)> {
        Head::ALL.into_iter().zip(&self.0)
    }

    /// One value for each head from those of both.
    pub fn zip<U, V>(&self, other: &PerHead<U>, mut of: impl FnMut(&T, &U) -> V) -> PerHead<V> {
        PerHead::from_fn(|head| of(&self[head], &other[head]))
    }
}

impl PerHead<bool> {
    /// All heads.
    pub const ALL: Self = Self([true; Head::COUNT]);

    /// The heads that play.
    pub fn playing() -> Self {
        Self::from_fn(|head| !head.is_auxiliary())
    }
}

impl<T> Index<Head> for PerHead<T> {
    type Output = T;

    fn index(&self, head: Head) -> &T {
        &self.0[head as usize]
    }
}

impl<T> IndexMut<Head> for PerHead<T> {
    fn index_mut(&mut self, head: Head) -> &mut T {
        &mut self.0[head as usize]
    }
}

impl<T: Serialize> Serialize for PerHead<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// A head without a value has the default.
impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for PerHead<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut values = BTreeMap::<Head, T>::deserialize(deserializer)?;
        Ok(Self::from_fn(|head| {
            values.remove(&head).unwrap_or_default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_serialised_by_the_heads_names() {
        let numbers = PerHead::from_fn(|head| head as usize);
        let text = serde_json::to_string(&numbers).unwrap();
        let names = Head::ALL.map(|head| format!("\"{}\":{}", head.name(), head as usize));
        assert_eq!(text, format!("{{{}}}", names.join(",")));
        assert_eq!(
            serde_json::from_str::<PerHead<usize>>(&text).unwrap(),
            numbers
        );
        let some: PerHead<usize> = serde_json::from_str("{\"reply\": 7}").unwrap();
        assert_eq!((some[Head::Reply], some[Head::Policy]), (7, 0));
        assert!(serde_json::from_str::<PerHead<usize>>("{\"taken\": 7}").is_err());
    }
}
