//! Numbers that may be left to the program.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The word for whatever fits.
const WORD: &str = "auto";

/// A number, or the word `auto` for the one that fits the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Serialize for AutoOr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str(WORD),
            Self::Number(number) => serializer.serialize_u32(*number),
        }
    }
}

// By hand: derived for an untagged enum, the error would not say what is allowed.
impl<'de> Deserialize<'de> for AutoOr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrWord)
    }
}

struct NumberOrWord;

impl Visitor<'_> for NumberOrWord {
    type Value = AutoOr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number or \"{WORD}\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<AutoOr, E> {
        let fault = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u32::try_from(number).map(AutoOr::Number).map_err(fault)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<AutoOr, E> {
        let fault = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
        u32::try_from(number).map(AutoOr::Number).map_err(fault)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<AutoOr, E> {
        if word == WORD {
            Ok(AutoOr::Auto)
        } else {
            Err(E::invalid_value(Unexpected::Str(word), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn numbers_and_the_word_are_taken_and_written_alike() {
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
