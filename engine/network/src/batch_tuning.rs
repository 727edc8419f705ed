//! How fast a network is on a device, by the size of the batches, and which sizes to use.

use crate::device::Device;
use crate::error::NetworkError;
use crate::inference::ANSWER_FLOATS;
use crate::packed::{Forward, PackedForward, ROW_BYTES, pack};
use crate::prepare::Check;
use engine::config::Precision;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The sizes that are tried on a GPU.
pub(super) const SIZES: [usize; 8] = [32, 64, 128, 256, 512, 1_024, 2_048, 4_096];

/// The largest of them.
pub(super) const MAX_BATCH: usize = SIZES[SIZES.len() - 1];

/// How long all sizes together are measured.
const TIME: Duration = Duration::from_millis(2_000);

/// A batch is near the best from this share of the best rate on: a smaller batch fills sooner.
const NEAR_BEST: f64 = 0.97;

/// How fast a network is on a device, rows and answers in the host's memory: copied there, unpacked, computed, and copied back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchTuning {
    /// The rates, by ascending size.
    pub rates: Vec<Rate>,
    /// The smallest size whose rate is at least 97% of the best, in rows.
    pub batch: usize,
    /// Whether cuDNN's fused convolutions are used.
    pub fused: bool,
}

/// The speed of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Rows.
    pub batch: usize,
    /// Evaluations a second.
    pub evaluations_per_second: f64,
}

impl BatchTuning {
    /// The rate of the chosen size.
    pub fn evaluations_per_second(&self) -> f64 {
        let chosen = self.rates.iter().find(|rate| rate.batch == self.batch);
        chosen.map_or(0.0, |rate| rate.evaluations_per_second)
    }

    /// Whether the memory held all sizes.
    pub(super) fn is_complete(&self) -> bool {
        self.rates.iter().map(|rate| rate.batch).eq(SIZES)
    }
}

/// Measures a network in this thread, for some two seconds and the time that the device needs to get ready, and leaves the
/// convolutions in the form that is faster. `notes` gets messages for the user.
///
/// A size that the device's memory does not hold ends the table, with a note; if it is the smallest, it is an error. The
/// second value is false if the fused form lacked memory, which it may have another time.
pub(super) fn tune(
    forward: &mut PackedForward,
    check: &Check,
    (device, precision): (Device, Precision),
    notes: &mut Vec<String>,
) -> Result<(BatchTuning, bool), NetworkError> {
    let rows = Rows::new(check);
    let each = TIME / SIZES.len() as u32;
    let rates = rows.measure_all(forward, &SIZES, each, device, notes)?;
    let (mut found, mut is_final) = (BatchTuning::of(rates), true);
    if precision != Precision::Fp32 {
        forward.body.set_fused(true);
        let plain = found.evaluations_per_second();
        // cuDNN chooses an engine for each size, so each is measured.
        let sizes: Vec<usize> = found.rates.iter().map(|rate| rate.batch).collect();
        let tried = forward.check(check, &[found.batch]).and_then(|_| {
            if rows
                .measure(forward, found.batch, each)?
                .evaluations_per_second
                <= plain
            {
                return Ok(None);
            }
            let rates = sizes.iter().map(|&size| rows.measure(forward, size, each));
            rates.collect::<Result<Vec<Rate>, _>>().map(Some)
        });
        match tried {
            Ok(Some(rates)) => {
                found = BatchTuning {
                    fused: true,
                    ..BatchTuning::of(rates)
                };
                let rate = found.evaluations_per_second();
                notes.push(format!(
                    "{device}: cuDNN's fused convolutions are used: {rate:.0} evaluations a second instead of {plain:.0}"
                ));
            }
            Ok(None) => forward.body.set_fused(false),
            Err(error) => {
                forward.body.set_fused(false);
                is_final = !error.is_failed_allocation();
                notes.push(format!(
                    "{device}: cuDNN's fused convolutions are not used: {error}"
                ));
            }
        }
    }
    Ok((found, is_final))
}

impl BatchTuning {
    fn of(rates: Vec<Rate>) -> Self {
        Self {
            batch: choose(&rates),
            rates,
            fused: false,
        }
    }
}

/// Packed rows of real positions, as many as the largest batch holds.
struct Rows(Vec<u8>);

impl Rows {
    fn new(check: &Check) -> Self {
        let mut packed = Vec::new();
        let queries = check.queries().iter().cycle().take(MAX_BATCH);
        queries.for_each(|query| pack(query, &mut packed));
        Self(packed)
    }

    fn measure_all(
        &self,
        forward: &mut PackedForward,
        sizes: &[usize],
        time: Duration,
        device: Device,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Rate>, NetworkError> {
        let mut rates = Vec::new();
        for &batch in sizes {
            match self.measure(forward, batch, time) {
                Ok(rate) => rates.push(rate),
                Err(error) if error.is_out_of_memory() && !rates.is_empty() => {
                    notes.push(format!(
                        "{device}: out of memory with {batch} rows: larger batches are left out"
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
        &self,
        forward: &mut PackedForward,
        batch: usize,
        time: Duration,
    ) -> Result<Rate, NetworkError> {
        let mut answers = vec![0.0; batch * ANSWER_FLOATS];
        let mut run = |rounds: u32| -> Result<Duration, NetworkError> {
            let begun = Instant::now();
            for _ in 0..rounds {
                forward.load(0, &self.0[..batch * ROW_BYTES])?;
                forward.run(batch)?;
                forward.read(0, &mut answers)?;
            }
            Ok(begun.elapsed())
        };
        // The first round plans, the second says how many fit into the time.
        run(1)?;
        let one = run(1)?.max(Duration::from_micros(1));
        let rounds = (time.as_secs_f64() / one.as_secs_f64()).clamp(1.0, 10_000.0) as u32;
        let seconds = run(rounds)?.as_secs_f64();
        Ok(Rate {
            batch,
            evaluations_per_second: f64::from(rounds) * batch as f64 / seconds,
        })
    }
}

/// The smallest size whose rate is near the best; 0 without rates.
fn choose(rates: &[Rate]) -> usize {
    let rate = |rate: &Rate| rate.evaluations_per_second;
    let best = rates.iter().map(rate).fold(0.0, f64::max);
    let mut near = rates.iter().filter(|one| rate(one) >= NEAR_BEST * best);
    near.next().map_or(0, |rate| rate.batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::decided_network;
    use crate::prepare::Prepared;

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
            4
        );
        assert_eq!(choose(&rates(&[(32, 100.0), (64, 90.0)])), 32);
        assert_eq!(choose(&[]), 0);
    }

    #[test]
    fn sizes_are_measured_in_order_and_one_is_chosen() {
        let network = decided_network(1, 8);
        let (device, precision) = (Device::Cpu, Precision::Fp32);
        let prepared = Prepared::new(&network, device, precision, "test").unwrap();
        let mut forward = PackedForward::new(prepared.body, device, precision, MAX_BATCH).unwrap();
        let rows = Rows::new(&prepared.check);
        let (time, mut notes) = (Duration::from_millis(10), Vec::new());
        let rates = rows.measure_all(&mut forward, &[1, 2, 8], time, device, &mut notes);
        let found = BatchTuning::of(rates.unwrap());
        let sizes: Vec<usize> = found.rates.iter().map(|rate| rate.batch).collect();
        assert_eq!(sizes, [1, 2, 8]);
        assert!(sizes.contains(&found.batch));
        assert!(found.evaluations_per_second() > 0.0);
        assert!(!found.fused && notes.is_empty());
    }
}
