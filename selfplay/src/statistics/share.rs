//! Shares, and how much they can be trusted.

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) part: u64,
    pub(crate) whole: u64,
}

/// The 97.5% quantile of the normal distribution.
pub(super) const QUANTILE: f64 = 1.959_964;

impl Share {
    pub(crate) fn add(&mut self, other: Self) {
        self.part += other.part;
        self.whole += other.whole;
    }

    /// The share itself, 0 to 1; none of nothing.
    pub(crate) fn value(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }

    /// The 95% interval of the probability behind it (Wilson, Probable Inference, the Law of Succession, and Statistical
    /// Inference, 1927); none of nothing.
    pub(crate) fn interval(self) -> Option<[f64; 2]> {
        let share = self.value()?;
        let count = self.whole as f64;
        let square = QUANTILE * QUANTILE;
        let middle = share + square / (2.0 * count);
        let width =
            QUANTILE * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
        let scale = 1.0 + square / count;
        Some([middle - width, middle + width].map(|end| (end / scale).clamp(0.0, 1.0)))
    }
}

/// A mean; none of nothing.
pub(crate) fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: [f64; 2], expected: [f64; 2]) -> bool {
        let pairs = found.into_iter().zip(expected);
        pairs
            .map(|(found, expected)| (found - expected).abs())
            .all(|difference| difference < 1e-4)
    }

    /// By hand: `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)`.
    #[test]
    fn intervals_are_those_of_the_formula() {
        let interval = |part, whole| Share { part, whole }.interval().unwrap();
        assert!(close(interval(5, 10), [0.2366, 0.7634]));
        assert!(close(interval(0, 10), [0.0, 0.2775]));
        assert!(close(interval(10, 10), [0.7225, 1.0]));
        assert!(close(interval(60, 100), [0.5020, 0.6906]));
    }

    #[test]
    fn there_is_no_share_of_nothing() {
        let nothing = Share::default();
        assert_eq!((nothing.value(), nothing.interval()), (None, None));
        assert_eq!(mean(0.0, 0), None);
        assert_eq!(mean(3.0, 2), Some(1.5));
    }
}
