//! Damaged, new, changed and removed files, and the cache.

use super::*;
use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

/// Where the frames of a shard's games begin.
fn offsets(path: &Path) -> Vec<usize> {
    let mut reader = engine::record::ShardReader::open(path).unwrap();
    let offsets = reader.frame_offsets().unwrap().into_iter();
    offsets.map(|offset| offset as usize).collect()
}

fn five_games(run: &TestRun, sequence: u32) -> PathBuf {
    let first = u64::from(sequence) * 5;
    let games: Vec<GameRecord> = (first..first + 5).map(|it| game(it, 6, "00000")).collect();
    run.write("shards", sequence, &games)
}

/// Changes a file's bytes and keeps its time.
fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let time = modified(path);
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn damage_is_named_and_costs_only_what_it_hits() {
    let run = TestRun::new();
    let damaged = five_games(&run, 0);
    let cut = five_games(&run, 1);
    five_games(&run, 2);
    let at = offsets(&damaged)[1];
    change(&damaged, |bytes| bytes[at + 20] ^= 1);
    let end = offsets(&cut)[3] + 30;
    change(&cut, |bytes| bytes.truncate(end));
    run.write_file("shards/000-000003.shard", "no shard at all");
    run.write_file("shards/copy.shard", "");
    run.write_file("shards/.000-x.tmp", "unfinished");
    let index = run.index();
    let page = page(&index, "sort=oldest&limit=200");
    let mut found = games(&page);
    found.sort_unstable();
    let expected = [0, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14].map(|game| format!("0-{game}"));
    let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let problems = problems(&page);
    let has = |beginning: &str| problems.iter().any(|it| it.starts_with(beginning));
    assert!(has(&format!(
        "shards/000-000000.shard: frame 2 at byte {at}: the checksum"
    )));
    assert!(
        has("shards/000-000001.shard: frame 4 at byte "),
        "{problems:?}"
    );
    assert!(
        has("shards/000-000003.shard: this is not a shard"),
        "{problems:?}"
    );
    assert!(
        has("shards/copy.shard: the name of a shard"),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert_eq!(page["is_complete"], true);
}

#[test]
fn problems_are_bounded() {
    let run = TestRun::new();
    for name in 0..150 {
        run.write_file(&format!("shards/{name}.shard"), "");
    }
    let page = page(&run.index(), "");
    let problems = problems(&page);
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100], "and 50 more problems");
}

#[test]
fn the_folders_are_followed() {
    let run = TestRun::new();
    let index = run.index();
    let revision = index.revision();
    assert_eq!(page(&index, "")["total"], 0);
    let first = five_games(&run, 0);
    assert!(index.wait_complete(PATIENCE));
    assert_eq!(page(&index, "")["total"], 5);
    assert!(index.revision() > revision);
    let revision = index.revision();
    assert!(index.wait_complete(PATIENCE));
    assert_eq!(index.revision(), revision, "nothing has changed");
    // A shard that another program is still copying.
    let second = five_games(&run, 1);
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() / 2]).unwrap();
    assert!(index.wait_complete(PATIENCE));
    assert!(page(&index, "")["total"].as_u64().unwrap() < 10);
    assert_eq!(problems(&page(&index, "")).len(), 1);
    fs::write(&second, &bytes).unwrap();
    assert!(index.wait_complete(PATIENCE));
    assert_eq!(page(&index, "")["total"], 10);
    assert!(problems(&page(&index, "")).is_empty());
    fs::remove_file(&first).unwrap();
    assert!(index.wait_complete(PATIENCE));
    assert_eq!(
        games(&page(&index, "sort=oldest")),
        ["0-5", "0-6", "0-7", "0-8", "0-9"]
    );
}

#[test]
fn without_being_asked_it_looks_again() {
    let run = TestRun::new();
    let index = run.index();
    let revision = index.revision();
    five_games(&run, 0);
    let begun = std::time::Instant::now();
    while index.revision() == revision && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(page(&index, "")["total"], 5);
}

