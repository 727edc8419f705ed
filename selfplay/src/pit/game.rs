//! One game of a match.

use super::player::PlayerKind;
use super::record::TurnInfo;
use super::referee::{Referee, TurnSource};
use super::sampling::{game_stream, random_turn};
use super::schedule::Fixture;
use crate::worker::batch::{InPlay, Tally};
use crate::worker::turn_decider::Decided;
use anyhow::{Context, Result, bail};
use arimaa::rules::{Game, Side, Turn};
use engine::search::{Evaluation, Query};
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The cost of a player's turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Usage {
    /// Turns that were decided.
    pub(super) turns: u64,
    /// Evaluations of these turns.
    pub(super) evaluations: u64,
    /// Time of a worker thread for these turns.
    #[serde(with = "seconds")]
    pub(super) time: Duration,
}

impl Usage {
    pub(super) fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.evaluations += other.evaluations;
        self.time += other.time;
    }

    /// A turn's mean evaluations.
    pub(super) fn evaluations_per_turn(&self) -> f64 {
        self.evaluations as f64 / self.turns.max(1) as f64
    }

    /// A turn's mean time.
    pub(super) fn milliseconds_per_turn(&self) -> f64 {
        match self.turns {
            // A game may be lost before the first turn.
            0 => 0.0,
            turns => 1e3 * self.time.as_secs_f64() / turns as f64,
        }
    }
}

/// A time in seconds with a microsecond's resolution.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e6)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// A game between two players of a match. The number of a player is also that of its evaluator.
#[derive(Debug)]
pub(super) struct PitGame<'m> {
    pub(super) fixture: Fixture,
    /// Gold and Silver.
    players: [&'m PlayerKind; 2],
    max_turns: usize,
    rng: ChaCha8Rng,
    game: Game,
    /// Gold's source and Silver's: each player sees only its own tree.
    sources: [Option<TurnSource>; 2],
    /// Whether each source has decided turns of this game: before that, its tree is of an earlier game.
    has_searched: [bool; 2],
    /// Usage of Gold and of Silver without the evaluators' time.
    usage: [Usage; 2],
    /// By turn, those of the opening included: the player's report, if it gives one.
    turn_infos: Vec<Option<TurnInfo>>,
    pub(super) referee: Referee,
}

