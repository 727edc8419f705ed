//! Damage to each kind of file of a run and of a match: the command that uses the file names it, or it has no effect.

use super::arguments;
use super::cases::{Case, GENERATE, MATCH};
use super::programs::{build_selfplay, selfplay};
use super::support::{outcome, train};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kind of files, and the command that must name one that is damaged.
struct Kind {
    name: &'static str,
    base: Base,
    /// Whether a file of the base, by its path below it, is of this kind.
    is_of: fn(&str) -> bool,
    command: fn(&Path) -> Command,
    /// What tells that damage had no effect.
    harmless: Harmless,
}

/// What tells that damage which is not named had no effect.
#[derive(Clone, Copy)]
enum Harmless {
    /// Only a text's checksum was damaged.
    Checksum,
    /// Two files were exchanged.
    Exchange,
    /// The same comes of it as without: a file that was cut between two entries is as it was some time ago.
    SameResult(&'static Case),
}

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    /// A complete run.
    Run,
    /// A generator's folder, with games in flight.
    Generator,
    /// A complete match.
    Match,
}

fn info(run: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_train"));
    command.arg("info").arg(run);
    command
}

fn inspect(run: &Path) -> Command {
    let mut command = selfplay();
    command.arg("inspect").arg(run);
    command
}

fn ends(path: &str, folder: &str, ending: &str) -> bool {
    path.starts_with(folder) && path.ends_with(ending)
}

const KINDS: [Kind; 10] = [
    Kind {
        name: "network",
        base: Base::Run,
        is_of: |path| ends(path, "networks/", ".safetensors"),
        command: info,
        harmless: Harmless::Checksum,
    },
    Kind {
        name: "checkpoint",
        base: Base::Run,
        is_of: |path| ends(path, "checkpoints/", ".safetensors"),
        command: info,
        harmless: Harmless::Checksum,
    },
    Kind {
        name: "shard",
        base: Base::Run,
        is_of: |path| ends(path, "shards/", ".shard"),
        command: inspect,
        // All are read, and the order of a window's games has no meaning.
        harmless: Harmless::Exchange,
    },
    Kind {
        name: "result",
        base: Base::Run,
        is_of: |path| ends(path, "pit/", ".json"),
        command: info,
        harmless: Harmless::Checksum,
    },
    Kind {
        name: "ratings, times, window",
        base: Base::Run,
        is_of: |path| ["ratings.json", "clock.json", "trainer.window"].contains(&path),
        command: info,
        harmless: Harmless::Checksum,
    },
    Kind {
        name: "journal",
        base: Base::Generator,
        is_of: |path| ends(path, "journal/", ".journal"),
        command: GENERATE.command,
        harmless: Harmless::SameResult(&GENERATE),
    },
    Kind {
        name: "generator's plan",
        base: Base::Generator,
        is_of: |path| ends(path, "generators/", "plan.toml"),
        command: GENERATE.command,
        harmless: Harmless::Checksum,
    },
    Kind {
        name: "match's plan",
        base: Base::Match,
        is_of: |path| path.ends_with("match.toml"),
        command: MATCH.command,
        harmless: Harmless::Checksum,
    },
    Kind {
        name: "match's results",
        base: Base::Match,
        is_of: |path| path.ends_with("results.jsonl"),
        command: MATCH.command,
        harmless: Harmless::SameResult(&MATCH),
    },
    Kind {
        name: "match's record",
        base: Base::Match,
        is_of: |path| path.contains("/games/"),
        command: MATCH.command,
        harmless: Harmless::Checksum,
    },
];

/// Makes what is damaged.
fn make_bases(folder: &Path) -> BTreeMap<Base, PathBuf> {
    build_selfplay();
    let base = |name| folder.join(name);
    let run = base("run");
    let (code, _, said) = outcome(train().args(arguments(&run, &[])));
    assert_eq!(code, 0, "{said}");
    let interrupted = |case: &Case, place: &Path, plan: &str| {
        let mut command = (case.command)(place);
        command.env("TUSKER_FAULT", plan).output().unwrap();
    };
    let (generator, of_match) = (base("generator"), base("match"));
    interrupted(&GENERATE, &generator, "selfplay:120:kill");
    assert!(
        (MATCH.command)(&of_match)
            .output()
            .unwrap()
            .status
            .success()
    );
    [
        (Base::Run, run),
        (Base::Generator, generator),
        (Base::Match, of_match),
    ]
    .into()
}

