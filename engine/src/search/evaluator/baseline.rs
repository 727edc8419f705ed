//! The evaluators that know nothing of the game.

use super::{Evaluations, Evaluator, EvaluatorError, Query};
use crate::encoding::{LegalMask, encode};
use arimaa::rules::mix_key;
use std::hint::black_box;

/// Knows nothing: every legal action is as likely as any other, and both sides win as often.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uniform;

impl Evaluator for Uniform {
    fn name(&self) -> &str {
        "uniform"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            let count = query.legal.count();
            out.push(0.5, std::iter::repeat_n(1.0 / count as f32, count));
        }
        Ok(())
    }
}

/// Computes everything that a network would be given, the input row and the legal mask, and then answers with numbers drawn from the
/// step state's key. It plays nothing sensible: it is there to measure everything of self-play but the network.
///
/// Its priors are far from equal and its values near 1/2, as a network's are. With equal ones a search would spread out at the
/// root and hardly ever go deep, which is not what a search with a network costs.
#[derive(Debug, Clone, Default)]
pub struct Null {
    /// The weights of one query's actions.
    weights: Vec<f32>,
}

/// How likely the most likely actions are against the others: their weight is this, that of the least likely about 1.
const HIGHEST_WEIGHT: f32 = 32.0;

impl Evaluator for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            black_box(encode(&query.state, query.repetitions));
            let mask = black_box(LegalMask::new(&query.legal, query.side()));
            let key = query.state.key();
            self.weights.clear();
            self.weights.extend(mask.indices().map(|index| {
                let share = unit(mix_key(key ^ index as u64));
                // One over a number drawn evenly: few actions are likely and many are not.
                1.0 / (share + 1.0 / HIGHEST_WEIGHT)
            }));
            let scale = 1.0 / self.weights.iter().sum::<f32>();
            let value = 0.45 + 0.1 * unit(mix_key(!key));
            out.push(value, self.weights.iter().map(|weight| weight * scale));
        }
        Ok(())
    }
}

/// A number from 0 to below 1 out of the highest 24 of 64 bits.
fn unit(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::samples::random_states;

    #[test]
    fn its_answers_are_sound_and_those_of_a_state_always_the_same() {
        let samples = random_states(21, 500);
        let queries: Vec<_> = samples
            .iter()
            .map(|sample| Query {
                state: sample.state,
                legal: sample.legal,
                repetitions: sample.repetitions,
            })
            .collect();
        let mut together = Evaluations::default();
        Null::default().evaluate(&queries, &mut together).unwrap();
        let (mut alone, mut peaked) = (Evaluations::default(), 0);
        let mut null = Null::default();
        for (index, query) in queries.iter().enumerate() {
            let answer = together.get(index).unwrap();
            answer.check("null", query).unwrap();
            null.evaluate(&[*query], &mut alone).unwrap();
            assert_eq!(alone.get(0), Some(answer));
            let even = 1.0 / answer.priors.len() as f32;
            peaked += usize::from(answer.priors.iter().any(|&prior| prior > 3.0 * even));
        }
        assert!(peaked > 250, "{peaked}");
    }
}
