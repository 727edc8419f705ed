//! The form of a network that plays: norms folded into the convolutions, and the two heads computed together.
//!
//! The policy's head and the value's begin with one convolution, pool once, and share two linear layers whose weights between
//! the two heads are 0. So a pass has few operations outside the tower, each of which costs a GPU's host some microseconds.
//! After the first convolution everything is float.

use crate::body::{Block, Tower, TrainingLayers};
use crate::head_layers::HIDDEN;
use crate::layers::{Convolution, FoldedConvolution, Linear, Mode, cast, pool};
use engine::encoding::POLICY_SIZE;
use tch::{Kind, TchError, Tensor};

/// The floats of an answer: the policy's logits, legal or not, by [`answer_index`], and the logit of the mover's win probability.
pub(super) const ANSWER_FLOATS: usize = POLICY_SIZE + 1;

/// The policy's logits of a square: steps in four directions, and placements.
const SQUARE_LOGITS: usize = 5;

/// The index of a policy entry's logit in an answer: square by square, as the layers make them, and not plane by plane.
pub(super) fn answer_index(entry: usize) -> usize {
    if entry < SQUARE_LOGITS * 64 {
        entry % 64 * SQUARE_LOGITS + entry / 64
    } else {
        entry
    }
}

/// All layers that play.
#[derive(Debug)]
pub(super) struct InferenceLayers {
    tower: Tower<FoldedConvolution>,
    /// `[2 * channels, channels, 1, 1]`: the policy's features, and the value's.
    features: FoldedConvolution,
    /// `[HIDDEN + 2, 4 * channels]`: the value's hidden numbers, and the logit of the turn's end as it is and negated, as
    /// a ReLU follows.
    hidden: Linear,
    /// `[2, HIDDEN + 2]`: the logits of the turn's end and of the value.
    output: Linear,
    /// `[5, 2 * channels, 1, 1]`.
    squares: Linear,
}

impl TrainingLayers {
    /// The same network in inference form, its norms folded in float and its tower cast to `kind`. Shares no storage with
    /// this one.
    pub(super) fn fold(&self, kind: Kind) -> Result<InferenceLayers, TchError> {
        let blocks = self
            .tower
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
        let tower = Tower {
            input: self.tower.input.fold(kind)?,
            blocks,
        };
        let features = self.policy.features.fold(kind)?;
        let features = features.concatenate_outputs(&self.value.features.fold(kind)?)?;
        Ok(InferenceLayers {
            tower,
            features,
            hidden: self.hidden()?,
            output: self.output()?,
            squares: self.squares()?,
        })
    }

    fn hidden(&self) -> Result<Linear, TchError> {
        let (value, value_bias) = self.value.hidden.parts();
        let (end, end_bias) = self.policy.end.parts();
        // Each reads the means and the maxima of its own half of the features.
        let halves = |weight: &Tensor| weight.f_chunk(2, 1);
        let row = |own: &Tensor, place: usize| -> Result<Tensor, TchError> {
            let mut quarters = Vec::new();
            for half in halves(own)? {
                let none = half.f_zeros_like()?;
                quarters.extend(match place {
                    0 => [half, none],
                    _ => [none, half],
                });
            }
            Tensor::f_cat(&quarters, 1)
        };
        let (value, end) = (row(value, 1)?, row(end, 0)?);
        Ok(Linear::of(
            Tensor::f_cat(&[&value, &end, &end.f_neg()?], 0)?,
            Tensor::f_cat(&[value_bias, end_bias, &end_bias.f_neg()?], 0)?,
        ))
    }

    fn output(&self) -> Result<Linear, TchError> {
        let (value, value_bias) = self.value.output.parts();
        let zeros = |rows: i64, columns: i64| value.f_new_zeros([rows, columns], like(value));
        let ones = value.f_new_ones([1, 1], like(value))?;
        let end = Tensor::f_cat(&[&zeros(1, HIDDEN)?, &ones, &ones.f_neg()?], 1)?;
        let value = Tensor::f_cat(&[value, &zeros(1, 2)?], 1)?;
        Ok(Linear::of(
            Tensor::f_cat(&[end, value], 0)?,
            Tensor::f_cat(&[&value_bias.f_zeros_like()?, value_bias], 0)?,
        ))
    }

