//! Values of the configuration: numbers that may be left to the program, and the ranges of numbers.

use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// The word for whatever fits.
const WORD: &str = "auto";

/// A number, or the word `auto` for the one that fits the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum AutoOr {
    /// Whatever fits.
    Auto,
    /// The number.
    Number(u32),
}

impl AutoOr {
    /// The number, if it is one.
    pub fn number(self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(number),
            Self::Auto => None,
        }
    }
}

impl From<AutoOr> for Value {
    fn from(value: AutoOr) -> Self {
        match value {
            AutoOr::Auto => WORD.into(),
            AutoOr::Number(number) => number.into(),
        }
    }
}

impl TryFrom<Value> for AutoOr {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = value.as_integer().and_then(|it| u32::try_from(it).ok());
        match (number, value.as_str()) {
            (Some(number), _) => Ok(Self::Number(number)),
            (None, Some(WORD)) => Ok(Self::Auto),
            _ => Err(format!(
                "invalid value: {value}, expected a whole number or \"{WORD}\""
            )),
        }
    }
}

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
        assert_eq!(
            of("12").matches.search.gumbel.candidates,
            AutoOr::Number(12)
        );
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
