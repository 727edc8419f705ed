//! The players of a run's matches.

use engine::config::PlayerSpec;
use engine::run::{RunDirectory, network_name};
use std::fmt;
use std::str::FromStr;

/// A player of a run's matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Player {
    /// Any legal step, without a search.
    Random,
    /// A search with the evaluator `material`, with so many evaluations a turn; without a number, as many as the network has.
    Material(Option<u32>),
    /// A search with the evaluator `uniform`, likewise.
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

    /// Its evaluations a turn in all matches, whatever its opponent has.
    pub(crate) fn evaluations(self) -> Option<u32> {
        match self {
            Self::Material(evaluations) | Self::Uniform(evaluations) => evaluations,
            Self::Random | Self::Network(_) => None,
        }
    }

    /// Its name in texts.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::FIRST => "the first network".to_owned(),
            Self::Network(generation) => format!("network {generation}"),
            other => other.to_string(),
        }
    }

    /// The player for `selfplay pit`. A rejected network plays no more.
    pub(crate) fn spec(self, run: &RunDirectory) -> PlayerSpec {
        let player = match self {
            Self::Network(generation) => run.network(generation).to_string_lossy().into_owned(),
            Self::Random => "random".into(),
            Self::Material(_) => "material".into(),
            Self::Uniform(_) => "uniform".into(),
        };
        PlayerSpec {
            evaluations: self.evaluations(),
            ..PlayerSpec::of(player)
        }
    }

    /// The player of an anchor of the configuration; none for an anchor that the configuration refuses.
    pub(crate) fn of_anchor(anchor: &PlayerSpec) -> Option<Self> {
        match anchor.player.as_str() {
            "random" => Some(Self::Random),
            "material" => Some(Self::Material(anchor.evaluations)),
            "uniform" => Some(Self::Uniform(anchor.evaluations)),
            "first" => Some(Self::FIRST),
            _ => None,
        }
    }
}

impl fmt::Display for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Random => f.write_str("random"),
            Self::Material(None) => f.write_str("material"),
            Self::Material(Some(evaluations)) => write!(f, "material:{evaluations}"),
            Self::Uniform(None) => f.write_str("uniform"),
            Self::Uniform(Some(evaluations)) => write!(f, "uniform:{evaluations}"),
            Self::Network(generation) => f.write_str(&network_name(generation)),
        }
    }
}

impl FromStr for Player {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (name, evaluations) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number.parse().map_err(|_| ())?)),
            None => (text, None),
        };
        let player = match name {
            "random" => Self::Random,
            "material" => Self::Material(evaluations),
            "uniform" => Self::Uniform(evaluations),
            generation => Self::Network(generation.parse().map_err(|_| ())?),
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
