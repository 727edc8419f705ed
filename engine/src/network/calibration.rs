//! How fast a network is on a device, by the size of the batches, and which size to use.

use super::layers::Mode;
use super::positions::real_positions;
use super::prepare::Prepared;
use super::service::is_out_of_memory;
use super::{Accuracy, Device, Network, NetworkError, Precision, unpack_rows};
use crate::encoding::encode;
use std::time::{Duration, Instant};
use tch::{TchError, Tensor, no_grad_guard};

/// The sizes that are tried on a processor.
const CPU_SIZES: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// The sizes that are tried on a GPU.
const CUDA_SIZES: [usize; 8] = [32, 64, 128, 256, 512, 1_024, 2_048, 4_096];

/// How long all sizes together are measured.
pub(super) const CALIBRATION_TIME: Duration = Duration::from_millis(2_000);

/// Larger batches must bring this much more: a smaller batch fills sooner.
const NEAR_BEST: f64 = 0.97;

/// How fast a network is on a device with nothing around it: ready inputs, and only the end of the computations waited for.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// The rates, by ascending size.
    pub rates: Vec<Rate>,
    /// The smallest size whose rate is at least 97% of the best, in rows.
    pub batch: usize,
    /// What the network was computed in; never [`Precision::Auto`].
    pub precision: Precision,
    /// How far that is from the network itself.
    pub accuracy: Accuracy,
    /// Whether cuDNN's fused convolutions are used.
    pub fused: bool,
    /// What was decided on the way, for people to read.
    pub notes: Vec<String>,
}

/// The speed of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Rows.
    pub batch: usize,
    /// Raw evaluations a second.
    pub evaluations_per_second: f64,
}

impl Calibration {
    /// The rate of the chosen size.
    pub fn evaluations_per_second(&self) -> f64 {
        let chosen = self.rates.iter().find(|rate| rate.batch == self.batch);
        chosen.map_or(0.0, |rate| rate.evaluations_per_second)
    }
}

/// Measures a network on a device in this thread, for some two seconds and the time that the device needs to get ready. `sizes`
/// replaces the sizes that are tried otherwise (processors: 1 to 256; GPUs: 32 to 4,096).
///
/// A size that the device's memory does not hold ends the table, with a note; if it is the smallest, it is an error. Other
/// errors are those of [`NetworkEvaluator::new`](super::NetworkEvaluator::new).
pub fn calibrate(
    network: &Network,
    device: Device,
    precision: Precision,
    name: impl Into<String>,
    sizes: Option<&[usize]>,
) -> Result<Calibration, NetworkError> {
    super::device::apply_thread_count();
    let mut prepared = Prepared::new(network, device, precision, name.into())?;
    let mut calibration = calibrate_prepared(&mut prepared, sizes, CALIBRATION_TIME)?;
    calibration.notes.splice(0..0, prepared.notes);
    Ok(calibration)
}

/// [`calibrate`] for a network that is ready. Where cuDNN's fused convolutions win, the network has them afterwards.
pub(super) fn calibrate_prepared(
    prepared: &mut Prepared,
    sizes: Option<&[usize]>,
    time: Duration,
) -> Result<Calibration, NetworkError> {
    let _no_grad = no_grad_guard();
    let is_cuda = prepared.device.is_cuda();
    let mut sizes = sizes
        .unwrap_or(if is_cuda { &CUDA_SIZES } else { &CPU_SIZES })
        .to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.retain(|&size| size > 0);
    if is_cuda {
        tch::Cuda::cudnn_set_benchmark(true);
    }
    let mut notes = Vec::new();
    let planes = planes(prepared, sizes.last().copied().unwrap_or(0))?;
    let each = time / sizes.len().max(1) as u32;
    let mut rates = measure_sizes(prepared, &planes, &sizes, each, &mut notes)?;
    let mut batch = choose(&rates).ok_or_else(|| NetworkError::Device {
        device: prepared.on.to_string(),
        reason: "there is no size of batches to measure".into(),
    })?;
    let mut fused = false;
    if is_cuda && prepared.precision != Precision::Fp32 {
        let plain = rate_of(&rates, batch);
        match try_fused(prepared, &planes, batch, each, plain) {
            Ok(Some(rate)) => {
                notes.push(format!(
                    "{}: cuDNN's fused convolutions are used: {rate:.0} evaluations a second instead of {plain:.0}",
                    prepared.on
                ));
                rates = measure_sizes(prepared, &planes, &sizes, each, &mut notes)?;
                batch = choose(&rates).unwrap_or(batch);
                fused = true;
            }
            Ok(None) => {}
            Err(error) => notes.push(format!(
                "{}: cuDNN's fused convolutions are not used: {error}",
                prepared.on
            )),
        }
    }
    Ok(Calibration {
        rates,
        batch,
        precision: prepared.precision,
        accuracy: prepared.accuracy,
        fused,
        notes,
    })
}

