//! Values of the configuration: those that may be left to the program, and the ranges of numbers.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// The most evaluations of a turn.
pub const MAX_EVALUATIONS: u32 = 10_000_000;

/// The word for whatever fits.
const WORD: &str = "auto";

/// A value, or the word `auto` for the one that fits the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
#[serde(bound = "T: AutoValue")]
pub enum AutoOr<T: Copy = u32> {
    /// Whatever fits.
    Auto,
    /// The value.
    Fixed(T),
}

/// A value that may be left to the program.
pub trait AutoValue: Copy + Serialize + DeserializeOwned {
    /// What the value may be, besides `auto`.
    const ALLOWED: &str;
}

impl AutoValue for u32 {
    const ALLOWED: &str = "a whole number";
}

impl<T: Copy> AutoOr<T> {
    /// The value, if it is fixed.
    pub fn fixed(self) -> Option<T> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Auto => None,
        }
    }
}

impl<T: AutoValue> From<AutoOr<T>> for Value {
    fn from(value: AutoOr<T>) -> Self {
        let fixed = value.fixed().and_then(|it| Value::try_from(it).ok());
        fixed.unwrap_or_else(|| WORD.into())
    }
}

impl<T: AutoValue> TryFrom<Value> for AutoOr<T> {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if value.as_str() == Some(WORD) {
            return Ok(Self::Auto);
        }
        let fixed = T::deserialize(value.clone()).map(Self::Fixed);
        fixed.map_err(|_| {
            format!(
                "invalid value: {value}, expected {} or \"{WORD}\"",
                T::ALLOWED
            )
        })
    }
}

/// Accepts the values of a range. NaN is in no range.
pub(super) fn within<T: PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl FnOnce(&T, &()) -> garde::Result {
    move |value, ()| {
        if range.contains(value) {
            Ok(())
        } else {
            Err(out_of_range(value, range))
        }
    }
}

/// Accepts `auto` and the numbers of a range.
pub(super) fn auto_within(
    range: RangeInclusive<u32>,
) -> impl FnOnce(&AutoOr, &()) -> garde::Result {
    move |value, context| match value {
        AutoOr::Auto => Ok(()),
        AutoOr::Fixed(number) => within(range)(number, context),
    }
}

/// Accepts the even numbers of a range: matches are made of pairs of games.
pub(super) fn even_within(range: RangeInclusive<u32>) -> impl FnOnce(&u32, &()) -> garde::Result {
    move |&value, context| {
        within(range)(&value, context)?;
        if value.is_multiple_of(2) {
            Ok(())
        } else {
            Err(not_allowed(value, "an even number"))
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

/// The TOML value that a text is, or else the text.
pub(super) fn value_of(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .filter(|parsed| parsed.len() == 1)
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn numbers_and_auto_are_read_and_written() {
        let of = |value: &str| {
            let setting = format!("match.search.gumbel.candidates={value}");
            Config::default().with(&setting).unwrap()
        };
        assert_eq!(of("12").matches.search.gumbel.candidates, AutoOr::Fixed(12));
        assert_eq!(of("auto").matches.search.gumbel.candidates, AutoOr::Auto);
        for config in [of("12"), of("auto")] {
            assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_is_allowed() {
        for value in ["many", "-3", "1.5", "true", "5000000000"] {
            let setting = format!("match.search.gumbel.candidates={value}");
            let message = Config::default().with(&setting).unwrap_err().to_string();
            assert!(message.contains(&setting), "{message}");
            assert!(
                message.contains("expected a whole number or \"auto\""),
                "{message}"
            );
        }
    }
}
