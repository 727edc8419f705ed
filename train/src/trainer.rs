//! The network in training: one batch, one step.

use crate::average::Average;
use crate::checkpoint::Checkpoint;
use crate::data::{Batch, TrainingRow};
use crate::device::Work;
use crate::error::TrainError;
use crate::gradients::{GradientCrew, Objective};
use crate::loss::Losses;
use crate::measurement::Measurement;
use crate::optimizer::{Optimizer, StepSize};
use crate::schedule::learning_rate;
use engine::config::TrainConfig;
use network::{Network, training_kind};
use tch::{Device, Kind};

/// A network with its optimizer.
#[derive(Debug)]
pub(crate) struct Trainer {
    network: Network,
    average: Average,
    crew: GradientCrew,
    optimizer: Optimizer,
    /// The steps since the run began; an optimizer may have been begun anew.
    step: u64,
    config: TrainConfig,
    /// The type that convolutions are computed in.
    kind: Kind,
}

/// What one step was like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepReport {
    /// The batch's losses before the step.
    pub(crate) losses: Losses,
    /// The sums of the batch's weights in them; 0 for heads that were not computed.
    pub(crate) weights: Losses,
    /// The share of the batch's rows, by the weight of the policy's loss, whose likeliest legal entry was the target's largest.
    pub(crate) policy_accuracy: f64,
    /// The gradients' norm before it was clipped.
    pub(crate) gradient_norm: f64,
    /// The learning rate of the step.
    pub(crate) learning_rate: f64,
}

impl Trainer {
    /// Prepares a network for training on a device, with a new optimizer.
    pub(crate) fn new(
        network: &Network,
        config: TrainConfig,
        device: Device,
    ) -> Result<Self, TrainError> {
        Work::new(network, device, &config).run(|| {
            let network = network.to_device(device)?;
            network.set_requires_grad(true)?;
            Ok(Self {
                optimizer: Optimizer::new(config.optimizer, &network)?,
                crew: GradientCrew::new(device)?,
                average: Average::new(&network, config.average_decay)?,
                network,
                step: 0,
                config,
                kind: training_kind(config.precision, device),
            })
        })
    }

    /// The network as it is now.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// The average of the networks so far: what is measured and published.
    pub(crate) fn average(&self) -> &Network {
        self.average.network()
    }

