//! A network's values and policy in the positions of recorded games.

use crate::statistics::{Calibration, Share};
use crate::worker::channel::EvaluationChannel;
use anyhow::{Result, ensure};
use arimaa::rules::{Action, Game, Phase, Side, StepState, TURN_STEPS, elimination_in, goal_in};
use engine::record::{Ending, GameRecord, ReplayError, replay};
use engine::search::{Evaluations, PolicySampler, Query};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// Queries that are evaluated together.
const BATCH: usize = 256;

/// The least probability in the log loss: a played step of probability 0 would cost infinitely much.
const MIN_PROBABILITY: f64 = 1e-9;

/// Sums over games, of the turns after the setups.
#[derive(Debug, Default)]
pub(super) struct NetworkEvaluation {
    pub(super) games: u64,
    /// Played turns.
    pub(super) turns: u64,
    /// The values at the turns' starts against the results.
    pub(super) values: Calibration,
    /// Played steps, and among them those that the policy finds likeliest. The end of a shorter turn is a step too.
    pub(super) likeliest: Share,
    /// The sum of -ln of the policy's probability of those steps.
    pub(super) losses: f64,
    /// The same for equal probabilities of all legal steps.
    pub(super) even_losses: f64,
    /// Turns that begin with a goal within reach, and among them those in which the policy's first choice wins.
    pub(super) goals: Share,
}

impl NetworkEvaluation {
    pub(super) fn add(&mut self, other: &Self) {
        self.games += other.games;
        self.turns += other.turns;
        self.values.add(&other.values);
        self.likeliest.add(other.likeliest);
        self.losses += other.losses;
        self.even_losses += other.even_losses;
        self.goals.add(other.goals);
    }
}

/// A step state of a game.
struct Decision {
    query: Query,
    /// The index of the played step among the legal ones.
    played: usize,
    /// Set at the start of a turn, in games that were won on the board or by resignation.
    decided: Option<Decided>,
}

/// A game that was won.
#[derive(Clone, Copy, PartialEq)]
struct Decided {
    /// Its number among the games that are judged together.
    game: usize,
    winner: Side,
}

/// A turn that begins with a goal within reach, and the policy's turn there.
struct GoalTest {
    game: Game,
    sampler: PolicySampler,
}

/// Evaluates the states of games.
pub(super) struct Judge {
    channel: Box<dyn EvaluationChannel>,
    answers: Evaluations,
    decisions: Vec<Decision>,
    goals: Vec<GoalTest>,
    turns: u64,
    /// Games taken so far.
    games: usize,
}

impl Judge {
    pub(super) fn new(channel: Box<dyn EvaluationChannel>) -> Self {
        Self {
            channel,
            answers: Evaluations::default(),
            decisions: Vec::new(),
            goals: Vec::new(),
            turns: 0,
            games: 0,
        }
    }

    /// Takes a game's positions, to judge them with others; none of a game that breaks the rules.
    pub(super) fn take(&mut self, record: &GameRecord) -> Result<(), ReplayError> {
        let turns = replay(record)?;
        let mut game = record.new_game()?;
        // A game lost on time has no result of its positions.
        let winner = match record.ending {
            Ending::Won(_) | Ending::Resigned { .. } => record.ending.winner(),
            Ending::Unfinished { .. } | Ending::Forfeited { .. } => None,
        };
        self.games += 1;
        let decided = winner.map(|winner| Decided {
            game: self.games,
            winner,
        });
        for (replayed, turn) in turns.into_iter().zip(&record.turns) {
            if replayed.position.phase() == Phase::Play {
                self.turns += 1;
                self.take_turn(&game, &turn.actions, replayed.repetitions, decided);
            }
            game.play_unchecked(replayed.turn);
        }
        Ok(())
    }

    fn take_turn(
        &mut self,
        game: &Game,
        actions: &[u16],
        repetitions: u8,
        decided: Option<Decided>,
    ) {
        let mut state = StepState::new(game.position());
        let side = state.side();
        if goal_in(&state, TURN_STEPS).is_some()
            && let Ok(sampler) = PolicySampler::new(game.position(), game.history(), 0.0)
        {
            let game = game.clone();
            self.goals.push(GoalTest { game, sampler });
        }
        let played = actions
            .iter()
            .map(|&index| Action::from_index(index.into(), side));
        // The end of a shorter turn is not recorded.
        for (step, action) in played.chain([Some(Action::End)]).flatten().enumerate() {
            // A search evaluates no won position.
            let is_won = goal_in(&state, 0).is_some() || elimination_in(&state, 0).is_some();
            if state.is_complete() || is_won {
                break;
            }
            let legal = state.legal_actions(game.history());
            let Some(played) = legal.in_index_order(side).position(|legal| legal == action) else {
                break;
            };
            self.decisions.push(Decision {
                query: Query {
                    state,
                    legal,
                    repetitions,
                },
                played,
                decided: decided.filter(|_| step == 0),
            });
            if action == Action::End {
                break;
            }
            state = state.after(action);
        }
    }

