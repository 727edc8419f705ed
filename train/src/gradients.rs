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
use crate::loss::{Losses, losses};
use crate::measurement::Measurement;
use engine::network::{Heads, Network, NetworkError};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tch::{Device, Kind, TchError, Tensor, no_grad_guard};

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

/// What is made small, and how it is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Objective {
    /// What each loss counts; helper heads of weight 0 are not computed.
    pub(crate) weights: Losses,
    /// The type that convolutions are computed in: float or bf16.
    pub(crate) kind: Kind,
}

/// What a batch says of the network.
#[derive(Debug)]
pub(crate) struct Gradients {
    /// The batch's losses.
    pub(crate) losses: Losses,
    /// The policy's accuracy on the batch, 0 to 1.
    pub(crate) policy_accuracy: f64,
    /// The gradients of the sum of the weighted losses, in the order of the network's parameters; 0 for heads that were not
    /// computed.
    pub(crate) gradients: Vec<Tensor>,
}

/// A part of a batch with its share of the batch's weights.
struct Slice {
    batch: Batch,
    shares: Losses,
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

    /// The losses of a batch and the gradients of their weighted sum. The network's norms take the batch into their running
    /// statistics.
    pub(crate) fn compute(
        &mut self,
        network: &mut Network,
        batch: &Batch,
        objective: Objective,
    ) -> Result<Gradients, TrainError> {
        let Some(pool) = &self.pool else {
            let whole = Slice {
                batch: batch.clone(),
                shares: objective.weights.zip(objective.weights, |_, _| 1.0),
            };
            return Ok(whole.gradients(network, objective)?);
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
                .map(|(replica, slice)| slice.gradients(replica, objective))
                .collect::<Result<Vec<_>, _>>()
        })?;
        take_mean_statistics(network, replicas)?;
        Ok(sum(parts)?)
    }

    /// What the network, with these helper heads, is worth on rows that are only measured with. The network stays as it is.
    pub(crate) fn measure(
        &self,
        network: &Network,
        rows: &[TrainingRow],
        heads: Heads,
    ) -> Result<Measurement, TrainError> {
        let chunks: Vec<&[TrainingRow]> = rows.chunks(EVALUATION_ROWS).collect();
        let parts: Vec<Measurement> = match &self.pool {
            None => chunks
                .iter()
                .map(|rows| measure_chunk(network, rows, heads))
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
                            own.map(|rows| measure_chunk(&network, rows, heads))
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
        let mut total = Measurement::default();
        parts.into_iter().for_each(|part| total.append(part));
        Ok(total)
    }
}

fn measure_chunk(
    network: &Network,
    rows: &[TrainingRow],
    heads: Heads,
) -> Result<Measurement, NetworkError> {
    let _no_grad = no_grad_guard();
    let batch = Batch::new(&rows.iter().map(|row| (row, false)).collect::<Vec<_>>());
    let tensors = batch.to_device(network.device())?;
    let outputs = network.forward_measure(&tensors.planes, heads)?;
    let losses = losses(&outputs, &tensors)?;
    let weights = batch.weights().only(heads);
    Ok(Measurement::new(&outputs, &losses, &tensors, weights)?)
}

