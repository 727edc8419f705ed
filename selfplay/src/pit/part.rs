//! A part of a match's games, which several machines play.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The most parts.
const MAX_PARTS: u32 = 100_000;

/// Part `number` of `of`: every `of`-th pair of games, in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// From 1.
    number: u32,
    of: u32,
}

impl Part {
    /// Whether it has a game, by the game's number. The games of a pair are in one part.
    pub(super) fn has(self, game: u64) -> bool {
        game / 2 % u64::from(self.of) == u64::from(self.number) - 1
    }

    /// What distinguishes the name of its folder from that of the whole match.
    pub(super) fn suffix(self) -> String {
        format!(".part-{}-of-{}", self.number, self.of)
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let numbers =
            numbers.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) && of <= MAX_PARTS => {
                Ok(Self { number, of })
            }
            _ => Err(format!(
                "expected K/N, as 2/4, with K from 1 to N and N up to {MAX_PARTS}"
            )),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_games_is_in_one_part() {
        let parts: Vec<Part> = (1..=3)
            .map(|number| format!("{number}/3").parse().unwrap())
            .collect();
        for pair in 0..10 {
            let has = |part: &&Part| {
                let both = [2 * pair, 2 * pair + 1].map(|game| part.has(game));
                assert_eq!(both[0], both[1]);
                both[0]
            };
            assert_eq!(parts.iter().filter(has).count(), 1, "{pair}");
        }
        let whole: Part = "1/1".parse().unwrap();
        assert!((0..10).all(|game| whole.has(game)));
    }

    #[test]
    fn wrong_parts_are_refused() {
        for text in [
            "", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "1/100001",
        ] {
            assert!(text.parse::<Part>().unwrap_err().contains("K/N"), "{text}");
        }
        assert_eq!("3/3".parse::<Part>().unwrap().to_string(), "3/3");
    }
}
