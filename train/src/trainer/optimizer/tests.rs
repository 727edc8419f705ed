//! The formulas against plain numbers.

use super::*;
use ndarray::Array1;
use network::Architecture;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const KINDS: [OptimizerKind; 2] = [OptimizerKind::AdamW, OptimizerKind::Sgd];

const SIZE: StepSize = StepSize {
    learning_rate: 0.1,
    momentum: 0.9,
    weight_decay: 0.5,
    gradient_clip: 1e9,
};

/// A network whose parameters are all 1.
fn network() -> Network {
    let architecture = Architecture {
        blocks: 1,
        channels: 8,
    };
    let network = Network::new(architecture, 1).unwrap();
    for parameter in network.parameters() {
        let _ = parameter.tensor.shallow_clone().fill_(1.0);
    }
    network.set_requires_grad(true).unwrap();
    network
}

/// Gradients whose numbers are all the same.
fn gradients(network: &Network, number: f64) -> Tensor {
    network.trained().unwrap().full_like(number)
}

/// Makes a step, and returns the gradients' norm before it was clipped.
fn step(optimizer: &mut Optimizer, network: &Network, gradients: Tensor, size: StepSize) -> f64 {
    let norm = norm(&gradients).unwrap().double_value(&[]);
    optimizer.step(network, gradients, norm, size).unwrap();
    norm
}

/// The numbers of a parameter that are all the same.
fn number(network: &Network, name: &str) -> f64 {
    let parameter = network
        .parameters()
        .find(|parameter| parameter.name == name)
        .unwrap();
    let (low, high) = (parameter.tensor.min(), parameter.tensor.max());
    assert_eq!(low.double_value(&[]), high.double_value(&[]));
    low.double_value(&[])
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 2e-6, "{found} is not {expected}");
}

#[test]
fn steps_of_adamw_are_those_of_the_formula() {
    let network = network();
    let mut optimizer = Optimizer::new(OptimizerKind::AdamW, &network).unwrap();
    // Step 1: the mean over its share is the gradient, the root its size: a change of the learning rate.
    step(&mut optimizer, &network, gradients(&network, 2.0), SIZE);
    close(number(&network, "value.hidden.bias"), 1.0 - 0.1);
    close(
        number(&network, "value.hidden.weight"),
        1.0 - 0.1 * 0.5 - 0.1,
    );
    // Step 2, gradient -1: means 0.9·0.2 - 0.1 = 0.08 and 0.999·0.004 + 0.001 = 0.004996, shares 0.19 and 0.001999.
    step(&mut optimizer, &network, gradients(&network, -1.0), SIZE);
    let change = 0.1 * (0.08 / 0.19) / (0.004996f64 / 0.001999).sqrt();
    close(change, 0.026_634_4);
    close(number(&network, "value.hidden.bias"), 0.9 - change);
    close(
        number(&network, "value.hidden.weight"),
        0.85 * 0.95 - change,
    );
    assert_eq!(optimizer.steps(), 2);
}

#[test]
fn steps_of_sgd_are_those_of_the_formula() {
    let network = network();
    let mut optimizer = Optimizer::new(OptimizerKind::Sgd, &network).unwrap();
    // Step 1: the sum is the gradient, 2; the change 0.1·(2 + 0.9·2) = 0.38.
    step(&mut optimizer, &network, gradients(&network, 2.0), SIZE);
    close(number(&network, "value.hidden.bias"), 1.0 - 0.38);
    close(
        number(&network, "value.hidden.weight"),
        1.0 - 0.1 * 0.5 - 0.38,
    );
    // Step 2, gradient -1: the sum 0.9·2 - 1 = 0.8, the change 0.1·(-1 + 0.9·0.8) = -0.028.
    step(&mut optimizer, &network, gradients(&network, -1.0), SIZE);
    close(number(&network, "value.hidden.bias"), 0.62 + 0.028);
    close(number(&network, "value.hidden.weight"), 0.57 * 0.95 + 0.028);
    assert_eq!(optimizer.steps(), 2);
}

/// One parameter's numbers and what the optimizer remembers of them, by the formulas as they stand in the papers.
struct Reference {
    weights: Array1<f64>,
    first: Array1<f64>,
    second: Array1<f64>,
}

