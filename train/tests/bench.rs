//! `train bench` as a user runs it.

mod support;

use support::{outcome, train, write_shard};

fn bench(more: &[&str]) -> (i32, String, String) {
    outcome(train().args(["bench", "--loader"]).args(more))
}

fn report(more: &[&str]) -> serde_json::Value {
    let (code, said, message) = bench(&[&["--json"], more].concat());
    assert_eq!(code, 0, "{message}");
    serde_json::from_str(&said).unwrap()
}

#[test]
fn the_loader_is_measured_on_generated_games() {
    let small = [
        "--rows",
        "2000",
        "--deliver",
        "1000",
        "--set",
        "train.pool_rows=1000",
    ];
    let report = report(&small);
    let number = |key: &str| report[key].as_f64().unwrap();
    // Games come a few shards at a time.
    assert!(number("window_rows") > 2_000.0 && number("rows") >= 1_000.0);
    assert!(number("index_bytes_per_row") < 1.0);
    for key in [
        "rows_per_second",
        "rows_per_second_and_core",
        "index_rows_per_second",
    ] {
        assert!(number(key) > 0.0, "{key}");
    }
    assert!(number("memory_allowed") <= number("memory_given"));
}

#[test]
fn the_loader_is_measured_on_given_shards_if_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    write_shard(folder.path(), 0, 30);
    let shards = folder.path().join("shards");
    let shards = ["--shards", shards.to_str().unwrap()];
    let small = ["--set", "train.batch_size=64", "--deliver", "200"];
    let (code, said, message) = bench(&[shards, ["--threads", "1"]].concat());
    assert!(
        code == 0 || message.contains("rows to train on"),
        "{message}{said}"
    );
    let (code, said, message) = bench(&[&shards[..], &small].concat());
    assert_eq!(code, 0, "{message}");
    assert!(
        said.contains("rows/s a core") && said.starts_with("window: 30 games"),
        "{said}"
    );
    let (code, _, message) = bench(&["--shards", "nowhere"]);
    assert_eq!(code, 1);
    assert!(message.contains("nowhere holds no games"), "{message}");
}

/// A window of ten million rows in pools as large as the memory allows, which is what they are given and no more.
#[test]
#[ignore = "writes 10,000,000 rows: about a minute and 1 GB of disk"]
fn ten_million_rows_stay_within_their_memory() {
    let report = report(&[
        "--rows",
        "10500000",
        "--deliver",
        "3000000",
        "--set",
        "train.window_rows=20000000",
        "--set",
        "train.pool_rows=100000000",
        "--set",
        "train.memory_mib=400",
    ]);
    println!("{report:#}");
    let number = |key: &str| report[key].as_f64().unwrap();
    assert!(number("window_rows") >= 9_900_000.0);
    let taken = number("memory_peak") - number("memory_before");
    assert!(taken <= number("memory_given"), "{taken} MiB");
    assert!(
        taken > 0.7 * number("memory_given"),
        "the pools were not full"
    );
}
