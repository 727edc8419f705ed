//! The gradients of a batch, and the losses of many rows, on all threads.
//!
//! On a CPU a batch is split into slices, and each slice is computed whole by one thread, libtorch using no other for it. Threads
//! inside libtorch meet after every operation instead, and spin while they wait: 4×32 at batch 256 on two cores trained 4,650
//! rows/s so on an idle machine, but 330 rows/s beside other busy programs. A GPU takes the batch in one piece.
//!
//! The slices depend on the batch's size alone and their gradients are added in order, so that the number of threads changes no
//! bit of the result. Each slice is normalised by its own statistics (ghost batch normalisation: Hoffer, Hubara and Soudry 2017,
//! "Train longer, generalize better", section 4).

use crate::data::{Batch, TrainingRow};
use crate::error::TrainError;
use crate::loss::{LossSums, Losses, losses};
use engine::network::{Heads, Network, NetworkError};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tch::{Device, TchError, Tensor, no_grad_guard};

/// Rows of a slice, where the batch is not too large for it.
const SLICE_ROWS: usize = 64;

/// A batch is split into no more slices than this: each holds gradients of all parameters until they are added.
const MOST_SLICES: usize = 16;

/// Rows that are evaluated together when losses are measured.
const EVALUATION_ROWS: usize = 256;

/// Computes gradients on a device.
#[derive(Debug)]
pub(crate) struct GradientCrew {
    /// The threads that compute slices; none on a GPU.
    pool: Option<ThreadPool>,
    /// A copy of the network for each slice.
    replicas: Vec<Network>,
}

/// What a batch says of the network.
#[derive(Debug)]
pub(crate) struct Gradients {
    /// The batch's losses.
    pub(crate) losses: Losses,
    /// The gradients of the policy's loss plus the weighted value's, in the order of the network's parameters.
    pub(crate) gradients: Vec<Tensor>,
}

/// A part of a batch with its share of the batch's weights.
struct Slice {
    batch: Batch,
    policy_share: f64,
    value_share: f64,
}

impl GradientCrew {
    /// A crew for a device, with as many threads as rayon's own pool.
    pub(crate) fn new(device: Device) -> Result<Self, TrainError> {
        let pool = match device {
            Device::Cpu => {
                let pool = ThreadPoolBuilder::new()
                    .num_threads(rayon::current_num_threads())
                    .thread_name(|number| format!("gradients-{number}"))
                    // The number belongs to the thread that asks for it.
                    .start_handler(|_| tch::set_num_threads(1))
                    .build();
                Some(pool.map_err(|error| TrainError::Threads(error.to_string()))?)
            }
            _ => None,
        };
        Ok(Self {
            pool,
            replicas: Vec::new(),
        })
    }

    /// The losses of a batch and their gradients. The network's norms take the batch into their running statistics.
    pub(crate) fn compute(
        &mut self,
        network: &mut Network,
        batch: &Batch,
        value_weight: f64,
    ) -> Result<Gradients, TrainError> {
        let Some(pool) = &self.pool else {
            let whole = Slice {
                batch: batch.clone(),
                policy_share: 1.0,
                value_share: 1.0,
            };
            return Ok(whole.gradients(network, value_weight)?);
        };
        let slices = split(batch);
        while self.replicas.len() < slices.len() {
            let replica = network.copy()?;
            replica.set_requires_grad(true)?;
            self.replicas.push(replica);
        }
        let replicas = &mut self.replicas[..slices.len()];
        for replica in &mut *replicas {
            take_over(replica, network)?;
        }
        let parts = pool.install(|| {
            let pairs = replicas.par_iter_mut().zip(&slices);
            pairs
                .map(|(replica, slice)| slice.gradients(replica, value_weight))
                .collect::<Result<Vec<_>, _>>()
        })?;
        take_mean_statistics(network, replicas)?;
        Ok(sum(parts)?)
    }

