//! One game of a match.

use super::report::Usage;
use crate::batch::{InPlay, Tally};
use anyhow::{Context, Result};
use engine::rules::{Action, Game, History, Kind, Position, Setup, Side, StepState, Steps, Turn};
use engine::search::{Evaluation, Query, Search, SearchOptions};
use rand::rngs::ChaCha8Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::time::Instant;

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
    /// Any legal step is as likely as any other, the end of the turn among them.
    Random,
}

/// A game between two players.
#[derive(Debug)]
pub(super) struct PitGame {
    /// Its number in the match, from 0. Games 2k and 2k + 1 are a pair.
    pub(super) number: u64,
    choosers: [Chooser; 2],
    max_turns: usize,
    rng: ChaCha8Rng,
    game: Game,
    /// Gold's search and Silver's: what one player found by its evaluator is never shown to the other.
    searches: [Option<Search>; 2],
    /// Whether the search of the side to move is at the present turn.
    is_searching: bool,
    /// What the searches of Gold and of Silver took, evaluators' time not counted.
    usage: [Usage; 2],
}

impl PitGame {
    /// Game `number` of a match between `players` (a, then b). Both games of a pair start from the same setups, drawn from the
    /// seed and the pair's number; a has Gold in the first of them and Silver in the second.
    pub(super) fn new(number: u64, players: [Chooser; 2], seed: u64, max_turns: usize) -> Self {
        let mut setups = stream(seed, number / 2 * 3);
        let rng = stream(seed, number / 2 * 3 + 1 + number % 2);
        let mut game = Game::new();
        for _ in Side::ALL {
            game.play_unchecked(Turn::Setup(random_setup(&mut setups)));
        }
        let [a, b] = players;
        let choosers = if Self::a_has_gold(number) {
            [a, b]
        } else {
            [b, a]
        };
        Self {
            number,
            choosers,
            max_turns,
            rng,
            game,
            searches: [None, None],
            is_searching: false,
            usage: [Usage::default(); 2],
        }
    }

    /// Whether player a has Gold in a game.
    pub(super) fn a_has_gold(number: u64) -> bool {
        number.is_multiple_of(2)
    }

    /// Whether the game has ended, by the rules or by the turn limit.
    pub(super) fn is_over(&self) -> bool {
        self.game.outcome().is_some() || self.game.turns().len() >= self.max_turns
    }

    /// What the searches of a and of b took so far, evaluators' time not counted.
    pub(super) fn usage(&self) -> [Usage; 2] {
        let [gold, silver] = self.usage;
        if Self::a_has_gold(self.number) {
            [gold, silver]
        } else {
            [silver, gold]
        }
    }

    /// The game as played.
    pub(super) fn game(&self) -> &Game {
        &self.game
    }

    /// Starts the search of the side to move for the present turn, unless that is done.
    fn begin_search(&mut self, options: SearchOptions, reuse_tree: bool) -> Result<()> {
        if self.is_searching {
            return Ok(());
        }
        let (position, history) = (self.game.position(), self.game.history());
        match &mut self.searches[position.side().index()] {
            Some(search) if reuse_tree => search.go_on(position, history, options)?,
            Some(search) => search.restart(position, history, options)?,
            none => *none = Some(Search::new(position, history, options)?),
        }
        self.is_searching = true;
        Ok(())
    }

    /// What the search of the side to move asks for; nothing once its turn is decided.
    fn leaves(&mut self) -> &[Query] {
        match &mut self.searches[self.game.position().side().index()] {
            Some(search) => search.leaves(self.game.history(), &mut self.rng),
            None => &[],
        }
    }

    /// The turn that the search of the side to move has decided on.
    fn decided_turn(&mut self) -> Result<Turn> {
        self.is_searching = false;
        let side = self.game.position().side().index();
        let decision = self.searches[side].as_ref().and_then(Search::decision);
        let decision = decision.context("the search ended without a decision")?;
        self.usage[side].turns += 1;
        self.usage[side].evaluations += u64::from(decision.evaluations);
        Ok(decision.turn.clone())
    }
}

