//! Seeded games stay the games that they are: what is played and recorded with every setting given has a known digest.
//!
//! A change of the search's or the generator's behaviour changes digests, and says so. Everything else leaves them alone: a new layout,
//! format, name or default. The evaluators are those that compute the same on every machine.

use assert_cmd::Command;
use engine::record::{Ending, GameRecord, ShardReader, digest, list_shards};
use std::fmt::Write;
use std::path::Path;

/// Every setting that games depend on.
const SETTINGS: &str = r#"
[selfplay]
evaluations = 24
loss_proof_limit = 20000
games_in_flight = 4
groups = 1
max_turns = 120
network_change = "turn"
games_per_shard = 8
shard_mib = 64
keep_shards = 0

[selfplay.search]
reuse_tree = true
memory_mib = 64
parallel_leaves = 1
goal_solver = true

[selfplay.search.puct]
exploration = 0.5
exploration_base = 19652.0
first_play_reduction = 0.2
min_turn_visits = 8

[selfplay.search.gumbel]
candidates = 8
beam_width = 8
beam_value_scale = 40.0
visit_constant = 50.0
value_scale = 10.0

[selfplay.exploration]
temperature = 1.0
temperature_half_life = 20.0
final_temperature = 0.2
prior_temperature = 1.0
dirichlet_share = 0.25
dirichlet_concentration = 10.0
gumbel_noise = 1.0

[selfplay.targets]
kind = "improved"
value_scale = 10.0
min_visits = 4
surprise_share = 0.5
truncated_weight = 1.0

[selfplay.openings]
policy_share = 0.3
policy_turns = 4
policy_temperature = 1.0
# Which games forks are made from depends on which are done by then.
fork_share = 0.0
file_share = 0.0
sparse_share = 0.0
sparse_pieces = 13

[selfplay.handicap]
share = 0.2
evaluations = 0.5

[selfplay.soft_resignation]
turns = 4
threshold = 0.9
evaluations = 0.5
weight = 0.1

[selfplay.resignation]
turns = 8
threshold = 0.02
played_out_share = 0.5

[match]
max_turns = 120

[match.search]
reuse_tree = true
memory_mib = 64
parallel_leaves = 1
goal_solver = true

[match.search.puct]
exploration = 0.5
exploration_base = 19652.0
first_play_reduction = 0.2
min_turn_visits = 8

[match.search.gumbel]
candidates = 8
beam_width = 8
beam_value_scale = 40.0
visit_constant = 50.0
value_scale = 10.0
"#;

fn selfplay(folder: &Path, arguments: &[&str]) -> String {
    let config = folder.join("config.toml");
    std::fs::write(&config, SETTINGS).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
    command.current_dir(folder).args(arguments);
    let output = command.args(["--config", "config.toml"]).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What is recorded of a game, without what a new format may lay out anew. Numbers are rounded: their last digits may depend on the
/// CPU.
fn told(game: &GameRecord) -> String {
    let mut text = format!("{} {:x}\n", game.id, game.seed);
    let ending = match game.ending {
        Ending::Won(outcome) => format!("{outcome:?}"),
        Ending::Unfinished { value } => format!("unfinished {:.3}", value.unwrap()),
        Ending::Resigned { winner } => format!("resigned {winner:?}"),
        Ending::Forfeited { winner } => format!("forfeited {winner:?}"),
    };
    writeln!(
        text,
        "{ending} {:?}",
        game.resignation_waived.map(|waived| waived.turn)
    )
    .unwrap();
    for turn in &game.turns {
        write!(text, "{:?}", turn.actions).unwrap();
        match turn.search() {
            Some(search) => writeln!(
                text,
                " {:?} {} {} {} {:.3} {:.3}",
                search.kind,
                search.budget,
                search.evaluations,
                search.visits,
                search.value,
                search.network_value
            ),
            None => writeln!(text, " not searched"),
        }
        .unwrap();
        for row in &turn.rows {
            let policy: Vec<u16> = row.policy.iter().map(|share| share / 64).collect();
            let (step, visits, surprise, weight) = (row.step, row.visits, row.surprise, row.weight);
            writeln!(text, "{step} {visits} {policy:?} {surprise:.2} {weight:.2}").unwrap();
        }
    }
    text
}

fn generated(network: &str, mode: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mode = format!("selfplay.search.mode={mode}");
    let arguments = [
        "generate",
        "--out",
        "out",
        "--games",
        "20",
        "--seed",
        "27",
        "--threads",
        "1",
        "--network",
        network,
        "--set",
        &mode,
    ];
    selfplay(folder.path(), &arguments);
    let shards = list_shards(&folder.path().join("out")).unwrap();
    let mut games: Vec<GameRecord> = shards
        .values()
        .flat_map(|path| ShardReader::open(path).unwrap().map(Result::unwrap))
        .collect();
    games.sort_by_key(|game| game.id);
    assert_eq!(games.len(), 20);
    digest(games.iter().map(told).collect::<String>().as_bytes())
}

#[test]
fn generated_games_are_pinned() {
    let found = [
        ("uniform", "puct"),
        ("uniform", "gumbel"),
        ("material", "puct"),
        ("material", "gumbel"),
    ]
    .map(|(network, mode)| generated(network, mode));
    let expected = [
        "a3e910b47d4e0b82edf4fe6ddd8179fe8c0a12a9dedb21511428d17ae2a9f249",
        "6795a75dc99cce030318e68f274cfb28c60ea3ca48d10b0e1a7c59fc937cfca0",
        "f4d325570e8125f6c901ad41474f1f00f6c2a92bd4ac39301729e78976b90ea2",
        "e092d91b09467f915726d54bab737b8bc53618af357ee5e5d0d2c959446135e4",
    ];
    assert_eq!(found, expected);
}

/// The turns of all games of a match, in the order of the games.
fn matched(a: &str, b: &str, mode: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mode = format!("match.search.mode={mode}");
    let arguments = [
        "pit",
        "--out",
        "out",
        "--games",
        "20",
        "--seed",
        "27",
        "--threads",
        "1",
        "--json",
        "--a",
        a,
        "--b",
        b,
        "--evaluations",
        "24",
        "--set",
        &mode,
    ];
    let report: serde_json::Value =
        serde_json::from_str(&selfplay(folder.path(), &arguments)).unwrap();
    let records = folder.path().join(report["records"].as_str().unwrap());
    let mut paths: Vec<_> = std::fs::read_dir(records)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert_eq!(paths.len(), 20);
    let turns = paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let turns = text
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
        turns.map(|turn| format!("{turn}\n")).collect::<String>()
    });
    let turns: String = turns.collect();
    assert!(turns.lines().count() > 400);
    digest(turns.as_bytes())
}

#[test]
fn matches_are_the_ones_that_they_were() {
    let found = ["puct", "gumbel"].map(|mode| matched("material", "uniform", mode));
    let expected = [
        "cbcf9c76237cf1aba53b49e6495da85cfd35636f7bcc44dcaa66ced70d42c53a",
        "ccc2f93cf823f70c83f27a62f494aad5d531a3efa3b66d158db39288eb2d7254",
    ];
    assert_eq!(found, expected);
}
