//! How the layers are wired: one definition for the form that is trained and the form that plays.

use super::architecture::Role;
use super::layers::{Builder, Convolution, Folded, Linear, Mode, Normed, cast, like, linear, pool};
use super::{Architecture, NetworkError};
use crate::encoding::CHANNELS;
use tch::{Kind, TchError, Tensor};

/// Numbers between the value head's two linear layers.
const VALUE_HIDDEN: i64 = 64;

/// The heads' last weights start at 0: a new network knows nothing, and says so with equal win probabilities and steps. Random
/// numbers instead would be opinions, which the search acts on and training has to undo.
pub(super) const LAST_GAIN: f64 = 0.0;

/// Pooled maxima are large and not normed: their weights start smaller.
const POOLING_GAIN: f64 = 0.3;

/// What a network says of a batch.
#[derive(Debug)]
pub struct Outputs {
    /// The policy's logits, legal or not: `[batch, 321]`, float.
    pub policy: Tensor,
    /// The logit of the mover's win probability: `[batch]`, float.
    pub value_logit: Tensor,
}

#[derive(Debug)]
struct Block<C> {
    first: C,
    second: C,
    /// `[channels, 2 * channels]`.
    pooling: Option<Tensor>,
}

/// All layers of a network; `C` is the form of its convolutions.
#[derive(Debug)]
pub(super) struct Body<C> {
    input: C,
    blocks: Vec<Block<C>>,
    policy: C,
    /// Steps in four directions, and placements: `[5, channels, 1, 1]`.
    policy_squares: Linear,
    policy_end: Linear,
    value: C,
    value_hidden: Linear,
    value_output: Linear,
}

impl Body<Normed> {
    /// Builds the layers of an architecture; the order of the tensors is part of the seeded initialisation.
    pub(super) fn new(
        architecture: Architecture,
        builder: &mut Builder,
    ) -> Result<Self, NetworkError> {
        let channels = i64::from(architecture.channels);
        let tower = (channels, channels);
        let input = Normed::new(builder, "input", (CHANNELS as i64, channels), 3)?;
        let blocks = (0..architecture.blocks)
            .map(|index| {
                let name = |part: &str| format!("blocks.{index}.{part}");
                let pooling = match Architecture::pools(index) {
                    true => Some(builder.tensor(
                        name("pooling.weight"),
                        &[channels, 2 * channels],
                        Role::Weight { gain: POOLING_GAIN },
                    )?),
                    false => None,
                };
                Ok(Block {
                    first: Normed::new(builder, &name("first"), tower, 3)?,
                    second: Normed::new(builder, &name("second"), tower, 3)?,
                    pooling,
                })
            })
            .collect::<Result<_, NetworkError>>()?;
        let pooled = 2 * channels;
        Ok(Self {
            input,
            blocks,
            policy: Normed::new(builder, "policy", tower, 1)?,
            policy_squares: Linear::new(
                builder,
                "policy.squares",
                &[5, channels, 1, 1],
                LAST_GAIN,
            )?,
            policy_end: Linear::new(builder, "policy.end", &[1, pooled], LAST_GAIN)?,
            value: Normed::new(builder, "value", tower, 1)?,
            value_hidden: Linear::new(builder, "value.hidden", &[VALUE_HIDDEN, pooled], 1.0)?,
            value_output: Linear::new(builder, "value.output", &[1, VALUE_HIDDEN], LAST_GAIN)?,
        })
    }

    /// The same network with its norms folded into the convolutions, computed in float and then cast to `kind`. What follows
    /// the heads' pooling stays float. Shares no storage with this one.
    pub(super) fn fold(&self, kind: Kind) -> Result<Body<Folded>, TchError> {
        let blocks = self
            .blocks
            .iter()
            .map(|block| {
                let pooling = block.pooling.as_ref().map(|pooling| {
                    // Pooling is added before the second norm.
                    let factor = block.second.factor()?.f_view([-1, 1])?;
                    cast(&pooling.f_mul(&factor)?, kind)
                });
                Ok(Block {
                    first: block.first.fold(kind)?,
                    second: block.second.fold(kind)?,
                    pooling: pooling.transpose()?,
                })
            })
            .collect::<Result<_, TchError>>()?;
        Ok(Body {
            input: self.input.fold(kind)?,
            blocks,
            policy: self.policy.fold(kind)?,
            policy_squares: self.policy_squares.cast(kind)?,
            policy_end: self.policy_end.cast(Kind::Float)?,
            value: self.value.fold(kind)?,
            value_hidden: self.value_hidden.cast(Kind::Float)?,
            value_output: self.value_output.cast(Kind::Float)?,
        })
    }
}

