//! The optimizer, its learning rate, and the average of the weights that it leaves.
//!
//! The optimizers work on plain tensors, so that their whole state can be saved: tch's optimizers do not expose theirs.
//! With weights w, gradient g, learning rate η, weight decay λ and the number t of the step, from 1, both decay the weights first,
//! w ← (1 − ηλ)·w (decoupled weight decay: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithms 1 and 2).
//!
//! - AdamW (Kingma and Ba 2015, algorithm 1): m ← β₁·m + (1 − β₁)·g; v ← β₂·v + (1 − β₂)·g²;
//!   w ← w − η·(m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε).
//! - Stochastic gradient descent with Nesterov momentum μ (Sutskever et al. 2013, "On the importance of initialization and momentum in
//!   deep learning", section 2, in the form of PyTorch's `SGD(nesterov=True)`: the stored weights are the ones looked ahead, and the
//!   learning rate stands outside of the sum): v ← μ·v + g; w ← w − η·(g + μ·v).

use engine::config::{OptimizerKind, ScheduleKind, TrainConfig};
use network::{Network, NetworkError};
use std::f64::consts::PI;
use tch::{TchError, Tensor, no_grad_guard};

/// The decay of the mean of the gradients, β₁.
const FIRST_DECAY: f64 = 0.9;

/// The decay of the mean of their squares, β₂.
const SECOND_DECAY: f64 = 0.999;

/// Added to the root of that mean, ε.
const EPSILON: f64 = 1e-8;

/// Changes a network's trained numbers by their gradients, which it clips by their common norm.
#[derive(Debug)]
pub(crate) struct Optimizer {
    memory: Memory,
    steps: u64,
}

/// What an optimizer keeps of earlier gradients, laid out like [`Network::trained`].
#[derive(Debug)]
enum Memory {
    /// The running means of the gradients and of their squares, m and v.
    AdamW { first: Tensor, second: Tensor },
    /// The running sum of the gradients, v.
    Sgd { velocity: Tensor },
}

/// The size of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepSize {
    /// The learning rate of this step.
    pub(crate) learning_rate: f64,
    /// The share of SGD's running sum that stays.
    pub(crate) momentum: f64,
    /// Weights lose this share of themselves, times the learning rate, at each step.
    pub(crate) weight_decay: f64,
    /// Gradients with a larger common norm are scaled down to it.
    pub(crate) gradient_clip: f64,
}

impl Optimizer {
    /// An optimizer before its first step.
    pub(crate) fn new(kind: OptimizerKind, network: &Network) -> Result<Self, NetworkError> {
        let zeros = network.trained()?.f_zeros_like()?;
        let memory = match kind {
            OptimizerKind::AdamW => Memory::AdamW {
                second: zeros.f_zeros_like()?,
                first: zeros,
            },
            OptimizerKind::Sgd => Memory::Sgd { velocity: zeros },
        };
        Ok(Self { memory, steps: 0 })
    }

    /// The steps made so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Sets the number of steps that the tensors come from; they are replaced in place.
    pub(crate) fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// All tensors beside the network's that the next step depends on, named `first.PARAMETER` and `second.PARAMETER` (AdamW) or
    /// `velocity.PARAMETER` (SGD). They share their storage with the optimizer's.
    pub(crate) fn tensors(&self, network: &Network) -> Result<Vec<(String, Tensor)>, NetworkError> {
        let memory = match &self.memory {
            Memory::AdamW { first, second } => vec![("first", first), ("second", second)],
            Memory::Sgd { velocity } => vec![("velocity", velocity)],
        };
        let mut named = Vec::new();
        for (kind, numbers) in memory {
            let names = network.parameters().map(|parameter| parameter.name);
            let tensors = names.zip(network.unflatten(numbers)?);
            named.extend(tensors.map(|(name, tensor)| (format!("{kind}.{name}"), tensor)));
        }
        Ok(named)
    }

    /// Changes the network's trained numbers by a gradient with the same layout, whose [`norm`] is given. Where the norm is not
    /// finite, nothing changes.
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
        let change = self.memory.change(&gradient, self.steps, size)?;
        let _ = network.trained()?.f_sub_(&change)?;
        Ok(())
    }
}

