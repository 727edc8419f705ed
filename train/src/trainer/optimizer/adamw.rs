//! AdamW: Adam (Kingma and Ba 2015, algorithm 1) with decoupled weight decay (Loshchilov and Hutter 2019, "Decoupled Weight Decay
//! Regularization", algorithm 2).
//!
//! With weights w, gradient g, learning rate η, weight decay λ and the number t of the step, from 1:
//! w ← (1 − ηλ)·w; m ← β₁·m + (1 − β₁)·g; v ← β₂·v + (1 − β₂)·g²; w ← w − η·(m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε).

use super::StepSize;
use tch::{TchError, Tensor};

/// How fast the mean of the gradients forgets, β₁.
pub(super) const FIRST_DECAY: f64 = 0.9;

/// How fast the mean of their squares forgets, β₂.
pub(super) const SECOND_DECAY: f64 = 0.999;

/// Added to the root of that mean, ε.
pub(super) const EPSILON: f64 = 1e-8;

/// The running means of the gradients: `[trained]`.
#[derive(Debug)]
pub(super) struct Moments {
    /// Of the gradients.
    pub(super) first: Tensor,
    /// Of their squares.
    pub(super) second: Tensor,
}

impl Moments {
    /// Those before the first step.
    pub(super) fn new(weights: &Tensor) -> Result<Self, TchError> {
        Ok(Self {
            first: weights.f_zeros_like()?,
            second: weights.f_zeros_like()?,
        })
    }

    /// Step number `steps`, from 1, of weights that have been decayed.
    pub(super) fn update(
        &mut self,
        weights: &mut Tensor,
        gradient: &Tensor,
        steps: u64,
        size: StepSize,
    ) -> Result<(), TchError> {
        let _ = self.first.f_lerp_(gradient, 1.0 - FIRST_DECAY)?;
        let _ = self
            .second
            .f_lerp_(&gradient.f_square()?, 1.0 - SECOND_DECAY)?;
        // The means start at 0: what that takes away is given back.
        let first_share = 1.0 - FIRST_DECAY.powf(steps as f64);
        let second_share = 1.0 - SECOND_DECAY.powf(steps as f64);
        let mut root = self.second.f_sqrt()?;
        let _ = root.f_mul_scalar_(1.0 / second_share.sqrt())?;
        let _ = root.f_add_scalar_(EPSILON)?;
        let mut change = self.first.f_div(&root)?;
        let _ = change.f_mul_scalar_(size.learning_rate / first_share)?;
        let _ = weights.f_sub_(&change)?;
        Ok(())
    }
}
