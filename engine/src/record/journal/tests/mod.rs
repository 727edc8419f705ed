//! Journals abandoned in every state, and written by many threads.

mod announced;
mod crashes;
mod damage;
mod full_disk;
mod owners;

use super::reader::Games;
use super::writer::{UNFINISHED, temporary};
use super::*;
use crate::record::{
    GameRecord, Header, ShardReader, ShardWriter, Start, StartPosition, TurnOrigin, list_shards,
    samples::random_game,
};
use arimaa::rules::{Kind, Piece, Side};
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A run's folder with nothing in it but folders.
fn run() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in ["journal", "shards"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    root
}

fn place(root: &Path, generator: u32) -> JournalPlace {
    JournalPlace {
        // Never: the tests say when.
        sync_every: Duration::from_secs(100_000),
        ..JournalPlace::new(root.join("journal"), root.join("shards"), generator)
    }
}

fn open(root: &Path, generator: u32) -> (Journal, Recovery) {
    Journal::open(place(root, generator)).unwrap()
}

fn fault_of(root: &Path, generator: u32) -> JournalError {
    Journal::open(place(root, generator)).err().unwrap()
}

fn game(generator: u32, counter: u64, max_turns: usize) -> GameRecord {
    random_game(GameId { generator, counter }, 5, max_turns)
}

fn begin(journal: &Journal, record: &GameRecord) {
    let beginning = Beginning {
        id: record.id,
        seed: record.seed,
        start: record.start,
    };
    journal.begin(beginning).unwrap();
    for (place, evaluator) in (0..).zip(&record.evaluators) {
        assert_eq!(journal.evaluator(record.id, evaluator).unwrap(), place);
    }
}

fn play(journal: &Journal, record: &GameRecord) {
    begin(journal, record);
    for (number, turn) in (0..).zip(&record.turns) {
        journal.turn(record.id, number, turn).unwrap();
    }
}

/// The ids of the games offered, and how many turns each has; what is offered must be the beginning of these records.
fn offered(recovery: &Recovery, records: &[GameRecord]) -> Vec<(GameId, usize)> {
    let mut offered = Vec::new();
    for game in &recovery.games {
        let id = game.beginning.id;
        let record = records.iter().find(|record| record.id == id).unwrap();
        assert_eq!(game.turns, record.turns[..game.turns.len()]);
        assert_eq!(game.beginning.seed, record.seed);
        assert_eq!(game.beginning.start, record.start);
        if game.turns.is_empty() {
            assert!(record.evaluators.starts_with(&game.evaluators));
        } else {
            assert_eq!(game.evaluators, record.evaluators);
        }
        offered.push((id, game.turns.len()));
    }
    offered
}

fn copy(from: &Path) -> TempDir {
    let to = run();
    for folder in ["journal", "shards"] {
        for entry in fs::read_dir(from.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            fs::copy(&path, to.path().join(folder).join(name)).unwrap();
        }
    }
    to
}

fn current_file(journal: &Journal) -> PathBuf {
    journal.shared.lock().file.path.clone()
}

fn begin_file(journal: &Journal) {
    let mut state = journal.shared.lock();
    state.begin_file(&journal.shared).unwrap();
}

fn read(bytes: &[u8]) -> Result<Games, JournalError> {
    let mut games = Games::default();
    games.read(Path::new("the.journal"), bytes)?;
    Ok(games)
}

#[test]
fn games_resume_where_they_were() {
    let root = run();
    let records = [game(3, 0, 9), game(3, 1, 4), game(3, 7, 0)];
    let (journal, recovery) = open(root.path(), 3);
    assert_eq!((recovery.games.len(), recovery.next_counter), (0, 0));
    records.iter().for_each(|record| play(&journal, record));
    for _ in 0..2 {
        // As after a kill: nothing is flushed or closed.
        let crashed = copy(root.path());
        let (again, recovery) = open(crashed.path(), 3);
        let turns: Vec<usize> = offered(&recovery, &records)
            .iter()
            .map(|game| game.1)
            .collect();
        assert_eq!(turns, [9, 4, 0]);
        assert_eq!((recovery.next_counter, recovery.dropped.len()), (8, 0));
        let next = &game(3, 1, 5).turns[4];
        again.turn(records[1].id, 4, next).unwrap();
        let order = again.turn(records[1].id, 4, next).unwrap_err();
        assert!(matches!(
            order.fault,
            JournalFault::Order {
                expected: 5,
                found: 4,
                ..
            }
        ));
    }
    let unknown = GameId {
        generator: 3,
        counter: 99,
    };
    let turn = &records[0].turns[0];
    let error = journal.turn(unknown, 0, turn).unwrap_err();
    assert!(
        matches!(error.fault, JournalFault::NotInFlight(_)),
        "{error}"
    );
}

