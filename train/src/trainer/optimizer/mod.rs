//! Optimizers on plain tensors, whose whole state can be saved: tch's own optimizers keep theirs to themselves.
//!
//! Here is what they share: the choice, the clipping, the weight decay and the names of their tensors; the formulas are in
//! `adamw` and `sgd`.

mod adamw;
mod sgd;

use adamw::Moments;
use engine::config::OptimizerKind;
use network::{Network, NetworkError};
use sgd::Velocity;
use tch::{TchError, Tensor, no_grad_guard};

/// Changes a network's trained numbers by their gradients, which it clips by their common norm.
#[derive(Debug)]
pub(crate) struct Optimizer {
    memory: Memory,
    steps: u64,
}

/// What an optimizer keeps of earlier gradients, laid out like [`Network::trained`].
#[derive(Debug)]
enum Memory {
    AdamW(Moments),
    Sgd(Velocity),
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
    pub(crate) fn new(kind: OptimizerKind, network: &Network) -> Result<Self, NetworkError> {
        let weights = network.trained()?;
        let memory = match kind {
            OptimizerKind::AdamW => Memory::AdamW(Moments::new(&weights)?),
            OptimizerKind::Sgd => Memory::Sgd(Velocity::new(&weights)?),
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
    pub(crate) fn tensors(&self, network: &Network) -> Result<Vec<(String, Tensor)>, NetworkError> {
        let memory = match &self.memory {
            Memory::AdamW(Moments { first, second }) => {
                vec![("first", first), ("second", second)]
            }
            Memory::Sgd(Velocity(velocity)) => vec![("velocity", velocity)],
        };
        let mut named = Vec::new();
        for (kind, numbers) in memory {
            let names = network.parameters().map(|parameter| parameter.name);
            let tensors = names.zip(network.unflatten(numbers)?);
            named.extend(tensors.map(|(name, tensor)| (format!("{kind}.{name}"), tensor)));
        }
        Ok(named)
    }

    /// Changes the network's trained numbers by a gradient laid out like them, whose [`norm`] is this. If that is no finite number,
    /// nothing is changed.
    pub(crate) fn step(
        &mut self,
        network: &Network,
        mut gradient: Tensor,
        norm: f64,
        size: StepSize,
    ) -> Result<(), NetworkError> {
        let _no_grad = no_grad_guard();
        if !norm.is_finite() {
            return Ok(());
        }
        self.steps += 1;
        let clip = (size.gradient_clip / norm).min(1.0);
        if clip < 1.0 {
            let _ = gradient.f_mul_scalar_(clip)?;
        }
        let share = size.learning_rate * size.weight_decay;
        let _ = network.decayed()?.f_mul_scalar_(1.0 - share)?;
        let weights = &mut network.trained()?;
        match &mut self.memory {
            Memory::AdamW(moments) => moments.update(weights, &gradient, self.steps, size)?,
            Memory::Sgd(velocity) => velocity.update(weights, &gradient, size)?,
        }
        Ok(())
    }
}

/// The Euclidean norm of all gradients together, as a tensor without dimensions.
pub(crate) fn norm(gradient: &Tensor) -> Result<Tensor, TchError> {
    // Sums are added up by pairs; the norms that libtorch knows add one number after the other, which is less exact.
    gradient.f_square()?.f_sum(None)?.f_sqrt()
}

#[cfg(test)]
mod tests;
