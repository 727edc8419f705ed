//! AdamW on plain tensors, whose whole state can be saved: tch's own optimizers keep theirs to themselves.

use crate::error::TrainError;
use engine::network::{Network, Parameter};
use tch::{TchError, Tensor, no_grad_guard};

/// How fast the mean of the gradients forgets.
const FIRST_DECAY: f64 = 0.9;

/// How fast the mean of their squares forgets.
const SECOND_DECAY: f64 = 0.999;

/// Added to the root of that mean.
const EPSILON: f64 = 1e-8;

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2), its
/// gradients clipped by their common norm.
#[derive(Debug)]
pub(crate) struct AdamW {
    moments: Vec<Moments>,
    steps: u64,
}

/// The running means of one parameter's gradients.
#[derive(Debug)]
pub(crate) struct Moments {
    /// Of the gradients.
    pub(crate) first: Tensor,
    /// Of their squares.
    pub(crate) second: Tensor,
}

/// The size of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepSize {
    /// The learning rate of this step.
    pub(crate) learning_rate: f64,
    /// Weights lose this share of themselves, times the learning rate, at each step.
    pub(crate) weight_decay: f64,
    /// Gradients whose common norm is above this are scaled down to it.
    pub(crate) gradient_clip: f64,
}

impl AdamW {
    /// An optimizer that has made no step yet.
    pub(crate) fn new(network: &Network) -> Result<Self, TrainError> {
        let zeros = |parameter: Parameter| {
            Ok(Moments {
                first: parameter.tensor.f_detach()?.f_zeros_like()?,
                second: parameter.tensor.f_detach()?.f_zeros_like()?,
            })
        };
        Ok(Self {
            moments: network
                .parameters()
                .map(zeros)
                .collect::<Result<_, TchError>>()?,
            steps: 0,
        })
    }

    /// The steps made so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Says how many steps the moments come from; they are replaced in place.
    pub(crate) fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// The moments, in the order of the network's parameters.
    pub(crate) fn moments(&self) -> &[Moments] {
        &self.moments
    }

    /// Changes the network's parameters by gradients in their order, and returns the gradients' common norm before it was
    /// clipped. If that is no finite number, nothing is changed.
    pub(crate) fn step(
        &mut self,
        network: &Network,
        gradients: Vec<Tensor>,
        size: StepSize,
    ) -> Result<f64, TrainError> {
        let _no_grad = no_grad_guard();
        let norm = common_norm(&gradients)?;
        if !norm.is_finite() {
            return Ok(norm);
        }
        self.steps += 1;
        let clip = (size.gradient_clip / norm).min(1.0);
        let parts = network.parameters().zip(&mut self.moments).zip(gradients);
        for ((parameter, moments), mut gradient) in parts {
            if clip < 1.0 {
                let _ = gradient.f_mul_scalar_(clip)?;
            }
            update(parameter, moments, &gradient, self.steps, size)?;
        }
        Ok(norm)
    }
}

/// The Euclidean norm of all gradients together; waits for the device.
fn common_norm(gradients: &[Tensor]) -> Result<f64, TchError> {
    let norms = gradients
        .iter()
        .map(Tensor::f_norm)
        .collect::<Result<Vec<_>, _>>()?;
    Tensor::f_stack(&norms, 0)?.f_norm()?.f_double_value(&[])
}

/// One parameter's step number `steps`, from 1.
fn update(
    parameter: Parameter,
    moments: &mut Moments,
    gradient: &Tensor,
    steps: u64,
    size: StepSize,
) -> Result<(), TchError> {
    let mut weights = parameter.tensor.shallow_clone();
    let rate = size.learning_rate;
    if parameter.decay {
        let _ = weights.f_mul_scalar_(1.0 - rate * size.weight_decay)?;
    }
    let _ = moments.first.f_lerp_(gradient, 1.0 - FIRST_DECAY)?;
    let _ = moments
        .second
        .f_lerp_(&gradient.f_square()?, 1.0 - SECOND_DECAY)?;
    // The means start at 0: what that takes away is given back.
    let first_share = 1.0 - FIRST_DECAY.powf(steps as f64);
    let second_share = 1.0 - SECOND_DECAY.powf(steps as f64);
    let mut root = moments.second.f_sqrt()?;
    let _ = root.f_mul_scalar_(1.0 / second_share.sqrt())?;
    let _ = root.f_add_scalar_(EPSILON)?;
    let mut change = moments.first.f_div(&root)?;
    let _ = change.f_mul_scalar_(rate / first_share)?;
    let _ = weights.f_sub_(&change)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::network::Architecture;

    const SIZE: StepSize = StepSize {
        learning_rate: 0.1,
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
    fn gradients(network: &Network, number: f64) -> Vec<Tensor> {
        let full = |parameter: Parameter| parameter.tensor.detach().full_like(number);
        network.parameters().map(full).collect()
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
    fn steps_are_those_of_the_formula() {
        let network = network();
        let mut optimizer = AdamW::new(&network).unwrap();
        // Step 1: the mean over its share is the gradient, the root its size: a change of the learning rate.
        optimizer
            .step(&network, gradients(&network, 2.0), SIZE)
            .unwrap();
        close(number(&network, "value.hidden.bias"), 1.0 - 0.1);
        close(
            number(&network, "value.hidden.weight"),
            1.0 - 0.1 * 0.5 - 0.1,
        );
        // Step 2, gradient -1: means 0.9·0.2 - 0.1 = 0.08 and 0.999·0.004 + 0.001 = 0.004996, shares 0.19 and 0.001999.
        optimizer
            .step(&network, gradients(&network, -1.0), SIZE)
            .unwrap();
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
    fn norms_and_biases_are_not_decayed() {
        let network = network();
        let mut optimizer = AdamW::new(&network).unwrap();
        optimizer
            .step(&network, gradients(&network, 0.0), SIZE)
            .unwrap();
        for parameter in network.parameters() {
            let expected = if parameter.decay { 0.95 } else { 1.0 };
            close(number(&network, parameter.name), expected);
        }
        assert!(network.parameters().any(|parameter| parameter.decay));
    }

    #[test]
    fn gradients_are_clipped_by_their_common_norm() {
        let moments = |clip: f64| {
            let network = network();
            let mut optimizer = AdamW::new(&network).unwrap();
            let gradients = gradients(&network, 3.0);
            let size = StepSize {
                gradient_clip: clip,
                ..SIZE
            };
            let norm = optimizer.step(&network, gradients, size).unwrap();
            let expected = 3.0 * (network.parameter_count() as f64).sqrt();
            assert!(
                (norm / expected - 1.0).abs() < 1e-5,
                "{norm} is not {expected}"
            );
            let first: Vec<_> = optimizer
                .moments()
                .iter()
                .map(|moments| &moments.first)
                .collect();
            let squares = first
                .iter()
                .map(|tensor| tensor.square().sum(None).double_value(&[]));
            (10.0 * squares.sum::<f64>().sqrt(), norm)
        };
        let (kept, norm) = moments(1e9);
        assert!((kept / norm - 1.0).abs() < 1e-5);
        let (clipped, _) = moments(0.5);
        close(clipped, 0.5);
    }

    #[test]
    fn a_gradient_that_is_no_number_changes_nothing() {
        let network = network();
        let mut optimizer = AdamW::new(&network).unwrap();
        let norm = optimizer.step(&network, gradients(&network, f64::NAN), SIZE);
        assert!(norm.unwrap().is_nan());
        assert_eq!(number(&network, "value.hidden.bias"), 1.0);
        assert_eq!(optimizer.steps(), 0);
    }
}