#[test]
fn games_start_anywhere_and_keep_their_evaluators() {
    let root = run();
    let (journal, _) = open(root.path(), 3);
    let id = |counter| GameId {
        generator: 3,
        counter,
    };
    // A game from a position: the turns after both setups of another.
    let mut record = game(3, 0, 9);
    let after_setups = GameRecord {
        turns: record.turns[..2].to_vec(),
        ending: crate::record::Ending::Unfinished { value: None },
        ..record.clone()
    };
    let position = *after_setups.to_game().unwrap().position();
    record.start = Start::Position(StartPosition::new(&position));
    record.turns.drain(..2);
    play(&journal, &record);
    // A fork, whose first turns are given.
    let mut fork = game(3, 1, 5);
    fork.start = Start::Fork { game: id(0) };
    fork.turns[..3]
        .iter_mut()
        .for_each(|turn| turn.origin = TurnOrigin::Given);
    play(&journal, &fork);
    let second = EvaluatorId {
        name: "00001.safetensors".into(),
        identity: crate::record::digest(b"1"),
    };
    fork.evaluators.push(second.clone());
    assert_eq!(journal.evaluator(id(1), &second).unwrap(), 1);
    let (_, recovery) = open(copy(root.path()).path(), 3);
    let records = [record.clone(), fork];
    let turns: Vec<usize> = offered(&recovery, &records)
        .into_iter()
        .map(|game| game.1)
        .collect();
    assert_eq!(turns, [7, 5]);
    assert_eq!(recovery.games[1].evaluators.len(), 2);

    // A turn that names an evaluator that there is not.
    let mut turn = record.turns[6].clone();
    if let TurnOrigin::Search(search) = &mut turn.origin {
        search.evaluator = 1;
    }
    let error = journal.turn(id(0), 7, &turn).unwrap_err();
    assert!(
        matches!(error.fault, JournalFault::Evaluator { count: 1, .. }),
        "{error}"
    );
    // A position that there is not: two elephants.
    let mut pieces = [0; 12];
    pieces[Piece::new(Side::Gold, Kind::Elephant).index()] = 3;
    let side = Side::Gold;
    let error = journal.begin(Beginning {
        id: id(2),
        seed: 5,
        start: Start::Position(StartPosition { pieces, side }),
    });
    let error = error.unwrap_err();
    assert!(matches!(error.fault, JournalFault::Start { .. }), "{error}");
    let unknown = journal.evaluator(id(2), &second).unwrap_err();
    assert!(matches!(unknown.fault, JournalFault::NotInFlight(_)));
    assert_eq!(journal.games(), 2);
}

#[test]
fn a_game_that_breaks_the_rules_is_refused_by_name() {
    let root = run();
    let (journal, _) = open(root.path(), 3);
    let mut record = game(3, 0, 6);
    record.turns[5].actions = vec![0, 0];
    play(&journal, &record);
    drop(journal);
    let before = fs::read_dir(root.path().join("journal")).unwrap().count();
    let message = fault_of(root.path(), 3).to_string();
    assert!(
        message.contains("000000.journal: byte") && message.contains("game 3-0: turn 3s"),
        "{message}"
    );
    // The files stay, and others leave them where they are.
    let (_journal, recovery) = open(root.path(), 4);
    assert_eq!((recovery.games.len(), recovery.left.len()), (0, 1));
    assert_eq!(
        fs::read_dir(root.path().join("journal")).unwrap().count(),
        before + 2
    );
}

fn header() -> Header {
    Header {
        encoding_version: 1,
        program_version: "0.1.0".into(),
        evaluator: EvaluatorId {
            name: "uniform".into(),
            identity: "uniform".into(),
        },
        config_digest: crate::record::digest(b""),
        generator: 3,
    }
}

fn begin_shard(root: &Path, sequence: u32, records: &[GameRecord]) -> (ShardName, ShardWriter) {
    let name = ShardName {
        generator: 3,
        sequence,
    };
    let mut writer = ShardWriter::create(&root.join("shards"), name, &header()).unwrap();
    records
        .iter()
        .for_each(|record| writer.push(record).unwrap());
    (name, writer)
}

