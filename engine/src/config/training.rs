//! How networks are trained.

use super::values::{not_allowed, within};
use garde::Validate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TrainConfig {
    /// Rows a step of the optimizer.
    #[garde(custom(within(2..=1_048_576)))]
    pub batch_size: u32,
    /// The rows that are shuffled at once; two such pools are in memory, at about 400 bytes a row.
    #[garde(custom(within(1..=1_000_000_000)))]
    pub pool_rows: u32,
    /// Into how many parts the rows of each game are split, which are drawn at different times of an epoch.
    #[garde(custom(within(1..=64)))]
    pub game_parts: u32,
    /// MiB that the window's index, the pools and the batches that are ready may take together.
    #[garde(custom(within(1..=16_777_216)))]
    pub memory_mib: u32,
    /// The type that convolutions are computed in; the weights are fp32 in any case.
    pub precision: TrainingPrecision,
    /// How gradients change the weights.
    pub optimizer: OptimizerKind,
    /// SGD's momentum: how much of the gradients' running sum stays at each step.
    #[garde(custom(within(0.0..=0.999_999)))]
    pub momentum: f64,
    /// The optimizer's step size after the warm-up, where the schedule begins.
    #[garde(custom(within(1e-9..=10.0)))]
    pub learning_rate: f64,
    /// The steps in which the learning rate rises to its value.
    #[garde(custom(within(0..=10_000_000)))]
    pub warmup_steps: u32,
    /// How the learning rate changes after the warm-up.
    pub schedule: ScheduleKind,
    /// The steps between two changes (`step`), or all in which the learning rate falls (`cosine`).
    #[garde(custom(within(1..=1_000_000_000)))]
    pub schedule_steps: u32,
    /// What the learning rate is multiplied with at each change (`step`).
    #[garde(custom(within(0.001..=1.0)))]
    pub schedule_factor: f64,
    /// The learning rate never falls below this (`step`), or ends there (`cosine`).
    #[garde(custom(within(0.0..=10.0)), custom(at_most_first(self)))]
    pub final_learning_rate: f64,
    /// The decoupled weight decay; biases and norms are left alone.
    #[garde(custom(within(0.0..=10.0)), custom(gradual(self.learning_rate)))]
    pub weight_decay: f64,
    /// The gradient's norm is clipped to this.
    #[garde(custom(within(1e-6..=1e6)))]
    pub gradient_clip: f64,
    /// How much of the average of the weights stays at each step; the average is what is published. 0 publishes the weights
    /// of the last step.
    #[garde(custom(within(0.0..=0.999_999)))]
    pub average_decay: f64,
    /// The share of the search's value in the value target; the rest is the game's result.
    #[garde(custom(within(0.0..=1.0)))]
    pub search_value_share: f32,
    /// Turns that count in the mean of search values that replaces the result where a later turn was drawn at random.
    #[garde(custom(within(1.0..=1_000.0)))]
    pub short_horizon_turns: f32,
    /// Rows up to which the replay window holds everything (c).
    #[garde(custom(within(1..=1_000_000_000_000)))]
    pub window_rows: u64,
    /// Growth exponent of the window (a): of N rows the newest c · (1 + b · ((N/c)^a − 1) / a) are in it.
    #[garde(custom(within(0.01..=1.0)))]
    pub window_exponent: f64,
    /// Share of the first rows beyond c that the window grows by (b).
    #[garde(custom(within(0.0..=1.0)))]
    pub window_scale: f64,
    /// How often a row is used at most, on average.
    #[garde(custom(within(0.01..=1_000.0)))]
    pub reuse_factor: f32,
    /// The most steps between two networks; 0 for as many as the new rows allow.
    #[garde(custom(within(0..=1_000_000_000_000)))]
    pub network_steps: u64,
    /// Whether half of the rows, drawn at random, are mirrored.
    pub mirror: bool,
    /// The share of games that are never trained on, to measure losses with.
    #[garde(custom(within(0.0..=0.9)))]
    pub validation_share: f32,
    /// The optimizer's steps between two checkpoints.
    #[garde(custom(within(1..=10_000_000)))]
    pub checkpoint_steps: u32,
    /// The newest checkpoints that are kept.
    #[garde(custom(within(1..=1_000)))]
    pub keep_checkpoints: u32,
    /// Loss weights of the heads by name (policy = 1). 0 disables an auxiliary head: it is not computed.
    #[garde(dive)]
    pub heads: BTreeMap<String, LossWeight>,
}

/// The weight of a loss in the objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(transparent)]
#[garde(transparent)]
pub struct LossWeight(#[garde(custom(within(0.0..=1_000.0)))] pub f64);

/// The type that convolutions are computed in when a network is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainingPrecision {
    /// bf16 on GPUs that have units for it (compute capability 8 and above), else fp32.
    Auto,
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats with the exponents of 32-bit ones.
    Bf16,
}

/// How gradients change the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with decoupled weight decay.
    AdamW,
    /// Stochastic gradient descent with Nesterov momentum and decoupled weight decay.
    Sgd,
}

