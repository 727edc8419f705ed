//! The gradients of a batch, and the losses of many rows, on all threads.
//!
//! On a CPU a batch is split into slices, and each slice is computed whole by one thread, libtorch using no other for it. libtorch's
//! own threads synchronise after every operation instead, and busy-wait: 4×32 at batch 256 on two cores trained 4,650
//! rows/s so on an idle machine, but 330 rows/s beside other busy programs. A GPU takes the batch in one piece.
//!
//! The slices depend on the batch's size alone and their gradients are added in order, so that the number of threads changes no
//! bit of the result. Each slice is normalised by its own statistics (ghost batch normalisation: Hoffer, Hubara and Soudry 2017,
//! "Train longer, generalize better", section 4).

use crate::data::{Batch, RowRef};
use crate::error::TrainError;
use crate::trainer::loss::{enabled, from_stack, losses, only};
use crate::trainer::measurement::Measurement;
use crate::trainer::optimizer::norm;
use network::{Head, Network, NetworkError, PerHead, catch_torch_panics};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor, no_grad_guard};

/// Rows of a slice, where the batch is not too large for it.
const SLICE_ROWS: usize = 64;

/// A batch is split into no more slices than this: each holds gradients of all parameters until they are added.
const MAX_SLICES: usize = 16;

/// Rows that are evaluated together when losses are measured, on a CPU.
const EVALUATION_ROWS: usize = 256;

/// The same on a GPU.
const EVALUATION_ROWS_ON_GPU: usize = 2_048;

/// Computes gradients on a device.
#[derive(Debug)]
pub(crate) struct GradientWorkers {
    /// The threads that compute slices; none on a GPU.
    pool: Option<ThreadPool>,
    /// A copy of the network for each slice.
    replicas: Vec<Network>,
}

/// The objective that is minimised, and how it is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Objective {
    /// The weight of each loss; auxiliary heads of weight 0 are not computed.
    pub(crate) weights: PerHead<f64>,
    /// The type that convolutions are computed in: float or bf16.
    pub(crate) kind: Kind,
}

/// The losses and gradients of a batch.
#[derive(Debug)]
pub(crate) struct Gradients {
    /// The batch's losses.
    pub(crate) losses: PerHead<f64>,
    /// The policy's accuracy on the batch, 0 to 1.
    pub(crate) policy_accuracy: f64,
    /// The gradient of the sum of the weighted losses, laid out like [`Network::trained`]; 0 for heads that were not computed.
    pub(crate) gradient: Tensor,
    /// Its norm.
    pub(crate) norm: f64,
}

impl Gradients {
    /// The first loss that is not finite, or else the gradient's norm if it is not; with its name in words.
    pub(crate) fn not_finite(&self) -> Option<(String, f64)> {
        let losses = self.losses.iter().map(|(head, &loss)| {
            let name = head.name().replace('_', "-");
            (format!("{name} loss"), loss)
        });
        let mut numbers = losses.chain([("gradient's norm".into(), self.norm)]);
        numbers.find(|(_, number)| !number.is_finite())
    }
}

/// The losses and gradients of a slice, still on its device.
struct Part {
    /// See [`LossTensors::stack`](crate::trainer::loss::LossTensors::stack).
    numbers: Tensor,
    gradient: Tensor,
}

