//! Generators that are stopped or reach a limit: they exit cleanly, and the same command resumes.

use super::audit::{Audit, assert_resumes, in_flight};
use super::process::{Ended, GeneratorCommand, Running, children};
use engine::record::journal::GameInFlight;
use engine::record::list_shards;
use rustix::fs::{OFlags, fcntl_setfl};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How a generator ends after a requested stop.
const REQUESTED: (i32, &str) = (75, "asked to stop");

/// Games without an end.
fn endless(folder: &Path, keys: &[&str]) -> GeneratorCommand {
    GeneratorCommand::for_folder(folder)
        .set(&["selfplay.games_per_shard=5"])
        .set(keys)
        .with(&["--threads", "2", "--seed", "41"])
}

fn has_shards(command: &GeneratorCommand) -> bool {
    list_shards(&command.paths().shards).is_ok_and(|shards| !shards.is_empty())
}

fn started(command: &GeneratorCommand) -> Running {
    let mut running = command.start();
    running.wait_until("there are shards", |_| has_shards(command));
    running
}

/// Asserts that it ended with this exit code, for this reason, and that nothing is lost. Returns the games that can be resumed.
fn assert_stopped(
    ended: &Ended,
    (code, reason): (i32, &str),
    command: &GeneratorCommand,
) -> Vec<GameInFlight> {
    assert_eq!(ended.status.code(), Some(code), "{ended:?}");
    let begun = in_flight(command.paths());
    let left = format!(
        "stopped, {reason}: {} games in flight are in the journal; the same command resumes them\n",
        begun.len()
    );
    assert!(ended.printed.ends_with(&left), "{ended:?}");
    let audit = Audit::of(command.paths());
    audit.assert_sound();
    let games = audit.games.len();
    let all: Vec<u64> = (0..(games + begun.len()) as u64).collect();
    let mut known = audit.counters(0);
    known.extend(begun.iter().map(|game| game.beginning.id.counter));
    known.sort_unstable();
    assert_eq!(known, all);
    begun
}

/// As [`assert_stopped`], and that the same command resumes.
fn assert_resumes_after(ended: &Ended, how: (i32, &str), command: &GeneratorCommand) {
    let begun = assert_stopped(ended, how, command);
    let mut again = command.start();
    again.wait_until("it has resumed", |_| {
        let audit = Audit::of(command.paths());
        begun
            .iter()
            .all(|game| audit.games.contains_key(&game.beginning.id))
    });
    again.stop();
    let audit = Audit::of(command.paths());
    audit.assert_sound();
    for game in begun {
        assert_resumes(&audit.games[&game.beginning.id], &game);
    }
}

#[test]
fn signals_stop_it_and_the_same_command_resumes() {
    for signal in ["TERM", "INT", "HUP", "USR1"] {
        let folder = tempfile::tempdir().unwrap();
        let command = endless(folder.path(), &[]);
        let running = started(&command);
        running.signal(signal);
        assert_resumes_after(&running.wait(), REQUESTED, &command);
    }
}

#[test]
fn a_closed_connection_doesn_t_stop_it_where_that_signal_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let command = endless(folder.path(), &[]);
    let mut running = command.start_in_shell("trap '' HUP; exec \"$@\"");
    running.wait_until("there are shards", |_| has_shards(&command));
    running.signal("HUP");
    let before = list_shards(&command.paths().shards).unwrap().len();
    running.wait_until("there are more shards", |_| {
        list_shards(&command.paths().shards).unwrap().len() > before + 1
    });
    running.signal("TERM");
    assert_stopped(&running.wait(), REQUESTED, &command);
}

/// A generator that writes into a full pipe, so that its stop blocks.
fn start_blocked(command: &GeneratorCommand) -> (Running, std::io::PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    loop {
        match writer.write(&[b'x'; 512]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    let mut running = command.start_printing_to(writer);
    running.wait_until("there are shards", |_| has_shards(command));
    (running, reader)
}

/// Two signals within a fifth of a second are one.
const APART: Duration = Duration::from_millis(300);

#[test]
fn the_second_signal_behind_a_notice_ends_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let command = endless(folder.path(), &[]);
    let (mut running, _reader) = start_blocked(&command);
    for signal in ["USR1", "TERM"] {
        running.signal(signal);
        running.wait_until("all is written", |running| {
            running.stderr().contains("workers: ")
        });
        std::thread::sleep(APART);
        assert!(!running.has_ended(), "{signal} is the first one");
    }
    running.signal("TERM");
    assert_eq!(running.wait().status.code(), Some(128 + 15));
    let audit = Audit::of(command.paths());
    audit.assert_sound();
    assert!(!in_flight(command.paths()).is_empty());
}

#[test]
fn a_stop_ends_with_its_grace_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let command = endless(folder.path(), &[]);
    let (running, _reader) = start_blocked(&command.clone().with(&["--grace", "1"]));
    running.signal("USR1");
    let ended = running.wait();
    assert!(
        ended.stderr.contains("not stopped within 1 s (--grace)"),
        "{ended:?}"
    );
    assert_eq!(ended.status.code(), Some(75));
    let audit = Audit::of(command.paths());
    audit.assert_sound();
    assert!(!in_flight(command.paths()).is_empty());
    let mut again = command.start();
    again.wait_until("it resumes", |running| {
        running.stderr().contains(" resumes ")
    });
    again.stop();
}

