//! One game of a match.

use super::chance::{game_stream, random_turn};
use super::referee::{Forfeit, Referee, TurnSource};
use super::schedule::Fixture;
use super::usage::Usage;
use crate::worker::batch::{InPlay, Tally};
use anyhow::{Context, Result};
use arimaa::rules::{Game, Side, Turn};
use engine::search::{Evaluation, PolicySampler, Query, Search, SearchOptions};
use rand::rngs::ChaCha8Rng;
use std::time::{Duration, Instant};

/// How a player comes to its turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Chooser {
    /// By a search, whose leaves evaluator `evaluator` judges.
    Search {
        /// The evaluator's place in the worker's list.
        evaluator: usize,
        /// The search's options.
        options: SearchOptions,
        /// Whether its searches keep what they found below the turns played.
        reuse_tree: bool,
    },
    /// By the policy of evaluator `evaluator`, action by action.
    Policy {
        /// The evaluator's place in the worker's list.
        evaluator: usize,
        /// 0 takes the likeliest action each time.
        temperature: f32,
    },
    /// Any legal step is as likely as any other, the end of the turn among them.
    Random,
    /// By another program.
    Engine,
}

/// What a player said of its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TurnInfo {
    /// Win probability of Gold where the turn began.
    pub(super) value: f32,
    /// Evaluations for the turn.
    pub(super) evaluations: u32,
}

/// A game between two players.
#[derive(Debug)]
pub(super) struct PitGame {
    pub(super) fixture: Fixture,
    /// Gold's and Silver's.
    choosers: [Chooser; 2],
    max_turns: usize,
    rng: ChaCha8Rng,
    game: Game,
    /// Gold's source and Silver's: what one player found by its evaluator is never shown to the other.
    sources: [Option<TurnSource>; 2],
    /// Whether they have thought in this game: what they know is of another one until then.
    have_thought: [bool; 2],
    /// Whether the source of the side to move is at the present turn.
    is_thinking: bool,
    /// What the turns of Gold and of Silver took, evaluators' time not counted.
    usage: [Usage; 2],
    /// By turn, those of the opening included: what its player said, if it says anything.
    turn_infos: Vec<Option<TurnInfo>>,
    /// Where external engines play.
    referee: Option<Box<Referee>>,
}

impl PitGame {
    /// A game of a match that goes on behind its opening. `choosers` are those of all the match's players; `sources` are what Gold and
    /// Silver may use again, of other games of theirs.
    pub(super) fn new(
        fixture: Fixture,
        opening: Game,
        choosers: &[Chooser],
        sources: [Option<TurnSource>; 2],
        seed: u64,
        max_turns: usize,
    ) -> Self {
        let of = |player: usize| choosers.get(player).copied().unwrap_or(Chooser::Random);
        let choosers = fixture.by_colour().map(of);
        Self {
            fixture,
            referee: choosers.contains(&Chooser::Engine).then(Box::default),
            choosers,
            max_turns,
            rng: game_stream(seed, fixture.number),
            turn_infos: vec![None; opening.turns().len()],
            game: opening,
            sources,
            have_thought: [false; 2],
            is_thinking: false,
            usage: [Usage::default(); 2],
        }
    }

    /// Whether the game has ended, by the rules or by the turn limit.
    pub(super) fn is_over(&self) -> bool {
        self.game.outcome().is_some()
            || self.game.turns().len() >= self.max_turns
            || self.forfeit().is_some()
            || self.is_given_up()
    }

    /// How it was lost, if it was, besides by the rules.
    pub(super) fn forfeit(&self) -> Option<&Forfeit> {
        self.referee.as_deref().and_then(Referee::forfeit)
    }

    /// Whether the match stops, and nothing came of the game.
    pub(super) fn is_given_up(&self) -> bool {
        self.referee.as_deref().is_some_and(Referee::is_given_up)
    }

    /// What an external engine said of the turn at a place in the game.
    pub(super) fn remark(&self, turn: usize) -> Option<&str> {
        self.referee.as_deref()?.remark(turn)
    }

    /// What was needed before the first turn.
    pub(super) fn preparation(&self) -> Duration {
        let referee = self.referee.as_deref();
        referee.map(Referee::preparation).unwrap_or_default()
    }

    /// What the turns of the pairing's first player and of its second took so far, evaluators' time not counted.
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

    /// What was said of each turn.
    pub(super) fn turn_infos(&self) -> &[Option<TurnInfo>] {
        &self.turn_infos
    }