    /// Evaluates all positions taken so far.
    pub(super) fn form(&mut self, evaluation: &mut NetworkEvaluation) -> Result<()> {
        evaluation.turns += std::mem::take(&mut self.turns);
        let decisions = std::mem::take(&mut self.decisions);
        let mut values = Vec::new();
        for batch in decisions.chunks(BATCH) {
            let queries: Vec<Query> = batch.iter().map(|decision| decision.query).collect();
            self.evaluate(&queries)?;
            for (index, decision) in batch.iter().enumerate() {
                let answer = self.answers.get(index);
                let answer = answer.ok_or_else(|| anyhow::anyhow!("an answer is missing"))?;
                answer.check(self.channel.name(), &decision.query)?;
                evaluation.count(decision, answer.priors);
                values.extend(decision.decided.map(|decided| (decided, answer.value)));
            }
        }
        for game in values.chunk_by(|(game, _), (next, _)| game == next) {
            let (decided, _) = game[0];
            let values: Vec<f32> = game.iter().map(|&(_, value)| value).collect();
            evaluation.values.count(&values, decided.winner);
        }
        let mut goals = std::mem::take(&mut self.goals);
        for batch in goals.chunks_mut(BATCH) {
            evaluation.goals.add(self.test_goals(batch)?);
        }
        Ok(())
    }

    fn evaluate(&mut self, queries: &[Query]) -> Result<()> {
        self.channel.submit(0, queries)?;
        self.channel.receive(0, &mut self.answers)?;
        ensure!(
            self.answers.len() == queries.len(),
            "{}: {} answers came to {} queries",
            self.channel.name(),
            self.answers.len(),
            queries.len()
        );
        Ok(())
    }

    /// Lets the policy play its likeliest turn in each, and returns the share that wins.
    fn test_goals(&mut self, tests: &mut [GoalTest]) -> Result<Share> {
        // At temperature 0 nothing is random.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        loop {
            let mut queries = Vec::new();
            let mut askers = Vec::new();
            for (number, test) in tests.iter_mut().enumerate() {
                let leaves = test.sampler.leaves(test.game.history(), &mut rng);
                queries.extend_from_slice(leaves);
                askers.extend((0..leaves.len()).map(|leaf| (number, leaf)));
            }
            if queries.is_empty() {
                break;
            }
            self.evaluate(&queries)?;
            for (index, (number, leaf)) in askers.into_iter().enumerate() {
                if let (Some(answer), Some(test)) = (self.answers.get(index), tests.get_mut(number))
                {
                    test.sampler.answer(leaf, self.channel.name(), answer)?;
                }
            }
        }
        let mut won = Share::default();
        for test in tests {
            let side = test.game.position().side();
            if let Some(decision) = test.sampler.decision() {
                test.game.play(&decision.turn)?;
            }
            won.whole += 1;
            won.part += u64::from(
                test.game
                    .outcome()
                    .is_some_and(|outcome| outcome.winner == side),
            );
        }
        Ok(won)
    }
}