impl Reference {
    fn step(
        &mut self,
        kind: OptimizerKind,
        gradient: &Array1<f64>,
        number: i32,
        size: StepSize,
        decay: bool,
    ) {
        if decay {
            self.weights *= 1.0 - size.learning_rate * size.weight_decay;
        }
        let change = match kind {
            OptimizerKind::AdamW => {
                self.first = 0.9 * &self.first + 0.1 * gradient;
                self.second = 0.999 * &self.second + 0.001 * gradient * gradient;
                let first = &self.first / (1.0 - 0.9f64.powi(number));
                let second = &self.second / (1.0 - 0.999f64.powi(number));
                first / (second.sqrt() + 1e-8)
            }
            OptimizerKind::Sgd => {
                self.first = size.momentum * &self.first + gradient;
                gradient + size.momentum * &self.first
            }
        };
        self.weights = &self.weights - size.learning_rate * change;
    }
}

#[test]
fn many_steps_are_those_of_a_plain_reference() {
    for kind in KINDS {
        let network = network();
        let mut optimizer = Optimizer::new(kind, &network).unwrap();
        let mut references: Vec<Reference> = network
            .parameters()
            .map(|parameter| {
                let count = parameter.tensor.numel();
                Reference {
                    weights: Array1::ones(count),
                    first: Array1::zeros(count),
                    second: Array1::zeros(count),
                }
            })
            .collect();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for number in 1..=12 {
            // Each step of another size.
            let size = StepSize {
                learning_rate: 0.01 * f64::from(number),
                momentum: 0.8,
                ..SIZE
            };
            let mut tensors = Vec::new();
            for (parameter, reference) in network.parameters().zip(&mut references) {
                let mut of_each = || random.random_range(-1.0f32..1.0);
                let numbers: Vec<f32> = (0..parameter.tensor.numel()).map(|_| of_each()).collect();
                let gradient = numbers.iter().map(|&number| f64::from(number)).collect();
                reference.step(kind, &gradient, number, size, parameter.decay);
                tensors.push(Tensor::from_slice(&numbers).view_as(parameter.tensor));
            }
            let tensors = network.flatten(&tensors).unwrap();
            step(&mut optimizer, &network, tensors, size);
        }
        for (parameter, reference) in network.parameters().zip(&references) {
            let found = parameter.tensor.detach().reshape([-1]);
            let found = Vec::<f32>::try_from(found).unwrap();
            for (&found, &expected) in found.iter().zip(&reference.weights) {
                assert!(
                    (f64::from(found) - expected).abs() < 5e-6,
                    "{kind}: {found} is not {expected} in {}",
                    parameter.name
                );
            }
        }
    }
}

#[test]
fn norms_and_biases_are_not_decayed() {
    for kind in KINDS {
        let network = network();
        let mut optimizer = Optimizer::new(kind, &network).unwrap();
        step(&mut optimizer, &network, gradients(&network, 0.0), SIZE);
        for parameter in network.parameters() {
            let expected = if parameter.decay { 0.95 } else { 1.0 };
            close(number(&network, parameter.name), expected);
        }
        assert!(network.parameters().any(|parameter| parameter.decay));
    }
}

#[test]
fn gradients_are_clipped_by_their_common_norm() {
    for (kind, memory, scale) in [
        // A tenth of the first gradient is in AdamW's mean, all of it in SGD's sum.
        (OptimizerKind::AdamW, "first.", 10.0),
        (OptimizerKind::Sgd, "velocity.", 1.0),
    ] {
        let norms = |clip: f64| {
            let network = network();
            let mut optimizer = Optimizer::new(kind, &network).unwrap();
            let gradients = gradients(&network, 3.0);
            let size = StepSize {
                gradient_clip: clip,
                ..SIZE
            };
            let norm = step(&mut optimizer, &network, gradients, size);
            let expected = 3.0 * (network.parameter_count() as f64).sqrt();
            assert!(
                (norm / expected - 1.0).abs() < 1e-5,
                "{norm} is not {expected}"
            );
            let squares: f64 = optimizer
                .tensors(&network)
                .unwrap()
                .iter()
                .filter(|(name, _)| name.starts_with(memory))
                .map(|(_, tensor)| tensor.square().sum(None).double_value(&[]))
                .sum();
            (scale * squares.sqrt(), norm)
        };
        let (kept, norm) = norms(1e9);
        assert!((kept / norm - 1.0).abs() < 1e-5, "{kind}");
        let (clipped, _) = norms(0.5);
        close(clipped, 0.5);
    }
}

#[test]
fn a_gradient_that_is_no_number_changes_nothing() {
    for kind in KINDS {
        let network = network();
        let mut optimizer = Optimizer::new(kind, &network).unwrap();
        let gradients = gradients(&network, f64::NAN);
        assert!(step(&mut optimizer, &network, gradients, SIZE).is_nan());
        assert_eq!(number(&network, "value.hidden.bias"), 1.0);
        assert_eq!(optimizer.steps(), 0);
    }
}

mod average {
    use super::super::move_average;
    use network::{Architecture, Network};
    use tch::{Tensor, no_grad_guard};

