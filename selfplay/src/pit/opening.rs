//! Where the games of a match begin.

use super::chance::{opening_stream, random_setup, random_turn};
use crate::openings::read_openings;
use crate::worker::batch::{Batcher, InPlay, Tally};
use crate::worker::player::Player;
use anyhow::{Context, Result, bail, ensure};
use arimaa::notation::format_record;
use arimaa::rules::{Game, Position, Side, Turn};
use engine::search::{Evaluation, PolicySampler, Query};
use rand::rngs::ChaCha8Rng;
use std::ops::Range;
use std::path::Path;

/// How often an opening is drawn anew because its game is over already.
const MOST_TRIES: u32 = 1_000;

/// How many openings one thread draws at once.
const DRAWN_AT_ONCE: usize = 256;

/// Where the games of a match begin: pair k of every pairing at opening k. Where there are fewer, they begin again from the first.
#[derive(Debug)]
pub(super) enum Openings {
    /// On the empty board.
    Own,
    /// Behind random setups and so many random turns, drawn when they are needed.
    Random {
        /// What they follow from.
        seed: u64,
        /// Turns behind the setups.
        turns: u32,
    },
    /// Where these end.
    Listed {
        /// One at least.
        openings: Vec<Opening>,
        /// What to call them: a file, or who has sampled them.
        name: String,
    },
}

/// The beginning of a game.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opening {
    start: Position,
    turns: Vec<Turn>,
    /// Where it stands in its file, if it has one.
    line: Option<usize>,
}

impl Openings {
    /// Reads a file of openings; none may be over, or reach the turn limit. `what` names the file in errors.
    pub(super) fn read(path: &Path, what: &str, max_turns: usize) -> Result<Self> {
        let written = read_openings(path, what)?;
        let mut openings = Vec::with_capacity(written.len());
        for written in written {
            let place = || format!("{what}: line {}", written.line);
            if let Some(outcome) = written.game.outcome() {
                bail!(
                    "{}: the game is over at the end of the opening: {outcome}",
                    place()
                );
            }
            if let Some(conclusion) = written.conclusion {
                let winner = conclusion.winner();
                bail!(
                    "{}: the game is over at the end of the opening: {winner} wins",
                    place()
                );
            }
            let turns = written.game.turns().len();
            ensure!(
                turns < max_turns,
                "{}: the opening has {turns} turns, and games end after {max_turns}",
                place()
            );
            openings.push(Opening::new(&written.game, Some(written.line)));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self::Listed {
            openings,
            name: name.into_owned(),
        })
    }

    /// The beginning of the games of a pair.
    pub(super) fn game(&self, pair: u64) -> Result<Game> {
        match self {
            Self::Own => Ok(Game::new()),
            Self::Random { seed, turns } => random_opening(*seed, pair, *turns),
            Self::Listed { openings, .. } => Ok(self::listed(openings, pair).game()),
        }
    }

    /// What to say of the opening of a pair.
    pub(super) fn describe(&self, pair: u64) -> String {
        match self {
            Self::Own => "the players' own setups".into(),
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
    fn new(game: &Game, line: Option<usize>) -> Self {
        Self {
            start: *game.start(),
            turns: game.turns().to_vec(),
            line,
        }
    }

    fn game(&self) -> Game {
        let mut game = Game::from_position(self.start);
        for turn in &self.turns {
            game.play_unchecked(turn.clone());
        }
        game
    }
}

/// Random setups.
fn set_up(rng: &mut ChaCha8Rng) -> Game {
    let mut game = Game::new();
    for _ in Side::ALL {
        game.play_unchecked(Turn::Setup(random_setup(rng)));
    }
    game
}

/// Random setups and so many random turns, drawn anew until the game goes on behind them.
fn random_opening(seed: u64, pair: u64, turns: u32) -> Result<Game> {
    let mut rng = opening_stream(seed, pair);
    for _ in 0..MOST_TRIES {
        let mut game = set_up(&mut rng);
        for _ in 0..turns {
            if game.outcome().is_none() {
                let turn = random_turn(game.position(), game.history(), &mut rng);
                game.play_unchecked(turn);
            }
        }
        if game.outcome().is_none() {
            return Ok(game);
        }
    }
    bail!("opening {pair}: after {turns} random turns every game is over")
}

/// Draws openings: random setups, and turns from a player's policy as it is (temperature 1). Pair k's follows from the seed and k.
pub(super) fn draw(
    player: &Player,
    seed: u64,
    turns: u32,
    pairs: Range<u64>,
    threads: usize,
) -> Result<Vec<Opening>> {
    let draw_share = |thread: usize| -> Result<Vec<(u64, Opening)>> {
        let line = player
            .channel()?
            .context("a player without an evaluator has no policy")?;
        let mut batcher = Batcher::new(vec![line], DRAWN_AT_ONCE, None);
        let mut due = pairs.clone().skip(thread).step_by(threads);
        let mut drawn = Vec::new();
        loop {
            batcher.round(
                || {
                    due.next()
                        .map(|pair| Drawing::new(seed, pair, turns))
                        .transpose()
                },
                |over: Drawing| {
                    drawn.push((over.pair, Opening::new(&over.game, None)));
                    Ok(())
                },
            )?;
            if batcher.games().next().is_none() {
                return Ok(drawn);
            }
        }
    };
    let mut drawn = std::thread::scope(|scope| {
        let draw_share = &draw_share;
        let threads: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || draw_share(thread)))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let share = thread.join();
            all.extend(share.unwrap_or_else(|_| bail!("a thread that draws openings panicked"))?);
        }
        anyhow::Ok(all)
    })?;
    drawn.sort_by_key(|(pair, _)| *pair);
    Ok(drawn.into_iter().map(|(_, opening)| opening).collect())
}