impl InPlay for PitGame {
    fn next_queries(&mut self, tally: &mut Tally) -> Result<Option<(usize, &[Query])>> {
        while !self.is_over() {
            let side = self.game.position().side().index();
            let turn = match self.choosers[side] {
                Chooser::Random => {
                    random_turn(self.game.position(), self.game.history(), &mut self.rng)
                }
                Chooser::Search {
                    evaluator,
                    options,
                    reuse_tree,
                } => {
                    let begun = Instant::now();
                    self.begin_search(options, reuse_tree)?;
                    let is_waiting = !self.leaves().is_empty();
                    self.usage[side].time += begun.elapsed();
                    if is_waiting {
                        return Ok(Some((evaluator, self.leaves())));
                    }
                    self.decided_turn()?
                }
            };
            self.game
                .play(&turn)
                .with_context(|| format!("an illegal turn was chosen in game {}", self.number))?;
            tally.turns += 1;
        }
        Ok(None)
    }

    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()> {
        match &mut self.searches[self.game.position().side().index()] {
            Some(search) => Ok(search.answer(index, evaluator, evaluation)?),
            None => Ok(()),
        }
    }
}

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

/// Any arrangement of the sixteen pieces is as likely as any other.
fn random_setup<R: Rng>(rng: &mut R) -> Setup {
    let mut kinds = [Kind::Rabbit; 16];
    let full = Kind::ALL
        .into_iter()
        .flat_map(|kind| std::iter::repeat_n(kind, kind.full_count() as usize));
    for (slot, kind) in kinds.iter_mut().zip(full) {
        *slot = kind;
    }
    kinds.shuffle(rng);
    Setup::new(kinds).unwrap_or_else(|error| unreachable!("the full set was shuffled: {error}"))
}

/// A turn of steps drawn one by one, each uniformly from the legal actions.
fn random_turn<R: Rng>(position: &Position, history: &History, rng: &mut R) -> Turn {
    let mut state = StepState::new(position);
    let mut steps = Steps::new();
    while !state.is_complete() {
        let actions: Vec<Action> = state
            .legal_actions(history)
            .in_index_order(state.side())
            .collect();
        match actions.choose(rng) {
            Some(&Action::Step(step)) => {
                steps.push(step);
                state = state.after_step(step);
            }
            _ => break,
        }
    }
    Turn::Steps(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::config::SearchConfig;
    use engine::search::{Evaluations, Evaluator, Uniform};

    #[test]
    fn a_pair_shares_its_setups_and_swaps_its_colours() {
        let players = [Chooser::Random, Chooser::Random];
        let start = |number| PitGame::new(number, players, 9, 300).game.turns().to_vec();
        assert_eq!(start(0), start(1));
        assert_eq!(start(6), start(7));
        assert_ne!(start(0), start(2));
        assert!(PitGame::a_has_gold(0) && !PitGame::a_has_gold(1));
    }

    #[test]
    fn a_player_never_sees_what_the_other_s_search_found() {
        let config = SearchConfig::default();
        let player = |evaluator| Chooser::Search {
            evaluator,
            options: SearchOptions::strongest(&config, 32),
            reuse_tree: true,
        };
        let mut game = PitGame::new(0, [player(0), player(1)], 4, 30);
        let mut answers = Evaluations::default();
        let first_of_silver = loop {
            let (evaluator, queries) = game.next_queries(&mut Tally::default()).unwrap().unwrap();
            if evaluator == 1 {
                break queries[0].state;
            }
            let queries = queries.to_vec();
            Uniform.evaluate(&queries, &mut answers).unwrap();
            for index in 0..queries.len() {
                let evaluation = answers.get(index).unwrap();
                game.answer(index, "uniform", evaluation).unwrap();
            }
        };
        // In the tree that Gold's search has grown, it might have an evaluation already.
        assert_eq!(first_of_silver, StepState::new(game.game().position()));
        assert_eq!(game.game().position().side(), Side::Silver);
        assert_eq!(game.usage()[0].turns, 1);
        assert!((1..=32).contains(&game.usage()[0].evaluations));
    }

    #[test]
    fn random_games_end_or_stop_at_the_limit() {
        for number in 0..10 {
            let mut game = PitGame::new(number, [Chooser::Random, Chooser::Random], 1, 400);
            assert_eq!(game.next_queries(&mut Tally::default()).unwrap(), None);
            assert!(game.is_over());
            assert!(game.game().turns().len() <= 400);
        }
        let mut game = PitGame::new(0, [Chooser::Random, Chooser::Random], 1, 10);
        assert_eq!(game.next_queries(&mut Tally::default()).unwrap(), None);
        assert_eq!(game.game().turns().len(), 10);
        assert_eq!(game.game().outcome(), None);
    }
}
