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
