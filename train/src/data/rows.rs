//! The rows of a recorded game, as training sees them.

use engine::encoding::{InputRow, LegalMask, encode};
use engine::rules::Side;
use engine::shard::{Ending, GameRecord, ReplayError, ReplayedTurn, replay};

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
    /// The weight of the three losses above: that of the value where the game was won on the board, else 0.
    pub(crate) outcome_weight: f32,
    /// The target of the policy at the start of the opponent's next turn: entries, as the mover of this row sees the board, with
    /// shares that sum to [`POLICY_TOTAL`](engine::shard::POLICY_TOTAL).
    pub(crate) reply: Box<[(u16, u16)]>,
    /// The weight of the reply's loss: that of the policy where there is a reply to learn from, else 0.
    pub(crate) reply_weight: f32,
}

/// A row's weight is counted in so many parts of 1.
pub(super) const WEIGHT_UNITS: u32 = 256;

/// No row weighs more than this: whatever a file says, no row is drawn more often in an epoch.
const GREATEST_WEIGHT: f32 = 1_000.0;

/// What the index holds of a game: the sum of its rows' weights in [`WEIGHT_UNITS`]ths, and the bytes that they may take in a pool.
pub(super) fn game_weight(record: &GameRecord) -> (u32, u32) {
    let rows = record.turns.iter().flat_map(|turn| &turn.rows);
    let weights = rows.map(|row| f64::from(row.weight.min(GREATEST_WEIGHT)));
    let weight = weights.sum::<f64>() * f64::from(WEIGHT_UNITS);
    // Whatever is no number or too large for the type becomes 0 or the largest: the game is checked when it is read.
    (weight.round() as u32, 0)
}

/// All rows of a game, in order; the game is checked under the rules. The value's target is the game's result, with a share of
/// `search_value_share` of the search's value in it where the turn was searched. Where nobody has won on the board or by giving up,
/// the rows teach the policy alone. (An unfinished game's values would teach the network its own errors: trained on each turn's, it
/// drifted to win probabilities of 0.32 at the start of a turn.)
pub(crate) fn rows_of(
    record: &GameRecord,
    search_value_share: f32,
) -> Result<Vec<TrainingRow>, ReplayError> {
    let mut rows = Vec::new();
    let result_weight = match record.ending {
        Ending::Won(_) | Ending::Resigned { .. } => 1.0,
        Ending::Unfinished { .. } | Ending::Forfeited { .. } => 0.0,
    };
    for turn in replay(record)? {
        let side = turn.position.side();
        let value = value_target(&turn, side, search_value_share);
        let share = 1.0 / turn.rows.len().max(1) as f32;
        rows.extend(turn.rows.iter().map(|row| TrainingRow {
            input: encode(&row.state, turn.repetitions),
            legal: LegalMask::new(&row.legal, side),
            policy: row.policy.into(),
            weight: row.weight,
            value,
            value_weight: row.weight * share * result_weight,
            helpers: HelperTargets::default(),
        }));
    }
    Ok(rows)
}

/// The mover's win probability that a network should learn for a turn.
fn value_target(turn: &ReplayedTurn, mover: Side, search_value_share: f32) -> f32 {
    let result = match turn.ending {
        Ending::Unfinished { value } => value.unwrap_or(0.5),
        ending => f32::from(u8::from(ending.winner() == Some(Side::Gold))),
    };
    let searched = turn.origin.search().map_or(result, |search| search.value);
    let gold = result + search_value_share * (searched - result);
    match mover {
        Side::Gold => gold,
        Side::Silver => 1.0 - gold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::shard::{GameId, samples::random_game};

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
        let rows = rows_of(&record, 0.0).unwrap();
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
        let targets = |share| {
            let mut rows = rows_of(&record, share).unwrap().into_iter();
            let turns = record.turns.iter();
            turns
                .map(|turn| rows.by_ref().take(turn.rows.len()).last().unwrap().value)
                .collect::<Vec<f32>>()
        };
        for (index, ((result, mix), turn)) in targets(0.0)
            .iter()
            .zip(targets(0.25))
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
    fn an_unfinished_game_teaches_the_policy_alone() {
        let mut record = game(9);
        let Ending::Unfinished { value: Some(last) } = record.ending else {
            panic!("{:?}", record.ending);
        };
        let rows = |record: &GameRecord| rows_of(record, 0.0).unwrap();
        let unfinished = rows(&record);
        assert!(
            unfinished
                .iter()
                .all(|row| row.value_weight == 0.0 && row.weight > 0.0)
        );
        assert_eq!(unfinished[0].value, last, "nobody has lost");
        let winner = Side::Silver;
        record.ending = Ending::Forfeited { winner };
        assert!(rows(&record).iter().all(|row| row.value_weight == 0.0));
        record.ending = Ending::Resigned { winner };
        let resigned = rows(&record);
        assert!(resigned.iter().all(|row| row.value_weight > 0.0));
        assert_eq!(resigned[0].value, 0.0, "Gold has lost");
    }

    #[test]
    fn the_turns_of_others_are_learned_with_the_result_alone() {
        let mut record = game(1_000);
        let searched = rows_of(&record, 0.5).unwrap();
        for turn in &mut record.turns {
            turn.origin = engine::shard::TurnOrigin::Given;
        }
        let given = rows_of(&record, 0.5).unwrap();
        let result = rows_of(&record, 0.0).unwrap();
        assert_eq!(given, result);
        assert_ne!(given, searched);
    }
}