#[test]
fn a_game_that_is_gone_is_a_clear_error() {
    let run = TestRun::new();
    let shard = five_games(&run, 0);
    let index = run.index();
    let message = |counter, source| {
        let error = index.detail(id(counter), source).unwrap_err();
        (error.is_missing(), error.message())
    };
    let (is_missing, unknown) = message(5, "selfplay");
    assert!(is_missing && unknown.contains("no game 0-5 in the source `selfplay`"));
    assert!(message(0, "elsewhere").0);
    let [.., at] = offsets(&shard)[..] else {
        panic!("no games");
    };
    change(&shard, |bytes| bytes[at + 12] ^= 1);
    let (is_missing, damaged) = message(4, "selfplay");
    let place = format!("shards/000-000000.shard: byte {at}: the checksum");
    assert!(!is_missing && damaged.starts_with(&place), "{damaged}");
    index.detail(id(3), "selfplay").unwrap();
    // Between the removal and the next look, which may already have come.
    fs::remove_file(&shard).unwrap();
    let (is_missing, removed) = message(3, "selfplay");
    assert!(is_missing && removed.contains("0-3"), "{removed}");
}

#[test]
fn the_cache_gives_the_same_answers_without_reading_shards() {
    let run = TestRun::new();
    let shard = five_games(&run, 0);
    let cut = five_games(&run, 1);
    change(&cut, |bytes| bytes.truncate(bytes.len() - 40));
    let answer = page(&run.index(), "");
    let cache = run.path("cache/games.index");
    let kept = fs::read(&cache).unwrap();
    assert!(kept.len() > 200);
    // Read again, this would be another answer.
    change(&shard, |bytes| bytes.fill(0));
    assert_eq!(page(&run.index(), ""), answer);
    // Not changed, not written.
    let time = modified(&cache);
    run.index();
    assert_eq!(modified(&cache), time);
    // Garbled in any way, it is thrown away.
    let mut other_version = kept[..kept.len() - 32].to_vec();
    other_version[0] += 1;
    other_version.extend_from_slice(blake3::hash(&other_version).as_bytes());
    let mut other_place = kept.clone();
    other_place[kept.len() / 2] ^= 1;
    for garbled in [
        other_version,
        kept[..kept.len() / 2].to_vec(),
        Vec::new(),
        vec![0xff; 100],
        other_place,
        kept.iter().map(|byte| byte ^ 1).collect(),
    ] {
        fs::write(&cache, &garbled).unwrap();
        let page = page(&run.index(), "");
        let problems = problems(&page);
        assert_ne!(garbled, kept);
        let is_read = |it: &&str| it.starts_with("shards/000-000000.shard: this is not a shard");
        assert!(problems.iter().any(is_read), "{problems:?}");
        assert_ne!(fs::read(&cache).unwrap(), garbled);
    }
}

#[test]
fn a_run_that_can_t_be_written_is_indexed_all_the_same() {
    let run = TestRun::new();
    five_games(&run, 0);
    // A file where the folder should be: permissions don't stop root.
    run.write_file("cache", "in the way");
    let index = run.index();
    let first = page(&index, "");
    assert_eq!(first["total"], 5);
    let problems = problems(&first);
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("cache/games.index: "),
        "{problems:?}"
    );
    let revision = index.revision();
    assert!(index.wait_complete(PATIENCE));
    assert_eq!(index.revision(), revision);
    drop(index);
    let mut names: Vec<_> = fs::read_dir(run.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["cache", "shards"]);
}

#[test]
fn an_empty_run_is_not_touched_and_a_missing_one_refused() {
    let run = TestRun::new();
    let page = page(&run.index(), "");
    assert_eq!(
        (&page["total"], &page["is_complete"]),
        (&0.into(), &true.into())
    );
    assert_eq!(fs::read_dir(run.folder.path()).unwrap().count(), 0);
    let missing = RunDirectory::new(run.path("missing"));
    let message = GamesIndex::open(&missing).err().unwrap().to_string();
    assert!(message.ends_with("missing is not a folder"), "{message}");
}
