//! Disks that are full, or fail: in every operation once, and for a while.

use super::super::disk::Storage;
use super::*;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// What goes wrong with a disk.
#[derive(Default)]
struct Faults {
    /// The operations so far.
    operations: AtomicU64,
    /// From this one on they fail, but for the cutting of files.
    from: AtomicU64,
    /// How many do.
    count: AtomicU64,
    /// Whether the file can't be cut after such a failure.
    cuts_fail: AtomicBool,
    /// Whether the next cut fails.
    next_cut_fails: AtomicBool,
    /// Whether what fails is done nevertheless.
    are_done: AtomicBool,
    /// Whether the next operation panics.
    next_panics: AtomicBool,
}

impl Faults {
    /// Lets some operations from now on fail.
    fn fail(&self, after: u64, count: u64) {
        self.from
            .store(self.operations.load(SeqCst) + after, SeqCst);
        self.count.store(count, SeqCst);
    }

    fn is_failing(&self, operation: u64) -> bool {
        let from = self.from.load(SeqCst);
        (from..from.saturating_add(self.count.load(SeqCst))).contains(&operation)
    }

    /// Does something that may fail, and then be done or not.
    fn attempt<T>(&self, what: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        assert!(
            !self.next_panics.swap(false, SeqCst),
            "the test requested this panic"
        );
        if self.is_failing(self.operations.fetch_add(1, SeqCst)) {
            let cuts_fail = self.cuts_fail.load(SeqCst);
            self.next_cut_fails.store(cuts_fail, SeqCst);
            if self.are_done.load(SeqCst) {
                what()?;
            }
            Err(io::ErrorKind::StorageFull.into())
        } else {
            what()
        }
    }
}

/// A disk with faults.
#[derive(Clone, Default)]
struct FaultyDisk(Arc<Faults>);