    /// What its players thought with, Gold's and Silver's.
    pub(super) fn into_minds(self) -> [Option<TurnSource>; 2] {
        self.sources
    }

    fn to_move(&self) -> usize {
        self.game.position().side().index()
    }

    /// Sets the source of the side to move to the present turn, unless that is done.
    fn begin_turn(&mut self, chooser: Chooser) -> Result<()> {
        if self.is_thinking {
            return Ok(());
        }
        let side = self.to_move();
        let has_thought = std::mem::replace(&mut self.have_thought[side], true);
        let source = &mut self.sources[side];
        let (position, history) = (self.game.position(), self.game.history());
        match (source, chooser) {
            (
                Some(TurnSource::Search(search)),
                Chooser::Search {
                    options,
                    reuse_tree,
                    ..
                },
            ) => match reuse_tree && has_thought {
                true => search.reuse_tree(position, history, options)?,
                false => search.restart(position, history, options)?,
            },
            (Some(TurnSource::Policy(sampler)), Chooser::Policy { temperature, .. }) => {
                sampler.restart(position, history, temperature)?;
            }
            (source, Chooser::Search { options, .. }) => {
                let search = Search::new(position, history, options)?;
                *source = Some(TurnSource::Search(Box::new(search)));
            }
            (source, Chooser::Policy { temperature, .. }) => {
                let sampler = PolicySampler::new(position, history, temperature)?;
                *source = Some(TurnSource::Policy(Box::new(sampler)));
            }
            (_, Chooser::Random | Chooser::Engine) => {}
        }
        self.is_thinking = true;
        Ok(())
    }

    /// What the side to move asks for; nothing once its turn is decided.
    fn leaves(&mut self) -> &[Query] {
        let (history, rng) = (self.game.history(), &mut self.rng);
        match &mut self.sources[self.game.position().side().index()] {
            Some(TurnSource::Search(search)) => search.leaves(history, rng),
            Some(TurnSource::Policy(sampler)) => sampler.leaves(history, rng),
            Some(TurnSource::Engine(_)) | None => &[],
        }
    }

    /// The turn that the side to move has decided on, and what it says of it.
    fn decided_turn(&mut self) -> Result<(Turn, TurnInfo)> {
        let (turn, value, evaluations) = match &self.sources[self.to_move()] {
            Some(TurnSource::Search(search)) => {
                let decided = search.decision();
                let decided = decided.context("the search ended without a decision")?;
                (&decided.turn, decided.value, decided.evaluations)
            }
            Some(TurnSource::Policy(sampler)) => {
                let drawn = sampler.decision();
                let drawn = drawn.context("the policy ended without a turn")?;
                (&drawn.turn, drawn.value, drawn.evaluations)
            }
            Some(TurnSource::Engine(_)) | None => anyhow::bail!("no player has decided on a turn"),
        };
        Ok((turn.clone(), TurnInfo { value, evaluations }))
    }

    /// The turn that an external engine chooses; none where it loses the game, or the match stops.
    fn engine_turn(&mut self) -> Option<Turn> {
        let side = self.to_move();
        match (&mut self.referee, &mut self.sources[side]) {
            (Some(referee), Some(TurnSource::Engine(seat))) => referee.choose(seat, &self.game),
            _ => None,
        }
    }

