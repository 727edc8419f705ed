//! The openings of a match: checked before the first game, and sampled if a player samples them.

use super::folder::{MatchFolder, OPENINGS};
use super::plan::{OpeningsKind, OpeningsPlan, is_gpu};
use super::player::Defaults;
use super::record::{OWN_SETUPS, hash_of};
use super::sampling::{draw_openings, random_opening};
use super::spec::{MatchSpec, OpeningsSpec, SpecOrigin};
use crate::openings::{MAX_BYTES, read_openings};
use crate::worker::player::{Player, PlayerName};
use anyhow::{Context, Result, bail, ensure};
use arimaa::notation::{RecordReader, format_record};
use arimaa::rules::Game;
use engine::files::read_whole;
use engine::progress::say;
use engine::stop::Stop;
use std::path::Path;

/// Turns of the setups.
const SETUP_TURNS: u32 = 2;

/// The openings of a match: pair k of each pairing has opening k. Listed openings repeat from the first.
#[derive(Debug)]
pub(super) enum Openings {
    /// The empty board.
    Own,
    /// Random setups and random turns, drawn when they are needed.
    Random {
        /// The seed that determines them.
        seed: u64,
        /// Turns after the setups.
        turns: u32,
    },
    /// Given openings.
    Listed {
        /// One at least.
        openings: Vec<Opening>,
        /// Their name: of a file, or of the player that sampled them.
        name: String,
    },
}

/// A given opening.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opening {
    game: Game,
    /// Its line in the file of openings, if it is from one.
    line: Option<usize>,
}

impl Openings {
    /// Reads a file of openings; none may be over, or reach the turn limit. `what` names the file in errors.
    fn read(path: &Path, what: &str, max_turns: usize) -> Result<Self> {
        let written = read_openings(path, what)?;
        let mut openings = Vec::with_capacity(written.len());
        for written in written {
            let place = format!("{what}: line {}", written.line);
            let over = "the game is over at the end of the opening";
            if let Some(outcome) = written.game.outcome() {
                bail!("{place}: {over}: {outcome}");
            }
            if let Some(conclusion) = written.conclusion {
                bail!("{place}: {over}: {} wins", conclusion.winner());
            }
            let turns = written.game.turns().len();
            ensure!(
                turns < max_turns,
                "{place}: the opening has {turns} turns, and games end after {max_turns}"
            );
            openings.push(Opening {
                game: written.game,
                line: Some(written.line),
            });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self::Listed {
            openings,
            name: name.into_owned(),
        })
    }

    /// The opening of a pair as a game.
    pub(super) fn game(&self, pair: u64) -> Result<Game> {
        match self {
            Self::Own => Ok(Game::new()),
            Self::Random { seed, turns } => random_opening(*seed, pair, *turns),
            Self::Listed { openings, .. } => Ok(listed(openings, pair).game.clone()),
        }
    }

    /// The opening of a pair as records state it.
    pub(super) fn describe(&self, pair: u64) -> String {
        match self {
            Self::Own => OWN_SETUPS.into(),
            Self::Random { turns: 0, .. } => format!("{pair}, random setups"),
            Self::Random { turns, .. } => format!("{pair}, random setups and {turns} random turns"),
            Self::Listed { openings, name } => match listed(openings, pair).line {
                Some(line) => format!("{name}, line {line}"),
                None => format!("{pair}, {name}"),
            },
        }
    }
}

fn listed(openings: &[Opening], pair: u64) -> &Opening {
    &openings[(pair % openings.len() as u64) as usize]
}

impl Opening {
    fn drawn(game: Game) -> Self {
        Self { game, line: None }
    }
}

/// The openings of a match before it has a folder.
#[derive(Debug)]
pub(super) enum OpeningSource {
    /// They are known, or depend only on the seed.
    Known(Openings),
    /// A player samples them.
    Sampled {
        by: Box<Player>,
        /// Turns after the setups.
        turns: u32,
    },
}