impl Memory {
    /// Adds a gradient, and returns what step number `steps` takes off the decayed weights.
    fn change(
        &mut self,
        gradient: &Tensor,
        steps: u64,
        size: StepSize,
    ) -> Result<Tensor, TchError> {
        match self {
            Self::AdamW { first, second } => {
                let _ = first.f_lerp_(gradient, 1.0 - FIRST_DECAY)?;
                let _ = second.f_lerp_(&gradient.f_square()?, 1.0 - SECOND_DECAY)?;
                // The means start at 0: the shares make up for it.
                let first_share = 1.0 - FIRST_DECAY.powf(steps as f64);
                let second_share = 1.0 - SECOND_DECAY.powf(steps as f64);
                let mut root = second.f_sqrt()?;
                let _ = root.f_mul_scalar_(1.0 / second_share.sqrt())?;
                let _ = root.f_add_scalar_(EPSILON)?;
                first
                    .f_div(&root)?
                    .f_mul_scalar_(size.learning_rate / first_share)
            }
            Self::Sgd { velocity } => {
                let _ = velocity.f_mul_scalar_(size.momentum)?;
                let _ = velocity.f_add_(gradient)?;
                let mut change = velocity.f_mul_scalar(size.momentum)?;
                let _ = change.f_add_(gradient)?;
                change.f_mul_scalar_(size.learning_rate)
            }
        }
    }
}

/// The Euclidean norm of all gradients together, as a tensor without dimensions.
pub(crate) fn norm(gradient: &Tensor) -> Result<Tensor, TchError> {
    // Sums are added up by pairs; the norms that libtorch knows add one number after the other, which is less exact.
    gradient.f_square()?.f_sum(None)?.f_sqrt()
}

/// The learning rate of the run's step number `step`, which is the optimizer's step number `optimizer_step`, both from 1.
///
/// The schedule counts the run's steps, and begins after `warmup_steps` of them. The warm-up, in which the rate rises linearly from 0,
/// counts the optimizer's: a new optimizer in the middle of a run has no earlier gradients either. `cosine` is
/// that of Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts", equation 5, without restarts.
pub(crate) fn learning_rate(config: &TrainConfig, step: u64, optimizer_step: u64) -> f64 {
    let warmup = u64::from(config.warmup_steps);
    let done = step.saturating_sub(1).saturating_sub(warmup);
    let warm_up = if optimizer_step < warmup {
        optimizer_step as f64 / warmup as f64
    } else {
        1.0
    };
    scheduled(config, done) * warm_up
}

/// The scheduled rate after `done` steps of the schedule.
fn scheduled(config: &TrainConfig, done: u64) -> f64 {
    let (first, last) = (config.learning_rate, config.final_learning_rate);
    let steps = u64::from(config.schedule_steps);
    match config.schedule {
        ScheduleKind::Constant => first,
        ScheduleKind::Step => {
            let changes = done / steps.max(1);
            (first * config.schedule_factor.powf(changes as f64)).max(last)
        }
        ScheduleKind::Cosine if done >= steps => last,
        ScheduleKind::Cosine => {
            let share = done as f64 / steps as f64;
            last + (first - last) * 0.5 * (1.0 + (PI * share).cos())
        }
    }
}

/// Moves the exponential moving average of a network's tensors, running statistics of the norms included.
///
/// After the run's step number `step`, from 1: `average ← d · average + (1 - d) · network`, with `d = min(decay, step / (step + 9))` so
/// that little is left of the random network (as TensorFlow's `ExponentialMovingAverage`). With a decay of 0 it is the newest network.
///
/// With a large learning rate the last few batches push a network about: its win probability at the start of a turn was off by 0.06
/// either way, which a search takes for the value of ending the turn. The average over the steps is steady (Polyak and Juditsky 1992;
/// as an exponential moving average in Kingma and Ba 2015, section 7.2).
pub(crate) fn move_average(
    average: &Network,
    network: &Network,
    decay: f64,
    step: u64,
) -> Result<(), NetworkError> {
    let begun = step as f64 / (step as f64 + 9.0);
    let share = 1.0 - decay.min(begun);
    let mut own = average.flat().shallow_clone();
    let _ = own.f_lerp_(network.flat(), share)?;
    Ok(())
}

#[cfg(test)]
mod tests;
