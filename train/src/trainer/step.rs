//! The network in training: one batch, one step.

use crate::data::{Batch, RowRef};
use crate::error::TrainError;
use crate::trainer::checkpoint::Checkpoint;
use crate::trainer::device::DeviceTask;
use crate::trainer::gradients::{GradientWorkers, Objective};
use crate::trainer::loss::{enabled, loss_weights, only};
use crate::trainer::measurement::Measurement;
use crate::trainer::optimizer::{Optimizer, StepSize, learning_rate, move_average};
use engine::config::TrainConfig;
use network::{Network, PerHead, training_kind};
use tch::{Device, Kind};

/// A network with its optimizer.
#[derive(Debug)]
pub(crate) struct Trainer {
    network: Network,
    /// It begins with the network as it is.
    average: Network,
    workers: GradientWorkers,
    optimizer: Optimizer,
    /// The steps since the run began; the optimizer may be newer.
    step: u64,
    config: TrainConfig,
    /// The type that convolutions are computed in.
    kind: Kind,
}

/// The measurements of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepReport {
    /// The batch's losses before the step.
    pub(crate) losses: PerHead<f64>,
    /// The sums of the batch's weights in them; 0 for heads that were not computed.
    pub(crate) weights: PerHead<f64>,
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
        DeviceTask::new(network, device, &config).run(|| {
            let network = network.to_device(device)?;
            network.set_requires_grad(true)?;
            Ok(Self {
                optimizer: Optimizer::new(config.optimizer, &network)?,
                workers: GradientWorkers::new(device)?,
                average: network.copy()?,
                network,
                step: 0,
                kind: training_kind(config.precision, device)?,
                config,
            })
        })
    }

    /// The network as it is now.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// The average of the networks so far: what is measured and published.
    pub(crate) fn average(&self) -> &Network {
        &self.average
    }

    /// The optimizer as it is now.
    pub(crate) fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Replaces network, average and optimizer by those of a checkpoint.
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        self.step = checkpoint.header.state.step;
        let work = self.work();
        work.run(|| checkpoint.restore(&self.network, &self.average, &mut self.optimizer))
    }

    /// Replaces the optimizer by that of a checkpoint.
    pub(crate) fn restore_optimizer(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        let work = self.work();
        work.run(|| checkpoint.restore_optimizer(&self.network, &mut self.optimizer))
    }

    /// Replaces the configuration from the next step on. The optimizer stays the same.
    ///
    /// # Errors
    /// The device can't train in the new precision; nothing has changed.
    pub(crate) fn set_config(&mut self, config: TrainConfig) -> Result<(), TrainError> {
        if config.precision != self.config.precision {
            self.kind = training_kind(config.precision, self.network.device())?;
        }
        self.config = config;
        Ok(())
    }

    /// Sets the number of steps since the run began.
    pub(crate) fn set_step(&mut self, step: u64) {
        self.step = step;
    }

    /// The work on the device, for its errors.
    pub(crate) fn work(&self) -> DeviceTask {
        DeviceTask::new(&self.network, self.network.device(), &self.config)
    }

    /// Makes one step with a batch. A loss or a gradient that is not finite is an error, and nothing changes.
    pub(crate) fn step(&mut self, batch: &Batch) -> Result<StepReport, TrainError> {
        self.work().run(|| self.try_step(batch))
    }

    fn try_step(&mut self, batch: &Batch) -> Result<StepReport, TrainError> {
        let objective = Objective {
            weights: loss_weights(&self.config),
            kind: self.kind,
        };
        // The batch changes the norms' statistics before its losses are known.
        let statistics = self.network.statistics()?.f_detach_copy()?;
        let found = self.workers.compute(&mut self.network, batch, objective)?;
        if let Some((what, value)) = found.not_finite() {
            self.network.statistics()?.f_copy_(&statistics)?;
            let step = self.step + 1;
            return Err(TrainError::NotFinite { step, what, value });
        }
        let size = self.step_size();
        self.optimizer
            .step(&self.network, found.gradient, found.norm, size)?;
        self.step += 1;
        let decay = self.config.average_decay;
        move_average(&self.average, &self.network, decay, self.step)?;
        Ok(StepReport {
            losses: found.losses,
            weights: only(&batch.weights(0..batch.len()), &enabled(&objective.weights)),
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

    /// Measures the average on rows.
    pub(crate) fn measure(&self, rows: &[RowRef]) -> Result<Measurement, TrainError> {
        let heads = enabled(&loss_weights(&self.config));
        let work = self.work();
        work.run(|| self.workers.measure(self.average(), rows, &heads))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::data::{GameRows, Target, samples};
    use engine::config::{Config, ScheduleKind, TrainingPrecision};
    use network::{Architecture, Head, cpu_computes_bf16};
    use rand::rngs::ChaCha8Rng;
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};

    fn trainer(architecture: (u32, u32), config: TrainConfig) -> Trainer {
        let (blocks, channels) = architecture;
        let network = Network::new(Architecture { blocks, channels }, 1).unwrap();
        Trainer::new(&network, config, Device::Cpu).unwrap()
    }

    /// Rows of random games, all of the same weight.
    pub(crate) fn rows(count: usize) -> GameRows {
        let targets = samples::targets(1.0);
        let mut games = Vec::new();
        // Every fifth row: games look alike from one step to the next.
        while games.iter().map(GameRows::len).sum::<usize>() < 5 * count {
            let game = samples::game(games.len() as u64, 200);
            games.push(GameRows::all(&game, targets).unwrap());
        }
        let rows = games.iter().flat_map(GameRows::rows).step_by(5).take(count);
        let mut random = ChaCha8Rng::seed_from_u64(2);
        GameRows::replaced(rows, |row, head, keep| match head {
            Head::Policy | Head::Value => keep(row.target(head)),
            Head::TurnsLeft => keep(Target::Number(random.random_range(1..60) as f32)),
            Head::Ending => keep(Target::Class(random.random_range(0..6))),
            Head::Captures => keep(Target::Squares(random.random())),
            Head::Reply => {
                let shares = row.legal().indices().zip(row.policy());
                let shares = shares.map(|(index, &share)| [index as u16, share]);
                keep(Target::Shares(&shares.collect::<Vec<_>>()));
            }
        })
    }

    /// Trains a network on few rows, again and again, each as it is or mirrored as chance will have it, with a rate that falls to
    /// nothing; the whole chain from the encoding to the gradient: after any mistake in it, the network can't overfit the rows.
    /// In the end the policy's loss must be within 0.02 of the targets' entropy.
    fn overfit(architecture: (u32, u32), count: usize, batch_size: usize, epochs: u32) {
        // The mirrored copy of a row that is its own mirror asks for something else.
        let game = rows(count + count / 4);
        let rows = game
            .rows()
            .filter(|row| *row.input() != row.input().mirror());
        let rows: Vec<RowRef> = rows.take(count).collect();
        assert_eq!(rows.len(), count);
        let entropy = Batch::new(&rows).policy_entropy();
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
            losses.mean(Head::Policy).unwrap() - entropy
        };
        let first = above_entropy(&trainer);
        assert!(first > 0.5, "{first}: there is something to learn");
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut order = rows.clone();
        for _ in 0..epochs {
            order.shuffle(&mut random);
            for rows in order.chunks(batch_size) {
                let batch = rows.iter().map(|row| row.mirrored(random.random()));
                let batch: Vec<RowRef> = batch.collect();
                trainer.step(&Batch::new(&batch)).unwrap();
            }
        }
        let last = above_entropy(&trainer);
        assert!((-1e-3..0.02).contains(&last), "{last} above {entropy}");
    }

    #[test]
    fn a_small_network_overfits_64_rows() {
        overfit((2, 32), 64, 64, 300);
    }

    #[test]
    #[ignore = "minutes of two cores"]
    fn a_6x64_network_overfits_1000_rows() {
        overfit((6, 64), 1_000, 125, 160);
    }

    #[test]
    fn a_network_learns_in_bf16_and_its_weights_stay_float() {
        if !cpu_computes_bf16() {
            return;
        }
        let game = rows(128);
        let rows: Vec<RowRef> = game.rows().collect();
        let config = TrainConfig {
            learning_rate: 4e-3,
            warmup_steps: 5,
            average_decay: 0.9,
            precision: TrainingPrecision::Bf16,
            ..Config::default().train
        };
        let mut trainer = trainer((2, 16), config.clone());
        let batch = Batch::new(&rows);
        let entropy = batch.policy_entropy();
        let above_entropy = |trainer: &Trainer| {
            let losses = trainer.measure(&rows).unwrap().losses;
            losses.mean(Head::Policy).unwrap() - entropy
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
        let changed = TrainConfig {
            precision: TrainingPrecision::Fp32,
            ..config
        };
        trainer.set_config(changed).unwrap();
        assert_eq!(trainer.kind, Kind::Float);
    }

    #[test]
    fn each_step_has_the_scheduled_learning_rate() {
        let game = rows(64);
        let config = TrainConfig {
            warmup_steps: 2,
            learning_rate: 0.008,
            schedule: ScheduleKind::Step,
            schedule_steps: 1,
            schedule_factor: 0.5,
            ..Config::default().train
        };
        let mut trainer = trainer((1, 8), config);
        let batch = Batch::new(&game.rows().collect::<Vec<_>>());
        let rates = [(); 5].map(|()| trainer.step(&batch).unwrap().learning_rate);
        assert_eq!(rates, [0.004, 0.008, 0.008, 0.004, 0.002]);
        // The run's steps count, and those of the optimizer for the warm-up alone.
        trainer.set_step(2);
        assert_eq!(trainer.step(&batch).unwrap().learning_rate, 0.008);
    }

    #[test]
    fn measuring_gives_the_mean_over_all_rows_and_changes_nothing() {
        let game = rows(2_500);
        let rows: Vec<RowRef> = game.rows().collect();
        let trainer = trainer((1, 8), Config::default().train);
        let all = trainer.measure(&rows).unwrap();
        assert_eq!(trainer.measure(&rows).unwrap(), all);
        let policy = |rows: &[RowRef]| trainer.measure(rows).unwrap().losses.mean(Head::Policy);
        let part = |range: std::ops::Range<usize>| policy(&rows[range]).unwrap();
        let (first, second) = (part(0..1_700), part(1_700..2_500));
        let mean = (1_700.0 * first + 800.0 * second) / 2_500.0;
        assert!((mean - all.losses.mean(Head::Policy).unwrap()).abs() < 1e-5);
        assert_eq!(policy(&[]), None);
    }

    #[test]
    fn a_loss_that_is_no_number_is_named_with_its_step() {
        let game = rows(64);
        let mut trainer = trainer((1, 8), Config::default().train);
        let batch = Batch::new(&game.rows().collect::<Vec<_>>());
        trainer.step(&batch).unwrap();
        let before = numbers(&trainer);
        let error = trainer
            .step(&samples::spoiled(&batch))
            .unwrap_err()
            .to_string();
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
        let networks = networks.map(|network| network.flat().shallow_clone());
        let memory = trainer.optimizer().tensors(trainer.network()).unwrap();
        let memory = memory.into_iter().map(|(_, tensor)| tensor.reshape([-1]));
        let tensors = networks.into_iter().chain(memory);
        tensors
            .flat_map(|tensor| Vec::<f32>::try_from(tensor).unwrap())
            .collect()
    }
}