impl OpeningSource {
    /// Checks the requested openings, and resolves them for the match's folder.
    pub(super) fn new(
        spec: &MatchSpec,
        origin: &SpecOrigin,
        defaults: Defaults,
        max_turns: u32,
    ) -> Result<(Self, OpeningsPlan)> {
        match &spec.openings {
            OpeningsSpec::Own => {
                let plan = OpeningsPlan {
                    from: OpeningsKind::Own,
                    ..OpeningsPlan::default()
                };
                Ok((Self::Known(Openings::Own), plan))
            }
            OpeningsSpec::File(path) => {
                let what = format!("{} {}", origin.key("openings"), path.display());
                let openings = Openings::read(path, &what, max_turns as usize)?;
                let text = read_whole(path, MAX_BYTES).with_context(|| what.clone())?;
                let plan = OpeningsPlan {
                    from: OpeningsKind::File,
                    file: Some(path.display().to_string()),
                    hash: Some(hash_of(&String::from_utf8_lossy(&text))),
                    ..OpeningsPlan::default()
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
            from: OpeningsKind::Sampled,
            turns,
            ..OpeningsPlan::default()
        };
        Ok(match name {
            None | Some(Ok(PlayerName::Random)) => {
                (Self::Known(Openings::Random { seed, turns }), plan)
            }
            Some(Err(never)) => match never {},
            Some(Ok(name)) => {
                let by = Player::open(&name, defaults.devices);
                let by = by.with_context(|| origin.key("opening_player"))?;
                let device = defaults.devices.to_string();
                let plan = OpeningsPlan {
                    sampled_by: Some(by.identity().to_owned()),
                    gpus: is_gpu(&device).then_some(device),
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

    /// The openings of all pairs. Those that a player samples are kept in the match's folder for a resumed match. None if a stop is
    /// requested while they are sampled.
    pub(super) fn open(
        self,
        folder: &MatchFolder,
        seed: u64,
        pairs: u64,
        threads: usize,
        stop: &Stop,
    ) -> Result<Option<Openings>> {
        let (by, turns) = match self {
            Self::Known(openings) => return Ok(Some(openings)),
            Self::Sampled { by, turns } => (by, turns),
        };
        let mut openings = match folder.openings()? {
            Some(text) => {
                let path = folder.path().join(OPENINGS);
                read_drawn(&text).with_context(|| format!("can't read {}", path.display()))?
            }
            None => Vec::new(),
        };
        let known = openings.len() as u64;
        if known < pairs {
            say(&format!(
                "{} draws {} openings",
                by.short_name(),
                pairs - known
            ));
            let drawn = draw_openings(&by, seed, turns, known..pairs, threads, stop)?;
            let Some(drawn) = drawn else { return Ok(None) };
            openings.extend(drawn.into_iter().map(Opening::drawn));
            folder.keep_openings(&format_drawn(&openings))?;
        }
        let name = format!("random setups and {turns} turns by {}", by.short_name());
        Ok(Some(Openings::Listed { openings, name }))
    }
}

/// Drawn openings as text for [`read_drawn`].
fn format_drawn(openings: &[Opening]) -> String {
    let mut text = String::new();
    for (pair, opening) in openings.iter().enumerate() {
        let record = format_record(&opening.game);
        text.push_str(&format!("# opening {pair}\n{record}\n"));
    }
    text
}

/// Reads drawn openings, one at least.
fn read_drawn(text: &str) -> Result<Vec<Opening>> {
    let games = RecordReader::new(text.as_bytes());
    let openings = games.map(|written| written.map(|written| Opening::drawn(written.game)));
    let openings = openings.collect::<Result<Vec<_>, _>>()?;
    ensure!(!openings.is_empty(), "it holds no opening");
    Ok(openings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::devices::Devices;
    use crate::worker::player::PlayerName;
    use network::{Device, Precision};
    use std::fs;

    #[test]
    fn random_openings_depend_on_seed_and_pair_alone() {
        let openings = |seed, turns| Openings::Random { seed, turns };
        let game = |seed, turns, pair| openings(seed, turns).game(pair).unwrap();
        assert_eq!(game(9, 6, 3), game(9, 6, 3));
        assert_eq!(game(9, 6, 3).turns().len(), 8);
        assert_eq!(game(9, 6, 3).turns()[..2], *game(9, 0, 3).turns());
        assert_ne!(game(9, 0, 3), game(9, 0, 4));
        assert_ne!(game(9, 0, 3), game(8, 0, 3));
        assert!((0..200).all(|pair| game(1, 40, pair).outcome().is_none()));
        assert_eq!(Openings::Own.game(3).unwrap(), Game::new());
    }

    #[test]
    fn drawn_openings_are_the_same_on_any_number_of_threads() {
        let place = Devices::of(vec![Device::Cpu], Precision::Fp32);
        let player = Player::open(&PlayerName::Material, &place).unwrap();
        let draw = |pairs, threads| {
            let drawn = draw_openings(&player, 5, 3, pairs, threads, &Stop::default());
            let drawn = drawn.unwrap().unwrap().into_iter();
            drawn.map(Opening::drawn).collect::<Vec<_>>()
        };
        let one = draw(0..7, 1);
        assert_eq!(one, draw(0..7, 2));
        assert_eq!(one[4..], draw(4..7, 1));
        assert!(one.iter().all(|opening| opening.game.turns().len() == 5));
        assert_ne!(one[0], one[1]);
        assert_eq!(read_drawn(&format_drawn(&one)).unwrap(), one);
        assert!(read_drawn("").is_err());
    }

    #[test]
    fn openings_of_a_file_repeat_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.txt");
        let games: Vec<Game> = (0..2)
            .map(|pair| random_opening(1, pair, 2).unwrap())
            .collect();
        let position = *games[0].position();
        let text = format!("{}\n# next\n{}\n{position}\n", games[0], games[1]);
        fs::write(&path, text).unwrap();
        let openings = Openings::read(&path, "--openings o.txt", 400).unwrap();
        let game = |pair| openings.game(pair).unwrap();
        assert_eq!([game(0), game(1)], games[..]);
        assert_eq!(game(2), Game::from_position(position));
        assert_eq!((game(3), game(5)), (game(0), game(2)));
        assert_eq!(openings.describe(4), "o.txt, line 7");
        let error = Openings::read(&path, "--openings o.txt", 4).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("--openings o.txt: line 1: the opening has 4 turns")
        );
    }

    #[test]
    fn openings_that_are_over_are_named_by_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.txt");
        let good = random_opening(1, 0, 2).unwrap();
        let position = |pieces: &[(usize, char)]| {
            let mut squares = [' '; 64];
            for &(square, piece) in pieces {
                squares[square] = piece;
            }
            format!("g [{}]\n", squares.iter().collect::<String>())
        };
        // Squares count from a8: 8 is a7.
        let goal = position(&[(8, 'R'), (31, 'r'), (36, 'E')]) + "2g Ra7n\n";
        let over = position(&[(3, 'R'), (31, 'r')]);
        for (text, part) in [
            (
                format!("{good}\n3g resigns\n"),
                "line 1: the game is over at the end of the opening: Silver wins",
            ),
            (
                goal,
                "line 1: the game is over at the end of the opening: Gold wins by goal",
            ),
            (format!("\n{over}"), "line 2"),
            (String::new(), "neither a position nor a game"),
        ] {
            fs::write(&path, &text).unwrap();
            let error = Openings::read(&path, "--openings o.txt", 400).unwrap_err();
            let message = format!("{error:#}");
            assert!(
                message.starts_with("--openings o.txt") && message.contains(part),
                "{text}: {message}"
            );
        }
    }
}
