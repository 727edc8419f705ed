//! The openings of a match.

use super::{json, pit};
use arimaa::notation::parse_record;
use arimaa::rules::Game;
use std::fs;
use std::path::Path;

/// A short match's games, by number.
fn games(out: &Path, more: &[&str]) -> Vec<Game> {
    let short = [
        "--games",
        "6",
        "--evaluations",
        "4",
        "--set",
        "match.max_turns=12",
        "--json",
    ];
    let report = json(pit(out, "material", "random", &short).args(more));
    let records = super::records(&report);
    records
        .iter()
        .map(|record| parse_record(record).unwrap())
        .collect()
}

#[test]
fn sampled_turns_are_shared_by_a_pair_and_depend_on_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let play = |more: &[&str]| games(folder.path(), more);
    for sampled in [
        &["--opening-turns", "3"][..],
        &["--opening-turns", "3", "--opening-player", "material"],
    ] {
        let played = play(sampled);
        for pair in played.chunks(2) {
            assert_eq!(pair[0].turns()[..5], pair[1].turns()[..5]);
            assert_ne!(
                pair[0].turns()[5],
                pair[1].turns()[5],
                "from here on the players differ"
            );
        }
        assert_ne!(played[0].turns()[..5], played[2].turns()[..5]);
        let again = play(&[sampled, &["--threads", "1"]].concat());
        assert_eq!(played, again);
        let other = play(&[sampled, &["--seed", "1"]].concat());
        assert_ne!(played[0].turns()[..5], other[0].turns()[..5]);
    }
}

#[test]
fn players_choose_their_own_setups_with_own_openings() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "--games",
        "2",
        "--evaluations",
        "4",
        "--set",
        "match.max_turns=6",
        "--json",
    ];
    // Whether the first turn has a player's report.
    let judged = |openings| {
        let report =
            json(pit(folder.path(), "material", "random", &options).args(["--openings", openings]));
        let of = |record: &String| {
            let mut lines = record.lines().skip_while(|line| !line.starts_with("1g "));
            lines
                .nth(1)
                .is_some_and(|line| line.starts_with("# value "))
        };
        super::records(&report).iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(judged("own"), [true, false]);
    assert_eq!(judged("sampled"), [false, false]);
}

#[test]
fn openings_of_a_file_repeat_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("o.txt");
    let made = games(folder.path(), &["--opening-turns", "2"]);
    let mut start = Game::from_position(*made[0].start());
    for turn in &made[0].turns()[..4] {
        start.play(turn).unwrap();
    }
    let position = *start.position();
    fs::write(&file, format!("# two openings\n{start}\n{position}\n")).unwrap();
    let path = file.to_str().unwrap();
    let played = games(folder.path(), &["--openings", path]);
    for pair in [0, 2] {
        assert_eq!(played[2 * pair].turns()[..4], *start.turns());
        assert_eq!(played[2 * pair + 1].turns()[..4], *start.turns());
    }
    assert_eq!(*played[2].start(), position);
    let over = format!("{start}\n\n{start}3g resigns\n");
    fs::write(&file, over).unwrap();
    let out = folder.path().join("out");
    let output = pit(
        &out,
        "random",
        "random",
        &["--games", "2", "--openings", path],
    )
    .output()
    .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("o.txt: line 7: the game is over"), "{said}");
    assert!(!out.exists(), "nothing was begun");
}
