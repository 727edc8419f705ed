//! What holds of any games and of any bytes.

use super::*;
use proptest::prelude::*;

fn arbitrary_turn() -> impl Strategy<Value = TurnRecord> {
    let row = (
        any::<u8>(),
        any::<u32>(),
        prop::collection::vec(any::<u16>(), 0..40),
        any::<f32>(),
        any::<f32>(),
    )
        .prop_map(|(step, visits, policy, surprise, weight)| RowRecord {
            step,
            visits,
            policy,
            surprise,
            weight,
        });
    (
        prop::collection::vec(any::<u16>(), 0..9),
        arbitrary_origin(),
        prop::collection::vec(row, 0..5),
    )
        .prop_map(|(actions, origin, rows)| TurnRecord {
            actions,
            origin,
            rows,
        })
}

fn arbitrary_origin() -> impl Strategy<Value = TurnOrigin> {
    let kind = prop::sample::select(&[SearchKind::Full, SearchKind::Fast]);
    let numbers = (any::<u16>(), any::<u32>(), any::<u32>(), any::<u32>());
    let values = (any::<f32>(), any::<f32>());
    let search = (kind, numbers, values).prop_map(|(kind, numbers, values)| {
        let (evaluator, budget, evaluations, visits) = numbers;
        let (value, network_value) = values;
        TurnOrigin::Search(SearchRecord {
            evaluator,
            kind,
            budget,
            evaluations,
            visits,
            value,
            network_value,
        })
    });
    let policy =
        (any::<u16>(), any::<f32>()).prop_map(|(evaluator, network_value)| TurnOrigin::Policy {
            evaluator,
            network_value,
        });
    prop_oneof![Just(TurnOrigin::Given), policy, search]
}

fn arbitrary_start() -> impl Strategy<Value = Start> {
    let side = prop::sample::select(&Side::ALL);
    let position = (any::<[u64; 12]>(), side)
        .prop_map(|(pieces, side)| Start::Position(StartPosition { pieces, side }));
    let fork = arbitrary_id().prop_map(|game| Start::Fork { game });
    prop_oneof![Just(Start::Empty), Just(Start::Opening), fork, position]
}

fn arbitrary_ending() -> impl Strategy<Value = Ending> {
    let reason = prop::sample::select(&[Reason::Goal, Reason::Elimination, Reason::Immobilization]);
    let side = || prop::sample::select(&Side::ALL);
    prop_oneof![
        (side(), reason).prop_map(|(winner, reason)| Ending::Won(Outcome { winner, reason })),
        any::<Option<f32>>().prop_map(|value| Ending::Unfinished { value }),
        side().prop_map(|winner| Ending::Resigned { winner }),
        side().prop_map(|winner| Ending::Forfeited { winner }),
    ]
}

fn arbitrary_id() -> impl Strategy<Value = GameId> {
    (any::<u32>(), any::<u64>()).prop_map(|(generator, counter)| GameId { generator, counter })
}

fn arbitrary_game() -> impl Strategy<Value = GameRecord> {
    let evaluator = ("[a-z0-9]{0,9}", "[a-f0-9]{0,64}")
        .prop_map(|(name, identity)| EvaluatorId { name, identity });
    let waived = (any::<u32>(), prop::sample::select(&Side::ALL))
        .prop_map(|(turn, loser)| WaivedResignation { turn, loser });
    (
        (arbitrary_id(), any::<u64>(), arbitrary_start()),
        prop::collection::vec(evaluator, 0..3),
        prop::collection::vec(arbitrary_turn(), 0..12),
        (arbitrary_ending(), prop::option::of(waived)),
    )
        .prop_map(
            |((id, seed, start), evaluators, turns, (ending, resignation_waived))| GameRecord {
                id,
                seed,
                start,
                evaluators,
                turns,
                ending,
                resignation_waived,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(games in prop::collection::vec(arbitrary_game(), 0..6)) {
        let folder = tempfile::tempdir().unwrap();
        let path = write_shard(folder.path(), &games);
        let mut reader = ShardReader::open(&path).unwrap();
        prop_assert_eq!(reader.header(), &header());
        let offsets = reader.frame_offsets().unwrap();
        prop_assert_eq!(offsets.len(), games.len());
        for index in (0..games.len()).rev() {
            prop_assert_eq!(&reader.read_at(offsets[index]).unwrap(), &games[index]);
        }
        let mut read = Vec::new();
        while let Some(game) = reader.next() {
            prop_assert_eq!(reader.last_location().offset, offsets[read.len()]);
            prop_assert_eq!(reader.last_location().frame, read.len() as u64 + 1);
            read.push(game.unwrap());
        }
        prop_assert_eq!(read, games);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        start in any::<bool>(),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if start {
            bytes.splice(0..0, shard_bytes(&[])[..START_BYTES as usize].iter().copied());
        }
        let (games, errors) = read_bytes(&bytes);
        prop_assert!(games.is_empty() && !errors.is_empty());
    }
}
