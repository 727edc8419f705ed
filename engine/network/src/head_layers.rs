//! The layers of the heads as they are trained. Each head begins with a 1×1 convolution of its own, so that a disabled head is not
//! computed. The form of the policy head and the value head that plays is in `inference`.

use crate::error::NetworkError;
use crate::heads::{Head, HeadOutput};
use crate::layers::{Builder, Convolution, Linear, Mode, NormedConvolution, pool};
use tch::{Kind, TchError, Tensor};

/// The channels of each auxiliary head: with 4 heads and 6×64 they are 2% of the tower's operations.
const CHANNELS: i64 = 32;

/// Units between the two linear layers of a head on pooled features.
pub(super) const HIDDEN: i64 = 64;

/// The heads' last weights start at 0: a new network answers with equal win probabilities and equal steps. Random numbers instead
/// would be noise, which the search acts on and training has to undo.
const LAST_GAIN: f64 = 0.0;

/// A head on pooled features.
#[derive(Debug)]
pub(super) struct PooledHead {
    pub(super) features: NormedConvolution,
    /// `[HIDDEN, 2 * channels]`.
    pub(super) hidden: Linear,
    /// `[outputs, HIDDEN]`.
    pub(super) output: Linear,
}

impl PooledHead {
    /// The layers behind a convolution to so many channels. Tensors are named after the prefix.
    pub(super) fn new(
        builder: &mut Builder,
        prefix: &str,
        (features, channels): (NormedConvolution, i64),
        outputs: i64,
    ) -> Result<Self, NetworkError> {
        let mut linear = |part: &str, shape: [i64; 2], gain: f64| {
            Linear::new(builder, &format!("{prefix}.{part}"), &shape, gain)
        };
        Ok(Self {
            features,
            hidden: linear("hidden", [HIDDEN, 2 * channels], 1.0)?,
            output: linear("output", [outputs, HIDDEN], LAST_GAIN)?,
        })
    }

    /// The tower's `[batch, channels, 8, 8]` to `[batch, outputs]`, float.
    pub(super) fn forward(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let features = self.features.forward(tower, None, None, mode)?;
        let pooled = pool(&features)?.f_to_kind(Kind::Float)?;
        self.output.apply(&self.hidden.apply(&pooled)?.f_relu_()?)
    }
}

/// A head that gives a policy.
#[derive(Debug)]
pub(super) struct PolicyHead {
    pub(super) features: NormedConvolution,
    /// Steps in four directions, and placements: `[5, channels, 1, 1]`.
    pub(super) squares: Linear,
    /// The end of the turn: `[1, 2 * channels]`.
    pub(super) end: Linear,
}

impl PolicyHead {
    /// The layers behind a convolution to so many channels. Tensors are named after the prefix.
    pub(super) fn new(
        builder: &mut Builder,
        prefix: &str,
        (features, channels): (NormedConvolution, i64),
    ) -> Result<Self, NetworkError> {
        let mut linear = |part: &str, shape: &[i64]| {
            Linear::new(builder, &format!("{prefix}.{part}"), shape, LAST_GAIN)
        };
        Ok(Self {
            features,
            squares: linear("squares", &[5, channels, 1, 1])?,
            end: linear("end", &[1, 2 * channels])?,
        })
    }

    /// The tower's `[batch, channels, 8, 8]` to the logits of all actions, `[batch, 321]`, float.
    pub(super) fn forward(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let features = self.features.forward(tower, None, None, mode)?;
        let squares = self.squares.apply_to_squares(&features)?;
        let squares = squares.f_to_kind(Kind::Float)?.f_reshape([-1, 5 * 64])?;
        let pooled = pool(&features)?.f_to_kind(Kind::Float)?;
        Tensor::f_cat(&[squares, self.end.apply(&pooled)?], 1)
    }
}

/// The layers of an auxiliary head, by its output.
#[derive(Debug)]
pub(super) enum AuxiliaryHead {
    Pooled(PooledHead),
    Policy(PolicyHead),
    Squares {
        features: NormedConvolution,
        /// `[1, CHANNELS, 1, 1]`.
        squares: Linear,
    },
}

impl AuxiliaryHead {
    /// Builds all auxiliary heads on a tower of so many channels. The order of the tensors is part of the seeded initialisation, and
    /// the order that norms over all parameters are summed in: pooled heads come whole, then the other heads' convolutions, then
    /// their last layers.
    pub(super) fn all(
        builder: &mut Builder,
        tower: i64,
    ) -> Result<Vec<(Head, Self)>, NetworkError> {
        let (mut heads, mut begun) = (Vec::new(), Vec::new());
        for head in Head::ALL.into_iter().filter(|head| head.is_auxiliary()) {
            let prefix = head.spec().prefix;
            let features = NormedConvolution::new(builder, prefix, (tower, CHANNELS), 1)?;
            let outputs = match head.spec().output {
                HeadOutput::Logit | HeadOutput::Count { .. } => 1,
                HeadOutput::Classes(classes) => classes,
                HeadOutput::Squares | HeadOutput::Policy => {
                    begun.push((head, features));
                    continue;
                }
            };
            let layers = PooledHead::new(builder, prefix, (features, CHANNELS), outputs)?;
            heads.push((head, Self::Pooled(layers)));
        }
        for (head, features) in begun {
            let prefix = head.spec().prefix;
            let layers = match head.spec().output {
                HeadOutput::Policy => {
                    Self::Policy(PolicyHead::new(builder, prefix, (features, CHANNELS))?)
                }
                _ => {
                    let (name, shape) = (format!("{prefix}.squares"), [1, CHANNELS, 1, 1]);
                    let squares = Linear::new(builder, &name, &shape, LAST_GAIN)?;
                    Self::Squares { features, squares }
                }
            };
            heads.push((head, layers));
        }
        Ok(heads)
    }

    /// The tower's `[batch, channels, 8, 8]` to this output.
    pub(super) fn forward(
        &self,
        tower: &Tensor,
        output: HeadOutput,
        mode: Mode,
    ) -> Result<Tensor, TchError> {
        match self {
            Self::Pooled(layers) => {
                let numbers = layers.forward(tower, mode)?;
                match output {
                    HeadOutput::Count { scale } => {
                        let number = numbers.f_squeeze_dim(1)?;
                        number.f_softplus()?.f_mul_scalar(scale)
                    }
                    HeadOutput::Logit => numbers.f_squeeze_dim(1),
                    _ => Ok(numbers),
                }
            }
            Self::Policy(layers) => layers.forward(tower, mode),
            Self::Squares { features, squares } => {
                let features = features.forward(tower, None, None, mode)?;
                let squares = squares.apply_to_squares(&features)?;
                squares.f_to_kind(Kind::Float)?.f_reshape([-1, 64])
            }
        }
    }
}