    /// The losses on rows that are only measured with. The network stays as it is.
    pub(crate) fn measure(
        &self,
        network: &Network,
        rows: &[TrainingRow],
    ) -> Result<LossSums, TrainError> {
        let chunks: Vec<&[TrainingRow]> = rows.chunks(EVALUATION_ROWS).collect();
        let sums: Vec<LossSums> = match &self.pool {
            None => chunks
                .iter()
                .map(|rows| weighted_losses(network, rows))
                .collect::<Result<Vec<_>, _>>()?,
            Some(pool) => {
                let threads = pool.current_num_threads();
                let copies = (0..threads)
                    .map(|_| network.copy())
                    .collect::<Result<Vec<_>, _>>()?;
                let parts = pool.install(|| {
                    let shares = copies.into_par_iter().enumerate();
                    shares
                        .map(|(first, network)| {
                            let own = chunks.iter().skip(first).step_by(threads);
                            own.map(|rows| weighted_losses(&network, rows))
                                .collect::<Result<Vec<_>, _>>()
                        })
                        .collect::<Result<Vec<_>, _>>()
                })?;
                // Back into the order of the rows: the sum is the same whatever the number of threads.
                (0..chunks.len())
                    .map(|chunk| parts[chunk % threads][chunk / threads])
                    .collect()
            }
        };
        let mut total = LossSums::default();
        sums.into_iter().for_each(|part| total.append(part));
        Ok(total)
    }
}

/// The losses of rows.
fn weighted_losses(network: &Network, rows: &[TrainingRow]) -> Result<LossSums, NetworkError> {
    let _no_grad = no_grad_guard();
    let batch = Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>());
    let tensors = batch.to_device(network.device())?;
    let outputs = network.forward_measure(&tensors.planes, Heads::NONE)?;
    let mut sums = LossSums::default();
    sums.add(losses(&outputs, &tensors)?.to_numbers()?, batch.weights());
    Ok(sums)
}

fn split(batch: &Batch) -> Vec<Slice> {
    let count = batch.len().div_ceil(SLICE_ROWS).min(MOST_SLICES);
    let whole = batch.weights();
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let bounds = |number: usize| number * batch.len() / count;
    (0..count)
        .map(|number| {
            let batch = batch.part(bounds(number)..bounds(number + 1));
            let weights = batch.weights();
            Slice {
                policy_share: share(weights.policy, whole.policy),
                value_share: share(weights.value, whole.value),
                batch,
            }
        })
        .collect()
}

impl Slice {
    /// The slice's part in the batch's losses and gradients.
    fn gradients(
        &self,
        network: &mut Network,
        value_weight: f64,
    ) -> Result<Gradients, NetworkError> {
        let batch = self.batch.to_device(network.device())?;
        let outputs = network.forward_train(&batch.planes, Heads::NONE)?;
        let tensors = losses(&outputs, &batch)?;
        let numbers = tensors.to_numbers()?;
        let total = tensors.total(self.policy_share, self.value_share * value_weight)?;
        let parameters: Vec<&Tensor> = network
            .parameters()
            .map(|parameter| parameter.tensor)
            .collect();
        let gradients = Tensor::f_run_backward(&[total], &parameters, false, false)?;
        let gradients = gradients.into_iter().zip(parameters);
        Ok(Gradients {
            gradients: gradients
                .map(|(gradient, parameter)| match gradient.defined() {
                    true => Ok(gradient),
                    // Of a head that was not computed.
                    false => parameter.f_detach()?.f_zeros_like(),
                })
                .collect::<Result<_, TchError>>()?,
            losses: Losses {
                policy: numbers.policy * self.policy_share,
                value: numbers.value * self.value_share,
            },
        })
    }
}

/// Gives a replica the tensors of the network.
fn take_over(replica: &mut Network, network: &Network) -> Result<(), TchError> {
    let _no_grad = no_grad_guard();
    for (own, given) in replica.parameters().zip(network.parameters()) {
        own.tensor.shallow_clone().f_copy_(given.tensor)?;
    }
    for ((_, own), (_, given)) in replica.buffers().zip(network.buffers()) {
        own.shallow_clone().f_copy_(given)?;
    }
    Ok(())
}

/// Gives the network the mean of the replicas' running statistics.
fn take_mean_statistics(network: &mut Network, replicas: &[Network]) -> Result<(), TchError> {
    let _no_grad = no_grad_guard();
    let share = 1.0 / replicas.len() as f64;
    for (place, (_, own)) in network.buffers().enumerate() {
        let mut mean = own.f_zeros_like()?;
        for replica in replicas {
            if let Some((_, statistics)) = replica.buffers().nth(place) {
                let _ = mean.f_add_(&statistics.f_mul_scalar(share)?)?;
            }
        }
        own.shallow_clone().f_copy_(&mean)?;
    }
    Ok(())
}

