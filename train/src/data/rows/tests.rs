use super::*;
use crate::data::samples::{self, targets};
use arimaa::rules::{Action, Phase, Side};
use engine::record::{Ending, GameId, TurnOrigin, samples::random_game};

impl GameRows {
    /// Rows with targets and weights of a test's own.
    pub(crate) fn replaced<'a>(
        rows: impl IntoIterator<Item = RowRef<'a>>,
        mut target: impl FnMut(RowRef<'a>, Head, &mut dyn FnMut(Target)),
    ) -> Self {
        let mut shares = Shares::default();
        let rows = rows.into_iter().map(|row| Row {
            weight: 1.0,
            weights: [1.0; RowWeight::ALL.len()],
            targets: PerHead::from_fn(|head| {
                let mut kept = 0;
                target(row, head, &mut |target| kept = shares.keep(target));
                kept
            }),
            ..*row.row
        });
        Self {
            rows: rows.collect(),
            shares: shares.all.into(),
        }
    }

    /// Gives a row other weights.
    pub(crate) fn set_weights(&mut self, row: usize, weights: [f32; RowWeight::ALL.len()]) {
        self.rows[row].weights = weights;
    }

    /// What they take in memory.
    pub(in super::super) fn bytes(&self) -> usize {
        BYTES_PER_GAME + size_of_val(&self.rows[..]) + size_of_val(&self.shares[..])
    }
}

impl RowRef<'_> {
    pub(crate) fn number(&self, head: Head) -> f32 {
        match self.target(head) {
            Target::Number(number) => number,
            other => panic!("{head:?}: {other:?}"),
        }
    }

    pub(crate) fn squares(&self, head: Head) -> u64 {
        match self.target(head) {
            Target::Squares(squares) => squares,
            other => panic!("{head:?}: {other:?}"),
        }
    }

    pub(crate) fn class(&self, head: Head) -> u8 {
        match self.target(head) {
            Target::Class(class) => class,
            other => panic!("{head:?}: {other:?}"),
        }
    }

    pub(crate) fn policy(&self) -> &[u16] {
        match self.target(Head::Policy) {
            Target::LegalShares(shares) => shares,
            other => panic!("{other:?}"),
        }
    }

    fn reply(&self) -> &[[u16; 2]] {
        match self.target(Head::Reply) {
            Target::Shares(shares) => shares,
            other => panic!("{other:?}"),
        }
    }
}

fn game(max_turns: usize) -> GameRecord {
    let id = GameId {
        generator: 1,
        counter: 2,
    };
    random_game(id, 3, max_turns)
}

fn all(record: &GameRecord, search_value_share: f32) -> GameRows {
    GameRows::all(record, targets(search_value_share)).unwrap()
}

/// The turn of each row of a record.
fn turns_of_rows(record: &GameRecord) -> Vec<usize> {
    let turns = record.turns.iter().enumerate();
    let turns = turns.flat_map(|(index, turn)| vec![index; turn.rows.len()]);
    turns.collect()
}

#[test]
fn every_target_is_kept_as_it_is() {
    let record = game(1_000);
    let turns = replay(&record).unwrap();
    let targets = GameTargets::new(&turns, targets(0.25));
    let game = all(&record, 0.25);
    let mut rows = game.rows();
    for (index, turn) in turns.iter().enumerate() {
        let of_turn = targets.turn(index);
        for row in &turn.rows {
            let kept = rows.next().unwrap();
            for head in Head::ALL {
                assert_eq!(kept.target(head), of_turn.of(head, row), "{head:?}");
            }
        }
    }
    assert!(rows.next().is_none());
}