    /// The optimizer as it is now.
    pub(crate) fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Replaces network, average and optimizer by those of a checkpoint.
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        self.step = checkpoint.header.state.step;
        let work = self.work();
        work.run(|| checkpoint.restore(&self.network, self.average.network(), &mut self.optimizer))
    }

    /// Replaces the optimizer by that of a checkpoint.
    pub(crate) fn restore_optimizer(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        let work = self.work();
        work.run(|| checkpoint.restore_optimizer(&self.network, &mut self.optimizer))
    }

    /// Goes on with another configuration from the next step on. The optimizer stays the one that it is.
    pub(crate) fn set_config(&mut self, config: TrainConfig) {
        self.average.set_decay(config.average_decay);
        if config.precision != self.config.precision {
            self.kind = training_kind(config.precision, self.network.device());
        }
        self.config = config;
    }

    /// Says how many steps have been made since the run began.
    pub(crate) fn set_step(&mut self, step: u64) {
        self.step = step;
    }

    /// What is computed, for the errors that it may end with.
    pub(crate) fn work(&self) -> Work {
        Work::new(&self.network, self.network.device(), &self.config)
    }

    /// Makes one step with a batch. Where a loss or a gradient is no finite number that is the error, and everything stays as it was.
    pub(crate) fn step(&mut self, batch: &Batch) -> Result<StepReport, TrainError> {
        self.work().run(|| self.try_step(batch))
    }

    fn try_step(&mut self, batch: &Batch) -> Result<StepReport, TrainError> {
        let objective = Objective {
            weights: Losses::weights_of(&self.config),
            kind: self.kind,
        };
        // A batch goes into the norms' statistics before its losses are known.
        let statistics = self.network.statistics()?.f_detach_copy()?;
        let found = self.crew.compute(&mut self.network, batch, objective)?;
        if let Some((what, value)) = found.not_finite() {
            self.network.statistics()?.f_copy_(&statistics)?;
            let step = self.step + 1;
            return Err(TrainError::NotFinite { step, what, value });
        }
        let size = self.step_size();
        self.optimizer
            .step(&self.network, found.gradient, found.norm, size)?;
        self.step += 1;
        self.average.take(&self.network, self.step)?;
        Ok(StepReport {
            losses: found.losses,
            weights: batch.weights().only(objective.weights.heads()),
            policy_accuracy: found.policy_accuracy,
            gradient_norm: found.norm,
            learning_rate: size.learning_rate,
        })
    }

    /// The size of the next step.
    fn step_size(&self) -> StepSize {
        StepSize {
            learning_rate: learning_rate(&self.config, self.step + 1, self.optimizer.steps() + 1),
            momentum: self.config.momentum,
            weight_decay: self.config.weight_decay,
            gradient_clip: self.config.gradient_clip,
        }
    }

    /// What the average is worth on rows that are only measured with.
    pub(crate) fn measure(&self, rows: &[TrainingRow]) -> Result<Measurement, TrainError> {
        let heads = Losses::weights_of(&self.config).heads();
        let work = self.work();
        work.run(|| self.crew.measure(self.average(), rows, heads))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::data::{HelperTargets, rows_of, samples};
    use engine::config::{Config, ScheduleKind, TrainingPrecision};
    use network::Architecture;
    use rand::rngs::ChaCha8Rng;
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};

    fn trainer(architecture: (u32, u32), config: TrainConfig) -> Trainer {
        let (blocks, channels) = architecture;
        let network = Network::new(Architecture { blocks, channels }, 1).unwrap();
        Trainer::new(&network, config, Device::Cpu).unwrap()
    }

    /// Rows of random games, all of the same weight.
    pub(crate) fn rows(count: usize) -> Vec<TrainingRow> {
        let games = (0..).map(|counter| samples::game(counter, 200));
        let rows = games.flat_map(|game| rows_of(&game, samples::targets(1.0)).unwrap());
        // Every fifth row: games look alike from one step to the next.
        let mut rows: Vec<_> = rows.step_by(5).take(count).collect();
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for row in &mut rows {
            row.weight = 1.0;
            row.value_weight = 1.0;
            let pieces = random.random();
            let reply = row.legal.indices().zip(&row.policy);
            row.helpers = HelperTargets {
                turns_left: random.random_range(1..60) as f32,
                ending: random.random_range(0..6),
                pieces,
                taken: pieces & random.random::<u64>(),
                outcome_weight: 1.0,
                reply: reply.map(|(index, &share)| (index as u16, share)).collect(),
                reply_weight: 1.0,
            };
        }
        rows
    }

    /// Trains a network on few rows, again and again, each as it is or mirrored as chance will have it, with a rate that falls to
    /// nothing; the whole chain from the encoding to the gradient: whatever is mixed up in it, the network can't learn by heart.
    /// In the end the policy's loss must be within 0.02 of the targets' entropy.
    fn learn_by_heart(architecture: (u32, u32), count: usize, batch_size: usize, epochs: u32) {
        // The mirrored copy of a row that is its own mirror asks for something else.
        let mut rows = rows(count + count / 4);
        rows.retain(|row| row.input != row.input.mirror());
        rows.truncate(count);
        assert_eq!(rows.len(), count);
        let all = Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>());
        let entropy = all.policy_entropy();
        let warmup_steps = 20;
        let config = TrainConfig {
            learning_rate: 6e-3,
            weight_decay: 0.0,
            warmup_steps,
            schedule: ScheduleKind::Cosine,
            schedule_steps: epochs * count.div_ceil(batch_size) as u32 - warmup_steps,
            average_decay: 0.95,
            ..Config::default().train
        };
        let mut trainer = trainer(architecture, config);
        let above_entropy = |trainer: &Trainer| {
            let losses = trainer.measure(&rows).unwrap().losses;
            losses.policy().unwrap() - entropy
        };
        let first = above_entropy(&trainer);
        assert!(first > 0.5, "{first}: there is something to learn");
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut order: Vec<&TrainingRow> = rows.iter().collect();
        for _ in 0..epochs {
            order.shuffle(&mut random);
            for rows in order.chunks(batch_size) {
                let batch: Vec<_> = rows.iter().map(|&row| (row, random.random())).collect();
                trainer.step(&Batch::new(&batch)).unwrap();
            }
        }
        let last = above_entropy(&trainer);
        assert!((-1e-3..0.02).contains(&last), "{last} above {entropy}");
    }

    #[test]
    fn a_small_network_learns_64_rows_by_heart() {
        learn_by_heart((2, 32), 64, 64, 300);
    }

    #[test]
    #[ignore = "minutes of two cores"]
    fn a_6x64_network_learns_1000_rows_by_heart() {
        learn_by_heart((6, 64), 1_000, 125, 160);
    }

    #[test]
    fn a_network_learns_in_bf16_and_its_weights_stay_float() {
        let rows = rows(128);
        let config = TrainConfig {
            learning_rate: 4e-3,
            warmup_steps: 5,
            average_decay: 0.9,
            precision: TrainingPrecision::Bf16,
            ..Config::default().train
        };
        let mut trainer = trainer((2, 16), config);
        let batch = Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>());
        let entropy = batch.policy_entropy();
        let above_entropy = |trainer: &Trainer| {
            let losses = trainer.measure(&rows).unwrap().losses;
            losses.policy().unwrap() - entropy
        };
        let first = above_entropy(&trainer);
        for _ in 0..150 {
            trainer.step(&batch).unwrap();
        }
        let last = above_entropy(&trainer);
        assert!(last < 0.5 * first, "{first} {last}");
        for parameter in trainer.network().parameters() {
            assert_eq!(parameter.tensor.kind(), Kind::Float, "{}", parameter.name);
        }
        // Another precision is taken over with the configuration.
        trainer.set_config(TrainConfig {
            precision: TrainingPrecision::Fp32,
            ..config
        });
        assert_eq!(trainer.kind, Kind::Float);
    }

    #[test]
    fn each_step_has_the_scheduled_learning_rate() {
        let rows = rows(64);
        let config = TrainConfig {
            warmup_steps: 2,
            learning_rate: 0.008,
            schedule: ScheduleKind::Step,
            schedule_steps: 1,
            schedule_factor: 0.5,
            ..Config::default().train
        };
        let mut trainer = trainer((1, 8), config);
        let batch = Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>());
        let rates = [(); 5].map(|()| trainer.step(&batch).unwrap().learning_rate);
        assert_eq!(rates, [0.004, 0.008, 0.008, 0.004, 0.002]);
        // The run's steps count, and those of the optimizer for the warm-up alone.
        trainer.set_step(2);
        assert_eq!(trainer.step(&batch).unwrap().learning_rate, 0.008);
    }

    #[test]
    fn measuring_gives_the_mean_over_all_rows_and_changes_nothing() {
        let rows = rows(2_500);
        let trainer = trainer((1, 8), Config::default().train);
        let all = trainer.measure(&rows).unwrap();
        assert_eq!(trainer.measure(&rows).unwrap(), all);
        let policy = |rows| trainer.measure(rows).unwrap().losses.policy();
        let part = |range| policy(&rows[range]).unwrap();
        let (first, second) = (part(0..1_700), part(1_700..2_500));
        let mean = (1_700.0 * first + 800.0 * second) / 2_500.0;
        assert!((mean - all.losses.policy().unwrap()).abs() < 1e-5);
        assert_eq!(policy(&[]), None);
    }

    #[test]
    fn a_loss_that_is_no_number_is_named_with_its_step() {
        let mut rows = rows(64);
        let mut trainer = trainer((1, 8), Config::default().train);
        let batch = |rows: &[TrainingRow]| {
            Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>())
        };
        trainer.step(&batch(&rows)).unwrap();
        let before = numbers(&trainer);
        rows[3].value = f32::NAN;
        let error = trainer.step(&batch(&rows)).unwrap_err().to_string();
        assert_eq!(
            error,
            "step 2: the value loss is NaN; the step was not made"
        );
        assert_eq!(numbers(&trainer), before);
        assert_eq!((trainer.step, trainer.optimizer.steps()), (1, 1));
    }

    /// All numbers of the network, the running statistics among them, its average and its optimizer.
    fn numbers(trainer: &Trainer) -> Vec<f32> {
        let networks = [trainer.network(), trainer.average()];
        let networks = networks.map(|network| network.numbers().shallow_clone());
        let memory = trainer.optimizer().tensors(trainer.network()).unwrap();
        let memory = memory.into_iter().map(|(_, tensor)| tensor.reshape([-1]));
        let tensors = networks.into_iter().chain(memory);
        tensors
            .flat_map(|tensor| Vec::<f32>::try_from(tensor).unwrap())
            .collect()
    }
}
