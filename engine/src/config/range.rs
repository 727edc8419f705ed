//! Ranges of values.

use super::AutoOr;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Accepts the values of a range. NaN is in no range.
pub(super) fn within<T: PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl FnOnce(&T, &()) -> garde::Result {
    move |value, ()| match range.contains(value) {
        true => Ok(()),
        false => Err(out_of_range(value, range)),
    }
}

/// Accepts `auto` and the numbers of a range.
pub(super) fn auto_within(
    range: RangeInclusive<u32>,
) -> impl FnOnce(&AutoOr, &()) -> garde::Result {
    move |value, context| match value {
        AutoOr::Auto => Ok(()),
        AutoOr::Number(number) => within(range)(number, context),
    }
}

/// Accepts the even numbers of a range: matches are made of pairs of games.
pub(super) fn even_within(range: RangeInclusive<u32>) -> impl FnOnce(&u32, &()) -> garde::Result {
    move |&value, context| {
        within(range)(&value, context)?;
        match value.is_multiple_of(2) {
            true => Ok(()),
            false => Err(not_allowed(value, "an even number")),
        }
    }
}

/// The error of a value outside what is allowed. The key is added where it is known.
pub(super) fn not_allowed(value: impl Display, allowed: impl Display) -> garde::Error {
    garde::Error::new(format!("= {value} is out of range: allowed is {allowed}"))
}

fn out_of_range<T: Display>(value: &T, range: RangeInclusive<T>) -> garde::Error {
    not_allowed(value, format!("{} to {}", range.start(), range.end()))
}
