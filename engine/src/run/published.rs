//! When networks were published, and the time of a generation that follows.

use super::train_log::StepSeries;
use serde::Serialize;

/// The time of a generation is the median of so many of the newest.
const GENERATIONS: usize = 9;

/// The times of published networks, by the trainer's log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublishedTimes(StepSeries<f64, u32>);

/// The time of a generation, from one published network to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GenerationTime {
    /// The median, of two the shorter: a pause for a night does not count.
    pub seconds: f64,
    /// Of so many generations.
    pub generations: usize,
}

impl PublishedTimes {
    /// Adds a network, published at a time in seconds. One that was removed and trained again replaces those from it on.
    pub fn add(&mut self, generation: u32, time: f64) {
        self.0.push(generation, time);
    }

    /// None before the second network.
    pub fn generation_time(&self) -> Option<GenerationTime> {
        let pairs = self.0.points().windows(2);
        let each = pairs.map(|pair| (pair[1].1 - pair[0].1) / f64::from(pair[1].0 - pair[0].0));
        let newest = each.rev().filter(|time| *time > 0.0);
        let mut newest: Vec<f64> = newest.take(GENERATIONS).collect();
        newest.sort_by(f64::total_cmp);
        Some(GenerationTime {
            seconds: *newest.get(newest.len().checked_sub(1)? / 2)?,
            generations: newest.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_takes_the_median_of_the_newest() {
        let time = |published: &[(u32, f64)]| {
            let mut times = PublishedTimes::default();
            for (generation, time) in published {
                times.add(*generation, *time);
            }
            times.generation_time()
        };
        let known = |seconds, generations| {
            Some(GenerationTime {
                seconds,
                generations,
            })
        };
        assert_eq!(time(&[(1, 100.0)]), None);
        assert_eq!(time(&[(1, 100.0), (2, 160.0)]), known(60.0, 1));
        // A pause for a night, a lost line of a generation, and a generation that was trained twice.
        let run = [
            (1, 0.0),
            (2, 50.0),
            (3, 9_000.0),
            (4, 9_060.0),
            (6, 9_200.0),
        ];
        assert_eq!(time(&run), known(60.0, 4));
        let again = [(1, 0.0), (2, 50.0), (3, 90.0), (2, 130.0)];
        assert_eq!(time(&again), known(130.0, 1));
        let slow = (0..40).map(|one| (one, 1e3 * f64::from(one)));
        let fast = (40..50).map(|one| (one, 4e4 + f64::from(one)));
        let many: Vec<(u32, f64)> = slow.chain(fast).collect();
        assert_eq!(time(&many), known(1.0, GENERATIONS));
    }
}
