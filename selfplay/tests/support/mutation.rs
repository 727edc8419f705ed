//! Bad input by chance: samples with some changes.

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Samples with some changes, without end.
pub(crate) struct Mutations<'a> {
    samples: &'a [&'a str],
    rng: ChaCha8Rng,
}

impl<'a> Mutations<'a> {
    /// Those of one or more samples that a seed determines.
    pub(crate) fn new(samples: &'a [&'a str], seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self { samples, rng }
    }

    /// A sample as it is.
    pub(crate) fn sample(&mut self) -> &'a str {
        self.samples.choose(&mut self.rng).unwrap()
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.rng.random_range(0..limit)
    }

    /// A sample with one to three changes: a byte replaced, removed or doubled, a part repeated many times, or the rest of another sample.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.sample().as_bytes().to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(8)).min(bytes.len());
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] = self.rng.random(),
                1 if at < bytes.len() => bytes[at] = b" 0123456789-+.nanRx{}\"=\t"[self.below(24)],
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let count = 1 << self.below(12);
                    let part = bytes[at..end].repeat(count);
                    bytes.splice(at..at, part);
                }
                4 => {
                    bytes.truncate(at);
                    let other = self.sample().as_bytes();
                    bytes.extend(&other[self.below(other.len() + 1)..]);
                }
                _ => {
                    let number = ["0", "-1", "99999999999999999999", "1e308", "nan", "0.0001"];
                    let number = number[self.below(number.len())];
                    bytes.splice(at..end, number.bytes());
                }
            }
        }
        bytes
    }
}

/// The number of cases of a test: `CASES` of the environment, else the given one.
pub(crate) fn cases(usual: usize) -> usize {
    let cases = std::env::var("CASES").ok();
    cases.map_or(usual, |cases| cases.parse().expect("CASES is a number"))
}