/// Makes what follows the first process of a container.
#[cfg(target_os = "linux")]
const UNSHARE: &str = "exec unshare --user --map-root-user --pid --fork";

#[cfg(target_os = "linux")]
fn can_unshare() -> bool {
    let script = format!("{UNSHARE} true");
    let tried = std::process::Command::new("sh")
        .args(["-c", &script])
        .status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        eprintln!("not tested: this system has no `unshare`, or allows no namespaces");
    }
    can
}

/// The first process of a container has no default action for signals, and its exit code is the container's.
#[test]
#[cfg(target_os = "linux")]
fn as_the_first_process_it_stops_as_elsewhere() {
    if !can_unshare() {
        return;
    }
    for (signal, code) in [("TERM", 75), ("USR1", 75), ("QUIT", 128 + 3)] {
        let folder = tempfile::tempdir().unwrap();
        let command = endless(folder.path(), &[]);
        let mut running = command.start_in_shell(&format!("{UNSHARE} \"$@\""));
        running.wait_until("there are shards", |_| has_shards(&command));
        running.signal_child(signal);
        let ended = running.wait();
        assert_eq!(ended.status.code(), Some(code), "{signal}: {ended:?}");
        Audit::of(command.paths()).assert_sound();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn as_the_first_process_it_waits_for_orphans() {
    if !can_unshare() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let command = endless(folder.path(), &[]);
    let mut running = command.start_in_shell(&format!("{UNSHARE} \"$@\""));
    running.wait_until("there are shards", |_| has_shards(&command));
    let first = running.children()[0];
    assert_eq!(children(first).len(), 1);
    // The shell ends at once, and `cat` at the end of its input.
    let mut orphaned = std::process::Command::new("nsenter")
        .args(["--target", &first.to_string(), "--user", "--pid"])
        .args(["--preserve-credentials", "sh", "-c"])
        .arg("exec 3<&0; cat <&3 &")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    running.wait_until("it has an orphan", |_| children(first).len() == 2);
    drop(orphaned.stdin.take());
    running.wait_until("the orphan is gone", |_| children(first).len() == 1);
    assert!(orphaned.wait().unwrap().success());
    running.signal_child("TERM");
    assert_eq!(running.wait().status.code(), Some(75));
}

#[test]
fn limits_stop_it_and_the_same_command_resumes() {
    for (limit, reason) in [
        (["--hours", "0.0001"], "the hours are over"),
        (["--max-disk", "0.0001"], "--max-disk is reached"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let unlimited = endless(folder.path(), &[]);
        let ended = unlimited.clone().with(&limit).start().wait();
        assert_resumes_after(&ended, (0, reason), &unlimited);
    }
}

#[test]
fn a_generator_that_takes_too_much_memory_plays_fewer_games_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let command = endless(
        folder.path(),
        &["selfplay.games_in_flight=40", "selfplay.evaluations=300"],
    );
    let mut running = command.clone().with(&["--max-memory", "0.001"]).start();
    running.wait_until("it plays fewer", |running| {
        running
            .stderr()
            .contains("--max-memory: 30 games at once a thread")
    });
    running.signal("TERM");
    assert_stopped(&running.wait(), REQUESTED, &command);
}

#[test]
#[ignore = "it is given minutes to get by with less memory"]
fn a_generator_that_exceeds_its_memory_with_one_game_stops() {
    let folder = tempfile::tempdir().unwrap();
    let command = endless(folder.path(), &["selfplay.games_in_flight=2"]);
    let ended = command
        .clone()
        .with(&["--max-memory", "0.001"])
        .start()
        .wait();
    let reason = "--max-memory is exceeded with a single game a thread";
    assert_stopped(&ended, (1, reason), &command);
    assert!(
        ended.stderr.contains("allow more, or fewer --threads"),
        "{ended:?}"
    );
}

#[test]
fn its_progress_is_served_over_http_and_logged() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let path = log.display().to_string();
    let command = endless(&folder.path().join("out"), &[]).with(&[
        "--metrics",
        "127.0.0.1:0",
        "--json-log",
        &path,
    ]);
    let mut running = started(&command);
    let address = &metrics_address(&mut running);
    let games = |metrics: &str| -> f64 {
        let line = metrics
            .lines()
            .filter(|line| line.starts_with("tusker_games_total"));
        line.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    };
    let begun = Instant::now();
    loop {
        let metrics = get(address);
        assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
        assert!(!metrics.contains("tusker_device"), "{metrics}");
        if games(&metrics) >= 5.0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{metrics}");
    }
    let ended = running.stop();
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (first, last) = (lines.first().unwrap(), lines.last().unwrap());
    assert_eq!(
        (&first["event"], &first["seed"]),
        (&"start".into(), &41.into())
    );
    assert_eq!(
        (&last["event"], &last["reason"]),
        (&"end".into(), &"asked to stop".into())
    );
    let written = Audit::of(command.paths()).games.len();
    assert_eq!(last["games"], written, "{ended:?}");
    // The worker evaluates by itself.
    assert_eq!(last["devices"], serde_json::json!([]));
    assert!(last["rows_waiting"].is_null());
}

/// The address of its metrics, once it has printed it.
pub(super) fn metrics_address(running: &mut Running) -> String {
    running.wait_until("it prints the address", |running| {
        running.stderr().contains("/metrics")
    });
    let stderr = running.stderr();
    let address = stderr.split("http://").nth(1).unwrap();
    address.split('/').next().unwrap().to_owned()
}

/// One request.
pub(super) fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
