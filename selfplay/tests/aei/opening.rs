//! The beginning and the end of a session, and the manifest.

use crate::child::{Engine, OPEN, command, lines, small_network};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

#[test]
fn the_opening_phase_names_the_engine_and_quit_ends_the_session() {
    let mut engine = Engine::start(&[]);
    engine.say("aei");
    let said = engine.until("aeiok");
    let version = format!("id version {}", env!("CARGO_PKG_VERSION"));
    let expected = [
        "protocol-version 1",
        "id name Tusker",
        "id author Tusker's contributors",
        &version,
        "aeiok",
    ];
    assert_eq!(said, expected);
    engine.say("isready");
    assert_eq!(engine.until("readyok"), ["readyok"]);
    engine.say("newgame\nisready\nquit");
    let (status, rest, complaints) = engine.end();
    assert!(status.success(), "{complaints}");
    assert_eq!(rest, ["readyok"]);
    assert_eq!(complaints, "");
}

#[test]
fn a_closed_input_ends_the_session_also_during_a_search() {
    let mut engine = Engine::ready(&[]);
    engine.say(&format!("{OPEN}\ngo"));
    engine.until("info pv");
    let (status, rest, _) = engine.end();
    assert!(status.success());
    assert!(!rest.iter().any(|line| line.starts_with("bestmove")));
}

#[test]
fn a_network_is_loaded_after_the_opening_phase_and_before_readyok() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.safetensors");
    let mut engine = Engine::start(&["--network", missing.to_str().unwrap()]);
    engine.say("aei");
    engine.until("aeiok");
    // Loading begins with the answer to `aei`: it may have failed by now, and the engine may have ended.
    engine.try_say("isready");
    let said = engine.until("log Error: ").pop().unwrap();
    assert!(said.contains("missing.safetensors"), "{said}");
    let (status, rest, complaints) = engine.end();
    assert!(!status.success());
    assert_eq!(rest, [] as [&str; 0]);
    assert!(complaints.contains("missing.safetensors"), "{complaints}");

    let path = small_network(folder.path());
    let mut engine = Engine::ready(&["--network", path.to_str().unwrap()]);
    engine.say("setoption name evaluations value 30\nnewgame\ngo");
    assert_eq!(engine.best_move().split(' ').count(), 16);
    // A missing network doesn't replace the present one.
    engine.say("setoption name network value nowhere.safetensors");
    let said = engine.said();
    assert!(said[0].starts_with("log Error: "), "{said:?}");
    engine.say("go");
    assert_eq!(engine.best_move().split(' ').count(), 16);
    engine.say("setoption name network value material");
    assert_eq!(engine.said(), [] as [&str; 0]);
    engine.say("go");
    assert_eq!(engine.best_move().split(' ').count(), 16);
}

#[test]
fn the_manifest_describes_options_that_the_engine_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let asked = || {
        let arguments = [
            "--network",
            "some.safetensors",
            "--threads",
            "2",
            "--seed",
            "5",
        ];
        let mut command = command(&[&["--manifest"][..], &arguments].concat());
        command.current_dir(folder.path());
        command.output().unwrap()
    };
    let missing = asked();
    let error = String::from_utf8(missing.stderr).unwrap();
    assert!(!missing.status.success());
    assert!(
        error.contains("can't read the network some.safetensors"),
        "{error}"
    );
    std::fs::write(folder.path().join("some.safetensors"), "").unwrap();
    let output = asked();
    assert!(output.status.success());
    let manifest: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(manifest["manifest_version"], 1);
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    for key in ["id", "name", "author", "description", "license"] {
        assert!(!manifest[key].as_str().unwrap().is_empty(), "{key}");
    }
    let network = folder.path().join("some.safetensors");
    let network = network.to_str().unwrap();
    let arguments = ["aei", "--network", network, "--threads", "2", "--seed", "5"];
    assert_eq!(manifest["args"], serde_json::json!(arguments));
    let options = manifest["options"].as_array().unwrap();
    let default = options.iter().find(|option| option["name"] == "network");
    assert_eq!(default.unwrap()["default"], network, "from any folder");
    let mut engine = Engine::ready(&[]);
    let mut names = Vec::new();
    for option in manifest["options"].as_array().unwrap() {
        let name = option["name"].as_str().unwrap();
        names.push(name);
        let value = match &option["default"] {
            _ if name == "network" => "material".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        engine.say(&format!("setoption name {name} value {value}"));
        assert_eq!(engine.said(), [] as [&str; 0], "{name}");
        for (bound, beyond) in [("min", -1), ("max", 1)] {
            let Some(bound) = option[bound].as_i64() else {
                continue;
            };
            engine.say(&format!("setoption name {name} value {}", bound + beyond));
            let said = engine.said();
            let start = format!("log Warning: setoption {name}: ");
            assert!(said[0].starts_with(&start), "{said:?}");
        }
    }
    for name in ["hash", "depth", "evaluations", "multipv", "network"] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn the_built_in_network_is_the_default() {
    let mut engine = Engine::ready(&["--network", "tusker"]);
    engine.say(&format!("setoption name evaluations value 20\n{OPEN}\ngo"));
    engine.best_move();
    let manifest = Command::new(env!("CARGO_BIN_EXE_selfplay"))
        .args(["aei", "--manifest"])
        .output()
        .unwrap();
    let manifest: Value = serde_json::from_slice(&manifest.stdout).unwrap();
    assert_eq!(manifest["args"], serde_json::json!(["aei"]));
    let options = manifest["options"].as_array().unwrap();
    let network = options.iter().find(|option| option["name"] == "network");
    assert_eq!(network.unwrap()["default"], "tusker");
}

#[test]
fn controllers_are_served_one_after_another_at_a_port() {
    let mut engine = Engine::start(&["--listen", "127.0.0.1:0"]);
    let said = lines(engine.stderr());
    let (_, line) = said.recv_timeout(Duration::from_secs(60)).unwrap();
    let address = line.strip_prefix("listening at ").unwrap().to_owned();
    for last in ["quit", "hello", "quit"] {
        let mut stream = TcpStream::connect(&address).unwrap();
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).unwrap();
        play_over(&mut stream, last);
    }
}

