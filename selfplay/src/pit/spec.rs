//! The specification of a match: players, games, schedule, openings. One definition for the command line and for files.

use super::external_engine::TimeControl;
use super::schedule::Schedule;
use super::sprt::SprtOrder;
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use engine::config::{MAX_EVALUATIONS, PlayerSpec, SET_REPLACED};
use engine::files;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most games of a match.
const MAX_GAMES: u64 = 1_000_000;

/// The most players of a match.
const MAX_PLAYERS: usize = 100;

/// The most turns that are sampled for an opening.
const MAX_OPENING_TURNS: u32 = 40;

/// The most bytes of a match's file; a usual one has a few hundred.
const MAX_BYTES: u64 = 1 << 20;

/// A match as requested. All but the players and the turn limit are options of the command line too.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MatchSpec {
    /// Two at least
    #[arg(skip)]
    #[serde(rename = "player")]
    pub(super) players: Vec<PlayerSpec>,
    /// Number of games of each pairing; even
    // A match's file has its own: the default is never used.
    #[arg(long, value_name = "N", value_parser = even, required_unless_present_any = ["match_file", "print_config"])]
    #[arg(default_value = "2", hide_default_value = true)]
    pub(super) games: u64,
    /// Pairings of several players
    #[arg(
        long,
        value_name = "SCHEDULE",
        requires = "players",
        default_value = "round-robin"
    )]
    pub(super) schedule: Schedule,
    /// Evaluations a turn, for searches without a limit of their own
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_EVALUATIONS)))]
    pub(super) evaluations: Option<u32>,
    /// Time control of external engines: `TURN/RESERVE/PERCENT/MAX`; only TURN is required. Time left of TURN enters the reserve by
    /// PERCENT, up to MAX (a larger first reserve stays). Time beyond TURN is taken from the reserve. Examples: 2s, 15s/2m,
    /// 30s/5m/100/10m. Each worker then plays one game at a time
    #[arg(long, value_name = "CONTROL")]
    pub(super) clock: Option<TimeControl>,
    /// Where games begin: after `sampled` setups; on the empty board, so that the players set up their `own` pieces; or where the
    /// games and positions of a file end, pair k at the k-th, and again from the first
    #[arg(long, value_name = "sampled|own|FILE", default_value = "sampled")]
    pub(super) openings: OpeningsSpec,
    /// Turns after sampled setups that are sampled too
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_OPENING_TURNS)))]
    pub(super) opening_turns: u32,
    /// Player that samples opening turns: `random`, or one with a policy [default: random]
    #[arg(long, value_name = "PLAYER", requires = "opening_turns")]
    pub(super) opening_player: Option<String>,
    /// Seed of the openings and of all other randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(super) seed: u64,
    /// The turn limit, in place of the configuration's
    #[arg(skip)]
    pub(super) max_turns: Option<u32>,
    /// Stop once a sequential probability ratio test decides whether a is ELO0 (H0) or ELO1 (H1) stronger than b. It counts pairs in
    /// the order of their numbers
    #[arg(long, value_name = "ELO0,ELO1", value_parser = SprtOrder::parse, allow_hyphen_values = true)]
    pub(super) sprt: Option<SprtOrder>,
}

fn even(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(games @ 2..=MAX_GAMES) if games % 2 == 0 => Ok(games),
        _ => Err(format!(
            "a match is made of pairs of games: an even number from 2 to {MAX_GAMES}"
        )),
    }
}

/// The openings as requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(super) enum OpeningsSpec {
    /// After random setups and sampled turns.
    #[default]
    Sampled,
    /// On the empty board.
    Own,
    /// Where the games and positions of a file end.
    File(PathBuf),
}

impl From<String> for OpeningsSpec {
    fn from(text: String) -> Self {
        match text.as_str() {
            "sampled" => Self::Sampled,
            "own" => Self::Own,
            path => Self::File(path.into()),
        }
    }
}

/// The place where a match is specified, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SpecOrigin {
    /// `--a` and `--b`.
    Pair,
    /// `--players`.
    Players,
    /// `--match`.
    File(PathBuf),
}