    fn network(number: f64) -> Network {
        let architecture = Architecture {
            blocks: 1,
            channels: 8,
        };
        let network = Network::new(architecture, 1).unwrap();
        let _no_grad = no_grad_guard();
        for mut tensor in tensors(&network) {
            let _ = tensor.fill_(number);
        }
        network
    }

    fn tensors(network: &Network) -> Vec<Tensor> {
        let parameters = network.parameters().map(|parameter| parameter.tensor);
        let buffers = network.buffers().map(|(_, tensor)| tensor);
        parameters.chain(buffers).map(Tensor::detach).collect()
    }

    /// The number that all of the average is, after networks of these numbers.
    fn average(decay: f64, first_step: u64, numbers: &[f64]) -> f64 {
        let average = network(numbers[0]);
        for (step, &number) in (first_step..).zip(&numbers[1..]) {
            move_average(&average, &network(number), decay, step).unwrap();
        }
        let all = tensors(&average);
        let found = all[0].mean(None).double_value(&[]);
        for tensor in all {
            assert!((tensor - found).abs().max().double_value(&[]) < 1e-6);
        }
        found
    }

    #[test]
    fn every_tensor_moves_by_its_share_towards_the_newest() {
        for (decay, first_step, numbers, expected) in [
            // Late in a run.
            (0.5, 1_000, &[8.0, 4.0, 2.0][..], 4.0),
            (0.9, 1_000, &[1.0, 2.0], 1.1),
            // Without an average.
            (0.0, 1_000, &[8.0, 4.0, 2.5], 2.5),
            // The run's first step counts nine tenths.
            (0.9, 1, &[10.0, 0.0], 1.0),
        ] {
            let found = average(decay, first_step, numbers);
            assert!((found - expected).abs() < 1e-5, "{decay}: {found}");
        }
    }
}

mod schedule {
    use super::super::learning_rate;
    use engine::config::{Config, ScheduleKind, TrainConfig};
    use std::f64::consts::PI;

    fn config(schedule: ScheduleKind) -> TrainConfig {
        TrainConfig {
            learning_rate: 0.8,
            warmup_steps: 4,
            schedule,
            schedule_steps: 10,
            schedule_factor: 0.25,
            final_learning_rate: 0.1,
            ..Config::default().train
        }
    }

    /// The rate of a step of a run whose optimizer was begun with it.
    fn rate(config: &TrainConfig, step: u64) -> f64 {
        learning_rate(config, step, step)
    }

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-12,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_warm_up_rises_evenly_and_then_all_stays() {
        let config = config(ScheduleKind::Constant);
        let rates = [1, 2, 4, 5, 100, u64::MAX].map(|step| rate(&config, step));
        assert_eq!(rates, [0.2, 0.4, 0.8, 0.8, 0.8, 0.8]);
        let at_once = TrainConfig {
            warmup_steps: 0,
            ..config
        };
        assert_eq!(rate(&at_once, 1), 0.8);
    }

    #[test]
    fn steps_fall_by_the_factor_down_to_the_last_rate() {
        let config = config(ScheduleKind::Step);
        // Four steps of warm-up, then ten of each rate.
        for (step, expected) in [
            (1, 0.2),
            (4, 0.8),
            (5, 0.8),
            (14, 0.8),
            (15, 0.2),
            (24, 0.2),
            (25, 0.1),
            (1_000, 0.1),
            (u64::MAX, 0.1),
        ] {
            close(rate(&config, step), expected);
        }
        let without_end = TrainConfig {
            final_learning_rate: 0.0,
            ..config
        };
        close(rate(&without_end, 25), 0.05);
        assert_eq!(rate(&without_end, u64::MAX), 0.0);
    }

    #[test]
    fn the_cosine_begins_at_the_first_rate_and_ends_at_the_last() {
        let config = config(ScheduleKind::Cosine);
        for (step, expected) in [
            (2, 0.4),
            (4, 0.8),
            (5, 0.8),
            // Half of the ten steps, all but the last, all.
            (5 + 5, 0.45),
            (5 + 9, 0.1 + 0.35 * (1.0 + (0.9 * PI).cos())),
            (5 + 10, 0.1),
            (5 + 11, 0.1),
            (u64::MAX, 0.1),
        ] {
            close(rate(&config, step), expected);
        }
        let rates: Vec<f64> = (5..=15).map(|step| rate(&config, step)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
    }

    #[test]
    fn a_new_optimizer_warms_up_and_the_schedule_continues() {
        let config = config(ScheduleKind::Step);
        close(learning_rate(&config, 15, 1), 0.2 / 4.0);
        close(learning_rate(&config, 18, 4), 0.2);
    }
}
