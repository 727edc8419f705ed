//! Untrained networks whose outputs vary like those of trained ones, for measurements.

use crate::architecture::{Architecture, Role};
use crate::batch::unpack_rows;
use crate::error::NetworkError;
use crate::heads::PerHead;
use crate::layers::NORM_MOMENTUM;
use crate::model::{Network, initial_values_of};
use crate::positions::real_positions;
use engine::encoding::encode;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use tch::{Device, Kind, Tensor, no_grad_guard};

/// On how many positions the heads are scaled.
const POSITIONS: usize = 64;

impl Network {
    /// A random network that finds some steps likelier than others and some positions better. [`Network::new`]'s doesn't: its last
    /// weights are 0, so that its searches are not those of a trained network, and its outputs are exact in any precision. Here they are
    /// random, scaled so that the logits of the policy within a position and that of the value between positions have a standard
    /// deviation of 1, on real positions. Equal seeds make equal networks.
    pub fn with_random_heads(architecture: Architecture, seed: u64) -> Result<Self, NetworkError> {
        let mut network = Self::new(architecture, seed)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(1);
        let _no_grad = no_grad_guard();
        for (spec, tensor) in network.tensors() {
            if spec.role == (Role::Weight { gain: 0.0 }) {
                let numbers = initial_values_of(spec, 1.0, &mut random);
                let numbers = Tensor::f_from_slice(&numbers)?.f_view(spec.shape.as_slice())?;
                tensor.shallow_clone().f_copy_(&numbers)?;
            }
        }
        let rows: Vec<_> = real_positions(POSITIONS)?
            .iter()
            .map(|query| encode(&query.state, query.repetitions))
            .collect();
        let planes = unpack_rows(&rows, Device::Cpu)?;
        network.take_over_statistics(&planes)?;
        let outputs = network.forward_eval(&planes)?;
        let within = outputs.policy.f_std_dim([1i64].as_slice(), true, false)?;
        let policy = within.f_mean(Kind::Float)?.f_double_value(&[])?;
        let value = outputs.value_logit.f_std(true)?.f_double_value(&[])?;
        let mean = outputs.value_logit.f_mean(Kind::Float)?;
        let mean = mean.f_double_value(&[])?;
        for (name, factor) in [
            ("policy.squares.weight", policy.recip()),
            ("policy.end.weight", policy.recip()),
            ("value.output.weight", value.recip()),
        ] {
            let _ = network.tensor(name)?.f_mul_scalar_(factor)?;
        }
        let _ = network
            .tensor("value.output.bias")?
            .f_fill_(-mean / value)?;
        Ok(network)
    }

    /// Makes the norms' running statistics those of a batch, as after much training: with those of a new network, means of 0 and
    /// variances of 1, the numbers would grow from block to block.
    fn take_over_statistics(&mut self, planes: &Tensor) -> Result<(), NetworkError> {
        // After one step of training the running statistics are a mean of the first ones and the batch's.
        self.forward_train(planes, &PerHead::ALL)?;
        for (name, statistics) in self.buffers() {
            let first = if name.ends_with("variance") { 1.0 } else { 0.0 };
            let of_batch = statistics
                .f_sub_scalar(first * (1.0 - NORM_MOMENTUM))?
                .f_div_scalar(NORM_MOMENTUM)?;
            let of_batch = if name.ends_with("variance") {
                of_batch.f_clamp_min(1e-4)?
            } else {
                of_batch
            };
            statistics.shallow_clone().f_copy_(&of_batch)?;
        }
        Ok(())
    }

    /// A tensor by its name, the same storage.
    fn tensor(&self, name: &str) -> Result<Tensor, NetworkError> {
        let found = self.tensors().iter().find(|(spec, _)| spec.name == name);
        let (_, tensor) =
            found.ok_or_else(|| NetworkError::Torch(format!("there is no tensor {name}")))?;
        Ok(tensor.shallow_clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::set_single_threaded;
    use crate::evaluator::NetworkEvaluator;
    use engine::config::Precision;
    use engine::search::{Evaluations, Evaluator};

    #[test]
    fn outputs_differ_and_are_not_extreme() {
        set_single_threaded();
        for (blocks, channels) in [(1, 8), (6, 32)] {
            let architecture = Architecture { blocks, channels };
            let network = Network::with_random_heads(architecture, 3).unwrap();
            let mut evaluator = NetworkEvaluator::new(&network, Precision::Fp32, "test").unwrap();
            assert!(evaluator.drift().value_error > 0.0);
            let queries = real_positions(100).unwrap();
            let mut answers = Evaluations::default();
            evaluator.evaluate(&queries, &mut answers).unwrap();
            let (mut lowest, mut highest, mut peaks) = (1.0f32, 0.0f32, 0.0);
            for index in 0..queries.len() {
                let answer = answers.get(index).unwrap();
                (lowest, highest) = (lowest.min(answer.value), highest.max(answer.value));
                let most = answer.priors.iter().copied().fold(0.0, f32::max);
                peaks += most * answer.priors.len() as f32 / queries.len() as f32;
            }
            assert!((0.001..0.3).contains(&lowest), "{lowest}");
            assert!((0.7..0.999).contains(&highest), "{highest}");
            assert!((2.0..20.0).contains(&peaks), "{peaks}");
        }
    }
}