    /// The turn of the side to move, once it is decided; none while evaluations are awaited, or where an external engine has none to
    /// give. The time goes to the player.
    fn next_turn(&mut self, chooser: Chooser) -> Result<Option<(Turn, Option<TurnInfo>)>> {
        let begun = Instant::now();
        let side = self.to_move();
        let decided = match chooser {
            Chooser::Random => {
                let (position, history) = (self.game.position(), self.game.history());
                Some((random_turn(position, history, &mut self.rng), None))
            }
            Chooser::Engine => self.engine_turn().map(|turn| (turn, None)),
            Chooser::Search { .. } | Chooser::Policy { .. } => {
                self.begin_turn(chooser)?;
                match self.leaves().is_empty() {
                    true => {
                        let (turn, info) = self.decided_turn()?;
                        Some((turn, Some(info)))
                    }
                    false => None,
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

impl InPlay for PitGame {
    fn next_queries(&mut self, tally: &mut Tally) -> Result<Option<(usize, &[Query])>> {
        while !self.is_over() {
            if let Some(referee) = &mut self.referee {
                referee.begin(&mut self.sources, &self.game, self.max_turns);
                if self.is_over() {
                    break;
                }
            }
            let chooser = self.choosers[self.to_move()];
            let Some((turn, info)) = self.next_turn(chooser)? else {
                return Ok(match chooser {
                    Chooser::Search { evaluator, .. } | Chooser::Policy { evaluator, .. } => {
                        Some((evaluator, self.leaves()))
                    }
                    Chooser::Random | Chooser::Engine => None,
                });
            };
            self.is_thinking = false;
            if let Some(referee) = &mut self.referee {
                referee.note(&turn, &self.game, &self.sources);
            }
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
            Some(TurnSource::Search(search)) => Ok(search.answer(index, evaluator, evaluation)?),
            Some(TurnSource::Policy(sampler)) => Ok(sampler.answer(index, evaluator, evaluation)?),
            Some(TurnSource::Engine(_)) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chance::{opening_stream, random_setup};
    use super::*;
    use arimaa::rules::StepState;
    use engine::config::SearchConfig;
    use engine::search::{Evaluations, Evaluator, Material, Uniform};

    fn game(number: u64, choosers: [Chooser; 2], max_turns: usize) -> PitGame {
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
        PitGame::new(fixture, opening, &choosers, [None, None], 4, max_turns)
    }

    #[test]
    fn a_mind_that_is_used_again_plays_as_a_new_one() {
        let config = SearchConfig::default();
        let player = Chooser::Search {
            evaluator: 0,
            options: SearchOptions::strongest(&config, 24),
            reuse_tree: true,
        };
        let play = |sources| {
            let mut game = game(0, [player, Chooser::Random], 12);
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
        let again = play(first.into_minds());
        assert_eq!((again.game(), again.turn_infos()), (&game, &turn_infos[..]));
    }

    /// Answers what a game asks for.
    fn answer(game: &mut PitGame, queries: &[Query], evaluator: &mut dyn Evaluator) {
        let mut answers = Evaluations::default();
        evaluator.evaluate(queries, &mut answers).unwrap();
        for index in 0..queries.len() {
            let evaluation = answers.get(index).unwrap();
            game.answer(index, "a test", evaluation).unwrap();
        }
    }

    #[test]
    fn a_player_never_sees_what_the_other_s_search_found() {
        let config = SearchConfig::default();
        let player = |evaluator| Chooser::Search {
            evaluator,
            options: SearchOptions::strongest(&config, 32),
            reuse_tree: true,
        };
        let mut game = game(0, [player(0), player(1)], 30);
        let first_of_silver = loop {
            let (evaluator, queries) = game.next_queries(&mut Tally::default()).unwrap().unwrap();
            if evaluator == 1 {
                break queries[0].state;
            }
            let queries = queries.to_vec();
            answer(&mut game, &queries, &mut Uniform);
        };
        // In the tree that Gold's search has grown, it might have an evaluation already.
        assert_eq!(first_of_silver, StepState::new(game.game().position()));
        assert_eq!(game.game().position().side(), Side::Silver);
        let [first, second] = game.usage();
        assert_eq!((first.turns, second.turns), (1, 0));
        assert!((1..=32).contains(&first.evaluations));
        let judged = game.turn_infos();
        assert_eq!(judged[..2], [None, None], "the opening is nobody's");
        assert_eq!(u64::from(judged[2].unwrap().evaluations), first.evaluations);
    }

    #[test]
    fn a_policy_plays_its_likeliest_steps_without_a_search() {
        let policy = Chooser::Policy {
            evaluator: 3,
            temperature: 0.0,
        };
        let play = || {
            let mut game = game(0, [policy, Chooser::Random], 12);
            let mut evaluator = Material::default();
            while let Some((evaluator_asked, queries)) =
                game.next_queries(&mut Tally::default()).unwrap()
            {
                assert_eq!((evaluator_asked, queries.len()), (3, 1));
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
        assert_eq!(played.turn_infos()[3], None, "random turns are not judged");
        assert!(played.turn_infos()[2].is_some());
        assert_eq!(play().game(), played.game());
    }

    #[test]
    fn random_games_end_or_stop_at_the_limit() {
        for number in 0..10 {
            let mut game = game(number, [Chooser::Random, Chooser::Random], 400);
            assert_eq!(game.next_queries(&mut Tally::default()).unwrap(), None);
            assert!(game.is_over());
            assert!(game.game().turns().len() <= 400);
        }
        let mut game = game(0, [Chooser::Random, Chooser::Random], 10);
        assert_eq!(game.next_queries(&mut Tally::default()).unwrap(), None);
        assert_eq!(game.game().turns().len(), 10);
        assert_eq!(game.game().outcome(), None);
    }
}
