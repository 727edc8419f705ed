//! Generators that can't write for a while: they report it, lose nothing, and continue.

use super::audit::{Audit, in_flight};
use super::process::{GeneratorCommand, Running};
use engine::record::list_shards;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const PAUSED: &str = "paused, nothing is lost: ";
const RESUMED: &str = "resumed: it could be written";

const GAMES: u64 = 60;

/// Some games that depend on nothing but the seed.
fn command(folder: &Path) -> GeneratorCommand {
    let keys = [
        "selfplay.search.reuse_tree=false",
        "selfplay.games_per_shard=4",
    ];
    let games = GAMES.to_string();
    let arguments = ["--games", &games, "--threads", "2", "--seed", "51"];
    GeneratorCommand::for_run(folder)
        .set(&keys)
        .with(&arguments)
}

/// Asserts that the games are those of a run that nothing came in the way of.
fn assert_undisturbed(orders_given: &GeneratorCommand) {
    let folder = tempfile::tempdir().unwrap();
    let spared = command(folder.path());
    spared.finish();
    let audit = Audit::of(orders_given.paths());
    audit.assert_complete(orders_given.paths(), &[0], GAMES);
    let undisturbed = Audit::of(spared.paths());
    assert_eq!(undisturbed.different_in(&audit), []);
}

/// A limit on the size of files stands for a full disk: what is over it can't be written.
#[test]
fn a_generator_killed_on_a_full_disk_resumes_when_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let command = command(folder.path());
    for blocks in [32, 100] {
        // Without the trap the signal would end the program.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut running = command.start_in_shell(&script);
        running.wait_until("it pauses", |running| running.stderr().contains(PAUSED));
        assert!(!running.stderr().contains(RESUMED));
        let reason = running.stderr();
        assert!(reason.contains(".journal"), "{reason}");
        running.kill();
        Audit::of(command.paths()).assert_sound();
        assert!(!in_flight(command.paths()).is_empty());
    }
    command.finish();
    assert_undisturbed(&command);
}

#[test]
fn a_generator_on_a_full_disk_continues_when_there_is_space() {
    play_on_a_full_disk(5_800);
}

#[test]
fn a_generator_that_starts_on_a_full_disk_begins_when_there_is_space() {
    play_on_a_full_disk(7_000);
}

/// Plays on a disk of 6 MiB that is filled with so many KiB until it has paused.
fn play_on_a_full_disk(ballast_kib: u32) {
    let folder = tempfile::tempdir().unwrap();
    let is_possible = Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(folder.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_possible {
        eprintln!("skipped: no disk of a size of its own can be mounted here");
        return;
    }
    // The mount ends with the shell, so what is on the disk is copied to where the test can see it.
    let command = command(&folder.path().join("run"));
    let outside = tempfile::tempdir().unwrap();
    let script = r#"
        exec unshare -rm sh -euc '
            folder=$1 outside=$2; shift 2
            mount -t tmpfs -o size=6m tmpfs "$folder"
            head -c BALLASTk /dev/zero > "$folder/ballast" || true
            "$@" & generator=$!
            until [ -e "$outside/go" ]; do sleep 0.02; done
            rm "$folder/ballast"
            wait $generator
            cp -r "$folder/run" "$outside"
        ' sh "FOLDER" "OUTSIDE" "$@""#;
    let script = script
        .replace("BALLAST", &ballast_kib.to_string())
        .replace("FOLDER", &folder.path().display().to_string())
        .replace("OUTSIDE", &outside.path().display().to_string());
    let mut running = command.start_in_shell(&script);
    running.wait_until("it pauses", |running| running.stderr().contains(PAUSED));
    assert!(!running.stderr().contains(RESUMED), "{}", running.stderr());
    fs::write(outside.path().join("go"), b"").unwrap();
    let ended = running.wait();
    assert!(ended.status.success(), "{ended:?}");
    for part in [PAUSED, RESUMED] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert_undisturbed(&self::command(&outside.path().join("run")));
}

#[test]
fn a_generator_waits_for_a_folder_that_it_may_not_write_to() {
    let folder = tempfile::tempdir().unwrap();
    let command = command(folder.path());
    let shards = &command.paths().shards;
    let Some(mut running) = start_obeying_permissions(&command) else {
        eprintln!("skipped: this user may write everywhere");
        return;
    };
    running.wait_until("there are shards", |_| {
        list_shards(shards).is_ok_and(|shards| !shards.is_empty())
    });
    fs::set_permissions(shards, Permissions::from_mode(0o555)).unwrap();
    running.wait_until("it pauses", |running| running.stderr().contains(PAUSED));
    fs::set_permissions(shards, Permissions::from_mode(0o755)).unwrap();
    let ended = running.wait();
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains(RESUMED), "{}", ended.stderr);
    assert_undisturbed(&command);
}

/// Starts it without the right of the superuser to write everywhere. None where it has that right, and can't be rid of it.
fn start_obeying_permissions(command: &GeneratorCommand) -> Option<Running> {
    const WITHOUT: &str = "--bounding-set=-dac_override,-dac_read_search";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
    if fs::write(&file, b"").is_err() {
        return Some(command.start());
    }
    fs::remove_file(&file).unwrap();
    let works = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        let output = command.arg(WITHOUT).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let is_rid_of_it = works(&["true"]) && !works(&["touch", &file.display().to_string()]);
    is_rid_of_it.then(|| command.start_in_shell(&format!("exec setpriv {WITHOUT} \"$@\"")))
}
