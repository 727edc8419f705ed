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
    /// A search that counts by hand.
    Material,
    /// A search that knows nothing.
    Uniform,
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
            Self::Random | Self::Material | Self::Uniform => None,
        }
    }

    /// What `selfplay pit` is told: a word or a network's file. One that was rejected plays no more.
    pub(crate) fn argument(self, run: &RunDirectory) -> PathBuf {
        match self {
            Self::Network(generation) => run.network(generation),
            word => word.to_string().into(),
        }
    }
}

impl From<Anchor> for Player {
    fn from(anchor: Anchor) -> Self {
        match anchor {
            Anchor::Random => Self::Random,
            Anchor::Material => Self::Material,
            Anchor::Uniform => Self::Uniform,
            Anchor::First => Self::FIRST,
        }
    }
}

impl fmt::Display for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Material => f.write_str("material"),
            Self::Uniform => f.write_str("uniform"),
            Self::Network(generation) => write!(f, "{generation:05}"),
        }
    }
}

impl FromStr for Player {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let words = [Self::Random, Self::Material, Self::Uniform];
        if let Some(player) = words.into_iter().find(|word| word.to_string() == text) {
            return Ok(player);
        }
        let network = text.parse().map(Self::Network).map_err(|_| ())?;
        // Written back, so that each player has one name.
        if network.to_string() == text {
            Ok(network)
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
            Player::Material,
            Player::Uniform,
            Player::FIRST,
            Player::Network(123_456),
        ] {
            assert_eq!(player.to_string().parse(), Ok(player));
        }
        for name in ["7", "000007", "+0007", "Random", ""] {
            assert_eq!(name.parse::<Player>(), Err(()), "{name}");
        }
    }
}
