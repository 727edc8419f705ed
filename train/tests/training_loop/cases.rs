//! Commands that are interrupted, and what must have come of them in the end.

use super::programs::selfplay;
use super::side_by_side::SIDE_BY_SIDE;
use super::support::{SMALL, init, outcome, train, write_shard};
use super::{arguments, check_matches, check_networks_and_games};
use engine::record::samples::random_game;
use engine::record::{GameId, GameRecord, ShardReader, list_shards, replay};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command that is interrupted.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The program whose operations meet faults.
    pub(crate) program: &'static str,
    pub(crate) prepare: fn(&Path),
    pub(crate) command: fn(&Path) -> Command,
    /// Whether the command has done all, although it failed: the same again would do more, or has nothing to do.
    pub(crate) is_done: fn(&Path) -> bool,
    /// Compares what a command without faults has made with what is there.
    pub(crate) check: fn(&Path, &Path, &str),
}

fn std_train() -> Command {
    Command::new(env!("CARGO_BIN_EXE_train"))
}

fn nothing(_: &Path) {}

/// Self-play games.
pub(crate) const GENERATE: Case = Case {
    name: "generate",
    program: "selfplay",
    prepare: nothing,
    command: |folder| {
        let mut command = selfplay();
        command
            .args(["generate", "--network", "uniform", "--games", "12"])
            .args(["--seed", "3", "--threads", "1", "--out"])
            .arg(folder);
        for key in [
            "selfplay.evaluations=4",
            "selfplay.targets.min_visits=1",
            "selfplay.games_in_flight=4",
            "selfplay.games_per_shard=3",
            "selfplay.max_turns=8",
            "selfplay.search.reuse_tree=false",
        ] {
            command.args(["--set", key]);
        }
        command
    },
    is_done: |folder| {
        let numbers = fs::read_dir(folder.join("generators"));
        numbers.is_ok_and(|mut all| all.any(|one| one.unwrap().path().join("done").exists()))
    },
    check: |whole, folder, what| {
        let games = |folder| {
            let mut games = games_in(folder);
            games.sort_by_key(|game| game.id);
            games
        };
        let (expected, found) = (games(whole), games(folder));
        assert!(found.iter().all(|game| replay(game).is_ok()), "{what}");
        let generator = found[0].id.generator;
        for (counter, game) in found.iter().enumerate() {
            let id = (game.id.generator, game.id.counter);
            assert_eq!(id, (generator, counter as u64), "{what}");
        }
        assert_eq!(found.len(), expected.len(), "{what}");
        // A start that breaks off before its plan is there wastes a number, on which the games depend.
        assert!(generator != 0 || found == expected, "{what}: other games");
    },
};

/// Games of two files, imported into one folder.
pub(crate) const IMPORT: Case = Case {
    name: "import",
    program: "selfplay",
    prepare: |folder| {
        fs::create_dir(folder).unwrap();
        for (file, first) in [("a", 0), ("b", 10)] {
            let id = |counter| GameId {
                generator: 0,
                counter,
            };
            let games = (first..first + 10).map(|counter| random_game(id(counter), 3, 20));
            let texts = games.map(|game| game.to_game().unwrap().to_string());
            let texts: Vec<String> = texts.collect();
            fs::write(folder.join(file).with_extension("txt"), texts.join("\n")).unwrap();
        }
    },
    command: |folder| {
        let mut command = selfplay();
        let files = ["a.txt", "b.txt"].map(|file| folder.join(file));
        command.arg("import").args(files);
        command.arg("--out").arg(folder.join("shards"));
        command
    },
    is_done: |_| false,
    check: |whole, folder, what| {
        // A later start has a number of its own.
        let games = |folder: &Path| {
            let games = games_in(&folder.join("shards")).into_iter();
            games.map(|game| game.turns).collect::<Vec<_>>()
        };
        let (expected, found) = (games(whole), games(folder));
        assert_eq!(expected.len(), 20);
        assert!(found == expected, "{what}: {} games", found.len());
    },
};

/// Games as text, and their rows in several files.
pub(crate) const EXPORT: Case = Case {
    name: "export",
    program: "selfplay",
    prepare: |folder| {
        init(&folder.join("run"));
        write_shard(&folder.join("run"), 0, 6);
    },
    command: |folder| {
        let mut command = selfplay();
        command.arg("export").arg(folder.join("run"));
        command.arg("--text").arg(folder.join("games.txt"));
        command.arg("--rows").arg(folder.join("rows.npz"));
        command.args(["--rows-per-file", "200"]);
        command
    },
    is_done: |_| false,
    check: |whole, folder, what| {
        let exported = |folder: &Path| {
            let mut files = files_of(folder);
            files.retain(|path, _| !path.starts_with("run"));
            files
        };
        let (expected, found) = (exported(whole), exported(folder));
        assert!(expected.len() > 2, "{:?}", expected.keys());
        assert!(found == expected, "{what}: {:?}", found.keys());
    },
};

