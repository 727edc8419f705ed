//! Optimizers on plain tensors, whose whole state can be saved: tch's own optimizers keep theirs to themselves.
//!
//! Here is what they share: the choice, the clipping, the weight decay and the names of their tensors; the formulas are in
//! `adamw` and `sgd`.

mod adamw;
mod sgd;

use crate::error::TrainError;
use adamw::Moments;
use engine::config::OptimizerKind;
use engine::network::{Network, Parameter};
use sgd::Velocity;
use tch::{TchError, Tensor, no_grad_guard};

/// Changes a network's parameters by their gradients, which it clips by their common norm.
#[derive(Debug)]
pub(crate) struct Optimizer {
    memory: Memory,
    steps: u64,
}

/// What an optimizer keeps of earlier gradients, in the order of the network's parameters.
#[derive(Debug)]
enum Memory {
    AdamW(Vec<Moments>),
    Sgd(Vec<Velocity>),
}

/// The size of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepSize {
    /// The learning rate of this step.
    pub(crate) learning_rate: f64,
    /// How much of SGD's running sum of gradients stays.
    pub(crate) momentum: f64,
    /// Weights lose this share of themselves, times the learning rate, at each step.
    pub(crate) weight_decay: f64,
    /// Gradients whose common norm is above this are scaled down to it.
    pub(crate) gradient_clip: f64,
}

impl Optimizer {
    /// An optimizer that has made no step yet.
    pub(crate) fn new(kind: OptimizerKind, network: &Network) -> Result<Self, TchError> {
        let parameters = network.parameters();
        let memory = match kind {
            OptimizerKind::AdamW => {
                Memory::AdamW(parameters.map(Moments::new).collect::<Result<_, _>>()?)
            }
            OptimizerKind::Sgd => {
                Memory::Sgd(parameters.map(Velocity::new).collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { memory, steps: 0 })
    }

    /// The steps made so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Says how many steps the tensors come from; they are replaced in place.
    pub(crate) fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// All tensors beside the network's that the next step depends on, named `first.PARAMETER` and `second.PARAMETER` (AdamW) or
    /// `velocity.PARAMETER` (SGD). They share their storage with the optimizer's.
    pub(crate) fn tensors(&self, network: &Network) -> Vec<(String, Tensor)> {
        let named = |kind: &str, parameter: Parameter, tensor: &Tensor| {
            let name = format!("{kind}.{}", parameter.name);
            (name, tensor.shallow_clone())
        };
        let parameters = network.parameters();
        match &self.memory {
            Memory::AdamW(moments) => parameters
                .zip(moments)
                .flat_map(|(parameter, moments)| {
                    [
                        named("first", parameter, &moments.first),
                        named("second", parameter, &moments.second),
                    ]
                })
                .collect(),
            Memory::Sgd(velocities) => parameters
                .zip(velocities)
                .map(|(parameter, Velocity(tensor))| named("velocity", parameter, tensor))
                .collect(),
        }
    }

    /// Changes the network's parameters by gradients in their order, and returns the gradients' common norm before it was
    /// clipped. If that is no finite number, nothing is changed.
    pub(crate) fn step(
        &mut self,
        network: &Network,
        mut gradients: Vec<Tensor>,
        size: StepSize,
    ) -> Result<f64, TrainError> {
        let _no_grad = no_grad_guard();
        let norm = common_norm(&gradients)?;
        if !norm.is_finite() {
            return Ok(norm);
        }
        self.steps += 1;
        let clip = (size.gradient_clip / norm).min(1.0);
        if clip < 1.0 {
            for gradient in &mut gradients {
                let _ = gradient.f_mul_scalar_(clip)?;
            }
        }
        let parts = network.parameters().zip(&gradients);
        match &mut self.memory {
            Memory::AdamW(moments) => {
                for ((parameter, gradient), moments) in parts.zip(moments) {
                    moments.update(parameter, gradient, self.steps, size)?;
                }
            }
            Memory::Sgd(velocities) => {
                for ((parameter, gradient), velocity) in parts.zip(velocities) {
                    velocity.update(parameter, gradient, size)?;
                }
            }
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

/// Takes the weight decay's share from the weights, biases and norms excepted.
fn decay(parameter: Parameter, size: StepSize) -> Result<(), TchError> {
    if parameter.decay {
        let share = size.learning_rate * size.weight_decay;
        let _ = parameter
            .tensor
            .shallow_clone()
            .f_mul_scalar_(1.0 - share)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
