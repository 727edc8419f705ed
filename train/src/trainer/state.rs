//! Where a training stands.

use crate::data::{Cursor, Window, WindowCounts};
use crate::trainer::loss::LossSums;
use crate::trainer::supply::SupplyState;
use network::{Head, Origin};
use serde::{Deserialize, Serialize};

/// The state of a training, without its tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrainingState {
    /// The generation in training.
    pub(crate) generation: u32,
    /// The run's seed.
    pub(crate) seed: u64,
    /// The optimizer's steps since the run began.
    pub(crate) step: u64,
    /// The steps that the optimizer's moments come from: fewer after a new optimizer.
    pub(crate) optimizer_steps: u64,
    /// The steps before this generation's first.
    pub(crate) first_step: u64,
    /// The steps at which this generation is complete.
    pub(crate) last_step: u64,
    /// The number of this generation's shuffle: it grows with each new window, and with each new order of the same one.
    pub(crate) segment: u32,
    /// Where the loader stands in the present window.
    pub(crate) cursor: Cursor,
    /// The state of the run's data supply.
    pub(crate) supply: SupplyState,
    /// The games that have come since the previous generation's last look.
    pub(crate) new_games: u64,
    /// The evaluations by networks in them. Checkpoints of older versions lack it.
    #[serde(default)]
    pub(crate) new_evaluations: Option<u64>,
    /// Their training rows.
    pub(crate) new_rows: u64,
    /// The batches of this generation that were dropped because their losses or gradients were not finite.
    pub(crate) dropped: u64,
    /// The identity of the network that this generation began with.
    pub(crate) parent: String,
    /// The losses of this generation's steps.
    pub(crate) sums: LossSums,
    /// The losses on validation rows before the first step.
    pub(crate) validation_before: LossSums,
}

impl TrainingState {
    /// Counts games that have come during the generation's training.
    pub(crate) fn add_new(&mut self, new: WindowCounts) {
        self.new_games += new.games;
        self.new_evaluations = self.new_evaluations.map(|sum| sum + new.evaluations);
        self.new_rows += new.training_rows;
    }

    /// Begins a new shuffle: of a new window, or of the same one.
    pub(crate) fn next_segment(&mut self) {
        self.segment += 1;
        self.cursor = Cursor::default();
    }

    /// What the file of the complete network says of where it comes from. Losses that were not measured are left out.
    pub(crate) fn origin(&self, window: &Window, validation: &LossSums) -> Origin {
        let numbers = [
            ("generation", self.generation.into()),
            ("seed", self.seed),
            ("step", self.step),
            ("steps", self.last_step - self.first_step),
            ("trained_rows", self.supply.trained_rows),
            ("new_games", self.new_games),
            ("new_rows", self.new_rows),
            ("window_games", window.games() as u64),
            ("window_rows", window.training_rows()),
        ];
        let numbers =
            numbers.map(|(key, number): (&str, u64)| (key.to_owned(), number.to_string()));
        let trained = Head::ALL.map(|head| ("", head, self.sums.mean(head)));
        let played = [Head::Policy, Head::Value];
        let validated = played.map(|head| ("validation_", head, validation.mean(head)));
        let losses = trained.into_iter().chain(validated);
        let losses = losses.filter_map(|(rows, head, loss)| {
            let name = format!("{rows}{}_loss", head.name());
            Some((name, format!("{:.4}", loss?)))
        });
        let evaluations = self.new_evaluations.map(|count| count.to_string());
        let evaluations = evaluations.map(|count| ("new_evaluations".to_owned(), count));
        let version = ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let parent = ("parent".to_owned(), self.parent.clone());
        let texts = [version, parent].into_iter();
        let all = texts.chain(numbers).chain(evaluations);
        all.chain(losses).collect()
    }
}