fn sum(parts: Vec<Gradients>) -> Result<Gradients, TchError> {
    let _no_grad = no_grad_guard();
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or(Gradients {
        losses: Losses::default(),
        gradients: Vec::new(),
    });
    for part in parts {
        total.losses.policy += part.losses.policy;
        total.losses.value += part.losses.value;
        for (sum, gradient) in total.gradients.iter_mut().zip(&part.gradients) {
            let _ = sum.f_add_(gradient)?;
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::tests::rows;
    use engine::network::Architecture;

    fn network() -> Network {
        let network = Network::new(
            Architecture {
                blocks: 2,
                channels: 8,
            },
            1,
        )
        .unwrap();
        network.set_requires_grad(true).unwrap();
        network
    }

    fn batch(rows: &[TrainingRow]) -> Batch {
        Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>())
    }

    /// A crew of so many threads.
    fn crew(threads: usize) -> GradientCrew {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| GradientCrew::new(Device::Cpu)).unwrap()
    }

    fn numbers(tensors: impl IntoIterator<Item = Tensor>) -> Vec<f32> {
        let flat = |tensor: Tensor| Vec::<f32>::try_from(tensor.contiguous().view([-1])).unwrap();
        tensors.into_iter().flat_map(flat).collect()
    }

    fn statistics(network: &Network) -> Vec<f32> {
        numbers(network.buffers().map(|(_, tensor)| tensor.shallow_clone()))
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let rows = rows(300);
        let result = |threads| {
            let (mut crew, mut network) = (crew(threads), network());
            // The second batch meets replicas that are there already.
            crew.compute(&mut network, &batch(&rows[..200]), 0.5)
                .unwrap();
            let Gradients { losses, gradients } =
                crew.compute(&mut network, &batch(&rows), 0.5).unwrap();
            (
                losses,
                numbers(gradients),
                statistics(&network),
                crew.measure(&network, &rows).unwrap(),
            )
        };
        let one = result(1);
        assert_eq!(one, result(3));
        assert!(one.1.iter().any(|&number| number != 0.0));
    }

    #[test]
    fn slices_add_up_to_the_batch() {
        let mut rows = rows(160);
        for (number, row) in rows.iter_mut().enumerate() {
            row.weight = 1.0 + (number % 3) as f32;
            row.value_weight = (number % 2) as f32;
        }
        let (mut crew, mut given) = (crew(2), network());
        let found = crew.compute(&mut given, &batch(&rows), 0.5).unwrap();
        // By hand: three slices with the network's statistics as they were, each with its share of the weights.
        let whole = batch(&rows).weights();
        let mut expected = Gradients {
            losses: Losses::default(),
            gradients: Vec::new(),
        };
        let mut means = vec![0.0; statistics(&given).len()];
        for bounds in [0..53, 53..106, 106..160] {
            let part = batch(&rows[bounds]);
            let weights = part.weights();
            let mut network = network();
            let tensors = part.to_device(Device::Cpu).unwrap();
            let outputs = network.forward_train(&tensors.planes, Heads::NONE).unwrap();
            let losses = losses(&outputs, &tensors).unwrap();
            let (policy, value) = (weights.policy / whole.policy, weights.value / whole.value);
            losses.total(policy, 0.5 * value).unwrap().backward();
            let part = losses.to_numbers().unwrap();
            expected.losses.policy += policy * part.policy;
            expected.losses.value += value * part.value;
            expected
                .gradients
                .extend(
                    network
                        .parameters()
                        .map(|parameter| match parameter.tensor.grad() {
                            gradient if gradient.defined() => gradient,
                            _ => parameter.tensor.detach().zeros_like(),
                        }),
                );
            means
                .iter_mut()
                .zip(statistics(&network))
                .for_each(|(mean, number)| *mean += number / 3.0);
        }
        assert!((found.losses.policy - expected.losses.policy).abs() < 1e-6);
        assert!((found.losses.value - expected.losses.value).abs() < 1e-6);
        let count = found.gradients.len();
        for (place, gradient) in found.gradients.iter().enumerate() {
            let [a, b, c] = [0, 1, 2].map(|slice| &expected.gradients[slice * count + place]);
            let difference = (a + b + c - gradient).abs().max().double_value(&[]);
            assert!(difference < 1e-6, "parameter {place}: {difference}");
        }
        for (mean, number) in means.iter().zip(statistics(&given)) {
            assert!((mean - number).abs() < 1e-5, "{mean} {number}");
        }
    }
}
