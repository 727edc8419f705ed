//! How the layers are wired: the tower, one definition for the form that is trained and the inference form, and the heads as
//! they are trained.

use crate::architecture::{Architecture, Role};
use crate::error::NetworkError;
use crate::head_layers::{AuxiliaryHead, PolicyHead, PooledHead};
use crate::heads::{Head, PerHead};
use crate::layers::{Builder, Convolution, Mode, NormedConvolution, like, linear, pool};
use engine::encoding::CHANNELS;
use tch::{TchError, Tensor};

/// Pooled maxima are large and not normed: their weights start smaller.
const POOLING_GAIN: f64 = 0.3;

/// The output of a network for a batch.
#[derive(Debug)]
pub(super) struct Outputs {
    /// The policy's logits, legal or not: `[batch, 321]`, float.
    pub(super) policy: Tensor,
    /// The logit of the mover's win probability: `[batch]`, float.
    pub(super) value_logit: Tensor,
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

/// All layers, as they are trained.
#[derive(Debug)]
pub(super) struct TrainingLayers {
    pub(super) tower: Tower<NormedConvolution>,
    pub(super) policy: PolicyHead,
    pub(super) value: PooledHead,
    auxiliary: Vec<(Head, AuxiliaryHead)>,
}

impl TrainingLayers {
    /// Builds the layers of an architecture; the order of the tensors is part of the seeded initialisation.
    pub(super) fn new(
        architecture: Architecture,
        builder: &mut Builder,
    ) -> Result<Self, NetworkError> {
        let channels = i64::from(architecture.channels);
        let tower = (channels, channels);
        let input = NormedConvolution::new(builder, "input", (CHANNELS as i64, channels), 3)?;
        let blocks = (0..architecture.blocks)
            .map(|index| {
                let name = |part: &str| format!("blocks.{index}.{part}");
                let pooling = if Architecture::pools(index) {
                    Some(builder.tensor(
                        name("pooling.weight"),
                        &[channels, 2 * channels],
                        Role::Weight { gain: POOLING_GAIN },
                    )?)
                } else {
                    None
                };
                Ok(Block {
                    first: NormedConvolution::new(builder, &name("first"), tower, 3)?,
                    second: NormedConvolution::new(builder, &name("second"), tower, 3)?,
                    pooling,
                })
            })
            .collect::<Result<_, NetworkError>>()?;
        let features = NormedConvolution::new(builder, "policy", tower, 1)?;
        let policy = PolicyHead::new(builder, "policy", (features, channels))?;
        let features = NormedConvolution::new(builder, "value", tower, 1)?;
        let value = PooledHead::new(builder, "value", (features, channels), 1)?;
        Ok(Self {
            tower: Tower { input, blocks },
            policy,
            value,
            auxiliary: AuxiliaryHead::all(builder, channels)?,
        })
    }

    /// The outputs of the heads that play, from `[batch, CHANNELS, 8, 8]`.
    pub(super) fn forward(&self, planes: &Tensor, mode: Mode) -> Result<Outputs, TchError> {
        self.outputs(&self.tower.forward(planes, mode)?, mode)
    }

    /// The outputs of the heads that play, and of those auxiliary heads that `enabled` names, from `[batch, CHANNELS, 8, 8]`.
    pub(super) fn forward_heads(
        &self,
        planes: &Tensor,
        enabled: &PerHead<bool>,
        mode: Mode,
    ) -> Result<PerHead<Option<Tensor>>, TchError> {
        let tower = self.tower.forward(planes, mode)?;
        let playing = self.outputs(&tower, mode)?;
        let mut all = PerHead::default();
        all[Head::Policy] = Some(playing.policy);
        all[Head::Value] = Some(playing.value_logit);
        for (head, layers) in self.auxiliary.iter().filter(|(head, _)| enabled[*head]) {
            all[*head] = Some(layers.forward(&tower, head.spec().output, mode)?);
        }
        Ok(all)
    }

    fn outputs(&self, tower: &Tensor, mode: Mode) -> Result<Outputs, TchError> {
        Ok(Outputs {
            policy: self.policy.forward(tower, mode)?,
            value_logit: self.value.forward(tower, mode)?.f_squeeze_dim(1)?,
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
}

impl<C: Convolution> Tower<C> {
    /// `[batch, CHANNELS, 8, 8]` to `[batch, channels, 8, 8]`.
    pub(super) fn forward(&self, planes: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let mut tower = self.input.forward(planes, None, None, mode)?;
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
        let mut tower = self.input.forward(planes, None, None, mode)?;
        if !is_finite(&tower)? {
            return Ok(Some("layer input".into()));
        }
        for (index, block) in self.blocks.iter().enumerate() {
            if !is_finite(&block.first.forward(&tower, None, None, mode)?)? {
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
        Ok(if is_finite(&value)? {
            None
        } else {
            Some("the value head".into())
        })
    }
}

impl<C: Convolution> Block<C> {
    fn forward(&self, input: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let middle = self.first.forward(input, None, None, mode)?;
        let shift = match &self.pooling {
            Some(weight) => {
                let pooled = pool(&middle)?;
                Some(linear(&pooled, &like(weight, &pooled)?, None)?)
            }
            None => None,
        };
        self.second
            .forward(&middle, shift.as_ref(), Some(input), mode)
    }
}

fn is_finite(tensor: &Tensor) -> Result<bool, TchError> {
    Ok(tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? != 0)
}