struct FaultyFile {
    file: File,
    faults: Arc<Faults>,
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Storage>> {
        let file = self.0.attempt(|| File::create(path))?;
        let faults = Arc::clone(&self.0);
        Ok(Arc::new(FaultyFile { file, faults }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.attempt(|| FileSystem.rename(from, to))
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        self.0.attempt(|| FileSystem.sync_folder_of(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.attempt(|| FileSystem.remove(path))
    }
}

impl Storage for FaultyFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let written = self.faults.attempt(|| self.file.write_at(offset, bytes));
        if written.is_err() && !self.faults.are_done.load(SeqCst) {
            // A part of them, which differs from one failure to the next.
            let part = self.faults.operations.load(SeqCst) as usize * 7 % (bytes.len() + 1);
            self.file.write_at(offset, &bytes[..part])?;
        }
        written
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        if self.faults.next_cut_fails.swap(false, SeqCst) {
            Err(io::ErrorKind::Other.into())
        } else {
            self.file.truncate(length)
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.attempt(|| self.file.sync())
    }
}

fn open_on(root: &Path, disk: &FaultyDisk) -> Result<(Journal, Recovery), JournalError> {
    let place = place(root, 3);
    let lock = Lock::take(&place.journal, 3)?.unwrap();
    Journal::open_locked(place, lock, Arc::new(disk.clone()), &|_| true)
}

/// Makes a call again and again, as a generator does whose disk is full. After each failure a crash loses nothing.
fn insist<T>(
    failures: &mut u32,
    crash: impl Fn(),
    mut call: impl FnMut() -> Result<T, JournalError>,
) -> T {
    loop {
        match call() {
            Ok(done) => return done,
            Err(error) => {
                assert!(matches!(error.fault, JournalFault::Io(_)), "{error}");
                *failures += 1;
                assert!(*failures < 100, "{error}");
                crash();
            }
        }
    }
}

/// The turns of the games that a crashed run resumes or has in a shard, by id; it is checked that none is there twice.
/// Nothing is written, so that it is quick.
fn after_crash(root: &Path, records: &[GameRecord]) -> BTreeMap<GameId, usize> {
    let crashed = copy(root);
    let place = place(crashed.path(), 3);
    let owned = Owned::list(&place.journal, 3).unwrap();
    let mut found = BTreeMap::new();
    for (id, stored) in recovery::load(&place, &owned).unwrap().games.found {
        let record = records.iter().find(|record| record.id == id).unwrap();
        let turns = stored.game.turns;
        assert_eq!(turns, record.turns[..turns.len()]);
        found.insert(id, turns.len());
    }
    for path in list_shards(&crashed.path().join("shards"))
        .unwrap()
        .values()
    {
        for record in ShardReader::open(path).unwrap() {
            let record = record.unwrap();
            let before = found.insert(record.id, record.turns.len());
            assert_eq!(before, None, "game {} is there twice", record.id);
        }
    }
    found
}

/// Every call of a journal, each made again until it succeeds. Returns how often one failed, and the disk's operations.
fn scenario(faults: impl Fn(&Faults)) -> (u32, u64) {
    let root = run();
    let disk = FaultyDisk::default();
    let records: Vec<GameRecord> = (0..4).map(|counter| game(3, counter, 3)).collect();
    {
        // Something to take over.
        let (other, _) = open(root.path(), 2);
        play(&other, &game(2, 0, 2));
    }
    let mut all = records.clone();
    all.push(game(2, 0, 2));
    faults(&disk.0);
    let mut failures = 0;
    // Another starts if this one can't: nothing is lost by a failed opening.
    let (journal, recovery) = insist(&mut failures, || (), || open_on(root.path(), &disk));
    assert_eq!(recovery.games.len(), 1);
    let mut kept = BTreeMap::from([(all[4].id, 2)]);
    let check = |kept: &BTreeMap<GameId, usize>, may_be: Option<(GameId, usize)>| {
        let found = after_crash(root.path(), &all);
        let mut with = kept.clone();
        with.extend(may_be);
        assert!(found == *kept || found == with, "{found:?}, not {kept:?}");
    };
    for (index, record) in records.iter().enumerate() {
        let beginning = Beginning {
            id: record.id,
            seed: record.seed,
            start: record.start,
        };
        let crash = || check(&kept, Some((record.id, 0)));
        insist(&mut failures, crash, || journal.begin(beginning));
        kept.insert(record.id, 0);
        let evaluator = &record.evaluators[0];
        let place = insist(
            &mut failures,
            || check(&kept, None),
            || journal.evaluator(record.id, evaluator),
        );
        assert_eq!(place, 0);
        for (number, turn) in (0..).zip(&record.turns) {
            let crash = || check(&kept, Some((record.id, number as usize + 1)));
            insist(&mut failures, crash, || {
                journal.turn(record.id, number, turn)
            });
            kept.insert(record.id, number as usize + 1);
        }
        insist(&mut failures, || check(&kept, None), || journal.sync());
        if index == 2 {
            insist(
                &mut failures,
                || check(&kept, None),
                || {
                    journal.shared.lock().large = 0;
                    journal.shared.renew_if_large()
                },
            );
        }
        if index % 2 == 1 {
            let part = &records[index - 1..=index];
            let (shard, writer) = begin_shard(root.path(), index as u32, part);
            let ids: Vec<GameId> = part.iter().map(|record| record.id).collect();
            insist(
                &mut failures,
                || check(&kept, None),
                || journal.closing(shard, &ids),
            );
            writer.finish().unwrap();
            if failures > 0 {
                check(&kept, None);
            }
            insist(
                &mut failures,
                || check(&kept, None),
                || journal.closed(shard),
            );
            if failures > 0 {
                check(&kept, None);
            }
            assert_eq!(
                announced(&root.path().join("journal")).unwrap(),
                BTreeSet::new()
            );
        }
    }
    assert_eq!(journal.games(), 1);
    drop(journal);
    check(&kept, None);
    let (_, recovery) = open(root.path(), 3);
    assert_eq!((recovery.next_counter, recovery.next_shard), (4, 4));
    (failures, disk.0.operations.load(SeqCst))
}

#[test]
fn every_call_can_be_made_again_after_any_failure() {
    let (failures, operations) = scenario(|_| ());
    assert_eq!(failures, 0);
    assert!(operations >= 50, "{operations}");
    let mut failed = 0;
    for after in 0..operations {
        for (count, cuts_fail, are_done) in [
            (1, false, false),
            (1, true, false),
            (1, false, true),
            (3, true, false),
        ] {
            failed += scenario(|faults| {
                faults.fail(after, count);
                faults.cuts_fail.store(cuts_fail, SeqCst);
                faults.are_done.store(are_done, SeqCst);
            })
            .0;
        }
    }
    // Some failures have no effect: a void file that stays.
    assert!(failed as u64 > 4 * operations, "{failed} of {operations}");
}

#[test]
fn a_panic_of_the_flushing_thread_is_reported_and_loses_nothing() {
    let root = run();
    let disk = FaultyDisk::default();
    let place = JournalPlace {
        sync_every: Duration::from_millis(1),
        ..place(root.path(), 3)
    };
    let lock = Lock::take(&place.journal, 3).unwrap().unwrap();
    let (journal, _) =
        Journal::open_locked(place, lock, Arc::new(disk.clone()), &|_| true).unwrap();
    journal.check_flushing().unwrap();
    let record = game(3, 0, 12);
    {
        // Only the thread writes to the disk next.
        let mut state = journal.shared.lock();
        disk.0.next_panics.store(true, SeqCst);
        state.distrusted = true;
    }
    let error = loop {
        if let Err(error) = journal.check_flushing() {
            break error;
        }
        std::thread::yield_now();
    };
    assert!(matches!(error.fault, JournalFault::NotFlushed), "{error}");
    play(&journal, &record);
    journal.sync().unwrap();
    drop(journal);
    let (_, recovery) = open(root.path(), 3);
    let id = record.id;
    assert_eq!(offered(&recovery, &[record]), [(id, 12)]);
}

#[test]
fn a_journal_that_was_removed_is_not_waited_for() {
    let root = run();
    let disk = FaultyDisk::default();
    let (journal, _) = open_on(root.path(), &disk).unwrap();
    let record = game(3, 0, 12);
    begin(&journal, &record);
    journal.sync().unwrap();
    std::fs::remove_file(&journal.shared.lock().file.path).unwrap();
    journal.shared.lock().distrusted = true;
    assert!(!journal.is_there());
    let error = journal.turn(record.id, 0, &record.turns[0]).unwrap_err();
    assert!(matches!(error.fault, JournalFault::Gone), "{error}");
}

#[test]
fn a_turn_is_one_write_and_no_flush() {
    let root = run();
    let disk = FaultyDisk::default();
    let (journal, _) = open_on(root.path(), &disk).unwrap();
    let record = game(3, 0, 12);
    begin(&journal, &record);
    journal.shared.lock().large = 0;
    let before = disk.0.operations.load(SeqCst);
    for (number, turn) in (0..).zip(&record.turns) {
        journal.turn(record.id, number, turn).unwrap();
    }
    assert_eq!(disk.0.operations.load(SeqCst) - before, 12);
    // A new file is begun by others.
    assert_eq!(journal.shared.lock().file.sequence, 0);
    journal.shared.renew_if_large().unwrap();
    assert_eq!(journal.shared.lock().file.sequence, 1);
}

#[test]
fn a_new_file_that_fails_takes_no_turn_with_it() {
    let record = game(3, 0, 3);
    for after in 0..8 {
        for are_done in [false, true] {
            let root = run();
            let disk = FaultyDisk::default();
            let (journal, _) = open_on(root.path(), &disk).unwrap();
            play(&journal, &game(3, 0, 2));
            journal.shared.lock().large = 0;
            disk.0.are_done.store(are_done, SeqCst);
            disk.0.fail(after, 1);
            // The new file may have its name, and make the old one void, though it seems to have failed.
            let renewed = journal.shared.renew_if_large();
            assert_eq!(renewed.is_err(), after < 7, "{after}");
            journal.shared.lock().large = u64::MAX;
            journal.turn(record.id, 2, &record.turns[2]).ok();
            if journal.shared.lock().in_flight[&record.id].turns == 2 {
                journal.turn(record.id, 2, &record.turns[2]).unwrap();
            }
            check_crash(copy(root.path()).path(), std::slice::from_ref(&record), 3);
        }
    }
}

#[test]
fn a_torn_frame_is_cut_off_before_a_shorter_one() {
    let root = run();
    let disk = FaultyDisk::default();
    let (journal, _) = open_on(root.path(), &disk).unwrap();
    let record = game(3, 0, 3);
    play(&journal, &game(3, 0, 2));
    let path = current_file(&journal);
    let whole = fs::read(&path).unwrap();
    disk.0.cuts_fail.store(true, SeqCst);
    for _ in 0..5 {
        disk.0.fail(0, 1);
        let error = journal.turn(record.id, 2, &record.turns[2]).unwrap_err();
        assert_eq!(error.path, path);
    }
    let torn = fs::read(&path).unwrap();
    assert!(torn.len() > whole.len() && torn.starts_with(&whole));
    assert_eq!(read(&torn).unwrap().found[&record.id].game.turns.len(), 2);
    let next = game(3, 1, 0);
    begin(&journal, &next);
    let read = read(&fs::read(&path).unwrap()).unwrap();
    assert!(read.dropped.is_empty() && read.found.contains_key(&next.id));
}

#[test]
fn a_failed_flush_is_reported_and_begins_a_new_file() {
    let record = game(3, 0, 3);
    let root = run();
    let disk = FaultyDisk::default();
    let (journal, _) = open_on(root.path(), &disk).unwrap();
    begin(&journal, &record);
    let path = current_file(&journal);
    let synced = journal.shared.lock().appender.synced;
    disk.0.fail(0, 1);
    assert_eq!(journal.sync().unwrap_err().path, path);
    // What was not flushed is gone from the file: the system dropped the pages that it could not write.
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(synced).unwrap();
    // While no new file can be begun, appending fails, for this one is no more relied on.
    disk.0.fail(0, 2);
    journal.turn(record.id, 0, &record.turns[0]).unwrap_err();
    journal.turn(record.id, 0, &record.turns[0]).unwrap_err();
    for (number, turn) in (0..).zip(&record.turns) {
        journal.turn(record.id, number, turn).unwrap();
    }
    assert!(!path.exists() && current_file(&journal).ends_with("003-000001.journal"));
    check_crash(copy(root.path()).path(), &[record], 3);
}

#[test]
fn a_failure_in_the_background_is_reported_once() {
    let root = run();
    let disk = FaultyDisk::default();
    let place = JournalPlace {
        sync_every: Duration::from_millis(1),
        ..place(root.path(), 3)
    };
    let lock = Lock::take(&place.journal, 3).unwrap().unwrap();
    let opened = Journal::open_locked(place, lock, Arc::new(disk.clone()), &|_| true);
    let (journal, _) = opened.unwrap();
    disk.0.fail(1, 1);
    let record = game(3, 0, 0);
    let (id, seed, start) = (record.id, record.seed, record.start);
    journal.begin(Beginning { id, seed, start }).unwrap();
    let trouble = loop {
        match journal.trouble() {
            Some(trouble) => break trouble,
            None => std::thread::yield_now(),
        }
    };
    assert!(matches!(trouble.fault, JournalFault::Io(_)), "{trouble}");
    // The next flush begins a new file.
    while journal.shared.lock().file.sequence == 0 {
        std::thread::yield_now();
    }
    assert!(journal.trouble().is_none());
}
