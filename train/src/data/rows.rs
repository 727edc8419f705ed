//! The rows of a recorded game, as training sees them.

use super::game_rows::GameRows;
use engine::config::TrainConfig;
use engine::encoding::{InputRow, LegalMask};
use engine::shard::{GameRecord, ReplayError};

/// One step state with what a network should say of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainingRow {
    /// The state as the network sees it.
    pub(crate) input: InputRow,
    /// The legal entries of the policy.
    pub(crate) legal: LegalMask,
    /// The policy's target over them, in ascending order of the entries; the sum is [`POLICY_TOTAL`](engine::shard::POLICY_TOTAL).
    pub(crate) policy: Box<[u16]>,
    /// The weight of the policy's loss.
    pub(crate) weight: f32,
    /// The target of the value: the mover's win probability.
    pub(crate) value: f32,
    /// The weight of the value's loss: a turn counts once, however many rows it has.
    pub(crate) value_weight: f32,
    /// What the helper heads should say.
    pub(crate) helpers: HelperTargets,
}

/// The targets of the heads that only training asks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct HelperTargets {
    /// The turns of both sides until the game's end, this one included.
    pub(crate) turns_left: f32,
    /// How the game ends: 0 goal, 1 elimination, 2 immobilization, where the mover wins, and the same plus 3 where the enemy does.
    pub(crate) ending: u8,
    /// The squares of the pieces now on the board, as the mover sees it.
    pub(crate) pieces: u64,
    /// Those of them whose pieces will be taken before the game's end.
    pub(crate) taken: u64,
    /// The weight of the three losses above: that of the value where the game was won on the board and no move was drawn at random
    /// on the way there, else 0.
    pub(crate) outcome_weight: f32,
    /// The target of the policy at the start of the opponent's next turn: entries, as the mover of this row sees the board, with
    /// shares that sum to [`POLICY_TOTAL`](engine::shard::POLICY_TOTAL).
    pub(crate) reply: Box<[(u16, u16)]>,
    /// The weight of the reply's loss: that of the policy where there is a reply to learn from, else 0.
    pub(crate) reply_weight: f32,
}

/// How results and searches become targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetOptions {
    /// The share of the search's value in the value's target; the rest is the result's.
    pub(crate) search_value_share: f32,
    /// About how many turns of searches stand for the result where a random move follows.
    pub(crate) short_horizon_turns: f32,
}

impl From<&TrainConfig> for TargetOptions {
    fn from(config: &TrainConfig) -> Self {
        Self {
            search_value_share: config.search_value_share,
            short_horizon_turns: config.short_horizon_turns,
        }
    }
}

