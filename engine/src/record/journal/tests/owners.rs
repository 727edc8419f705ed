//! Each journal has one owner at a time, and is taken over by one.

use super::*;

#[test]
fn a_generator_has_one_journal_at_a_time() {
    let root = run();
    let (journal, _) = open(root.path(), 3);
    play(&journal, &game(3, 0, 2));
    let error = fault_of(root.path(), 3);
    assert!(
        matches!(error.fault, JournalFault::Locked { generator: 3 }),
        "{error}"
    );
    assert!(error.path.ends_with("003.lock"), "{error}");
    // Nor does another take what is locked.
    assert_eq!(open(root.path(), 4).1.games.len(), 0);
    play(&journal, &game(3, 1, 2));
    drop(journal);
    assert_eq!(open(root.path(), 3).1.games.len(), 2);
}

#[test]
fn unlocked_journals_are_adopted() {
    let root = run();
    let records = [game(3, 0, 4), game(4, 0, 3), game(5, 0, 2)];
    let mut live = Vec::new();
    for record in &records {
        let (journal, _) = open(root.path(), record.id.generator);
        play(&journal, record);
        live.push(journal);
    }
    // A crash when some files had been renamed and others not: each has one owner.
    drop(live.remove(0));
    let crashed = copy(root.path());
    let folder = crashed.path().join("journal");
    fs::rename(
        folder.join("003-000000.journal"),
        folder.join("004-000001.adopted"),
    )
    .unwrap();
    check_crash(crashed.path(), &records, 4);
    let crashed = copy(root.path());
    let folder = crashed.path().join("journal");
    fs::rename(
        folder.join("003-000000.journal"),
        folder.join("004-000001.adopted"),
    )
    .unwrap();
    check_crash(crashed.path(), &records, 5);
    check_crash(crashed.path(), &records, 5);

    let (journal, recovery) = open(root.path(), 6);
    assert_eq!(offered(&recovery, &records), [(records[0].id, 4)]);
    let error = fault_of(root.path(), 3);
    assert!(
        matches!(error.fault, JournalFault::TakenOver { generator: 3 }),
        "{error}"
    );
    drop((journal, live));
    check_crash(root.path(), &records, 7);
}

#[test]
fn a_game_in_two_journals_is_named_and_resumed_once() {
    let root = run();
    let record = game(3, 0, 4);
    let (journal, _) = open(root.path(), 3);
    play(&journal, &record);
    drop(journal);
    let folder = root.path().join("journal");
    fs::copy(
        folder.join("003-000000.journal"),
        folder.join("004-000000.journal"),
    )
    .unwrap();
    let (_journal, recovery) = open(root.path(), 5);
    assert_eq!(offered(&recovery, &[record]).len(), 1);
    assert!(matches!(recovery.left[0].fault, JournalFault::Twice(_)));
    assert!(folder.join("004-000000.journal").exists());
}

#[test]
fn journals_are_taken_over_by_one_of_many() {
    for round in 0..10 {
        let root = run();
        let mut live = Vec::new();
        let records: Vec<GameRecord> = (0..6).map(|generator| game(generator, 0, 2)).collect();
        for record in &records {
            let (journal, _) = open(root.path(), record.id.generator);
            play(&journal, record);
            // Each takes over the one before, but for some that live until the last has begun.
            if round % 2 == 0 && record.id.generator % 2 == 0 {
                live.push(journal);
            }
        }
        // Locks end with the process; a copy is as after its end.
        let crashed = copy(root.path());
        let barrier = std::sync::Barrier::new(4);
        let opened: Vec<(Journal, Recovery)> = std::thread::scope(|scope| {
            let opened: Vec<_> = (10..14)
                .map(|generator| {
                    let (crashed, barrier) = (crashed.path(), &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        open(crashed, generator)
                    })
                })
                .collect();
            opened
                .into_iter()
                .map(|opened| opened.join().unwrap())
                .collect()
        });
        let mut found: Vec<GameId> = opened
            .iter()
            .flat_map(|(_, recovery)| offered(recovery, &records))
            .map(|game| game.0)
            .collect();
        found.sort();
        let ids: Vec<GameId> = records.iter().map(|record| record.id).collect();
        assert_eq!(found, ids, "round {round}");
    }
}