/// Drawn openings as text, as [`read_drawn`] reads them.
pub(super) fn format_drawn(openings: &[Opening]) -> String {
    let mut text = String::new();
    for (pair, opening) in openings.iter().enumerate() {
        text.push_str(&format!(
            "# opening {pair}\n{}\n",
            format_record(&opening.game())
        ));
    }
    text
}

/// Reads drawn openings that were kept.
pub(super) fn read_drawn(path: &Path) -> Result<Vec<Opening>> {
    let written = read_openings(path, &path.display().to_string())?;
    Ok(written
        .iter()
        .map(|written| Opening::new(&written.game, None))
        .collect())
}

/// An opening that is being drawn.
struct Drawing {
    pair: u64,
    rng: ChaCha8Rng,
    game: Game,
    sampler: PolicySampler,
    /// Turns to draw behind the setups.
    turns: usize,
    tries: u32,
}

impl Drawing {
    fn new(seed: u64, pair: u64, turns: u32) -> Result<Self> {
        let mut rng = opening_stream(seed, pair);
        let game = set_up(&mut rng);
        Ok(Self {
            pair,
            rng,
            sampler: PolicySampler::new(game.position(), game.history(), 1.0)?,
            game,
            turns: turns as usize,
            tries: 1,
        })
    }

    /// Plays a drawn turn, and says whether that was the last.
    fn play(&mut self, turn: &Turn) -> Result<bool> {
        self.game.play(turn)?;
        if self.game.outcome().is_some() {
            let Self { pair, turns, .. } = self;
            ensure!(
                self.tries < MOST_TRIES,
                "opening {pair}: after {turns} turns every game is over"
            );
            self.tries += 1;
            self.game = set_up(&mut self.rng);
        }
        let is_last = self.game.turns().len() >= self.turns + 2;
        if !is_last {
            let (position, history) = (self.game.position(), self.game.history());
            self.sampler.restart(position, history, 1.0)?;
        }
        Ok(is_last)
    }
}

impl InPlay for Drawing {
    fn next_queries(&mut self, _: &mut Tally) -> Result<Option<(usize, &[Query])>> {
        loop {
            let is_asking = !self
                .sampler
                .leaves(self.game.history(), &mut self.rng)
                .is_empty();
            if is_asking {
                return Ok(Some((
                    0,
                    self.sampler.leaves(self.game.history(), &mut self.rng),
                )));
            }
            let drawn = self
                .sampler
                .decision()
                .context("the policy ended without a turn")?;
            let turn = drawn.turn.clone();
            if self.play(&turn)? {
                return Ok(None);
            }
        }
    }

    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()> {
        Ok(self.sampler.answer(index, evaluator, evaluation)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::devices::Devices;
    use crate::worker::player::PlayerName;
    use network::{Device, Precision};
    use std::fs;

    #[test]
    fn random_openings_follow_from_seed_and_pair_alone() {
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
        let one = draw(&player, 5, 3, 0..7, 1).unwrap();
        assert_eq!(one, draw(&player, 5, 3, 0..7, 2).unwrap());
        assert_eq!(one[4..], draw(&player, 5, 3, 4..7, 1).unwrap());
        assert!(one.iter().all(|opening| opening.game().turns().len() == 5));
        assert_ne!(one[0], one[1]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("openings.txt");
        fs::write(&path, format_drawn(&one)).unwrap();
        assert_eq!(read_drawn(&path).unwrap(), one);
    }

    #[test]
    fn a_file_s_openings_come_in_order_and_again() {
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
            (String::new(), "no position and no game"),
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
