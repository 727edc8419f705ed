//! Stochastic gradient descent with Nesterov momentum (Sutskever et al. 2013, "On the importance of initialization and momentum in
//! deep learning", section 2, in the form of PyTorch's `SGD(nesterov=True)`: the weights kept are those looked ahead, and the
//! learning rate stands outside of the sum) and decoupled weight decay (Loshchilov and Hutter 2019, algorithm 1: SGDW).
//!
//! With weights w, gradient g, learning rate η, weight decay λ and momentum μ: w ← (1 − ηλ)·w; v ← μ·v + g; w ← w − η·(g + μ·v).

use super::StepSize;
use tch::{TchError, Tensor};

/// The running sum of the gradients, v: `[trained]`.
#[derive(Debug)]
pub(super) struct Velocity(pub(super) Tensor);

impl Velocity {
    /// That before the first step.
    pub(super) fn new(weights: &Tensor) -> Result<Self, TchError> {
        Ok(Self(weights.f_zeros_like()?))
    }

    /// One step of weights that have been decayed.
    pub(super) fn update(
        &mut self,
        weights: &mut Tensor,
        gradient: &Tensor,
        size: StepSize,
    ) -> Result<(), TchError> {
        let Self(velocity) = self;
        let _ = velocity.f_mul_scalar_(size.momentum)?;
        let _ = velocity.f_add_(gradient)?;
        let mut change = velocity.f_mul_scalar(size.momentum)?;
        let _ = change.f_add_(gradient)?;
        let _ = change.f_mul_scalar_(size.learning_rate)?;
        let _ = weights.f_sub_(&change)?;
        Ok(())
    }
}
