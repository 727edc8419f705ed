//! How the layers are wired: the tower, one definition for the form that is trained and the form that plays, and the heads as
//! they are trained. The heads that play are in `playing`.

use crate::architecture::{Architecture, Role};
use crate::error::NetworkError;
use crate::layers::{Builder, Convolution, Linear, Mode, Normed, like, linear, pool};
use engine::encoding::CHANNELS;
use tch::{Kind, TchError, Tensor};

/// Numbers between the value head's two linear layers.
pub(super) const VALUE_HIDDEN: i64 = 64;

/// The heads' last weights start at 0: a new network knows nothing, and says so with equal win probabilities and steps. Random
/// numbers instead would be noise, which the search acts on and training has to undo.
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

/// A residual block; `C` is the form of its convolutions.
#[derive(Debug)]
pub(super) struct Block<C> {
    pub(super) first: C,
    pub(super) second: C,
    /// `[channels, 2 * channels]`.
    pub(super) pooling: Option<Tensor>,
}

/// The residual tower; `C` is the form of its convolutions.
#[derive(Debug)]
pub(super) struct Tower<C> {
    pub(super) input: C,
    pub(super) blocks: Vec<Block<C>>,
}

/// All layers that playing needs, as they are trained.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) tower: Tower<Normed>,
    pub(super) policy: Normed,
    /// Steps in four directions, and placements: `[5, channels, 1, 1]`.
    pub(super) policy_squares: Linear,
    pub(super) policy_end: Linear,
    pub(super) value: Normed,
    pub(super) value_hidden: Linear,
    pub(super) value_output: Linear,
}

impl Body {
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
            tower: Tower { input, blocks },
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

    /// Evaluates `[batch, CHANNELS, 8, 8]`.
    pub(super) fn forward(&self, planes: &Tensor, mode: Mode) -> Result<Outputs, TchError> {
        self.outputs(&self.tower(planes, mode)?, mode)
    }

    /// What the tower makes of `[batch, CHANNELS, 8, 8]`: `[batch, channels, 8, 8]`, which the heads read.
    pub(super) fn tower(&self, planes: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        self.tower.forward(planes, mode)
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
        let outputs = |tower: &Tensor| {
            let outputs = self.outputs(tower, Mode::Evaluation)?;
            Ok((outputs.policy, outputs.value_logit))
        };
        self.tower.not_finite(planes, outputs)
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

impl<C: Convolution> Tower<C> {
    /// `[batch, CHANNELS, 8, 8]` to `[batch, channels, 8, 8]`.
    pub(super) fn forward(&self, planes: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let mut tower = self.input.activate(planes, None, None, mode)?;
        for block in &self.blocks {
            tower = block.forward(&tower, mode)?;
        }
        Ok(tower)
    }

    /// The first layer or head that makes a number that is not finite of `[batch, CHANNELS, 8, 8]`; `heads` gives what the policy's
    /// head and the value's make of the tower.
    pub(super) fn not_finite(
        &self,
        planes: &Tensor,
        heads: impl FnOnce(&Tensor) -> Result<(Tensor, Tensor), TchError>,
    ) -> Result<Option<String>, TchError> {
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
        let (policy, value) = heads(&tower)?;
        if !is_finite(&policy)? {
            return Ok(Some("the policy head".into()));
        }
        Ok(match is_finite(&value)? {
            true => None,
            false => Some("the value head".into()),
        })
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