impl Body<Folded> {
    /// The same layers on the same storage: what only reads them may do so from several threads.
    pub(super) fn share(&self) -> Self {
        let blocks = self.blocks.iter().map(|block| Block {
            first: block.first.share(),
            second: block.second.share(),
            pooling: block.pooling.as_ref().map(Tensor::shallow_clone),
        });
        Self {
            input: self.input.share(),
            blocks: blocks.collect(),
            policy: self.policy.share(),
            policy_squares: self.policy_squares.share(),
            policy_end: self.policy_end.share(),
            value: self.value.share(),
            value_hidden: self.value_hidden.share(),
            value_output: self.value_output.share(),
        }
    }

    /// Makes a head, `value` or `policy`, say numbers that are none.
    #[cfg(test)]
    pub(super) fn spoil(&mut self, head: &str) {
        let layer = match head {
            "value" => &self.value_output,
            _ => &self.policy_squares,
        };
        layer.spoil();
    }

    /// Says whether the convolutions take cuDNN's fused forms; for CUDA and 16-bit types only. The first one never does: its
    /// inputs are no multiple of 8, which 16-bit types want.
    pub(super) fn set_fused(&mut self, fused: bool) {
        let tower = self.blocks.iter_mut();
        let tower = tower.flat_map(|block| [&mut block.first, &mut block.second]);
        let ends = [&mut self.policy, &mut self.value];
        tower
            .chain(ends)
            .for_each(|convolution| convolution.set_fused(fused));
    }
}

impl<C: Convolution> Body<C> {
    /// Evaluates `[batch, CHANNELS, 8, 8]`.
    pub(super) fn forward(&self, planes: &Tensor, mode: Mode) -> Result<Outputs, TchError> {
        self.outputs(&self.tower(planes, mode)?, mode)
    }

    /// What the tower makes of `[batch, CHANNELS, 8, 8]`: `[batch, channels, 8, 8]`, which the heads read.
    pub(super) fn tower(&self, planes: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let mut tower = self.input.activate(planes, None, None, mode)?;
        for block in &self.blocks {
            tower = block.forward(&tower, mode)?;
        }
        Ok(tower)
    }

    /// What the heads make of that.
    pub(super) fn outputs(&self, tower: &Tensor, mode: Mode) -> Result<Outputs, TchError> {
        Ok(Outputs {
            policy: self.policy(tower, mode)?,
            value_logit: self.value(tower, mode)?,
        })
    }

    /// The first layer or head that makes a number that is not finite of `[batch, CHANNELS, 8, 8]`: `layer blocks.3.first`.
    pub(super) fn not_finite(&self, planes: &Tensor) -> Result<Option<String>, TchError> {
        let mode = Mode::Evaluation;
        let mut tower = self.input.activate(planes, None, None, mode)?;
        if !is_finite(&tower)? {
            return Ok(Some("layer input".into()));
        }
        for (index, block) in self.blocks.iter().enumerate() {
            if !is_finite(&block.first.activate(&tower, None, None, mode)?)? {
                return Ok(Some(format!("layer blocks.{index}.first")));
            }
            tower = block.forward(&tower, mode)?;
            if !is_finite(&tower)? {
                return Ok(Some(format!("layer blocks.{index}.second")));
            }
        }
        if !is_finite(&self.policy(&tower, mode)?)? {
            return Ok(Some("the policy head".into()));
        }
        Ok(match is_finite(&self.value(&tower, mode)?)? {
            true => None,
            false => Some("the value head".into()),
        })
    }

    fn policy(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let features = self.policy.activate(tower, None, None, mode)?;
        policy_logits(&features, &self.policy_squares, &self.policy_end)
    }

    fn value(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let features = self.value.activate(tower, None, None, mode)?;
        let pooled = pool(&features)?.f_to_kind(Kind::Float)?;
        let hidden = self.value_hidden.apply(&pooled)?.f_relu_()?;
        self.value_output.apply(&hidden)?.f_squeeze_dim(1)
    }
}

impl<C: Convolution> Block<C> {
    fn forward(&self, input: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let middle = self.first.activate(input, None, None, mode)?;
        let shift = match &self.pooling {
            Some(weight) => {
                let pooled = pool(&middle)?;
                Some(linear(&pooled, &like(weight, &pooled)?, None)?)
            }
            None => None,
        };
        self.second
            .activate(&middle, shift.as_ref(), Some(input), mode)
    }
}

/// The 321 logits that a head's features `[batch, channels, 8, 8]` come to: `[batch, 321]`, float.
pub(super) fn policy_logits(
    features: &Tensor,
    squares: &Linear,
    end: &Linear,
) -> Result<Tensor, TchError> {
    let squares = squares.apply_to_squares(features)?;
    let squares = squares.f_to_kind(Kind::Float)?.f_reshape([-1, 5 * 64])?;
    let end = end.apply(&pool(features)?.f_to_kind(Kind::Float)?)?;
    Tensor::f_cat(&[squares, end], 1)
}

fn is_finite(tensor: &Tensor) -> Result<bool, TchError> {
    Ok(tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? != 0)
}