/// Real positions for the largest batch, repeated where there are too few: `[count, CHANNELS, 8, 8]`.
fn planes(prepared: &Prepared, count: usize) -> Result<Tensor, NetworkError> {
    let queries = real_positions(count)?;
    let rows = queries
        .iter()
        .map(|query| encode(&query.state, query.repetitions));
    let rows: Vec<_> = rows.collect();
    let rows: Vec<_> = rows.into_iter().cycle().take(count).collect();
    Ok(unpack_rows(&rows, prepared.device)?.f_to_kind(prepared.precision.kind())?)
}

fn measure_sizes(
    prepared: &Prepared,
    planes: &Tensor,
    sizes: &[usize],
    time: Duration,
    notes: &mut Vec<String>,
) -> Result<Vec<Rate>, NetworkError> {
    let mut rates = Vec::new();
    for &batch in sizes {
        match measure(prepared, planes, batch, time) {
            Ok(evaluations_per_second) => rates.push(Rate {
                batch,
                evaluations_per_second,
            }),
            Err(error) if is_out_of_memory(&error) && !rates.is_empty() => {
                notes.push(format!(
                    "{}: out of memory with {batch} rows: larger batches are left out",
                    prepared.on
                ));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(rates)
}

/// Evaluations a second with batches of one size.
fn measure(
    prepared: &Prepared,
    planes: &Tensor,
    batch: usize,
    time: Duration,
) -> Result<f64, NetworkError> {
    let planes = planes.f_narrow(0, 0, batch as i64)?;
    let run = |rounds: u32| -> Result<Duration, TchError> {
        let begun = Instant::now();
        for round in 1..=rounds {
            let outputs = prepared.body.forward(&planes, Mode::Evaluation)?;
            if round == rounds {
                // A GPU is done when its last number is here.
                outputs.value_logit.f_double_value(&[0])?;
            }
        }
        Ok(begun.elapsed())
    };
    // The first round plans, the second says how many fit into the time.
    run(1)?;
    let one = run(1)?.max(Duration::from_micros(1));
    let rounds = (time.as_secs_f64() / one.as_secs_f64()).clamp(1.0, 10_000.0) as u32;
    let seconds = run(rounds)?.as_secs_f64();
    Ok(f64::from(rounds) * batch as f64 / seconds)
}

/// Turns the fused convolutions on if they are accurate and faster than the plain ones' rate; then their rate.
fn try_fused(
    prepared: &mut Prepared,
    planes: &Tensor,
    batch: usize,
    time: Duration,
    plain: f64,
) -> Result<Option<f64>, NetworkError> {
    let tried = |prepared: &mut Prepared| {
        prepared.body.set_fused(true);
        let accuracy = prepared.check()?;
        let rate = measure(prepared, planes, batch, time)?;
        Ok((accuracy, rate))
    };
    match tried(prepared) {
        Ok((accuracy, rate)) if rate > plain => {
            prepared.accuracy = accuracy;
            Ok(Some(rate))
        }
        other => {
            prepared.body.set_fused(false);
            other.map(|_| None)
        }
    }
}

fn rate_of(rates: &[Rate], batch: usize) -> f64 {
    let found = rates.iter().find(|rate| rate.batch == batch);
    found.map_or(0.0, |rate| rate.evaluations_per_second)
}

/// The smallest size whose rate is near the best.
fn choose(rates: &[Rate]) -> Option<usize> {
    let rate = |rate: &Rate| rate.evaluations_per_second;
    let best = rates.iter().map(rate).fold(0.0, f64::max);
    let mut near = rates.iter().filter(|one| rate(one) >= NEAR_BEST * best);
    near.next().map(|rate| rate.batch)
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::decided_network;
    use super::*;

    #[test]
    fn the_smallest_size_near_the_best_is_chosen() {
        let rates = |pairs: &[(usize, f64)]| -> Vec<Rate> {
            let rates = pairs.iter().map(|&(batch, evaluations_per_second)| Rate {
                batch,
                evaluations_per_second,
            });
            rates.collect()
        };
        assert_eq!(
            choose(&rates(&[(1, 10.0), (2, 96.0), (4, 98.0), (8, 100.0)])),
            Some(4)
        );
        assert_eq!(choose(&rates(&[(32, 100.0), (64, 90.0)])), Some(32));
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn sizes_are_measured_in_order_and_one_is_chosen() {
        let network = decided_network(1, 8);
        let mut prepared =
            Prepared::new(&network, Device::Cpu, Precision::Fp32, "test".into()).unwrap();
        let time = Duration::from_millis(30);
        let found = calibrate_prepared(&mut prepared, Some(&[8, 1, 2, 0, 8]), time).unwrap();
        let sizes: Vec<usize> = found.rates.iter().map(|rate| rate.batch).collect();
        assert_eq!(sizes, [1, 2, 8]);
        assert!(sizes.contains(&found.batch));
        assert!(found.evaluations_per_second() > 0.0);
        assert!(!found.fused && found.notes.is_empty());
        let none = calibrate(&network, Device::Cpu, Precision::Fp32, "test", Some(&[]));
        assert!(none.unwrap_err().to_string().contains("no size"));
    }
}