impl NetworkEvaluation {
    fn count(&mut self, decision: &Decision, priors: &[f32]) {
        let Some(&played) = priors.get(decision.played) else {
            return;
        };
        let first = priors.iter().take(decision.played);
        let later = priors.iter().skip(decision.played + 1);
        // Of equal ones the policy plays the first.
        let is_likeliest = first.into_iter().all(|&other| other < played)
            && later.into_iter().all(|&other| other <= played);
        self.likeliest.whole += 1;
        self.likeliest.part += u64::from(is_likeliest);
        self.losses -= f64::from(played).max(MIN_PROBABILITY).ln();
        self.even_losses += (priors.len() as f64).ln();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::channel::LocalChannel;
    use arimaa::rules::{Outcome, Position, Reason};
    use engine::record::{GameId, Start, StartPosition, TurnOrigin, TurnRecord};
    use engine::search::{Evaluator, EvaluatorError};

    /// Gold's rabbit on a7 can step to the goal.
    const GOAL: &str = "g [        R      r                            E                   ]";

    /// Prefers one action wherever it is legal, and gives Gold a win probability of 3/4.
    struct Prefers(Action);

    impl Evaluator for Prefers {
        fn name(&self) -> &str {
            "prefers"
        }

        fn evaluate(
            &mut self,
            queries: &[Query],
            out: &mut Evaluations,
        ) -> Result<(), EvaluatorError> {
            out.clear();
            for query in queries {
                let legal: Vec<Action> = query.legal.in_index_order(query.side()).collect();
                let weight = |action: &Action| if *action == self.0 { 9.0 } else { 1.0 };
                let sum: f32 = legal.iter().map(weight).sum();
                out.push(0.75, legal.iter().map(|action| weight(action) / sum));
            }
            Ok(())
        }
    }

    /// A game of one turn of one step.
    fn record(action: Action, ending: Ending) -> GameRecord {
        let position: Position = GOAL.parse().unwrap();
        GameRecord {
            id: GameId {
                generator: 0,
                counter: 0,
            },
            seed: 0,
            start: Start::Position(StartPosition::new(&position)),
            evaluators: Vec::new(),
            turns: vec![TurnRecord {
                actions: vec![action.index(Side::Gold) as u16],
                origin: TurnOrigin::Given,
                rows: Vec::new(),
            }],
            ending,
            resignation_waived: None,
        }
    }

    const WON: Ending = Ending::Won(Outcome {
        winner: Side::Gold,
        reason: Reason::Goal,
    });

    const OPEN: Ending = Ending::Unfinished { value: None };

    fn action(text: &str) -> Action {
        text.parse().unwrap()
    }

    fn evaluation(preferred: Action, records: &[GameRecord]) -> NetworkEvaluation {
        let mut judge = Judge::new(Box::new(LocalChannel::new(Box::new(Prefers(preferred)))));
        let mut evaluation = NetworkEvaluation::default();
        records
            .iter()
            .for_each(|record| judge.take(record).unwrap());
        judge.form(&mut evaluation).unwrap();
        evaluation
    }

    /// Six steps are legal: the rabbit's north and east, and the elephant's.
    #[test]
    fn steps_and_values_are_compared_with_the_game() {
        let goal = action("a7n");
        let evaluation = evaluation(goal, &[record(goal, WON)]);
        assert_eq!(evaluation.turns, 1);
        assert_eq!(
            (evaluation.likeliest.part, evaluation.likeliest.whole),
            (1, 1)
        );
        assert!((evaluation.losses + (9f64 / 14.0).ln()).abs() < 1e-6);
        assert!((evaluation.even_losses - 6f64.ln()).abs() < 1e-9);
        let values = evaluation.values.report();
        assert_eq!((values.values, values.brier), (1, Some(0.0625)));
        assert_eq!((evaluation.goals.part, evaluation.goals.whole), (1, 1));
    }

    #[test]
    fn a_turn_s_end_is_a_step_and_a_goal_may_be_missed() {
        let east = action("e3e");
        let games = [record(east, OPEN), record(action("a7n"), WON)];
        let evaluation = evaluation(Action::End, &games);
        // The end after e3e is the likeliest. All first steps are as likely: the first of them is one of the rabbit's or the elephant's,
        // and only one game has it.
        assert_eq!(evaluation.turns, 2);
        assert_eq!(evaluation.likeliest.whole, 3);
        assert!(evaluation.likeliest.part >= 1);
        assert_eq!(evaluation.values.report().values, 1, "one game is decided");
        // The likeliest turn is a step of the elephant, and the end.
        assert_eq!((evaluation.goals.part, evaluation.goals.whole), (0, 2));
    }

    #[test]
    fn a_game_against_the_rules_is_refused_as_a_whole() {
        let mut judge = Judge::new(Box::new(LocalChannel::new(Box::new(Prefers(Action::End)))));
        assert!(judge.take(&record(action("a7s"), OPEN)).is_err());
        let mut evaluation = NetworkEvaluation::default();
        judge.form(&mut evaluation).unwrap();
        assert_eq!((evaluation.turns, evaluation.likeliest.whole), (0, 0));
    }
}