    fn squares(&self) -> Result<Linear, TchError> {
        let (policy, bias) = self.policy.squares.parts();
        let weight = Tensor::f_cat(&[policy, &policy.f_zeros_like()?], 1)?;
        Ok(Linear::of(weight, cast(bias, Kind::Float)?))
    }
}

fn like(tensor: &Tensor) -> (Kind, tch::Device) {
    (Kind::Float, tensor.device())
}

impl InferenceLayers {
    /// The same layers on the same storage: what only reads them may do so from several threads.
    pub(super) fn shallow_clone(&self) -> Self {
        let blocks = self.tower.blocks.iter().map(|block| Block {
            first: block.first.shallow_clone(),
            second: block.second.shallow_clone(),
            pooling: block.pooling.as_ref().map(Tensor::shallow_clone),
        });
        Self {
            tower: Tower {
                input: self.tower.input.shallow_clone(),
                blocks: blocks.collect(),
            },
            features: self.features.shallow_clone(),
            hidden: self.hidden.shallow_clone(),
            output: self.output.shallow_clone(),
            squares: self.squares.shallow_clone(),
        }
    }

    /// Evaluates `[batch, CHANNELS, 8, 8]`, channels-last: `[batch, ANSWER_FLOATS]`, float.
    pub(super) fn answers(&self, planes: &Tensor) -> Result<Tensor, TchError> {
        self.heads(&self.tower.forward(planes, Mode::Evaluation)?)
    }

    fn heads(&self, tower: &Tensor) -> Result<Tensor, TchError> {
        let features = self.features.forward(tower, None, None, Mode::Evaluation)?;
        let features = features.f_to_kind(Kind::Float)?;
        let hidden = self.hidden.apply(&pool(&features)?)?.f_relu_()?;
        let outputs = self.output.apply(&hidden)?;
        let squares = self.squares.apply_to_squares(&features)?;
        let squares = squares.f_permute([0, 2, 3, 1])?;
        let squares = squares.f_reshape([-1, 64 * SQUARE_LOGITS as i64])?;
        Tensor::f_cat(&[squares, outputs], 1)
    }

    /// The first layer or head that makes a number that is not finite of `[batch, CHANNELS, 8, 8]`: `layer blocks.3.first`.
    pub(super) fn not_finite(&self, planes: &Tensor) -> Result<Option<String>, TchError> {
        self.tower.not_finite(planes, |tower| {
            let answers = self.heads(tower)?;
            let policy = answers.f_narrow(1, 0, POLICY_SIZE as i64)?;
            Ok((policy, answers.f_narrow(1, POLICY_SIZE as i64, 1)?))
        })
    }

    /// Sets whether the tower's convolutions use cuDNN's fused forms; for CUDA and 16-bit types only. The first one never does: 16-bit
    /// types require inputs in multiples of 8.
    pub(super) fn set_fused(&mut self, fused: bool) {
        for block in &mut self.tower.blocks {
            block.first.set_fused(fused);
            block.second.set_fused(fused);
        }
    }

    /// Makes a head, `value` or `policy`, give NaN.
    #[cfg(test)]
    pub(super) fn spoil(&mut self, head: &str) {
        match head {
            "value" => self.output.spoil(1..2),
            _ => self.squares.spoil(0..SQUARE_LOGITS as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_a_policy_has_a_place_of_its_own() {
        let mut places: Vec<usize> = (0..POLICY_SIZE).map(answer_index).collect();
        // The step north from b1, the step east from a1, the placement on h8, the end of the turn.
        assert_eq!(
            [places[1], places[64], places[319], places[320]],
            [5, 1, 319, 320]
        );
        places.sort_unstable();
        assert!(places.into_iter().eq(0..POLICY_SIZE));
    }
}