impl<'m> PitGame<'m> {
    /// A game of a match after its opening. `players` are Gold and Silver; `sources` are theirs of earlier games, for reuse.
    pub(super) fn new(
        fixture: Fixture,
        opening: Game,
        players: [&'m PlayerKind; 2],
        sources: [Option<TurnSource>; 2],
        seed: u64,
        max_turns: usize,
    ) -> Self {
        Self {
            fixture,
            referee: Referee::default(),
            players,
            max_turns,
            rng: game_stream(seed, fixture.number),
            turn_infos: vec![None; opening.turns().len()],
            game: opening,
            sources,
            has_searched: [false; 2],
            usage: [Usage::default(); 2],
        }
    }

    /// Whether the game has ended, by the rules, by the turn limit, by a fault, or because the match stopped.
    pub(super) fn is_over(&self) -> bool {
        self.game.outcome().is_some()
            || self.game.turns().len() >= self.max_turns
            || self.referee.has_ended()
    }

    /// Usage of the pairing's first player and of its second so far, without the evaluators' time.
    pub(super) fn usage(&self) -> [Usage; 2] {
        let [gold, silver] = self.usage;
        match self.fixture.first_has() {
            Side::Gold => [gold, silver],
            Side::Silver => [silver, gold],
        }
    }

    /// The game as played.
    pub(super) fn game(&self) -> &Game {
        &self.game
    }

    /// The players' reports by turn.
    pub(super) fn turn_infos(&self) -> &[Option<TurnInfo>] {
        &self.turn_infos
    }

    /// The turn sources of Gold and Silver.
    pub(super) fn into_sources(self) -> [Option<TurnSource>; 2] {
        self.sources
    }

    fn to_move(&self) -> usize {
        self.game.position().side().index()
    }

    /// Begins the turn with the search or the policy of the side to move, unless that is done.
    fn begin_turn(&mut self) -> Result<()> {
        let side = self.to_move();
        let source = &mut self.sources[side];
        let source = source.get_or_insert_with(|| TurnSource::Decider(Box::default()));
        let TurnSource::Decider(decider) = source else {
            return Ok(());
        };
        if decider.is_running() {
            return Ok(());
        }
        let has_searched = std::mem::replace(&mut self.has_searched[side], true);
        match self.players[side] {
            PlayerKind::Search { config, options } => {
                let anew = !(config.reuse_tree && has_searched);
                decider.search(&self.game, *options, anew)
            }
            PlayerKind::Policy { temperature } => decider.sample(&self.game, *temperature),
            PlayerKind::Random | PlayerKind::Engine(_) => Ok(()),
        }
    }

    /// The queries of the side to move; none once its turn is decided.
    fn leaves(&mut self) -> &[Query] {
        match &mut self.sources[self.game.position().side().index()] {
            Some(TurnSource::Decider(decider)) => decider.leaves(&self.game, &mut self.rng),
            Some(TurnSource::Engine(_)) | None => &[],
        }
    }

    /// Ends the turn of the side to move: what was decided on, and the report.
    fn decided_turn(&mut self) -> Result<(Turn, TurnInfo)> {
        let side = self.to_move();
        let Some(TurnSource::Decider(decider)) = &mut self.sources[side] else {
            bail!("no player has decided on a turn");
        };
        let decided = decider.decided();
        let decided = decided.context("the search or the policy ended without a turn")?;
        let (turn, value, evaluations) = decided.parts();
        let info = TurnInfo {
            value,
            evaluations,
            is_sampled: matches!(decided, Decided::Sampled(_)),
        };
        let turn = turn.clone();
        decider.finish();
        Ok((turn, info))
    }

    /// The turn that an external engine chooses; none if it loses the game or the match stops.
    fn engine_turn(&mut self) -> Option<Turn> {
        let side = self.to_move();
        match &mut self.sources[side] {
            Some(TurnSource::Engine(engine)) => self.referee.choose(engine, &self.game),
            _ => None,
        }
    }

    /// The turn of the side to move, once it is decided; none while evaluations are awaited, or if an external engine gives none. The
    /// player is charged for the time.
    fn next_turn(&mut self) -> Result<Option<(Turn, Option<TurnInfo>)>> {
        let begun = Instant::now();
        let side = self.to_move();
        let decided = match self.players[side] {
            PlayerKind::Random => {
                let (position, history) = (self.game.position(), self.game.history());
                Some((random_turn(position, history, &mut self.rng), None))
            }
            PlayerKind::Engine(_) => self.engine_turn().map(|turn| (turn, None)),
            PlayerKind::Search { .. } | PlayerKind::Policy { .. } => {
                self.begin_turn()?;
                if self.leaves().is_empty() {
                    let (turn, info) = self.decided_turn()?;
                    Some((turn, Some(info)))
                } else {
                    None
                }
            }
        };
        let usage = &mut self.usage[side];
        if let Some((_, info)) = &decided {
            usage.turns += 1;
            usage.evaluations += info.map_or(0, |info| info.evaluations.into());
        }
        usage.time += begun.elapsed();
        Ok(decided)
    }
}

impl InPlay for PitGame<'_> {
    fn next_queries(&mut self, tally: &mut Tally) -> Result<Option<(usize, &[Query])>> {
        while !self.is_over() {
            self.referee
                .begin(&mut self.sources, &self.game, self.max_turns);
            if self.referee.has_ended() {
                break;
            }
            let side = self.to_move();
            let Some((turn, info)) = self.next_turn()? else {
                return Ok(match self.players[side] {
                    PlayerKind::Search { .. } | PlayerKind::Policy { .. } => {
                        Some((self.fixture.by_colour()[side], self.leaves()))
                    }
                    PlayerKind::Random | PlayerKind::Engine(_) => None,
                });
            };
            self.referee.note(&turn, &self.game, &self.sources);
            let number = self.fixture.number;
            let played = self.game.play(&turn);
            played.with_context(|| format!("an illegal turn was chosen in game {number}"))?;
            self.turn_infos.push(info);
            tally.turns += 1;
        }
        Ok(None)
    }

    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()> {
        match &mut self.sources[self.game.position().side().index()] {
            Some(TurnSource::Decider(decider)) => decider.answer(index, evaluator, evaluation),
            Some(TurnSource::Engine(_)) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sampling::{opening_stream, random_setup};
    use super::*;
    use arimaa::rules::StepState;
    use engine::config::SearchConfig;
    use engine::search::{Evaluations, Evaluator, Material, SearchOptions, Uniform};

    fn search(evaluations: u32) -> PlayerKind {
        let config = SearchConfig {
            reuse_tree: true,
            ..SearchConfig::default()
        };
        PlayerKind::Search {
            options: SearchOptions::strongest(&config, evaluations),
            config,
        }
    }

    fn game(number: u64, players: [&PlayerKind; 2], max_turns: usize) -> PitGame<'_> {
        let fixture = Fixture {
            number,
            pairing: 0,
            players: [0, 1],
            pair: number / 2,
        };
        let mut setups = opening_stream(4, number / 2);
        let mut opening = Game::new();
        for _ in Side::ALL {
            opening.play_unchecked(Turn::Setup(random_setup(&mut setups)));
        }
        PitGame::new(fixture, opening, players, [None, None], 4, max_turns)
    }

    #[test]
    fn a_turn_source_that_is_used_again_plays_as_a_new_one() {
        let player = search(24);
        let play = |sources| {
            let mut game = game(0, [&player, &PlayerKind::Random], 12);
            game.sources = sources;
            while let Some((_, queries)) = game.next_queries(&mut Tally::default()).unwrap() {
                let queries = queries.to_vec();
                answer(&mut game, &queries, &mut Material::default());
            }
            game
        };
        let first = play([None, None]);
        let (game, turn_infos) = (first.game().clone(), first.turn_infos().to_vec());
        // It has the very positions of the game in its tree.
        let again = play(first.into_sources());
        assert_eq!((again.game(), again.turn_infos()), (&game, &turn_infos[..]));
    }

    /// Answers a game's queries.
    fn answer(game: &mut PitGame, queries: &[Query], evaluator: &mut dyn Evaluator) {
        let mut answers = Evaluations::default();
        evaluator.evaluate(queries, &mut answers).unwrap();
        for index in 0..queries.len() {
            let evaluation = answers.get(index).unwrap();
            game.answer(index, "a test", evaluation).unwrap();
        }
    }

    #[test]
    fn a_player_never_sees_the_other_s_tree() {
        let player = search(32);
        let mut game = game(0, [&player, &player], 30);
        let first_of_silver = loop {
            let (evaluator, queries) = game.next_queries(&mut Tally::default()).unwrap().unwrap();
            if evaluator == 1 {
                break queries[0].state;
            }
            let queries = queries.to_vec();
            answer(&mut game, &queries, &mut Uniform);
        };
        // In the tree of Gold's search it might have an evaluation already.
        assert_eq!(first_of_silver, StepState::new(game.game().position()));
        assert_eq!(game.game().position().side(), Side::Silver);
        let [first, second] = game.usage();
        assert_eq!((first.turns, second.turns), (1, 0));
        assert!((1..=32).contains(&first.evaluations));
        let judged = game.turn_infos();
        assert_eq!(judged[..2], [None, None], "the opening has no reports");
        assert_eq!(u64::from(judged[2].unwrap().evaluations), first.evaluations);
    }

    #[test]
    fn a_policy_plays_its_likeliest_steps_without_a_search() {
        let policy = PlayerKind::Policy { temperature: 0.0 };
        let play = || {
            let mut game = game(0, [&policy, &PlayerKind::Random], 12);
            let mut evaluator = Material::default();
            while let Some((evaluator_asked, queries)) =
                game.next_queries(&mut Tally::default()).unwrap()
            {
                assert_eq!((evaluator_asked, queries.len()), (0, 1));
                let queries = queries.to_vec();
                answer(&mut game, &queries, &mut evaluator);
            }
            game
        };
        let played = play();
        let [first, second] = played.usage();
        assert_eq!((first.turns, second.turns, second.evaluations), (5, 5, 0));
        // One evaluation for each step and for the end of a turn.
        assert!((5..=5 * 5).contains(&first.evaluations), "{first:?}");
        assert_eq!(played.turn_infos()[3], None, "random turns have no report");
        assert!(played.turn_infos()[2].is_some());
        assert_eq!(play().game(), played.game());
    }

    #[test]
    fn random_games_end_or_are_truncated_at_the_limit() {
        let random = [&PlayerKind::Random; 2];
        for number in 0..10 {
            let mut game = game(number, random, 400);
            assert_eq!(game.next_queries(&mut Tally::default()).unwrap(), None);
            assert!(game.is_over());
            assert!(game.game().turns().len() <= 400);
        }
        let mut game = game(0, random, 10);
        assert_eq!(game.next_queries(&mut Tally::default()).unwrap(), None);
        assert_eq!(game.game().turns().len(), 10);
        assert_eq!(game.game().outcome(), None);
    }
}
