//! Whom ratings are about.

use engine::config::Anchor;
use engine::run::RunDirectory;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A player of a run's matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Player {
    /// Any legal step, without a search.
    Random,
    /// A search that counts by hand, with so many evaluations a turn; without a number, with as many as the network has.
    Material(Option<u32>),
    /// A search that knows nothing, likewise.
    Uniform(Option<u32>),
    /// The network of a generation.
    Network(u32),
}

impl Player {
    /// The run's first network.
    pub(crate) const FIRST: Self = Self::Network(0);

    /// The generation, of a network.
    pub(crate) fn generation(self) -> Option<u32> {
        match self {
            Self::Network(generation) => Some(generation),
            Self::Random | Self::Material(_) | Self::Uniform(_) => None,
        }
    }

    /// The evaluations a turn that it has in all matches, whatever its opponent has.
    pub(crate) fn evaluations(self) -> Option<u32> {
        match self {
            Self::Material(evaluations) | Self::Uniform(evaluations) => evaluations,
            Self::Random | Self::Network(_) => None,
        }
    }

    /// As people call it.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::FIRST => "the first network".to_owned(),
            Self::Network(generation) => format!("network {generation}"),
            other => other.to_string(),
        }
    }

    /// What `selfplay pit` is told: a word or a network's file. One that was rejected plays no more.
    pub(crate) fn argument(self, run: &RunDirectory) -> PathBuf {
        match self {
            Self::Network(generation) => run.network(generation),
            Self::Random => "random".into(),
            Self::Material(_) => "material".into(),
            Self::Uniform(_) => "uniform".into(),
        }
    }
}

impl From<Anchor> for Player {
    fn from(anchor: Anchor) -> Self {
        match anchor {
            Anchor::Random => Self::Random,
            Anchor::Material(evaluations) => Self::Material(evaluations),
            Anchor::Uniform(evaluations) => Self::Uniform(evaluations),
            Anchor::First => Self::FIRST,
        }
    }
}

impl fmt::Display for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Random => Anchor::Random.fmt(f),
            Self::Material(evaluations) => Anchor::Material(evaluations).fmt(f),
            Self::Uniform(evaluations) => Anchor::Uniform(evaluations).fmt(f),
            Self::Network(generation) => write!(f, "{generation:05}"),
        }
    }
}

impl FromStr for Player {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let player = match text.parse() {
            // By its generation.
            Ok(Anchor::First) => return Err(()),
            Ok(anchor) => Self::from(anchor),
            Err(_) => text.parse().map(Self::Network).map_err(|_| ())?,
        };
        // Written back, so that each player has one name.
        if player.to_string() == text {
            Ok(player)
        } else {
            Err(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_player_has_one_name() {
        for player in [
            Player::Random,
            Player::Material(None),
            Player::Material(Some(200)),
            Player::Uniform(Some(64)),
            Player::FIRST,
            Player::Network(123_456),
        ] {
            assert_eq!(player.to_string().parse(), Ok(player));
        }
        for name in [
            "7",
            "000007",
            "+0007",
            "Random",
            "",
            "first",
            "material:007",
        ] {
            assert_eq!(name.parse::<Player>(), Err(()), "{name}");
        }
    }
}