/// Checks a crashed run: each of the records is in a shard or offered with all its turns, and never both.
fn check_crash(root: &Path, records: &[GameRecord], generator: u32) {
    let (journal, recovery) = open(root, generator);
    let mut found: Vec<GameId> = offered(&recovery, records)
        .into_iter()
        .map(|game| game.0)
        .collect();
    for game in &recovery.games {
        let record = records
            .iter()
            .find(|record| record.id == game.beginning.id)
            .unwrap();
        assert_eq!(game.turns.len(), record.turns.len());
    }
    for path in list_shards(&root.join("shards")).unwrap().values() {
        found.extend(
            ShardReader::open(path)
                .unwrap()
                .map(|record| record.unwrap().id),
        );
    }
    found.sort();
    let ids: Vec<GameId> = records.iter().map(|record| record.id).collect();
    assert_eq!(found, ids);
    drop(journal);
}

#[test]
fn no_finished_game_is_lost_or_doubled_between_journal_and_shard() {
    let root = run();
    let records: Vec<GameRecord> = (0..6).map(|counter| game(3, counter, 5)).collect();
    let (mut journal, _) = open(root.path(), 3);
    records.iter().for_each(|record| play(&journal, record));
    journal.sync().unwrap();
    let check = |journal: &Journal| {
        let (file, synced) = {
            let state = journal.shared.lock();
            (state.file.path.clone(), state.appender.synced)
        };
        for generator in [3, 8] {
            let crashed = copy(root.path());
            check_crash(crashed.path(), &records, generator);
            check_crash(crashed.path(), &records, generator);
            // By a power cut, which takes what was not flushed.
            let crashed = copy(root.path());
            let file = crashed
                .path()
                .join("journal")
                .join(file.file_name().unwrap());
            let file = fs::File::options().write(true).open(file).unwrap();
            file.set_len(synced).unwrap();
            check_crash(crashed.path(), &records, generator);
        }
    };
    for (sequence, part) in [(0, &records[0..2]), (1, &records[2..4])] {
        let (shard, writer) = begin_shard(root.path(), sequence, part);
        check(&journal);
        let ids: Vec<GameId> = part.iter().map(|record| record.id).collect();
        journal.closing(shard, &ids).unwrap();
        check(&journal);
        if sequence == 0 {
            // A new file in the midst keeps what was announced.
            begin_file(&journal);
            check(&journal);
        }
        writer.finish().unwrap();
        check(&journal);
        journal.closed(shard).unwrap();
        check(&journal);
        assert_eq!(journal.games(), 4 - 2 * sequence as usize);
        drop(journal);
        journal = open(root.path(), 3).0;
        check(&journal);
    }
    // A shard of another game that has got an announced name since: that game is done.
    let name = ShardName {
        generator: 3,
        sequence: 2,
    };
    journal.closing(name, &[records[4].id]).unwrap();
    let (_, other) = begin_shard(root.path(), 2, &records[5..]);
    other.finish().unwrap();
    let (_journal, recovery) = open(copy(root.path()).path(), 3);
    let left: Vec<GameId> = recovery
        .games
        .iter()
        .map(|game| game.beginning.id)
        .collect();
    assert_eq!(left, [records[4].id]);
    // The name was announced for other games at last.
    journal.closing(name, &[records[5].id]).unwrap();
    // What was closed is done, whatever becomes of the shard.
    journal.closed(name).unwrap();
    fs::remove_file(root.path().join("shards").join(name.to_string())).unwrap();
    let (_journal, recovery) = open(copy(root.path()).path(), 3);
    assert_eq!(recovery.games.len(), 1);
    let error = journal.closed(name).unwrap_err();
    assert!(matches!(error.fault, JournalFault::NotAnnounced(_)));
}

