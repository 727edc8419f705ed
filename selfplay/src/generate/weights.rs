//! What a game's rows weigh in training.

use engine::record::TurnRecord;

/// Weights are kept in steps of one over this: round numbers compress better.
const STEPS: f64 = 4_096.0;

/// Gives a share of the game's weight to its rows by how much they surprise, and leaves the sum as it is, but for rounding (policy surprise weighting:
/// Wu, KataGo's methods). With weights bᵢ until then, surprises kᵢ = KL(search policy ‖ prior) and the share s,
///
/// `wᵢ = (1 - s) bᵢ + s Σb · bᵢkᵢ / Σ(b k)`.
///
/// Where nothing surprises, nothing changes.
pub(crate) fn weigh_by_surprise(turns: &mut [TurnRecord], share: f32) {
    let (mut weight, mut surprise) = (0.0, 0.0);
    for row in turns.iter().flat_map(|turn| &turn.rows) {
        weight += f64::from(row.weight);
        surprise += f64::from(row.weight) * f64::from(row.surprise);
    }
    if share <= 0.0 || surprise <= 0.0 {
        return;
    }
    let share = f64::from(share);
    for row in turns.iter_mut().flat_map(|turn| &mut turn.rows) {
        let by_surprise = weight * f64::from(row.surprise) / surprise;
        let weight = f64::from(row.weight) * (1.0 - share + share * by_surprise);
        row.weight = ((weight * STEPS).round() / STEPS) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::record::{RowRecord, TurnOrigin};

    /// A turn with rows of these weights and surprises.
    fn turn(rows: &[(f32, f32)]) -> TurnRecord {
        let row = |(step, &(weight, surprise)): (u8, &(f32, f32))| RowRecord {
            step,
            visits: 1,
            policy: vec![u16::MAX],
            surprise,
            weight,
        };
        TurnRecord {
            actions: Vec::new(),
            origin: TurnOrigin::Given,
            rows: (0..).zip(rows).map(row).collect(),
        }
    }

    fn weighed(share: f32, turns: &[TurnRecord]) -> Vec<f32> {
        let mut turns = turns.to_vec();
        weigh_by_surprise(&mut turns, share);
        let rows = turns.iter().flat_map(|turn| &turn.rows);
        rows.map(|row| row.weight).collect()
    }

    #[test]
    fn a_share_goes_by_surprise_and_the_sum_stays() {
        let turns = [turn(&[(1.0, 0.0), (1.0, 3.0)]), turn(&[(0.5, 1.0)])];
        assert_eq!(weighed(0.0, &turns), [1.0, 1.0, 0.5]);
        // Σb = 2.5 and Σbk = 3.5.
        let by_surprise = [0.0, 2.5 * 3.0 / 3.5, 0.5 * 2.5 / 3.5];
        for (share, expected) in [
            (1.0, by_surprise),
            (
                0.5,
                [
                    0.5,
                    (1.0 + by_surprise[1]) / 2.0,
                    (0.5 + by_surprise[2]) / 2.0,
                ],
            ),
        ] {
            let weights = weighed(share, &turns);
            for (weight, expected) in weights.iter().zip(expected) {
                assert!((weight - expected).abs() < 2e-4, "{weights:?}");
            }
            assert!((weights.iter().sum::<f32>() - 2.5).abs() < 5e-4);
        }
    }

    #[test]
    fn without_a_surprise_nothing_changes() {
        let turns = [
            turn(&[(1.0, 0.0), (0.3, 0.0)]),
            turn(&[]),
            turn(&[(0.0, 2.0)]),
        ];
        assert_eq!(weighed(0.5, &turns), [1.0, 0.3, 0.0]);
        assert!(weighed(0.5, &[]).is_empty());
    }
}
