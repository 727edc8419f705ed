//! The openings of a match: what is requested, checked before the first game, and sampled where a player samples them.

use super::folder::MatchFolder;
use super::opening::{Openings, draw, format_drawn, read_drawn};
use super::plan::OpeningsPlan;
use super::player::Defaults;
use super::result::hash_of;
use super::spec::{MatchSpec, OpeningsSpec, SpecOrigin};
use crate::worker::player::{Player, PlayerName};
use anyhow::{Context, Result, bail, ensure};
use engine::progress::say;
use engine::run::write_file;

/// Turns of the setups.
const SETUP_TURNS: u32 = 2;

/// The openings of a match before there is a folder.
#[derive(Debug)]
pub(super) enum OpeningSource {
    /// They are known, or follow from the seed.
    Known(Openings),
    /// A player is to sample them.
    Sampled {
        by: Box<Player>,
        /// Turns behind the setups.
        turns: u32,
    },
}

impl OpeningSource {
    /// Checks the openings that are requested, and what is kept of them.
    pub(super) fn new(
        spec: &MatchSpec,
        origin: &SpecOrigin,
        defaults: Defaults,
        max_turns: u32,
    ) -> Result<(Self, OpeningsPlan)> {
        match &spec.openings {
            OpeningsSpec::Own => Ok((Self::Known(Openings::Own), plan("own"))),
            OpeningsSpec::File(path) => {
                let what = format!("{} {}", origin.key("openings"), path.display());
                let openings = Openings::read(path, &what, max_turns as usize)?;
                let text = std::fs::read(path).with_context(|| what.clone())?;
                let plan = OpeningsPlan {
                    file: Some(path.display().to_string()),
                    hash: Some(hash_of(&String::from_utf8_lossy(&text))),
                    ..plan("file")
                };
                Ok((Self::Known(openings), plan))
            }
            OpeningsSpec::Sampled => Self::sampled(spec, origin, defaults, max_turns),
        }
    }

    fn sampled(
        spec: &MatchSpec,
        origin: &SpecOrigin,
        defaults: Defaults,
        max_turns: u32,
    ) -> Result<(Self, OpeningsPlan)> {
        let (seed, turns) = (spec.seed, spec.opening_turns);
        ensure!(
            SETUP_TURNS + turns < max_turns,
            "{} = {turns}: games end after {max_turns} turns",
            origin.key("opening_turns")
        );
        let name = spec.opening_player.as_deref().map(str::parse::<PlayerName>);
        let plan = OpeningsPlan {
            turns,
            ..plan("sampled")
        };
        Ok(match name {
            None | Some(Ok(PlayerName::Random)) => {
                (Self::Known(Openings::Random { seed, turns }), plan)
            }
            Some(Err(never)) => match never {},
            Some(Ok(name)) => {
                let key = origin.key("opening_player");
                let by = Player::open(&name, defaults.devices).with_context(|| key.clone())?;
                if by.channel().with_context(|| key.clone())?.is_none() {
                    bail!("{key} {name}: this player has no policy to sample from");
                }
                let plan = OpeningsPlan {
                    sampled_by: Some(by.identity().to_owned()),
                    ..plan
                };
                (
                    Self::Sampled {
                        by: by.into(),
                        turns,
                    },
                    plan,
                )
            }
        })
    }

    /// The openings of so many pairs. Those that a player samples are kept in the match's folder: a match that goes on has the same.
    pub(super) fn openings(
        self,
        folder: &MatchFolder,
        seed: u64,
        pairs: u64,
        threads: usize,
    ) -> Result<Openings> {
        let (by, turns) = match self {
            Self::Known(openings) => return Ok(openings),
            Self::Sampled { by, turns } => (by, turns),
        };
        let path = folder.openings();
        let mut openings = match path.exists() {
            true => read_drawn(&path)?,
            false => Vec::new(),
        };
        let known = openings.len() as u64;
        if known < pairs {
            say(&format!(
                "{} is to draw {} openings",
                by.short_name(),
                pairs - known
            ));
            openings.extend(draw(&by, seed, turns, known..pairs, threads)?);
            write_file(&path, format_drawn(&openings).as_bytes())?;
        }
        let name = format!("random setups and {turns} turns by {}", by.short_name());
        Ok(Openings::Listed { openings, name })
    }
}

fn plan(from: &str) -> OpeningsPlan {
    OpeningsPlan {
        from: from.into(),
        ..OpeningsPlan::default()
    }
}
