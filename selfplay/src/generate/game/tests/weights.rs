//! Weights by surprise.

use super::*;

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
fn a_share_is_distributed_by_surprise_and_the_sum_stays() {
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