#[test]
fn a_crash_at_any_moment_of_beginning_a_file_loses_nothing() {
    let root = run();
    let records: Vec<GameRecord> = (0..4).map(|counter| game(3, counter, 3)).collect();
    let (journal, _) = open(root.path(), 3);
    records[..3]
        .iter()
        .for_each(|record| play(&journal, record));
    let (shard, writer) = begin_shard(root.path(), 0, &records[..1]);
    journal.closing(shard, &[records[0].id]).unwrap();
    writer.finish().unwrap();
    journal.closed(shard).unwrap();
    let old = current_file(&journal);
    let old_bytes = fs::read(&old).unwrap();
    begin_file(&journal);
    let new = current_file(&journal);
    let new_bytes = fs::read(&new).unwrap();
    assert!(new_bytes.len() < old_bytes.len() && !old.exists());

    let crash = |files: &[(PathBuf, &[u8])], records: &[GameRecord]| {
        let crashed = copy(root.path());
        let folder = crashed.path().join("journal");
        fs::remove_file(folder.join(new.file_name().unwrap())).unwrap();
        for (path, bytes) in files {
            fs::write(folder.join(path.file_name().unwrap()), bytes).unwrap();
        }
        check_crash(crashed.path(), records, 3);
    };
    let three = &records[..3];
    for end in (0..new_bytes.len()).step_by(97) {
        crash(
            &[
                (old.clone(), &old_bytes),
                (temporary(&new, UNFINISHED), &new_bytes[..end]),
            ],
            three,
        );
    }
    crash(
        &[(old.clone(), &old_bytes), (new.clone(), &new_bytes)],
        three,
    );
    crash(&[(new.clone(), &new_bytes)], three);
    // The file grows, a power cut cuts it, and the old one may be back.
    play(&journal, &records[3]);
    let longer = fs::read(&new).unwrap();
    crash(
        &[(old.clone(), &old_bytes), (new.clone(), &longer)],
        &records,
    );
    for end in (new_bytes.len()..longer.len()).step_by(61) {
        let crashed = copy(root.path());
        fs::write(
            crashed
                .path()
                .join("journal")
                .join(new.file_name().unwrap()),
            &longer[..end],
        )
        .unwrap();
        fs::write(
            crashed
                .path()
                .join("journal")
                .join(old.file_name().unwrap()),
            &old_bytes,
        )
        .unwrap();
        let (_journal, recovery) = open(crashed.path(), 3);
        let games = offered(&recovery, &records);
        assert_eq!(games[..2], [(records[1].id, 3), (records[2].id, 3)]);
        assert!(games.get(2).is_none_or(|game| game.1 <= 3));
    }
}

#[test]
fn a_journal_is_flushed_while_it_is_written() {
    let root = run();
    let (journal, _) = Journal::open(JournalPlace {
        sync_every: Duration::from_millis(1),
        ..place(root.path(), 3)
    })
    .unwrap();
    begin(&journal, &game(3, 0, 0));
    let is_synced = || {
        let state = journal.shared.lock();
        state.appender.synced == state.appender.length
    };
    // Without that thread it never would be.
    while !is_synced() {
        std::thread::yield_now();
    }
    drop(journal);
    assert_eq!(open(root.path(), 3).1.games.len(), 1);
}

#[test]
fn what_a_killed_generator_left_half_written_is_removed() {
    let root = run();
    drop(open(root.path(), 3));
    let folder = root.path().join("journal");
    for name in [
        "003-000001.journal.tmp",
        "003-000001.journal.renewal.tmp",
        "003-000009.journal.tmp",
    ] {
        fs::write(folder.join(name), b"half").unwrap();
    }
    fs::write(folder.join("notes.tmp"), b"a user's").unwrap();
    drop(open(root.path(), 3));
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["003-000001.journal", "003.lock", "notes.tmp"]);
    fs::write(folder.join("copy.journal"), b"").unwrap();
    let error = fault_of(root.path(), 3);
    assert!(error.path.ends_with("copy.journal"), "{error}");
}

#[test]
fn frames_of_many_threads_come_back_whole_and_in_order() {
    let root = run();
    let mut records: Vec<GameRecord> = (0..240).map(|counter| game(3, counter, 20)).collect();
    let (journal, _) = Journal::open(JournalPlace {
        large: 100_000,
        ..place(root.path(), 3)
    })
    .unwrap();
    let done = records.split_off(200);
    std::thread::scope(|scope| {
        for part in records.chunks(50) {
            let journal = &journal;
            scope.spawn(move || {
                part.iter().for_each(|record| begin(journal, record));
                // All games of a thread are in flight at once.
                for number in 0..20 {
                    for record in part.iter().filter(|record| record.turns.len() > number) {
                        journal
                            .turn(record.id, number as u32, &record.turns[number])
                            .unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                journal.shared.renew_if_large().unwrap();
                journal.sync().unwrap();
            }
        });
        scope.spawn(|| {
            for (sequence, part) in (0..).zip(done.chunks(10)) {
                part.iter().for_each(|record| play(&journal, record));
                let (shard, writer) = begin_shard(root.path(), sequence, part);
                let ids: Vec<GameId> = part.iter().map(|record| record.id).collect();
                journal.closing(shard, &ids).unwrap();
                writer.finish().unwrap();
                journal.closed(shard).unwrap();
            }
        });
    });
    let crashed = copy(root.path());
    journal.shared.renew_if_large().unwrap();
    assert!(journal.shared.lock().file.sequence > 0);
    assert_eq!(journal.games(), 200);
    let turns: usize = records.iter().map(|record| record.turns.len()).sum();
    assert!(turns > 3_000);
    records.extend(done);
    check_crash(crashed.path(), &records, 3);
    check_crash(copy(root.path()).path(), &records, 3);
}
