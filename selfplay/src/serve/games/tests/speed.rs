//! How fast the index is, in the thread's own time:
//! `cargo test --release --workspace --bin selfplay --locked games_a_second -- --ignored --nocapture`.

use super::super::entry::{FileKey, FileKind, FoundFile, IndexedFile};
use super::super::generations::GenerationColumns;
use super::super::query::GamesPage;
use super::super::shards::index_shard;
use super::super::snapshot::Snapshot;
use super::*;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The CPU time of this thread, in seconds.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Games of so many turns, with a row for every step state and a policy of one peak, as searches make them.
fn peaked(counter: u64, turns: usize) -> GameRecord {
    let mut game = game(counter, turns, "00012");
    for row in game.turns.iter_mut().flat_map(|turn| &mut turn.rows) {
        let peak = row.policy.iter().map(|&part| u32::from(part)).sum::<u32>() - 100;
        row.policy.fill(0);
        let middle = row.policy.len() / 2;
        row.policy[0] += 100;
        row.policy[middle] += peak as u16;
    }
    game
}

#[test]
#[ignore = "a measurement"]
fn games_a_second() {
    let run = TestRun::new();
    let games: Vec<GameRecord> = (0..1_000).map(|counter| peaked(counter, 80)).collect();
    let turns: usize = games.iter().map(|game| game.turns.len()).sum();
    let rows: usize = games
        .iter()
        .flat_map(|it| &it.turns)
        .map(|it| it.rows.len())
        .sum();
    let path = run.write("shards", 0, &games);
    let bytes = std::fs::metadata(&path).unwrap().len();
    let file = FoundFile {
        path: "shards/000-000000.shard".into(),
        source: "selfplay".into(),
        kind: FileKind::Shard,
        key: FileKey { bytes, time: 0 },
    };
    let stop = AtomicBool::new(false);
    let indexed = index_shard(run.folder.path(), &file, &stop).unwrap();
    let begun = seconds();
    for _ in 0..5 {
        index_shard(run.folder.path(), &file, &stop).unwrap();
    }
    let rate = 5_000.0 / (seconds() - begun);
    println!("{rate:.0} games a second of {turns} turns, {rows} rows, {bytes} bytes in 1,000");

    // 100,000 games in 500 files.
    let files: Vec<Arc<IndexedFile>> = (0..500)
        .map(|sequence| {
            let mut copy = indexed.clone();
            copy.file.path = format!("shards/000-{sequence:06}.shard");
            copy.games.truncate(200);
            for (place, game) in (0..).zip(&mut copy.games) {
                game.id.counter = sequence * 200 + place;
                game.turns = (game.id.counter * 7_919 % 200) as u32;
                game.surprise = Some((game.id.counter * 104_729 % 1_000) as f32 / 1e3);
            }
            Arc::new(copy)
        })
        .collect();
    let snapshot = Snapshot {
        sources: [("selfplay".to_owned(), files.clone())].into(),
        ..Snapshot::default()
    };
    for text in [
        "",
        "sort=surprise&offset=50000",
        "sort=longest&network=00012&min_turns=50",
        "winner=gold",
    ] {
        let query = query(text).unwrap();
        let begun = seconds();
        for _ in 0..20 {
            GamesPage::of(&snapshot, &query);
        }
        println!("{:.2} ms a page of `{text}`", (seconds() - begun) * 50.0);
    }
    let begun = seconds();
    GenerationColumns::of(&files);
    println!("{:.2} ms for the generations", (seconds() - begun) * 1e3);
    let kept = serde_json::to_string(&*files[0]).unwrap().len();
    let size = size_of::<super::super::entry::GameEntry>();
    println!(
        "{size} bytes of memory and {} in the cache a game",
        kept / 200
    );
}
