//! Workers by their names: their own games after a restart, two of one name, and folders in which locks do not work.

use super::audit::{Audit, in_flight};
use super::process::{GeneratorCommand, Running};
use std::path::Path;

fn worker(folder: &Path, name: &str) -> GeneratorCommand {
    GeneratorCommand::for_folder(folder).with(&["--threads", "1", "--worker", name])
}

#[test]
fn each_worker_takes_up_its_own_games() {
    let folder = tempfile::tempdir().unwrap();
    let commands = ["a", "b"].map(|name| worker(folder.path(), name));
    let begun = [0, 1].map(|number| {
        let mut running = commands[number].start();
        running.wait_until("games have begun", |_| {
            in_flight(commands[number].paths())
                .iter()
                .any(|game| game.beginning.id.generator == number as u32)
        });
        running.stop();
        number
    });
    // In the other order.
    for number in begun.into_iter().rev() {
        let mut running = commands[number].start();
        running.wait_until("it resumes", |running| {
            running
                .stderr()
                .contains(&format!("generator {number} resumes "))
        });
        running.stop();
    }
    Audit::of(commands[0].paths()).assert_sound();
}

#[test]
fn a_second_worker_of_a_name_waits_for_the_end_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(folder.path(), "a");
    let mut alive = first.start();
    let status = first.paths().status(0);
    alive.wait_until("it has a status", |_| status.exists());
    // Other games: the plans differ, the names do not.
    let second = worker(folder.path(), "a").with(&["--seed", "2"]);
    let waits = |running: &Running| {
        let said = running.stderr();
        said.contains("worker a is running already and holds ")
            && said.contains("worker-a.lock. This one waits up to 3 minutes")
    };
    let mut stopped = second.start();
    stopped.wait_until("it waits", waits);
    stopped.stop();
    let mut waiting = second.start();
    waiting.wait_until("it waits", waits);
    alive.stop();
    waiting.wait_until("it plays", |running| running.stderr().contains(" resumes "));
    waiting.stop();
}

#[test]
fn wrong_names_are_refused() {
    for name in ["", "a b", "../a", "ä"] {
        let folder = tempfile::tempdir().unwrap();
        let ended = worker(folder.path(), name).start().wait();
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(ended.stderr.contains("1 to 64 letters"), "{ended:?}");
    }
}

/// A library in the place of the system's `flock`: it does what the text says.
#[cfg(target_os = "linux")]
fn flock_that(folder: &Path, does: &str) -> std::path::PathBuf {
    let (source, library) = (folder.join("flock.c"), folder.join("flock.so"));
    let text = format!("#include <errno.h>\nint flock(int file, int operation) {{ {does} }}\n");
    std::fs::write(&source, text).unwrap();
    let mut compiler = std::process::Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source]);
    assert!(compiler.status().unwrap().success());
    library
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_without_locks_is_refused_before_the_first_game() {
    for does in [
        "return 0;",
        "errno = ENOLCK; return -1;",
        "errno = EOPNOTSUPP; return -1;",
    ] {
        let (folder, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let library = flock_that(tools.path(), does);
        let command = worker(folder.path(), "a");
        let script = format!("LD_PRELOAD={} exec \"$@\"", library.display());
        let ended = command.start_in_shell(&script).wait();
        assert_eq!(ended.status.code(), Some(1), "{does}: {ended:?}");
        assert!(
            ended
                .stderr
                .contains("a.lock: locks do not work in this folder"),
            "{does}: {ended:?}"
        );
        assert!(in_flight(command.paths()).is_empty());
    }
}