#[test]
fn every_recorded_row_comes_with_its_own_target() {
    let mut record = game(1_000);
    // A target that differs from others.
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
    let game = all(&record, 0.0);
    let recorded: Vec<_> = record.turns.iter().flat_map(|turn| &turn.rows).collect();
    assert_eq!(game.len(), recorded.len());
    for (number, (row, recorded)) in game.rows().zip(recorded).enumerate() {
        let policy = row.policy();
        assert_eq!(*policy, recorded.policy[..]);
        assert_eq!(row.legal().count(), policy.len());
        assert_eq!(policy[number % policy.len()], u16::MAX);
        assert_eq!(row.weight(RowWeight::Policy), 2.0);
    }
    let turn_weights: f32 = game.rows().map(|row| row.weight(RowWeight::Value)).sum();
    assert!((turn_weights - 2.0 * record.turns.len() as f32).abs() < 1e-2);
}

#[test]
fn the_value_is_the_movers_mix_of_result_and_search() {
    let record = game(1_000);
    let Ending::Won(outcome) = record.ending else {
        panic!("the game of this seed ends by the rules");
    };
    let values = |share| {
        let game = all(&record, share);
        let mut rows = game.rows();
        let turns = record.turns.iter();
        turns
            .map(|turn| {
                let last = rows.by_ref().take(turn.rows.len()).last();
                last.unwrap().number(Head::Value)
            })
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
    let weights =
        |game: &GameRows, of| -> Vec<f32> { game.rows().map(|row| row.weight(of)).collect() };
    let none = |weights: Vec<f32>| weights.iter().all(|&weight| weight == 0.0);
    assert!(none(weights(&all(&record, 0.25), RowWeight::Reply)));
    let winner = Side::Silver;
    for ending in [record.ending, Ending::Forfeited { winner }] {
        record.ending = ending;
        let mixed = all(&record, 0.25);
        assert!(none(weights(&mixed, RowWeight::Outcome)));
        assert!(
            weights(&mixed, RowWeight::Policy)
                .iter()
                .all(|&weight| weight > 0.0)
        );
        // A quarter of a turn is left, over the turn's eight rows.
        let first = mixed.rows().next().unwrap();
        assert_eq!(first.weight(RowWeight::Value), 0.25 / 8.0);
        let searched = record.turns[0].search().unwrap().value;
        assert_eq!(first.number(Head::Value), searched);
        assert!(none(weights(&all(&record, 0.0), RowWeight::Value)));
    }
    record.ending = Ending::Resigned { winner };
    let resigned = all(&record, 0.0);
    assert!(
        weights(&resigned, RowWeight::Value)
            .iter()
            .all(|&weight| weight > 0.0)
    );
    assert!(none(weights(&resigned, RowWeight::Outcome)));
    let first = resigned.rows().next().unwrap();
    assert_eq!(first.number(Head::Value), 0.0, "Gold has lost");
}

#[test]
fn rows_that_weigh_nothing_are_none() {
    let mut record = game(9);
    let whole = all(&record, 1.0);
    record.turns[2].rows[0].weight = 0.0;
    let fewer = all(&record, 1.0);
    assert_eq!(fewer.len(), whole.len() - 1);
    // The others of the turn share its value among them.
    let of_turn: f32 = fewer
        .rows()
        .skip(16)
        .take(3)
        .map(|row| row.weight(RowWeight::Value))
        .sum();
    let left = record.turns[2].rows.len() as f32 - 1.0;
    assert!((of_turn - 3.0 / left).abs() < 1e-6);
}

#[test]
fn the_turns_of_others_are_learned_with_the_result_alone() {
    let mut record = game(1_000);
    let searched = all(&record, 0.5);
    for turn in &mut record.turns {
        turn.origin = TurnOrigin::Given;
    }
    let given = all(&record, 0.5);
    assert_eq!(given, all(&record, 0.0));
    assert_ne!(given, searched);
}

#[test]
fn the_reply_is_the_next_turns_first_target_as_the_mover_sees_it() {
    let record = samples::game(5, 1_000);
    assert!(matches!(record.ending, Ending::Won(_)));
    let replayed = replay(&record).unwrap();
    let game = all(&record, 0.0);
    for (row, turn) in game.rows().zip(turns_of_rows(&record)) {
        let Some(next) = replayed.get(turn + 1) else {
            assert!(row.reply().is_empty() && row.weight(RowWeight::Reply) == 0.0);
            continue;
        };
        let (mover, opponent) = (replayed[turn].position.side(), next.position.side());
        let first = &next.rows[0];
        let mut expected: Vec<[u16; 2]> = first
            .legal
            .in_index_order(opponent)
            .map(|action| action.index(mover) as u16)
            .zip(first.policy.iter().copied())
            .filter(|&(_, share)| share > 0)
            .map(|(index, share)| [index, share])
            .collect();
        let mut reply = row.reply().to_vec();
        reply.sort_unstable();
        expected.sort_unstable();
        assert_eq!(reply, expected);
        assert_eq!(row.weight(RowWeight::Reply), 1.0);
    }
    // By hand: Silver's first placement on a8 is one on a1 in her eyes, and on a8 in Gold's.
    let first = game.row(0);
    assert!(
        first
            .reply()
            .iter()
            .all(|&[index, _]| (256 + 48..256 + 64).contains(&index))
    );
}

#[test]
fn where_the_next_turn_has_no_such_row_the_reply_is_what_was_played() {
    let mut record = samples::game(5, 1_000);
    for turn in &mut record.turns {
        turn.rows.retain(|row| row.step != 0);
    }
    let replayed = replay(&record).unwrap();
    let game = all(&record, 0.0);
    for (row, turn) in game.rows().zip(turns_of_rows(&record)) {
        let Some(next) = record.turns.get(turn + 1) else {
            continue;
        };
        let opponent = replayed[turn + 1].position.side();
        let [[index, share]] = row.reply() else {
            panic!("{:?}", row.reply());
        };
        assert_eq!(*share, u16::MAX);
        // Placements are replayed in the setup's order, not in the recorded one.
        if replayed[turn + 1].position.phase() == Phase::Play {
            let played = Action::from_index(next.actions[0].into(), opponent).unwrap();
            assert_eq!(usize::from(*index), played.index(opponent.opponent()));
        }
    }
}

#[test]
fn a_game_takes_no_more_than_the_index_says() {
    for counter in 0..20 {
        let mut record = samples::game(counter, [100, 1_000][counter as usize % 2]);
        for (number, turn) in record.turns.iter_mut().enumerate() {
            match number % 4 {
                0 => turn.rows.retain(|row| row.step != 0),
                1 => turn.rows.iter_mut().for_each(|row| row.weight = 0.0),
                2 => turn.origin = TurnOrigin::Given,
                _ => turn.rows.iter_mut().for_each(|row| row.weight = 2.5),
            }
        }
        let drawn = |draws: fn(f32) -> u16| GameRows::drawn(&record, targets(0.0), draws).unwrap();
        let game = drawn(|weight| weight.ceil() as u16);
        let draws: usize = game.draws().map(usize::from).sum();
        let (weight, bytes) = game_weight(&record);
        let taken = game.bytes() + draws * BYTES_PER_DRAW;
        // Actions of a reply that have no share are left out.
        assert!(taken <= bytes as usize && taken > bytes as usize * 9 / 10);
        let weights: f32 = game.rows.iter().map(|row| row.weight).sum();
        assert_eq!(weight, (weights * 256.0) as u32);
        let half = drawn(|weight| (weight > 1.0).into());
        assert!(half.bytes() < game.bytes());
        let rows = half.rows.iter().map(|row| row.weight);
        assert!(rows.clone().count() > 0 && rows.into_iter().all(|weight| weight == 2.5));
    }
}

#[test]
fn a_game_that_breaks_the_rules_is_refused() {
    let mut record = samples::game(1, 10);
    record.turns[3].actions[0] = 320;
    assert!(GameRows::all(&record, targets(0.0)).is_err());
}
