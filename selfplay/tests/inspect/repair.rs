//! `--repair`.

use crate::faults::{damage, offsets};
use crate::{inspect, outcome, run_directory, sample, write_shard};
use engine::record::{GameRecord, ShardReader};
use serde_json::{Value, json};
use std::path::Path;

fn games_in(path: &Path) -> Vec<GameRecord> {
    let games: Result<_, _> = ShardReader::open(path).unwrap().collect();
    games.unwrap()
}

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn only_the_good_games_of_damaged_shards_are_copied() {
    let (run, ..) = run_directory();
    let path = run.path().join("shards/000-000000.shard");
    let frames = offsets(&path);
    damage(&path, |bytes| {
        bytes[frames[1] as usize + 2] ^= 64;
        bytes[frames[3] as usize + 50] ^= 1;
    });
    let damaged = std::fs::read(&path).unwrap();
    let folder = run.path().join("repaired/here");
    let (code, text, complaints) = outcome(inspect().arg(run.path()).arg("--repair").arg(&folder));
    assert_eq!(code, 1, "something was wrong");
    assert_eq!(complaints.lines().count(), 2, "{complaints}");
    let new = folder.join("000-000000.shard");
    let printed = format!(
        "repair      {}: 3 games kept, 2 faults left out: {}\n",
        path.display(),
        new.display()
    );
    assert!(text.ends_with(&printed), "{text}");
    assert_eq!(games_in(&new), [0, 2, 4].map(|counter| sample(counter, 60)));
    let header = |path: &Path| ShardReader::open(path).unwrap().header().clone();
    assert_eq!(
        header(&new),
        header(&run.path().join("shards/000-000001.shard"))
    );
    assert_eq!(files_in(&folder), 1, "only damaged shards are written");
    assert_eq!(std::fs::read(&path).unwrap(), damaged, "the source stays");

    // With the new shard in the old one's place, all is well.
    std::fs::copy(&new, &path).unwrap();
    let (code, json, complaints) = outcome(inspect().arg(run.path()).arg("--json"));
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["games"], 6);
}

#[test]
fn a_game_is_kept_once_and_a_missing_end_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, illegal] = [0, 1, 2].map(|counter| sample(counter, 6));
    let mut illegal = illegal;
    illegal.turns.pop();
    illegal.turns[2].actions[0] = 321;
    write_shard(folder.path(), 0, std::slice::from_ref(&first));
    let games = [second.clone(), first, illegal, second.clone(), sample(3, 6)];
    let path = write_shard(folder.path(), 1, &games);
    let end = *offsets(&path).last().unwrap() as usize;
    damage(&path, |bytes| bytes.truncate(end + 11));
    let new = folder.path().join("new");
    let output = outcome(
        inspect()
            .arg(folder.path())
            .args(["--json", "--repair"])
            .arg(&new),
    );
    assert_eq!(output.0, 1);
    assert_eq!(games_in(&new.join("000-000001.shard")), [second]);
    let totals: Value = serde_json::from_str(&output.1).unwrap();
    let expected = json!([{
        "file": path,
        "written": new.join("000-000001.shard"),
        "kept": 1,
        "passed_over": 4,
        "reason": null,
    }]);
    assert_eq!(totals["repaired"], expected);
    assert_eq!(outcome(inspect().arg(&new)).0, 0);
}

#[test]
fn what_can_not_be_repaired_is_named() {
    let (run, ..) = run_directory();
    let shards = run.path().join("shards");
    let [header, games] = ["000-000000.shard", "000-000001.shard"].map(|name| shards.join(name));
    damage(&header, |bytes| bytes[30] ^= 1);
    let frames = offsets(&games);
    damage(&games, |bytes| bytes.truncate(frames[0] as usize + 9));
    let folder = run.path().join("repaired");
    let (code, text, _) = outcome(inspect().arg(&shards).arg("--repair").arg(&folder));
    assert_eq!(code, 1);
    let printed = format!(
        "{}: can't be repaired: its header can't be read",
        header.display()
    );
    assert!(text.contains(&printed), "{text}");
    let printed = format!(
        "{}: no game in it could be kept; nothing is written\n",
        games.display()
    );
    assert!(text.contains(&printed), "{text}");
    assert_eq!(files_in(&folder), 0);
}

#[test]
fn nothing_is_overwritten() {
    let (run, ..) = run_directory();
    let shards = run.path().join("shards");
    let path = shards.join("000-000000.shard");
    damage(&path, |bytes| bytes.truncate(bytes.len() - 1));
    let before = std::fs::read(&path).unwrap();
    let into = |folder: &Path| outcome(inspect().arg(run.path()).arg("--repair").arg(folder));
    let (code, _, complaints) = into(&shards.join("../shards"));
    assert_eq!(code, 1);
    assert!(
        complaints.contains("repaired shards go into another folder"),
        "{complaints}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);

    // A shard elsewhere would not be overwritten here, but be mixed with those that are good.
    let single = run.path().join("000-000009.shard");
    std::fs::copy(&path, &single).unwrap();
    let both = [&single, &shards.join("000-000001.shard")];
    let (code, _, complaints) = outcome(inspect().args(both).arg("--repair").arg(&shards));
    assert_eq!(code, 1);
    assert!(
        complaints.contains("repaired shards go into another folder"),
        "{complaints}"
    );
    assert_eq!(files_in(&shards), 2);

    let folder = run.path().join("repaired");
    assert_eq!(into(&folder).0, 1);
    let repaired = std::fs::read(folder.join("000-000000.shard")).unwrap();
    // The same repair again finds its work done.
    let (code, text, _) = into(&folder);
    assert_eq!(code, 1);
    assert!(text.contains(" games kept, 1 faults left out"), "{text}");
    let target = folder.join("000-000000.shard");
    assert_eq!(std::fs::read(&target).unwrap(), repaired);
    for other in [&before, &repaired[..repaired.len() - 1].to_vec()] {
        std::fs::write(&target, other).unwrap();
        let (code, text, complaints) = into(&folder);
        assert_eq!((code, text.as_str()), (1, ""));
        assert!(
            complaints.contains("exists already with other games, and is not overwritten"),
            "{complaints}"
        );
        assert_eq!(&std::fs::read(&target).unwrap(), other);
    }
}

#[test]
fn invalid_and_equal_names_are_refused() {
    let (run, ..) = run_directory();
    let path = run.path().join("shards/000-000000.shard");
    damage(&path, |bytes| bytes.truncate(bytes.len() - 1));
    let copy = run.path().join("copy.shard");
    std::fs::copy(&path, &copy).unwrap();
    let folder = run.path().join("repaired");
    let (code, _, complaints) = outcome(inspect().arg(&copy).arg("--repair").arg(&folder));
    assert_eq!(code, 1);
    assert!(
        complaints.contains("copy.shard: the name of a shard is like 000-000000.shard"),
        "{complaints}"
    );
    let other = run.path().join("000-000000.shard");
    std::fs::rename(&copy, &other).unwrap();
    let (code, _, complaints) =
        outcome(inspect().args([&path, &other]).arg("--repair").arg(&folder));
    assert_eq!(code, 1);
    assert!(complaints.contains("have the same name"), "{complaints}");
    assert!(!folder.exists());
}

#[test]
fn good_shards_need_no_repair() {
    let (run, ..) = run_directory();
    let folder = run.path().join("repaired");
    let (code, text, _) = outcome(inspect().arg(run.path()).arg("--repair").arg(&folder));
    assert_eq!(code, 0);
    assert!(
        text.ends_with("bad frames  0\n") && !folder.exists(),
        "{text}"
    );
}