/// How the learning rate changes after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// Not at all.
    Constant,
    /// It is multiplied with a factor, again and again.
    Step,
    /// It falls along half a period of the cosine, and stays where that ends.
    Cosine,
}

impl fmt::Display for OptimizerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AdamW => "adamw",
            Self::Sgd => "sgd",
        })
    }
}

/// A schedule falls, it doesn't rise.
fn at_most_first(train: &TrainConfig) -> impl FnOnce(&f64, &()) -> garde::Result {
    let (schedule, first) = (train.schedule, train.learning_rate);
    move |&last, ()| {
        if schedule != ScheduleKind::Constant && last > first {
            Err(not_allowed(
                last,
                format!("0 to train.learning_rate = {first}"),
            ))
        } else {
            Ok(())
        }
    }
}

/// A step takes at most this share of the weights.
const MAX_DECAY: f64 = 0.1;

/// A weight decay that leaves weights to train: its share of a step is multiplied with the learning rate, which is large for SGD.
fn gradual(learning_rate: f64) -> impl FnOnce(&f64, &()) -> garde::Result {
    move |&decay, ()| {
        if decay * learning_rate > MAX_DECAY {
            Err(not_allowed(
                decay,
                format!(
                    "0 to {MAX_DECAY} / train.learning_rate = {}",
                    MAX_DECAY / learning_rate
                ),
            ))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn constant() -> Config {
        let mut config = Config::default();
        config.train.schedule = ScheduleKind::Constant;
        config.train.final_learning_rate = 1e-5;
        config
    }

    /// Whether a setting is taken, and what is said if it isn't.
    fn outcome(settings: &[&str]) -> Result<(), String> {
        settings
            .iter()
            .try_fold(constant(), |config, setting| config.with(setting))
            .and_then(|config| config.validate())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn optimizers_have_their_names_in_files() {
        for (word, kind) in [("adamw", OptimizerKind::AdamW), ("sgd", OptimizerKind::Sgd)] {
            let config = Config::default()
                .with(&format!("train.optimizer={word}"))
                .unwrap();
            assert_eq!(config.train.optimizer, kind);
            assert_eq!(kind.to_string(), word);
        }
        let message = outcome(&["train.optimizer=adam"]).unwrap_err();
        assert!(message.contains("`adamw` or `sgd`"), "{message}");
    }

    #[test]
    fn training_has_fewer_precisions_than_play() {
        for (word, precision) in [
            ("auto", TrainingPrecision::Auto),
            ("fp32", TrainingPrecision::Fp32),
            ("bf16", TrainingPrecision::Bf16),
        ] {
            let setting = format!("train.precision={word}");
            let config = Config::default().with(&setting).unwrap();
            assert_eq!(config.train.precision, precision);
        }
        let message = outcome(&["train.precision=fp16"]).unwrap_err();
        assert!(message.contains("`auto`, `fp32`, `bf16`"), "{message}");
    }

    #[test]
    fn momentum_ends_below_1() {
        assert_eq!(outcome(&["train.momentum=0"]), Ok(()));
        assert_eq!(outcome(&["train.momentum=0.999"]), Ok(()));
        for value in ["1.0", "-0.1", "nan"] {
            let message = outcome(&[&format!("train.momentum={value}")]).unwrap_err();
            assert!(message.starts_with("train.momentum = "), "{message}");
        }
    }

    #[test]
    fn a_step_does_not_take_most_of_the_weights() {
        let sgd = ["train.optimizer=sgd", "train.learning_rate=0.2"];
        let message = outcome(&[&sgd[..], &["train.weight_decay=1"]].concat()).unwrap_err();
        assert!(
            message.starts_with("train.weight_decay = 1 is out of range")
                && message.ends_with("0 to 0.1 / train.learning_rate = 0.5"),
            "{message}"
        );
        assert_eq!(
            outcome(&[&sgd[..], &["train.weight_decay=0.5"]].concat()),
            Ok(())
        );
    }

    #[test]
    fn schedules_fall_and_do_not_rise() {
        for schedule in ["step", "cosine"] {
            let schedule = format!("train.schedule={schedule}");
            assert_eq!(outcome(&[&schedule]), Ok(()));
            let equal = ["train.learning_rate=1e-5", &schedule];
            assert_eq!(outcome(&equal), Ok(()));
            let message = outcome(&["train.learning_rate=1e-6", &schedule]).unwrap_err();
            assert!(
                message.starts_with("train.final_learning_rate = 0.00001 is out of range")
                    && message.ends_with("0 to train.learning_rate = 0.000001"),
                "{message}"
            );
        }
        // A constant schedule has no end.
        assert_eq!(outcome(&["train.learning_rate=1e-6"]), Ok(()));
        for setting in [
            "schedule_steps=0",
            "schedule_factor=1.5",
            "schedule_factor=0",
        ] {
            let message = outcome(&[&format!("train.{setting}")]).unwrap_err();
            assert!(message.contains("is out of range"), "{message}");
        }
        let message = outcome(&["train.schedule=linear"]).unwrap_err();
        assert!(
            message.contains("`constant`, `step`, `cosine`"),
            "{message}"
        );
    }
}