#[test]
fn a_silent_controller_at_the_port_does_not_block_the_next_one() {
    let mut engine = Engine::start(&["--listen", "127.0.0.1:0", "--network", "material"]);
    let said = lines(engine.stderr());
    let (_, line) = said.recv_timeout(Duration::from_secs(60)).unwrap();
    let address = line.strip_prefix("listening at ").unwrap().to_owned();
    let limit = Some(Duration::from_secs(60));
    let silent = TcpStream::connect(&address).unwrap();
    silent.set_read_timeout(limit).unwrap();
    let mut next = TcpStream::connect(&address).unwrap();
    next.set_read_timeout(limit).unwrap();
    play_over(&mut next, "quit");
    let heard: Vec<String> = BufReader::new(silent)
        .lines()
        .map_while(Result::ok)
        .collect();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].starts_with("log Error: no `aei` came within 5 s"));
}

/// What a controller elsewhere hears is the same for files that are there and files that aren't.
#[test]
fn a_connection_names_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let network = small_network(folder.path());
    let network = network.to_str().unwrap();
    let mut engine = Engine::start(&["--listen", "127.0.0.1:0", "--network", network]);
    let said = lines(engine.stderr());
    let (_, line) = said.recv_timeout(Duration::from_secs(60)).unwrap();
    let address = line.strip_prefix("listening at ").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).unwrap();
    let allowed = [network, "material", "tusker"];
    let refused = ["/etc/passwd", "/no/such/file"];
    stream.write_all(b"aei\n").unwrap();
    for name in allowed.into_iter().chain(refused) {
        let option = format!("setoption name network value {name}\n");
        stream.write_all(option.as_bytes()).unwrap();
    }
    stream.write_all(b"isready\n").unwrap();
    let mut heard = Vec::new();
    for line in BufReader::new(stream).lines() {
        heard.push(line.unwrap());
        if heard.last().is_some_and(|line| line == "readyok") {
            break;
        }
    }
    let logs: Vec<&String> = heard
        .iter()
        .filter(|line| line.starts_with("log"))
        .collect();
    assert_eq!(logs.len(), refused.len(), "{heard:?}");
    for log in logs {
        assert!(
            log.contains("files can't be named over a connection"),
            "{log}"
        );
    }
    assert_eq!(heard.last().map(String::as_str), Some("readyok"));
}

#[test]
fn the_next_session_is_served_after_one_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.safetensors");
    let network = missing.to_str().unwrap();
    let mut engine = Engine::start(&["--listen", "127.0.0.1:0", "--network", network]);
    let said = lines(engine.stderr());
    let (_, line) = said.recv_timeout(Duration::from_secs(60)).unwrap();
    let address = line.strip_prefix("listening at ").unwrap().to_owned();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&address).unwrap();
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).unwrap();
        stream.write_all(b"aei\nisready\n").unwrap();
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let last = lines.last().unwrap();
        assert!(last.starts_with("log Error: "), "{last}");
    }
    // The network exists now.
    std::fs::rename(small_network(folder.path()), &missing).unwrap();
    let mut stream = TcpStream::connect(&address).unwrap();
    play_over(&mut stream, "quit");
}

#[test]
fn a_controller_that_waits_at_a_port_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let engine = Engine::start(&["--server", "127.0.0.1", "--port", &port]);
    let (mut stream, _) = listener.accept().unwrap();
    play_over(&mut stream, "quit");
    assert!(engine.end().0.success());
}

/// A session with a turn that ends with the given lines.
fn play_over(stream: &mut TcpStream, last: &str) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut until = |start: &str| loop {
        let line = lines.next().expect("the engine has gone").unwrap();
        if line.starts_with(start) {
            return line;
        }
    };
    stream.write_all(b"aei\r\nisready\r\n").unwrap();
    until("aeiok");
    until("readyok");
    let ask = format!("setoption name evaluations value 20\n{OPEN}\ngo\n");
    stream.write_all(ask.as_bytes()).unwrap();
    assert!(until("bestmove").len() > "bestmove ".len());
    stream.write_all(format!("{last}\n").as_bytes()).unwrap();
    assert!(
        lines
            .map_while(Result::ok)
            .all(|line| line.starts_with("log Error"))
    );
}