/// Two damaged shards.
pub(crate) const REPAIR: Case = Case {
    name: "inspect --repair",
    program: "selfplay",
    prepare: |folder| {
        init(&folder.join("run"));
        for sequence in 0..2 {
            write_shard(&folder.join("run"), sequence, 6);
            let shard = format!("run/shards/000-{sequence:06}.shard");
            let shard = folder.join(shard);
            let bytes = fs::read(&shard).unwrap();
            fs::write(shard, &bytes[..bytes.len() - 40]).unwrap();
        }
    },
    command: |folder| {
        let mut command = selfplay();
        command.arg("inspect").arg(folder.join("run"));
        command.arg("--repair").arg(folder.join("repaired"));
        command
    },
    // It reports the damage.
    is_done: |folder| {
        let repaired = |sequence| folder.join(format!("repaired/000-{sequence:06}.shard"));
        (0..2).all(|sequence| repaired(sequence).exists())
    },
    check: |whole, folder, what| {
        let repaired = |folder: &Path| files_of(&folder.join("repaired"));
        assert_eq!(repaired(whole).len(), 2);
        assert!(repaired(folder) == repaired(whole), "{what}");
    },
};

fn games_in(shards: &Path) -> Vec<GameRecord> {
    let shards = list_shards(shards).unwrap();
    let readers = shards.values().map(|path| ShardReader::open(path).unwrap());
    readers.flatten().map(Result::unwrap).collect()
}

/// One generation of training.
pub(crate) const TRAIN: Case = Case {
    name: "train run",
    program: "train",
    prepare: |run| {
        init(run);
        write_shard(run, 0, 12);
    },
    command: |run| {
        let mut command = std_train();
        command.args(["run", "--steps", "12", "--threads", "1", "--run"]);
        command.arg(run);
        command
    },
    is_done: |run| first_network(run).exists(),
    check: |whole, run, what| {
        let network = |run: &Path| fs::read(first_network(run)).unwrap();
        assert!(network(whole) == network(run), "{what}: another network");
    },
};

/// A new run.
pub(crate) const INIT: Case = Case {
    name: "train init",
    program: "train",
    prepare: nothing,
    command: |run| {
        let mut command = std_train();
        command
            .args(["init", "--seed", "3", "--run"])
            .arg(run)
            .args(SMALL);
        command
    },
    is_done: |run| run.join("networks/00000.safetensors").exists(),
    check: |whole, run, what| {
        assert_eq!(files_of(run), files_of(whole), "{what}");
    },
};

/// A new run with the games of another.
pub(crate) const INIT_FROM: Case = Case {
    name: "train init --from",
    program: "train",
    prepare: |folder| {
        let old = folder.join("old");
        init(&old);
        write_shard(&old, 0, 6);
        write_shard(&old, 1, 6);
    },
    command: |folder| {
        let mut command = std_train();
        command.args(["init", "--steps", "12", "--threads", "1", "--seed", "3"]);
        command.arg("--run").arg(folder.join("new"));
        command.arg("--from").arg(folder.join("old"));
        command
    },
    is_done: |folder| first_network(&folder.join("new")).exists(),
    check: |whole, folder, what| {
        for name in [
            "networks/00000.safetensors",
            "networks/00001.safetensors",
            "shards/000-000000.shard",
            "shards/000-000001.shard",
        ] {
            let file = |folder: &Path| fs::read(folder.join("new").join(name)).unwrap();
            assert!(file(folder) == file(whole), "{what}: another {name}");
        }
    },
};

