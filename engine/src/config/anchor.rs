//! Opponents that stay the same.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An opponent that stays the same, so that strength is measured on one scale. As text: `random`, `material:200`, `uniform`, `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Anchor {
    /// Any legal step, without a search.
    Random,
    /// A search that counts pieces, traps and rabbits on their way by hand, with so many evaluations a turn: without a number, as
    /// many as the network that it plays against.
    Material(Option<u32>),
    /// A search that knows nothing, likewise.
    Uniform(Option<u32>),
    /// The run's first network.
    First,
}

/// The most evaluations a turn.
const MOST: u32 = 10_000_000;

impl Anchor {
    /// With the evaluations a turn that it has in matches of so many.
    pub(super) fn with_evaluations(self, evaluations: u32) -> Self {
        match self {
            Self::Material(own) => Self::Material(own.or(Some(evaluations))),
            Self::Uniform(own) => Self::Uniform(own.or(Some(evaluations))),
            Self::Random | Self::First => self,
        }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, evaluations) = match self {
            Self::Random => ("random", None),
            Self::Material(evaluations) => ("material", *evaluations),
            Self::Uniform(evaluations) => ("uniform", *evaluations),
            Self::First => ("first", None),
        };
        f.write_str(name)?;
        evaluations.map_or(Ok(()), |evaluations| write!(f, ":{evaluations}"))
    }
}

impl FromStr for Anchor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let evaluations = || match number.map(str::parse) {
            None => Ok(None),
            Some(Ok(evaluations @ 1..=MOST)) => Ok(Some(evaluations)),
            Some(_) => Err(format!(
                "loop.anchors: `{text}`: evaluations a turn are a number from 1 to {MOST}"
            )),
        };
        match (name, number) {
            ("material", _) => evaluations().map(Self::Material),
            ("uniform", _) => evaluations().map(Self::Uniform),
            ("random", None) => Ok(Self::Random),
            ("first", None) => Ok(Self::First),
            ("random", _) => Err(format!(
                "loop.anchors: `{text}`: random does not search, it has no evaluations"
            )),
            ("first", _) => Err(format!(
                "loop.anchors: `{text}`: the first network has as many evaluations as the others"
            )),
            _ => Err(format!(
                "loop.anchors: there is no anchor `{text}`: random, first, material, uniform, and with evaluations a turn \
                 material:200, uniform:200"
            )),
        }
    }
}

impl TryFrom<String> for Anchor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Anchor> for String {
    fn from(anchor: Anchor) -> Self {
        anchor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn anchors_are_written_as_they_are_read() {
        let text = r#"["random", "first", "material", "material:200", "uniform:64"]"#;
        let config = Config::default().with(&format!("loop.anchors={text}"));
        let config = config.unwrap();
        assert_eq!(
            config.training_loop.anchors,
            [
                Anchor::Random,
                Anchor::First,
                Anchor::Material(None),
                Anchor::Material(Some(200)),
                Anchor::Uniform(Some(64))
            ]
        );
        assert!(config.to_toml().contains(&format!("anchors = {text}")));
        assert!(config.validate().is_ok());
    }

    #[test]
    fn what_is_no_anchor_is_named_with_its_key() {
        for (anchor, part) in [
            ("materiel", "there is no anchor"),
            ("material:", "a number from 1"),
            ("material:0", "a number from 1"),
            ("material:-3", "a number from 1"),
            ("uniform:99999999999", "a number from 1"),
            ("random:5", "does not search"),
            ("first:5", "as many evaluations"),
            ("", "there is no anchor"),
        ] {
            let set = Config::default().with(&format!("loop.anchors=[\"{anchor}\"]"));
            let message = set.unwrap_err().to_string();
            for part in ["loop.anchors", &format!("`{anchor}`"), part] {
                assert!(message.contains(part), "{anchor}: {message}");
            }
        }
    }
}