/// All rows of a game that weigh anything, in order, with their recorded weights; the game is checked under the rules.
pub(crate) fn rows_of(
    record: &GameRecord,
    options: TargetOptions,
) -> Result<Vec<TrainingRow>, ReplayError> {
    let game = GameRows::of(record, options, |_| 1)?;
    let rows = game.rows.iter().enumerate().map(|(number, row)| {
        let view = game.view(number);
        TrainingRow {
            input: row.input,
            legal: row.legal,
            policy: view.policy.into(),
            weight: row.weight,
            value: row.value,
            value_weight: row.weight * row.value_weight,
            helpers: HelperTargets {
                turns_left: row.turns_left,
                ending: row.ending,
                pieces: row.input.pieces(),
                taken: row.taken,
                outcome_weight: row.weight * row.outcome_weight,
                reply: view.reply.into(),
                reply_weight: row.weight * view.reply_weight,
            },
        }
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::samples::targets;
    use arimaa::rules::Side;
    use engine::shard::{Ending, GameId, samples::random_game};

    fn game(max_turns: usize) -> GameRecord {
        let id = GameId {
            generator: 1,
            counter: 2,
        };
        random_game(id, 3, max_turns)
    }

    #[test]
    fn every_recorded_row_comes_with_its_own_target() {
        let mut record = game(1_000);
        // A target that can be told from others.
        for (number, row) in record
            .turns
            .iter_mut()
            .flat_map(|turn| &mut turn.rows)
            .enumerate()
        {
            row.policy.fill(0);
            let count = row.policy.len();
            row.policy[number % count] = u16::MAX;
            row.weight = 2.0;
        }
        let rows = rows_of(&record, targets(0.0)).unwrap();
        let recorded: Vec<_> = record.turns.iter().flat_map(|turn| &turn.rows).collect();
        assert_eq!(rows.len(), recorded.len());
        for (number, (row, recorded)) in rows.iter().zip(recorded).enumerate() {
            assert_eq!(*row.policy, recorded.policy[..]);
            assert_eq!(row.legal.count(), row.policy.len());
            assert_eq!(row.policy[number % row.policy.len()], u16::MAX);
            assert_eq!(row.weight, 2.0);
        }
        let turn_weights: f32 = rows.iter().map(|row| row.value_weight).sum();
        assert!((turn_weights - 2.0 * record.turns.len() as f32).abs() < 1e-2);
    }

    #[test]
    fn the_value_is_the_movers_mix_of_result_and_search() {
        let record = game(1_000);
        let Ending::Won(outcome) = record.ending else {
            panic!("the game of this seed ends by the rules");
        };
        let values = |share| {
            let mut rows = rows_of(&record, targets(share)).unwrap().into_iter();
            let turns = record.turns.iter();
            turns
                .map(|turn| rows.by_ref().take(turn.rows.len()).last().unwrap().value)
                .collect::<Vec<f32>>()
        };
        for (index, ((result, mix), turn)) in values(0.0)
            .iter()
            .zip(values(0.25))
            .zip(&record.turns)
            .enumerate()
        {
            let mover = Side::ALL[index % 2];
            let (gold, won) = (mover == Side::Gold, outcome.winner == mover);
            assert_eq!(*result, if won { 1.0 } else { 0.0 });
            let value = turn.search().unwrap().value;
            let searched = if gold { value } else { 1.0 - value };
            let expected = 0.75 * result + 0.25 * searched;
            assert!((mix - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn an_unfinished_game_teaches_policy_and_search_value_alone() {
        let mut record = game(9);
        assert!(matches!(record.ending, Ending::Unfinished { .. }));
        let rows = |record: &GameRecord, share| rows_of(record, targets(share)).unwrap();
        let winner = Side::Silver;
        for ending in [record.ending, Ending::Forfeited { winner }] {
            record.ending = ending;
            let mixed = rows(&record, 0.25);
            assert!(
                mixed
                    .iter()
                    .all(|row| row.weight > 0.0 && row.helpers.outcome_weight == 0.0)
            );
            // A quarter of a turn is left, over the turn's eight rows.
            assert_eq!(mixed[0].value_weight, 0.25 / 8.0);
            assert_eq!(mixed[0].value, record.turns[0].search().unwrap().value);
            assert!(rows(&record, 0.0).iter().all(|row| row.value_weight == 0.0));
        }
        record.ending = Ending::Resigned { winner };
        let resigned = rows(&record, 0.0);
        assert!(resigned.iter().all(|row| row.value_weight > 0.0));
        assert!(resigned.iter().all(|row| row.helpers.outcome_weight == 0.0));
        assert_eq!(resigned[0].value, 0.0, "Gold has lost");
    }

    #[test]
    fn rows_that_weigh_nothing_are_none() {
        let mut record = game(9);
        let all = rows_of(&record, targets(1.0)).unwrap();
        record.turns[2].rows[0].weight = 0.0;
        let rows = rows_of(&record, targets(1.0)).unwrap();
        assert_eq!(rows.len(), all.len() - 1);
        // The others of the turn share its value among them.
        let of_turn = |rows: &[TrainingRow]| {
            rows[16..16 + 3]
                .iter()
                .map(|row| row.value_weight)
                .sum::<f32>()
        };
        let left = record.turns[2].rows.len() as f32 - 1.0;
        assert!((of_turn(&rows) - 3.0 / left).abs() < 1e-6);
    }

    #[test]
    fn the_turns_of_others_are_learned_with_the_result_alone() {
        let mut record = game(1_000);
        let searched = rows_of(&record, targets(0.5)).unwrap();
        for turn in &mut record.turns {
            turn.origin = engine::shard::TurnOrigin::Given;
        }
        let given = rows_of(&record, targets(0.5)).unwrap();
        let result = rows_of(&record, targets(0.0)).unwrap();
        assert_eq!(given, result);
        assert_ne!(given, searched);
    }
}