impl GradientWorkers {
    /// The workers of a device, with as many threads as rayon's global pool.
    pub(crate) fn new(device: Device) -> Result<Self, TrainError> {
        let pool = match device {
            Device::Cpu => {
                let pool = ThreadPoolBuilder::new()
                    .num_threads(rayon::current_num_threads())
                    .thread_name(|number| format!("gradients-{number}"))
                    // libtorch keeps the number for each thread.
                    .start_handler(|_| tch::set_num_threads(1))
                    .build();
                Some(pool.map_err(|error| {
                    TrainError::Other(format!(
                        "can't start the threads that compute gradients: {error}"
                    ))
                })?)
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
            let whole = PerHead::from_fn(|_| 1.0);
            let part = compute_part(network, batch, 0..batch.len(), &whole, &objective)?;
            return Ok(add_up(&[whole], vec![part], norm)?);
        };
        let (slices, shares) = split(batch);
        while self.replicas.len() < slices.len() {
            let replica = network.copy()?;
            replica.set_requires_grad(true)?;
            self.replicas.push(replica);
        }
        let replicas = &mut self.replicas[..slices.len()];
        for replica in &mut *replicas {
            replica.flat().shallow_clone().f_copy_(network.flat())?;
        }
        let parts = pool.install(|| {
            let slices = replicas.par_iter_mut().zip(&slices).zip(&shares);
            let parts = slices.map(|((replica, rows), shares)| {
                // tch's panics are caught in the threads that they happen in.
                catch_torch_panics(|| {
                    compute_part(replica, batch, rows.clone(), shares, &objective)
                })
            });
            parts.collect::<Result<_, NetworkError>>()
        })?;
        take_mean_statistics(network, replicas)?;
        // By one thread: libtorch's threads would each add up a part, and the last digits depend on how many they are.
        let norm = |gradient: &Tensor| {
            let gradient = gradient.shallow_clone();
            pool.install(move || norm(&gradient))
        };
        Ok(add_up(&shares, parts, norm)?)
    }

    /// Measures the network, with the enabled heads, on rows. The network does not change.
    pub(crate) fn measure(
        &self,
        network: &Network,
        rows: &[RowRef],
        heads: &PerHead<bool>,
    ) -> Result<Measurement, TrainError> {
        let rows_at_once = match self.pool {
            Some(_) => EVALUATION_ROWS,
            None => EVALUATION_ROWS_ON_GPU,
        };
        let chunks: Vec<&[RowRef]> = rows.chunks(rows_at_once).collect();
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
                            catch_torch_panics(|| {
                                own.map(|rows| measure_chunk(&network, rows, heads))
                                    .collect::<Result<Vec<_>, NetworkError>>()
                            })
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
    rows: &[RowRef],
    heads: &PerHead<bool>,
) -> Result<Measurement, NetworkError> {
    let _no_grad = no_grad_guard();
    let batch = Batch::new(rows);
    let tensors = batch.to_device(0..rows.len(), network.device())?;
    let outputs = network.forward_measure(&tensors.planes, heads)?;
    let losses = losses(&outputs, &tensors)?;
    let weights = only(&batch.weights(0..rows.len()), heads);
    Ok(Measurement::new(&outputs, &losses, &tensors, &weights)?)
}

/// The rows of each slice of a batch, and its shares of the batch's weights.
fn split(batch: &Batch) -> (Vec<Range<usize>>, Vec<PerHead<f64>>) {
    let count = batch.len().div_ceil(SLICE_ROWS).min(MAX_SLICES);
    let whole = batch.weights(0..batch.len());
    let share = |&part: &f64, &whole: &f64| if whole > 0.0 { part / whole } else { 0.0 };
    let bounds = |number: usize| number * batch.len() / count;
    let slices = (0..count).map(|number| {
        let rows = bounds(number)..bounds(number + 1);
        (rows.clone(), batch.weights(rows).zip(&whole, share))
    });
    slices.unzip()
}

/// A slice's share of the batch's losses and gradients.
fn compute_part(
    network: &mut Network,
    batch: &Batch,
    rows: Range<usize>,
    shares: &PerHead<f64>,
    objective: &Objective,
) -> Result<Part, NetworkError> {
    let batch = batch.to_device(rows, network.device())?;
    let Objective { weights, kind } = objective;
    let planes = batch.planes.f_to_kind(*kind)?;
    let outputs = network.forward_train(&planes, &enabled(weights))?;
    let tensors = losses(&outputs, &batch)?;
    let total = tensors.total(&weights.zip(shares, |weight, share| weight * share))?;
    let parameters = network.parameters().map(|parameter| parameter.tensor);
    let parameters: Vec<&Tensor> = parameters.collect();
    let gradients = Tensor::f_run_backward(&[total], &parameters, false, false)?;
    Ok(Part {
        numbers: tensors.stack()?,
        gradient: network.flatten(&gradients)?,
    })
}

/// Gives the network the mean of the replicas' running statistics.
fn take_mean_statistics(network: &Network, replicas: &[Network]) -> Result<(), NetworkError> {
    let share = 1.0 / replicas.len() as f64;
    let mut mean = network.statistics()?;
    let _ = mean.f_zero_()?;
    for replica in replicas {
        let _ = mean.f_add_(&replica.statistics()?.f_mul_scalar(share)?)?;
    }
    Ok(())
}

/// The sum of the parts, by their shares of the batch's weights; waits for the device, once.
fn add_up(
    shares: &[PerHead<f64>],
    parts: Vec<Part>,
    norm: impl Fn(&Tensor) -> Result<Tensor, TchError>,
) -> Result<Gradients, NetworkError> {
    let _no_grad = no_grad_guard();
    let mut numbers: Vec<Tensor> = Vec::new();
    let mut gradient: Option<Tensor> = None;
    for part in parts {
        numbers.push(part.numbers);
        match &mut gradient {
            Some(sum) => drop(sum.f_add_(&part.gradient)?),
            None => gradient = Some(part.gradient),
        }
    }
    let gradient = gradient.unwrap_or_default();
    numbers.push(norm(&gradient)?.f_view([1])?);
    let all = Tensor::f_cat(&numbers, 0)?;
    let mut numbers = vec![0f32; all.numel()];
    all.f_copy_data(&mut numbers, all.numel())?;
    let (stacks, norm) = numbers.as_chunks();
    let mut losses = PerHead::<f64>::default();
    let mut policy_accuracy = 0.0;
    for (&stack, shares) in stacks.iter().zip(shares) {
        let (part, accuracy) = from_stack(stack);
        let part = part.zip(shares, |loss, share| loss * share);
        losses = losses.zip(&part, |sum, part| sum + part);
        policy_accuracy += accuracy * shares[Head::Policy];
    }
    Ok(Gradients {
        losses,
        policy_accuracy,
        gradient,
        norm: norm.iter().copied().map(f64::from).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::loss::tests::numbers as loss_numbers;
    use crate::trainer::step::tests::rows;
    use network::{Architecture, cpu_computes_bf16};

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

    /// Workers with so many threads.
    fn workers(threads: usize) -> GradientWorkers {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| GradientWorkers::new(Device::Cpu)).unwrap()
    }

    fn numbers(tensors: impl IntoIterator<Item = Tensor>) -> Vec<f32> {
        let flat = |tensor: Tensor| Vec::<f32>::try_from(tensor.contiguous().view([-1])).unwrap();
        tensors.into_iter().flat_map(flat).collect()
    }

    fn in_float() -> Objective {
        let weights = [1.0, 0.5, 0.25, 0.75, 2.0, 1.5];
        Objective {
            weights: PerHead::from_fn(|head| weights[head as usize]),
            kind: Kind::Float,
        }
    }

    fn statistics(network: &Network) -> Vec<f32> {
        numbers(network.buffers().map(|(_, tensor)| tensor.shallow_clone()))
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let game = rows(300);
        let rows: Vec<RowRef> = game.rows().collect();
        let result = |threads| {
            let (mut workers, mut network) = (workers(threads), network());
            // The second batch meets replicas that are there already.
            workers
                .compute(&mut network, &Batch::new(&rows[..200]), in_float())
                .unwrap();
            let found = workers.compute(&mut network, &Batch::new(&rows), in_float());
            let found = found.unwrap();
            (
                (found.losses, found.policy_accuracy),
                (numbers([found.gradient]), found.norm),
                statistics(&network),
                workers.measure(&network, &rows, &PerHead::ALL).unwrap(),
            )
        };
        let one = result(1);
        assert_eq!(one, result(3));
        assert!(one.1.0.iter().any(|&number| number != 0.0));
    }

    #[test]
    fn heads_of_weight_0_have_gradients_of_0() {
        let game = rows(100);
        let rows: Vec<RowRef> = game.rows().collect();
        let mut objective = in_float();
        objective.weights[Head::Ending] = 0.0;
        let (mut workers, mut network) = (workers(2), network());
        let found = workers
            .compute(&mut network, &Batch::new(&rows), objective)
            .unwrap();
        assert_eq!(found.losses[Head::Ending], 0.0);
        let gradients = network.unflatten(&found.gradient).unwrap();
        for (parameter, gradient) in network.parameters().zip(gradients) {
            assert_eq!(gradient.size(), parameter.tensor.size());
            let is_zero = gradient.abs().max().double_value(&[]) == 0.0;
            if parameter.name.starts_with("helpers.ending.") {
                assert!(is_zero, "{}", parameter.name);
            }
            if parameter.name == "helpers.reply.squares.weight" {
                assert!(!is_zero);
            }
        }
        let enabled = enabled(&objective.weights);
        let measured = workers.measure(&network, &rows, &enabled).unwrap();
        assert_eq!(measured.losses.mean(Head::Ending), None);
        assert!(measured.losses.mean(Head::Captures).is_some());
    }

    #[test]
    fn bf16_says_much_the_same_and_its_gradients_are_float() {
        if !cpu_computes_bf16() {
            return;
        }
        let game = rows(200);
        let rows: Vec<RowRef> = game.rows().collect();
        let compute = |kind| {
            let (mut workers, mut network) = (workers(2), network());
            // The heads' last weights start at 0, and let nothing through.
            let random = Network::new(network.architecture(), 5).unwrap();
            let pairs = network.parameters().zip(random.parameters());
            for (parameter, other) in pairs.filter(|(parameter, _)| parameter.decay) {
                let noise = other.tensor.randn_like() * 0.1;
                let _ = tch::no_grad(|| parameter.tensor.shallow_clone().g_add_(&noise));
            }
            let objective = Objective { kind, ..in_float() };
            workers
                .compute(&mut network, &Batch::new(&rows), objective)
                .unwrap()
        };
        tch::manual_seed(3);
        let exact = compute(Kind::Float);
        tch::manual_seed(3);
        let rounded = compute(Kind::BFloat16);
        for (head, exact) in exact.losses.iter() {
            let rounded = rounded.losses[head];
            assert!(
                (rounded / exact - 1.0).abs() < 0.02,
                "{head:?}: {exact} {rounded}"
            );
            assert_ne!(*exact, rounded, "{head:?}");
        }
        assert_eq!(rounded.gradient.kind(), Kind::Float);
        let (exact, rounded) = (numbers([exact.gradient]), numbers([rounded.gradient]));
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
        let mut game = rows(160);
        for number in 0..game.len() {
            let [policy, value, outcome, reply] = [3, 2, 5, 7].map(|by| (number % by) as f32);
            game.set_weights(number, [1.0 + policy, value, 0.5 + outcome, reply]);
        }
        let rows: Vec<RowRef> = game.rows().collect();
        let batch = |rows: &[RowRef]| Batch::new(rows);
        let (mut workers, mut given) = (workers(2), network());
        let found = workers.compute(&mut given, &batch(&rows), in_float());
        let found = found.unwrap();
        // By hand: three slices with the network's statistics as they were, each with its share of the weights.
        let whole = batch(&rows).weights(0..rows.len());
        let (mut expected_losses, mut expected_accuracy) = (PerHead::<f64>::default(), 0.0);
        let mut expected: Vec<Tensor> = Vec::new();
        let mut means = vec![0.0; statistics(&given).len()];
        for bounds in [0..53, 53..106, 106..160] {
            let part = batch(&rows[bounds]);
            let weights = part.weights(0..part.len());
            let mut network = network();
            let tensors = part.to_device(0..part.len(), Device::Cpu).unwrap();
            let outputs = network
                .forward_train(&tensors.planes, &PerHead::ALL)
                .unwrap();
            let losses = losses(&outputs, &tensors).unwrap();
            let shares = weights.zip(&whole, |part, whole| part / whole);
            let counted = shares.zip(&in_float().weights, |share, weight| share * weight);
            losses.total(&counted).unwrap().backward();
            let (part, accuracy) = loss_numbers(&losses);
            let part = part.zip(&shares, |loss, share| loss * share);
            expected_losses = expected_losses.zip(&part, |sum, part| sum + part);
            expected_accuracy += accuracy * shares[Head::Policy];
            expected.extend(
                network
                    .parameters()
                    .map(|parameter| parameter.tensor.grad()),
            );
            means
                .iter_mut()
                .zip(statistics(&network))
                .for_each(|(mean, number)| *mean += number / 3.0);
        }
        for (head, &loss) in found.losses.iter() {
            let difference = (loss - expected_losses[head]).abs();
            assert!(difference < 1e-6 && loss > 0.1, "{head:?}: {loss}");
        }
        assert!((found.policy_accuracy - expected_accuracy).abs() < 1e-6);
        let gradients = given.unflatten(&found.gradient).unwrap();
        let count = gradients.len();
        for (place, gradient) in gradients.iter().enumerate() {
            let [a, b, c] = [0, 1, 2].map(|slice| &expected[slice * count + place]);
            let difference = (a + b + c - gradient).abs().max().double_value(&[]);
            assert!(difference < 1e-6, "parameter {place}: {difference}");
        }
        for (mean, number) in means.iter().zip(statistics(&given)) {
            assert!((mean - number).abs() < 1e-5, "{mean} {number}");
        }
    }
}
