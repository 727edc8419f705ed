//! The average of a network's weights over the steps of its training.
//!
//! Single steps of a large learning rate leave a network wherever the last few batches have pushed it: its win probability at
//! the start of a turn was off by 0.06 either way, which a search takes for the worth of ending the turn. The average of the
//! steps keeps still (Polyak and Juditsky 1992; as an exponential moving average in Kingma and Ba 2015, section 7.2).

use network::{Network, NetworkError};

/// The exponential moving average of a network's tensors, the norms' running statistics among them.
#[derive(Debug)]
pub(crate) struct Average {
    network: Network,
    decay: f64,
}

impl Average {
    /// An average that begins with the network as it is. With a decay of 0 it is always the newest network.
    pub(crate) fn new(network: &Network, decay: f64) -> Result<Self, NetworkError> {
        Ok(Self {
            network: network.copy()?,
            decay,
        })
    }

    /// The average as a network.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Replaces the decay from the next step on.
    pub(crate) fn set_decay(&mut self, decay: f64) {
        self.decay = decay;
    }

    /// Takes in the network after the run's step number `step`, from 1: with a share of 1 - decay, and more in the first steps,
    /// so that little is left of a network that knew nothing.
    pub(crate) fn take(&mut self, network: &Network, step: u64) -> Result<(), NetworkError> {
        let begun = step as f64 / (step as f64 + 9.0);
        let share = 1.0 - self.decay.min(begun);
        let mut own = self.network.numbers().shallow_clone();
        let _ = own.f_lerp_(network.numbers(), share)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::Architecture;
    use tch::{Tensor, no_grad_guard};

    fn network(number: f64) -> Network {
        let architecture = Architecture {
            blocks: 1,
            channels: 8,
        };
        let network = Network::new(architecture, 1).unwrap();
        let _no_grad = no_grad_guard();
        for mut tensor in tensors(&network) {
            let _ = tensor.fill_(number);
        }
        network
    }

    fn tensors(network: &Network) -> Vec<Tensor> {
        let parameters = network.parameters().map(|parameter| parameter.tensor);
        let buffers = network.buffers().map(|(_, tensor)| tensor);
        parameters.chain(buffers).map(Tensor::detach).collect()
    }

    /// The number that all of the average is, after networks of these numbers.
    fn average(decay: f64, first_step: u64, numbers: &[f64]) -> f64 {
        let mut average = Average::new(&network(numbers[0]), decay).unwrap();
        for (step, &number) in (first_step..).zip(&numbers[1..]) {
            average.take(&network(number), step).unwrap();
        }
        let all = tensors(average.network());
        let found = all[0].mean(None).double_value(&[]);
        for tensor in all {
            assert!((tensor - found).abs().max().double_value(&[]) < 1e-6);
        }
        found
    }

    #[test]
    fn every_tensor_moves_by_its_share_towards_the_newest() {
        for (decay, first_step, numbers, expected) in [
            // Late in a run.
            (0.5, 1_000, &[8.0, 4.0, 2.0][..], 4.0),
            (0.9, 1_000, &[1.0, 2.0], 1.1),
            // Without an average.
            (0.0, 1_000, &[8.0, 4.0, 2.5], 2.5),
            // The run's first step counts nine tenths.
            (0.9, 1, &[10.0, 0.0], 1.0),
        ] {
            let found = average(decay, first_step, numbers);
            assert!((found - expected).abs() < 1e-5, "{decay}: {found}");
        }
    }
}