fn split(batch: &Batch) -> Vec<Slice> {
    let count = batch.len().div_ceil(SLICE_ROWS).min(MOST_SLICES);
    let whole = batch.weights();
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let bounds = |number: usize| number * batch.len() / count;
    (0..count)
        .map(|number| {
            let batch = batch.part(bounds(number)..bounds(number + 1));
            Slice {
                shares: batch.weights().zip(whole, share),
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
        objective: Objective,
    ) -> Result<Gradients, NetworkError> {
        let batch = self.batch.to_device(network.device())?;
        let Objective { weights, kind } = objective;
        let planes = batch.planes.f_to_kind(kind)?;
        let outputs = network.forward_train(&planes, weights.heads())?;
        let tensors = losses(&outputs, &batch)?;
        let numbers = tensors.to_numbers()?;
        let total = tensors.total(weights.zip(self.shares, |weight, share| weight * share))?;
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
            losses: numbers.zip(self.shares, |loss, share| loss * share),
            policy_accuracy: tensors.policy_accuracy()? * self.shares.policy,
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
        policy_accuracy: 0.0,
        gradients: Vec::new(),
    });
    for part in parts {
        total.losses = total.losses.zip(part.losses, |sum, part| sum + part);
        total.policy_accuracy += part.policy_accuracy;
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

    const WEIGHTS: Losses = Losses {
        policy: 1.0,
        value: 0.5,
        turns_left: 0.25,
        ending: 0.75,
        taken: 2.0,
        reply: 1.5,
    };

    const IN_FLOAT: Objective = Objective {
        weights: WEIGHTS,
        kind: Kind::Float,
    };

    fn statistics(network: &Network) -> Vec<f32> {
        numbers(network.buffers().map(|(_, tensor)| tensor.shallow_clone()))
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let rows = rows(300);
        let result = |threads| {
            let (mut crew, mut network) = (crew(threads), network());
            // The second batch meets replicas that are there already.
            crew.compute(&mut network, &batch(&rows[..200]), IN_FLOAT)
                .unwrap();
            let found = crew.compute(&mut network, &batch(&rows), IN_FLOAT).unwrap();
            (
                (found.losses, found.policy_accuracy),
                numbers(found.gradients),
                statistics(&network),
                crew.measure(&network, &rows, Heads::ALL).unwrap(),
            )
        };
        let one = result(1);
        assert_eq!(one, result(3));
        assert!(one.1.iter().any(|&number| number != 0.0));
    }

    #[test]
    fn heads_of_weight_0_have_gradients_of_0() {
        let rows = rows(100);
        let weights = Losses {
            ending: 0.0,
            ..WEIGHTS
        };
        let (mut crew, mut network) = (crew(2), network());
        let objective = Objective {
            weights,
            ..IN_FLOAT
        };
        let found = crew
            .compute(&mut network, &batch(&rows), objective)
            .unwrap();
        assert_eq!(found.losses.ending, 0.0);
        for (parameter, gradient) in network.parameters().zip(&found.gradients) {
            assert_eq!(gradient.size(), parameter.tensor.size());
            let is_zero = gradient.abs().max().double_value(&[]) == 0.0;
            if parameter.name.starts_with("helpers.ending.") {
                assert!(is_zero, "{}", parameter.name);
            }
            if parameter.name == "helpers.reply.squares.weight" {
                assert!(!is_zero);
            }
        }
        let measured = crew.measure(&network, &rows, weights.heads()).unwrap();
        assert_eq!(measured.losses.ending(), None);
        assert!(measured.losses.taken().is_some());
    }

    #[test]
    fn bf16_says_much_the_same_and_its_gradients_are_float() {
        let rows = rows(200);
        let compute = |kind| {
            let (mut crew, mut network) = (crew(2), network());
            // The heads' last weights start at 0, and let nothing through.
            let random = Network::new(network.architecture(), 5).unwrap();
            let pairs = network.parameters().zip(random.parameters());
            for (parameter, other) in pairs.filter(|(parameter, _)| parameter.decay) {
                let noise = other.tensor.randn_like() * 0.1;
                let _ = tch::no_grad(|| parameter.tensor.shallow_clone().g_add_(&noise));
            }
            let objective = Objective { kind, ..IN_FLOAT };
            crew.compute(&mut network, &batch(&rows), objective)
                .unwrap()
        };
        tch::manual_seed(3);
        let exact = compute(Kind::Float);
        tch::manual_seed(3);
        let rounded = compute(Kind::BFloat16);
        let pairs = exact.losses.named().into_iter();
        for ((name, exact), (_, rounded)) in pairs.zip(rounded.losses.named()) {
            assert!(
                (rounded / exact - 1.0).abs() < 0.02,
                "{name}: {exact} {rounded}"
            );
            assert_ne!(exact, rounded, "{name}");
        }
        for gradient in &rounded.gradients {
            assert_eq!(gradient.kind(), Kind::Float);
        }
        let (exact, rounded) = (numbers(exact.gradients), numbers(rounded.gradients));
        let product = |a: &[f32], b: &[f32]| -> f64 {
            let products = a.iter().zip(b).map(|(a, b)| f64::from(a * b));
            products.sum()
        };
        let lengths = product(&exact, &exact) * product(&rounded, &rounded);
        let cosine = product(&exact, &rounded) / lengths.sqrt();
        assert!(cosine > 0.99, "{cosine}");
    }

    #[test]
    fn slices_add_up_to_the_batch() {
        let mut rows = rows(160);
        for (number, row) in rows.iter_mut().enumerate() {
            row.weight = 1.0 + (number % 3) as f32;
            row.value_weight = (number % 2) as f32;
            row.helpers.outcome_weight = 0.5 + (number % 5) as f32;
            row.helpers.reply_weight = (number % 7) as f32;
        }
        let (mut crew, mut given) = (crew(2), network());
        let found = crew.compute(&mut given, &batch(&rows), IN_FLOAT).unwrap();
        // By hand: three slices with the network's statistics as they were, each with its share of the weights.
        let whole = batch(&rows).weights();
        let mut expected = Gradients {
            losses: Losses::default(),
            policy_accuracy: 0.0,
            gradients: Vec::new(),
        };
        let mut means = vec![0.0; statistics(&given).len()];
        for bounds in [0..53, 53..106, 106..160] {
            let part = batch(&rows[bounds]);
            let weights = part.weights();
            let mut network = network();
            let tensors = part.to_device(Device::Cpu).unwrap();
            let outputs = network.forward_train(&tensors.planes, Heads::ALL).unwrap();
            let losses = losses(&outputs, &tensors).unwrap();
            let shares = weights.zip(whole, |part, whole| part / whole);
            let counted = shares.zip(WEIGHTS, |share, weight| share * weight);
            losses.total(counted).unwrap().backward();
            let part = losses.to_numbers().unwrap();
            let part = part.zip(shares, |loss, share| loss * share);
            expected.losses = expected.losses.zip(part, |sum, part| sum + part);
            expected.policy_accuracy += losses.policy_accuracy().unwrap() * shares.policy;
            expected.gradients.extend(
                network
                    .parameters()
                    .map(|parameter| parameter.tensor.grad()),
            );
            means
                .iter_mut()
                .zip(statistics(&network))
                .for_each(|(mean, number)| *mean += number / 3.0);
        }
        let differences = found.losses.zip(expected.losses, |a, b| (a - b).abs());
        for ((name, difference), (_, loss)) in differences.named().iter().zip(found.losses.named())
        {
            assert!(*difference < 1e-6 && loss > 0.1, "{name}: {loss}");
        }
        assert!((found.policy_accuracy - expected.policy_accuracy).abs() < 1e-6);
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