/// The files below a folder with their contents, the temporary ones that a killed program left not among them.
fn files_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            let below = files_of(&path).into_iter();
            files.extend(below.map(|(path, bytes)| (name.join(path), bytes)));
        } else if path.extension().is_none_or(|ending| ending != "tmp") {
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

fn first_network(run: &Path) -> PathBuf {
    run.join("networks/00001.safetensors")
}

/// A match.
pub(crate) const MATCH: Case = Case {
    name: "pit",
    program: "selfplay",
    prepare: nothing,
    command: |folder| {
        let mut command = selfplay();
        command
            .args(["pit", "--a", "uniform evaluations=4", "--b", "random"])
            .args(["--games", "12", "--seed", "3", "--threads", "1"])
            .args(["--set", "match.max_turns=20", "--resume=or-begin", "--out"])
            .arg(folder);
        command
    },
    is_done: |_| false,
    check: |whole, folder, what| {
        assert_eq!(moves_in(folder), moves_in(whole), "{what}");
    },
};

/// The two parts of a match that are put together.
pub(crate) const JOIN: Case = Case {
    name: "pit --join",
    program: "selfplay",
    prepare: |folder| {
        for part in ["1/2", "2/2"] {
            let played = (MATCH.command)(folder).args(["--part", part]).output();
            assert!(played.unwrap().status.success(), "{part}");
        }
    },
    command: |folder| {
        let mut command = selfplay();
        command
            .args(["pit", "--a", "uniform evaluations=4", "--b", "random"])
            .args(["--games", "12", "--seed", "3"])
            .args(["--set", "match.max_turns=20", "--join", "--out"])
            .arg(folder);
        command
    },
    is_done: |_| false,
    check: |whole, folder, what| {
        let moves = moves_in(folder);
        assert_eq!(moves.len(), 24, "{what}");
        assert_eq!(moves, moves_in(whole), "{what}");
    },
};

/// A match of engines, which are programs of their own. An engine that is killed loses its game by a crash; the match continues.
pub(crate) const MATCH_OF_ENGINES: Case = Case {
    name: "pit: aei",
    program: "selfplay",
    prepare: nothing,
    command: |folder| {
        let engine = |seed: u32| {
            let program = selfplay();
            let program = program.get_program().to_str().unwrap();
            let command = format!("{program} aei --network uniform --threads 1 --seed {seed}");
            format!("aei:'{command}' clock=60s option=evaluations=4")
        };
        let mut command = selfplay();
        command
            .args(["pit", "--a", &engine(1), "--b", &engine(2)])
            .args(["--games", "8", "--seed", "3", "--threads", "2"])
            .args(["--set", "match.max_turns=16", "--resume=or-begin", "--out"])
            .arg(folder);
        command
    },
    is_done: |_| false,
    check: |_, folder, what| {
        let results = results_in(folder);
        let number = |game: &serde_json::Value| game["game"].as_u64().unwrap();
        let numbers: Vec<u64> = results.iter().map(number).collect();
        assert_eq!(numbers, Vec::from_iter(0..8), "{what}");
        for game in results {
            let is_over = game["reason"] != "crash" && game["fault"].is_null();
            let reason = game["fault"].as_str().unwrap_or_default();
            assert!(is_over || reason.contains("SIGKILL"), "{what}: {game}");
        }
    },
};

/// The hashes of a match's games by number.
fn moves_in(folder: &Path) -> Vec<(u64, String)> {
    let results = results_in(folder).into_iter();
    let moves = results.map(|game| (game["game"].as_u64().unwrap(), game["moves"].to_string()));
    moves.collect()
}

/// The results of a match's games by number.
fn results_in(folder: &Path) -> Vec<serde_json::Value> {
    let matches: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("results.jsonl"))
        .filter(|file| file.exists())
        .collect();
    let text: String = matches
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let lines = text.lines().map(serde_json::from_str);
    let mut results: Vec<serde_json::Value> = lines.map(Result::unwrap).collect();
    results.sort_by_key(|game| game["game"].as_u64());
    results
}

const fn of_loop(name: &'static str, program: &'static str, command: fn(&Path) -> Command) -> Case {
    Case {
        name,
        program,
        prepare: nothing,
        command,
        is_done: |_| false,
        check: |_, run, _| {
            let again = ["loop", "--run", run.to_str().unwrap()];
            let (code, said, progress) = outcome(train().args(again));
            assert_eq!(code, 0, "{progress}");
            assert!(check_networks_and_games(run) >= 2 * 6);
            check_matches(run, 1, 2, &["first"]);
            check_matches(run, 2, 4, &["first", "00001"]);
            assert!(said.contains("% of 4 "), "{said}");
        },
    }
}

/// A loop of few operations, so that all of them can meet every fault. The log may lack lines that a disk refused or lost.
fn short_loop(run: &Path, more: &[&str]) -> Command {
    let mut settings = vec![
        "loop.first_games=6",
        "loop.games_per_generation=6",
        "loop.anchors=[]",
        "selfplay.games_per_shard=2",
        "selfplay.max_turns=10",
        "match.max_turns=8",
        "train.batch_size=16",
        "train.network_steps=10",
    ];
    settings.extend(more);
    let mut command = std_train();
    command.args(arguments(run, &settings));
    command
}

fn in_turns(run: &Path) -> Command {
    short_loop(run, &[])
}

fn side_by_side(run: &Path) -> Command {
    short_loop(run, &SIDE_BY_SIDE)
}

/// The loop, with faults in one of its programs.
pub(crate) const LOOP: Case = of_loop("train loop", "train", in_turns);
pub(crate) const LOOP_SELFPLAY: Case = of_loop("train loop: selfplay", "selfplay", in_turns);
/// The loop in its other order.
pub(crate) const LOOP_SIDE_BY_SIDE: Case =
    of_loop("train loop: side by side", "train", side_by_side);