/// The files below a folder, by their paths below it, in order.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(one) = folders.pop() {
        for entry in fs::read_dir(&one).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                files.insert(name.to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// One change of one file, or two files that are exchanged. Returns the files that differ, and what was done in words.
fn damage(
    files: &BTreeMap<String, Vec<u8>>,
    kind: &Kind,
    rng: &mut ChaCha8Rng,
) -> (BTreeMap<String, Vec<u8>>, String) {
    let names: Vec<&String> = files.keys().filter(|name| (kind.is_of)(name)).collect();
    let name = (*names.choose(rng).unwrap()).clone();
    let mut bytes = files[&name].clone();
    let place = rng.random_range(0..bytes.len());
    let what = match rng.random_range(0..4) {
        0 => {
            bytes[place] ^= 1 << rng.random_range(0..8);
            format!("a bit of byte {place} flipped")
        }
        1 => {
            bytes.truncate(place);
            format!("cut at byte {place}")
        }
        2 => {
            bytes.insert(place, rng.random());
            format!("a byte inserted at {place}")
        }
        _ => {
            let other = (*names.choose(rng).unwrap()).clone();
            let exchanged = [
                (other.clone(), bytes),
                (name.clone(), files[&other].clone()),
            ];
            return (exchanged.into(), format!("{name} and {other} exchanged"));
        }
    };
    let what = format!("{name}: {what}");
    ([(name, bytes)].into(), what)
}

/// Damages files so often, and counts what was named and what had no effect.
fn damage_files(times: usize, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let bases = make_bases(folder.path());
    let files: BTreeMap<Base, BTreeMap<String, Vec<u8>>> = bases
        .iter()
        .map(|(base, path)| (*base, files_below(path)))
        .collect();
    let [wholes, damaged] = ["wholes", "damaged"].map(|name| folder.path().join(name));
    for case in [&GENERATE, &MATCH] {
        let whole = wholes.join(case.name);
        let (code, _, said) = outcome(&mut (case.command)(&whole).into());
        assert_eq!(code, 0, "{said}");
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for kind in &KINDS {
        let said = said_of(kind, &files[&kind.base], &BTreeMap::new(), &damaged);
        let of_kind = files[&kind.base].keys().filter(|name| (kind.is_of)(name));
        let named: Vec<&String> = of_kind.filter(|name| names_fault(&said, name)).collect();
        assert!(named.is_empty(), "{named:?} are whole: {said}");
    }
    let (mut named, mut harmless) = (0, 0);
    for turn in 0..times {
        let kind = &KINDS[turn % KINDS.len()];
        if turn > 0 && turn % 500 == 0 {
            println!("{turn} files damaged: {named} named, {harmless} without effect");
        }
        let (changed, what) = damage(&files[&kind.base], kind, &mut rng);
        let differs = |(name, bytes): (&String, &Vec<u8>)| files[&kind.base][name] != *bytes;
        let is_exchange = changed.len() != 1;
        if !changed.iter().any(differs) {
            harmless += 1;
            continue;
        }
        let said = said_of(kind, &files[&kind.base], &changed, &damaged);
        assert!(!said.contains("panicked"), "{}, {what}: {said}", kind.name);
        let is_named = changed.keys().any(|name| names_fault(&said, name));
        if is_named {
            named += 1;
        } else {
            let is_contained = |(name, bytes): (&String, &Vec<u8>)| {
                bytes.starts_with(contents(&files[&kind.base][name]))
            };
            let what = format!("{}, {what}, unnoticed: {said}", kind.name);
            match kind.harmless {
                Harmless::Checksum => {
                    assert!(!is_exchange && changed.iter().all(is_contained), "{what}");
                }
                Harmless::Exchange => assert!(is_exchange, "{what}"),
                Harmless::SameResult(case) => {
                    (case.check)(&wholes.join(case.name), &damaged, &what);
                }
            }
            harmless += 1;
        }
    }
    println!("{times} files damaged: {named} named, {harmless} without effect, 0 silent");
}

/// A text up to its checksum and the end of the line before, if it has one. The rest can be lost without an effect: a text without a
/// checksum is read.
fn contents(bytes: &[u8]) -> &[u8] {
    let is_mark = |at: &usize| {
        let rest = &bytes[*at..];
        rest.starts_with(b"# checksum") || rest.starts_with(b",\"checksum")
    };
    let marks: Vec<usize> = (0..bytes.len()).filter(is_mark).collect();
    match marks[..] {
        [only] => bytes[..only].trim_ascii_end(),
        _ => bytes,
    }
}

/// What the command of a kind says of a base with changed files, in a folder for it.
fn said_of(
    kind: &Kind,
    files: &BTreeMap<String, Vec<u8>>,
    changed: &BTreeMap<String, Vec<u8>>,
    place: &Path,
) -> String {
    // The one before.
    let _ = fs::remove_dir_all(place);
    for (name, bytes) in files {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, changed.get(name).unwrap_or(bytes)).unwrap();
    }
    let output = (kind.command)(place).output().unwrap();
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// Whether a line says of a file that something is wrong with it.
fn names_fault(said: &str, file: &str) -> bool {
    let file = Path::new(file).file_name().unwrap().to_str().unwrap();
    // What a record of a match has lost is counted beside the results' file.
    let is_record = file.ends_with(".txt");
    said.lines().any(|line| {
        if is_record {
            line.contains("records are missing or torn")
        } else {
            line.contains(file)
                && !line.starts_with("newest network")
                && !line.starts_with("training")
        }
    })
}

#[test]
fn damage_is_named_or_without_effect() {
    damage_files(60, 1);
}

#[test]
#[ignore = "an hour"]
fn much_damage() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let times = number("DAMAGES").unwrap_or(10_000);
    damage_files(times as usize, number("DAMAGE_SEED").unwrap_or(2));
}