impl SpecOrigin {
    /// The key or option of a value of the match.
    pub(super) fn key(&self, key: &str) -> String {
        match self {
            Self::Pair | Self::Players => format!("--{}", key.replace('_', "-")),
            Self::File(path) => format!("{}: {key}", path.display()),
        }
    }

    /// The key or option of the list of players.
    pub(super) fn of_players(&self) -> String {
        self.key(match self {
            Self::Pair | Self::Players => "players",
            Self::File(_) => "player",
        })
    }

    /// The key or option of a value of player `index`.
    pub(super) fn of_player(&self, index: usize, spec: &PlayerSpec, key: &str) -> String {
        let letter = if index == 0 { 'a' } else { 'b' };
        let player = match self {
            Self::Pair => format!("--{letter} {}", spec.player),
            Self::Players => format!("--players {}", spec.player),
            Self::File(path) => {
                let name = spec.name.as_deref().unwrap_or(&spec.player);
                format!("{}: player {} ({name})", path.display(), index + 1)
            }
        };
        match key {
            "player" => player,
            key => format!("{player}: {key}"),
        }
    }
}

impl MatchSpec {
    /// Reads a match's file.
    pub(super) fn load(path: &Path) -> Result<Self> {
        let what = || format!("--match {}", path.display());
        let bytes = files::read_whole(path, MAX_BYTES).with_context(what)?;
        let text = String::from_utf8(bytes).map_err(|_| anyhow!("{}: this is not text", what()))?;
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let is_old = error.message().contains("unknown field `set`");
            let hint = if is_old { SET_REPLACED } else { "" };
            anyhow!("{}: {error}{hint}", what())
        })
    }

    /// Checks all that can be checked without opening a player.
    pub(super) fn check(&self, origin: &SpecOrigin) -> Result<()> {
        let key = |name: &str| origin.key(name);
        let Self { players, games, .. } = self;
        ensure!(
            (2..=MAX_PLAYERS).contains(&players.len()),
            "{}: a match has 2 to {MAX_PLAYERS} players, not {}",
            origin.of_players(),
            players.len()
        );
        ensure!(
            *games >= 2 && games % 2 == 0,
            "{} = {games}: a match is made of pairs of games: an even number from 2 on",
            key("games")
        );
        let pairings = self.schedule.pairings(players.len()).len() as u64;
        ensure!(
            games.saturating_mul(pairings) <= MAX_GAMES,
            "{} = {games}: with {pairings} pairings these are more than {MAX_GAMES} games",
            key("games")
        );
        self.check_openings(origin)?;
        if let Some(turns) = self.max_turns {
            ensure!(
                (3..=100_000).contains(&turns),
                "{} = {turns} is out of range: allowed is 3 to 100000",
                key("max_turns")
            );
        }
        if let Some(number) = self.evaluations {
            ensure!(
                (1..=MAX_EVALUATIONS).contains(&number),
                "{} = {number} is out of range: allowed is 1 to {MAX_EVALUATIONS}",
                key("evaluations")
            );
        }
        let mut names = BTreeSet::new();
        for (index, player) in players.iter().enumerate() {
            let of = |key: &str| origin.of_player(index, player, key);
            if let Some((key, reason)) = player.out_of_range() {
                bail!("{} {reason}", of(&key));
            }
            if let Some(name) = &player.name {
                ensure!(
                    names.insert(name),
                    "{} {name}: another player has this name",
                    of("name")
                );
            }
        }
        match &self.sprt {
            Some(_) if players.len() > 2 => bail!(
                "{}: a sequential test is of two players, and here are {}",
                key("sprt"),
                players.len()
            ),
            Some(sprt) => sprt.check(&key("sprt")),
            None => Ok(()),
        }
    }

    fn check_openings(&self, origin: &SpecOrigin) -> Result<()> {
        let turns = self.opening_turns;
        ensure!(
            turns <= MAX_OPENING_TURNS,
            "{} = {turns} is out of range: allowed is 0 to {MAX_OPENING_TURNS}",
            origin.key("opening_turns")
        );
        if self.openings != OpeningsSpec::Sampled {
            ensure!(
                turns == 0,
                "{} = {turns}: only after sampled setups are turns sampled",
                origin.key("opening_turns")
            );
        }
        ensure!(
            self.opening_player.is_none() || turns > 0,
            "{}: without {} nothing is sampled by a player",
            origin.key("opening_player"),
            origin.key("opening_turns")
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Result<MatchSpec> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("m.toml");
        std::fs::write(&path, text)?;
        let spec = MatchSpec::load(&path)?;
        spec.check(&SpecOrigin::File("m.toml".into()))?;
        Ok(spec)
    }

    const TWO: &str =
        "[[player]]\nplayer = \"material\"\n[[player]]\nname = \"second\"\nplayer = \"random\"\n";

    #[test]
    fn a_file_specifies_a_whole_match() {
        let text = format!(
            "games = 4\nopenings = \"o.txt\"\nschedule = \"first-against-others\"\nseed = 3\nmax_turns = 50\n\
             sprt = {{ elo0 = 0.0, elo1 = 5.0 }}\n{TWO}temperature = 0.5\ntime = 2\nsearch.mode = \"puct\"\n"
        );
        let spec = spec(&text).unwrap();
        assert_eq!(spec.openings, OpeningsSpec::File("o.txt".into()));
        assert_eq!(spec.schedule, Schedule::FirstAgainstOthers);
        assert_eq!(spec.players[1].time, Some(2.0));
        assert_eq!(spec.players[1].search["mode"].as_str(), Some("puct"));
        let sprt = spec.sprt.unwrap();
        assert_eq!((sprt.alpha, sprt.beta), (0.05, 0.05));
    }

    #[test]
    fn faults_are_named_with_file_and_key() {
        for (text, parts) in [
            (
                format!("games = 3\n{TWO}"),
                vec!["m.toml: games = 3", "even number"],
            ),
            (
                format!("games = 2\nround = 1\n{TWO}"),
                vec!["m.toml", "line 2", "round"],
            ),
            (
                format!("games = 2\n{TWO}evaluations = 0\n"),
                vec!["m.toml: player 2 (second): evaluations = 0"],
            ),
            (
                format!("games = 2\n{TWO}time = -1\n"),
                vec!["m.toml: player 2 (second): time = -1"],
            ),
            (
                format!("games = 2\n{TWO}mode = 1\n"),
                vec!["m.toml", "mode"],
            ),
            (
                "games = 2\n[[player]]\nplayer = \"random\"\n".into(),
                vec!["m.toml: player", "2 to 100 players, not 1"],
            ),
            (
                format!("games = 2\nmax_turns = 2\n{TWO}"),
                vec!["m.toml: max_turns = 2"],
            ),
            (
                format!("games = 2\nopening_turns = 41\n{TWO}"),
                vec!["m.toml: opening_turns = 41"],
            ),
            (
                format!("games = 2\nopenings = \"own\"\nopening_turns = 1\n{TWO}"),
                vec!["m.toml: opening_turns = 1"],
            ),
            (
                format!("games = 2\nopening_player = \"random\"\n{TWO}"),
                vec!["m.toml: opening_player"],
            ),
            (
                format!("games = 2\n{TWO}{TWO}"),
                vec!["m.toml: player 4 (second): name second"],
            ),
            (
                format!(
                    "games = 2\nsprt = {{ elo0 = 0.0, elo1 = 5.0 }}\n{TWO}[[player]]\nplayer = \"x\"\n"
                ),
                vec!["m.toml: sprt", "two players"],
            ),
            (
                format!("games = 2\nsprt = {{ elo0 = 9.0, elo1 = 5.0 }}\n{TWO}"),
                vec!["m.toml: sprt"],
            ),
            (
                format!("games = 1000000\n{TWO}[[player]]\nplayer = \"x\"\n"),
                vec!["3 pairings"],
            ),
        ] {
            let message = format!("{:#}", spec(&text).unwrap_err());
            for part in parts {
                assert!(message.contains(part), "no `{part}` in: {message}");
            }
        }
        let missing = MatchSpec::load(Path::new("/nowhere/m.toml")).unwrap_err();
        assert!(format!("{missing:#}").contains("--match /nowhere/m.toml"));
    }
}
