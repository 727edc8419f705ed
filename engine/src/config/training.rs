//! How networks are trained.

use super::{ConfigError, check};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Rows a step of the optimizer.
    pub batch_size: u32,
    /// The rows that are shuffled at once; two such pools are in memory, at about 400 bytes a row.
    pub pool_rows: u32,
    /// Into how many parts the rows of each game are split, which are drawn at different times of an epoch.
    pub game_parts: u32,
    /// MiB that the window's index, the pools and the batches that are ready may take together.
    pub memory_mib: u32,
    /// The type that convolutions are computed in; the weights are fp32 in any case.
    pub precision: TrainingPrecision,
    /// How gradients change the weights.
    pub optimizer: OptimizerKind,
    /// SGD's momentum: how much of the gradients' running sum stays at each step.
    pub momentum: f64,
    /// The optimizer's step size after the warm-up, where the schedule begins.
    pub learning_rate: f64,
    /// The steps in which the learning rate rises to its value.
    pub warmup_steps: u32,
    /// How the learning rate changes after the warm-up.
    pub schedule: ScheduleKind,
    /// The steps between two changes (`step`), or all in which the learning rate falls (`cosine`).
    pub schedule_steps: u32,
    /// What the learning rate is multiplied with at each change (`step`).
    pub schedule_factor: f64,
    /// The learning rate never falls below this (`step`), or ends there (`cosine`).
    pub final_learning_rate: f64,
    /// The decoupled weight decay; biases and norms are left alone.
    pub weight_decay: f64,
    /// The gradient's norm is clipped to this.
    pub gradient_clip: f64,
    /// How much of the average of the weights stays at each step; the average is what is published. 0 publishes the weights
    /// of the last step.
    pub average_decay: f64,
    /// The weight of the value's loss beside the policy's.
    pub value_weight: f64,
    /// The weight of the loss of the turns left beside the policy's. 0 for this helper head and the next ones: it is not computed.
    pub turns_left_weight: f64,
    /// Likewise, of how the game ends.
    pub ending_weight: f64,
    /// Likewise, of which pieces will be taken.
    pub taken_weight: f64,
    /// Likewise, of the opponent's reply.
    pub reply_weight: f64,
    /// The share of the search's value in the value target; the rest is the game's result.
    pub search_value_share: f32,
    /// About how many turns of searches stand for the result in the value target of a turn behind which a move was drawn at random.
    pub short_horizon_turns: f32,
    /// Training draws its rows from all that have come until there are so many, and then from the newest of them, in a window
    /// that grows more slowly than they come.
    pub window_rows: u64,
    /// The power with which the window grows.
    pub window_exponent: f64,
    /// How many more rows the window holds for each that comes, where it begins to be one.
    pub window_scale: f64,
    /// How often a new row is drawn before the next generation, on average.
    pub uses_per_row: f32,
    /// The most steps between two networks; 0 for as many as the new rows allow.
    pub network_steps: u64,
    /// Whether half of the rows, drawn at random, are mirrored.
    pub mirror: bool,
    /// The share of games that are never trained on, to measure losses with.
    pub validation_share: f32,
    /// The optimizer's steps between two checkpoints.
    pub checkpoint_steps: u32,
    /// The newest checkpoints that are kept.
    pub keep_checkpoints: u32,
}

/// The type that convolutions are computed in when a network is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainingPrecision {
    /// bf16 on GPUs that have units for it (compute capability 8 and above), else fp32.
    #[default]
    Auto,
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats with the exponents of 32-bit ones.
    Bf16,
}

/// How gradients change the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with decoupled weight decay.
    #[default]
    AdamW,
    /// Stochastic gradient descent with Nesterov momentum and decoupled weight decay.
    Sgd,
}

/// How the learning rate changes after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// Not at all.
    #[default]
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

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            batch_size: 256,
            pool_rows: 100_000,
            game_parts: 8,
            memory_mib: 512,
            precision: TrainingPrecision::Auto,
            optimizer: OptimizerKind::AdamW,
            momentum: 0.9,
            learning_rate: 1e-3,
            warmup_steps: 100,
            schedule: ScheduleKind::Constant,
            schedule_steps: 100_000,
            schedule_factor: 0.1,
            final_learning_rate: 1e-5,
            weight_decay: 1e-4,
            gradient_clip: 5.0,
            average_decay: 0.99,
            value_weight: 1.0,
            turns_left_weight: 0.1,
            ending_weight: 0.1,
            taken_weight: 0.5,
            reply_weight: 0.15,
            search_value_share: 0.3,
            short_horizon_turns: 6.0,
            window_rows: 250_000,
            window_exponent: 0.75,
            window_scale: 0.4,
            uses_per_row: 2.0,
            network_steps: 0,
            mirror: true,
            validation_share: 0.05,
            checkpoint_steps: 1_000,
            keep_checkpoints: 3,
        }
    }
}

impl TrainConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let train = self;
        check_range!(train.batch_size, 2..=1_048_576)?;
        check_range!(train.pool_rows, 1..=1_000_000_000)?;
        check_range!(train.game_parts, 1..=64)?;
        check_range!(train.memory_mib, 1..=16_777_216)?;
        check_range!(train.momentum, 0.0..=0.999_999)?;
        check_range!(train.learning_rate, 1e-9..=10.0)?;
        check_range!(train.warmup_steps, 0..=10_000_000)?;
        check_range!(train.schedule_steps, 1..=1_000_000_000)?;
        check_range!(train.schedule_factor, 0.001..=1.0)?;
        check_range!(train.final_learning_rate, 0.0..=10.0)?;
        if train.schedule != ScheduleKind::Constant
            && train.final_learning_rate > train.learning_rate
        {
            return Err(ConfigError::OutOfRange {
                key: "train.final_learning_rate",
                value: train.final_learning_rate.to_string(),
                allowed: format!("0 to train.learning_rate = {}", train.learning_rate),
            });
        }
        check_range!(train.weight_decay, 0.0..=1.0)?;
        check_range!(train.gradient_clip, 1e-6..=1e6)?;
        check_range!(train.average_decay, 0.0..=0.999_999)?;
        check_range!(train.value_weight, 0.0..=1_000.0)?;
        check_range!(train.turns_left_weight, 0.0..=1_000.0)?;
        check_range!(train.ending_weight, 0.0..=1_000.0)?;
        check_range!(train.taken_weight, 0.0..=1_000.0)?;
        check_range!(train.reply_weight, 0.0..=1_000.0)?;
        check_range!(train.search_value_share, 0.0..=1.0)?;
        check_range!(train.short_horizon_turns, 1.0..=1_000.0)?;
        check_range!(train.window_rows, 1..=1_000_000_000_000)?;
        check_range!(train.window_exponent, 0.01..=1.0)?;
        check_range!(train.window_scale, 0.0..=1.0)?;
        check_range!(train.uses_per_row, 0.01..=1_000.0)?;
        check_range!(train.network_steps, 0..=1_000_000_000_000)?;
        check_range!(train.validation_share, 0.0..=0.9)?;
        check_range!(train.checkpoint_steps, 1..=10_000_000)?;
        check_range!(train.keep_checkpoints, 1..=1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Whether a setting is taken, and what is said if it isn't.
    fn outcome(settings: &[&str]) -> Result<(), String> {
        settings
            .iter()
            .try_fold(Config::default(), |config, setting| config.with(setting))
            .and_then(|config| config.validate())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn optimizers_are_called_what_files_call_them() {
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
    fn training_knows_fewer_precisions_than_playing() {
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
        // Nobody asks for the end of what is constant.
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
