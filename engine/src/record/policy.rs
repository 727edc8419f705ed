//! Policy targets as whole numbers.

/// The sum of a recorded policy target.
pub const POLICY_TOTAL: u32 = u16::MAX as u32;

/// Why numbers are no policy.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// One of them is negative, infinite or no number.
    #[error("share {index} of the policy is {share}")]
    Share {
        /// Which one, from 0.
        index: usize,
        /// What it is.
        share: f32,
    },
    /// They are all 0, or there are none.
    #[error("the shares of a policy of {count} actions sum to {sum}")]
    Sum {
        /// How many there are.
        count: usize,
        /// Their sum.
        sum: f64,
    },
}

/// Scales shares of any sum (visits, probabilities) to whole numbers that sum to [`POLICY_TOTAL`] exactly, by largest
/// remainders: each number differs from its exact share by less than 1, and a share of 0 stays 0. Of equal remainders the
/// earlier is rounded up.
///
/// ```
/// use engine::record::quantize_policy;
/// assert_eq!(quantize_policy(&[1.0, 1.0, 0.0])?, [32_768, 32_767, 0]);
/// # Ok::<(), engine::record::PolicyError>(())
/// ```
pub fn quantize_policy(shares: &[f32]) -> Result<Vec<u16>, PolicyError> {
    if let Some(index) = shares
        .iter()
        .position(|share| !share.is_finite() || *share < 0.0)
    {
        let share = shares[index];
        return Err(PolicyError::Share { index, share });
    }
    let sum: f64 = shares.iter().map(|&share| f64::from(share)).sum();
    if sum <= 0.0 {
        let count = shares.len();
        return Err(PolicyError::Sum { count, sum });
    }
    let exact = |index: usize| f64::from(shares[index]) / sum * f64::from(POLICY_TOTAL);
    let mut policy: Vec<u16> = (0..shares.len()).map(|index| exact(index) as u16).collect();
    let given: u32 = policy.iter().map(|&part| u32::from(part)).sum();
    let mut by_remainder: Vec<usize> = (0..shares.len())
        .filter(|&index| shares[index] > 0.0)
        .collect();
    let remainder = |index: usize| exact(index) - f64::from(policy[index]);
    by_remainder.sort_by(|&a, &b| remainder(b).total_cmp(&remainder(a)));
    let missing = POLICY_TOTAL.saturating_sub(given) as usize;
    for index in by_remainder.into_iter().cycle().take(missing) {
        policy[index] += 1;
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_shares_sum_exactly_and_stay_close(
            mut shares in prop::collection::vec(prop_oneof![Just(0.0), 1e-30f32..1e30, 0.0f32..100.0], 1..250),
            certain in 1e-3f32..10.0,
        ) {
            shares.push(certain);
            let policy = quantize_policy(&shares).unwrap();
            prop_assert_eq!(policy.len(), shares.len());
            prop_assert_eq!(policy.iter().map(|&part| u32::from(part)).sum::<u32>(), POLICY_TOTAL);
            let sum: f64 = shares.iter().map(|&share| f64::from(share)).sum();
            for (&part, &share) in policy.iter().zip(&shares) {
                let exact = f64::from(share) / sum * f64::from(POLICY_TOTAL);
                prop_assert!((f64::from(part) - exact).abs() < 1.0 + 1e-6, "{} for {}", part, exact);
                prop_assert!(share > 0.0 || part == 0);
            }
        }
    }

    #[test]
    fn the_largest_remainders_are_rounded_up() {
        // Exactly 9362.14, 18724.29, 37448.57.
        assert_eq!(
            quantize_policy(&[1.0, 2.0, 4.0]).unwrap(),
            [9_362, 18_724, 37_449]
        );
        assert_eq!(quantize_policy(&[0.0, 1e-30]).unwrap(), [0, 65_535]);
        assert_eq!(quantize_policy(&[7.0]).unwrap(), [65_535]);
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for share in [-1.0, f32::NAN, f32::INFINITY] {
            assert!(matches!(
                quantize_policy(&[1.0, share]),
                Err(PolicyError::Share { index: 1, .. })
            ));
        }
        for shares in [&[][..], &[0.0, 0.0]] {
            assert!(matches!(
                quantize_policy(shares),
                Err(PolicyError::Sum { .. })
            ));
        }
    }
}
