//! Engines of shell script and their faults.

use super::session::{Engine, EngineTurn, Limits};
use super::*;
use crate::mutation::{Mutations, cases};
use arimaa::notation::{format_turn, parse_position, parse_turn};
use arimaa::rules::{Game, Side};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// An engine that answers what the protocol asks for; `on_go` is what it does when it has to choose, `before` what it does first.
/// It writes what it hears to the file `heard` of a folder.
fn script(folder: &Path, before: &str, on_go: &str) -> String {
    let text = format!(
        r#"folder={folder}
{before}
while read -r word rest; do
  echo "$word $rest" >> "$folder/heard"
  case "$word" in
    aei) echo protocol-version 1; echo id name Fake; echo id version 2; echo aeiok;;
    isready) echo readyok;;
    go) {on_go};;
    quit) exit 0;;
  esac
done
"#,
        folder = folder.display()
    );
    let path = folder.join("engine.sh");
    std::fs::write(&path, text).unwrap();
    format!("sh '{}'", path.display())
}

fn limits() -> Limits {
    Limits {
        opening: Duration::from_secs(20),
        ready: Duration::from_secs(20),
        stop: Duration::from_millis(300),
    }
}

static GO_ON: AtomicBool = AtomicBool::new(false);

fn start_with(command: &str, options: &[&str], limits: Limits) -> Result<Engine, Interruption> {
    let options: Vec<_> = options
        .iter()
        .map(|text| set_option(text).unwrap())
        .collect();
    Engine::start(&command.parse().unwrap(), &options, limits, &GO_ON)
}

fn start(command: &str) -> Engine {
    start_with(command, &[], limits()).unwrap()
}

fn fault(result: Result<impl std::fmt::Debug, Interruption>) -> EngineFault {
    match result {
        Err(Interruption::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

/// A game in which Gold is to move, with an elephant that goes forth and back, and a rabbit on each goal's side.
fn game() -> Game {
    let text = "g [r                                   e               E          R]";
    Game::from_position(parse_position(text).unwrap())
}

fn clock(control: &str) -> EngineClock {
    EngineClock::new([control.parse().unwrap(); 2])
}

fn begin(engine: &mut Engine, game: &Game, control: &str) {
    let control = control.parse().unwrap();
    let begun = engine.new_game(game, &control, 100, "the other", &GO_ON);
    begun.unwrap();
}

/// What an engine does with its first turn of a game.
fn first_turn(on_go: &str, control: &str) -> Result<EngineTurn, Interruption> {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = start(&script(folder.path(), "", on_go));
    let clock = clock(control);
    begin(&mut engine, &game(), control);
    engine.choose(&game(), &clock, &GO_ON)
}

/// Whatever an engine says at its start or in a game: it has a fault, or it plays a legal turn.
#[test]
fn nonsense_is_a_fault_or_a_legal_turn() {
    const REPLIES: [&str; 12] = [
        "protocol-version 1\n",
        "id name bot Sharp\n",
        "aeiok\n",
        "readyok\n",
        "info score -29\ninfo depth 6+\n",
        "info time 5.25\ninfo pv Ee2n s ee4n\n",
        "log Warning: no such option\n",
        "log Error: out of memory\n",
        "bestmove Ee2n\n",
        "bestmove Ee2n Ee3n Ee4w Ed4s\n",
        "bestmove resign\n",
        "bestmove\n",
    ];
    let folder = tempfile::tempdir().unwrap();
    let command = script(
        folder.path(),
        "cat \"$folder/first\"",
        "cat \"$folder/then\"; exit 3",
    );
    let mut replies = Mutations::new(&REPLIES, 33);
    let (mut faults, mut turns) = (0, 0);
    for _ in 0..cases(150) {
        let mut said = [Vec::new(), Vec::new()];
        let first = replies.below(4) == 0;
        for _ in 0..replies.below(6) {
            said[usize::from(!first)].extend(replies.next());
        }
        if !first {
            said[1].extend(replies.sample().bytes());
        }
        std::fs::write(folder.path().join("first"), &said[0]).unwrap();
        std::fs::write(folder.path().join("then"), &said[1]).unwrap();
        let clock = clock("20s");
        let chosen = start_with(&command, &[], limits()).and_then(|mut engine| {
            let control = "20s".parse().unwrap();
            engine.new_game(&game(), &control, 100, "the other", &GO_ON)?;
            engine.choose(&game(), &clock, &GO_ON)
        });
        match chosen {
            Ok(chosen) => {
                game().play(&chosen.turn).unwrap();
                turns += 1;
            }
            Err(Interruption::Fault(fault)) => {
                assert_ne!(fault.to_string(), "");
                faults += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(faults > 0 && turns > 0, "{faults} faults, {turns} turns");
}

#[test]
fn a_game_is_told_in_the_words_of_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let on_go =
        "echo info score -29; echo info depth 6+; echo info pv Ee2n s ee4n; echo bestmove Ee2n";
    let command = script(folder.path(), "echo a banner; echo >&2 careful", on_go);
    let mut engine = start_with(&command, &["hash=500", "book=my book"], limits()).unwrap();
    assert_eq!(engine.identity, "Fake 2");
    let mut game = game();
    let mut clock = clock("20s/3s");
    begin(&mut engine, &game, "20s/3s");
    let chosen = engine.choose(&game, &clock, &GO_ON).unwrap();
    assert_eq!(format_turn(&chosen.turn, game.position()), "Ee2n");
    assert_eq!(
        chosen.remark.as_deref(),
        Some("score -29, depth 6+, pv Ee2n s ee4n")
    );
    clock.count(Side::Gold, chosen.used, false);
    for text in ["Ee2n", "ee4w"] {
        let turn = parse_turn(text, game.position()).unwrap();
        engine.tell(&turn, game.position());
        game.play(&turn).unwrap();
    }
    drop(engine);
    let heard = std::fs::read_to_string(folder.path().join("heard")).unwrap();
    let set = |name: &str, value: &str| format!("setoption name {name} value {value}");
    let expected = [
        "aei ".to_owned(),
        set("hash", "500"),
        set("book", "my book"),
        "isready ".into(),
        set("tcmove", "20"),
        set("tcreserve", "3"),
        set("tcpercent", "100"),
        set("tcmax", "0"),
        set("tctotal", "0"),
        set("tcturns", "50"),
        set("tcturntime", "0"),
        set("rated", "0"),
        set("opponent", "the other"),
        "newgame ".into(),
        format!(
            "setposition {}",
            arimaa::notation::format_position(game.start())
        ),
        "isready ".into(),
        set("greserve", "3"),
        set("sreserve", "3"),
        set("moveused", "0"),
        "go ".into(),
        "makemove Ee2n".into(),
        "makemove ee4w".into(),
        "quit ".into(),
    ];
    let heard: Vec<&str> = heard.lines().collect();
    assert_eq!(heard, expected);
}

#[test]
fn openings_from_the_empty_board_are_played_by_turns() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = start(&script(folder.path(), "", "echo bestmove Ed2n"));
    let mut game = Game::new();
    for text in [
        "Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Ed2 Me2 Cf2 Hg2 Rh2",
        "ra8 rb8 rc8 dd8 de8 rf8 rg8 rh8 ra7 hb7 cc7 md7 ee7 cf7 hg7 rh7",
    ] {
        let turn = parse_turn(text, game.position()).unwrap();
        game.play(&turn).unwrap();
    }
    let clock = clock("20s");
    begin(&mut engine, &game, "20s");
    let chosen = engine.choose(&game, &clock, &GO_ON).unwrap();
    assert_eq!(format_turn(&chosen.turn, game.position()), "Ed2n");
    drop(engine);
    let heard = std::fs::read_to_string(folder.path().join("heard")).unwrap();
    let setups = heard.lines().filter(|line| line.starts_with("makemove"));
    assert_eq!(setups.count(), 2);
    assert!(!heard.contains("setposition"));
}

#[test]
fn an_engine_that_does_not_start_is_named_with_its_last_lines() {
    let short = Limits {
        opening: Duration::from_millis(300),
        ready: Duration::from_millis(300),
        ..limits()
    };
    for (command, limits, kind, parts) in [
        (
            "/no/such/engine -x",
            limits(),
            FaultKind::Crash,
            vec!["/no/such/engine can't be started: No such file"],
        ),
        (
            "sh -c 'echo no network >&2; echo Traceback; exit 3'",
            limits(),
            FaultKind::Crash,
            vec![
                "it ended by itself (exit status: 3)",
                "\n  no network",
                "\n  Traceback",
            ],
        ),
        (
            "sh -c 'kill -9 $$'",
            limits(),
            FaultKind::Crash,
            vec!["signal: 9 (SIGKILL)"],
        ),
        (
            "sh -c 'exec >&-; sleep 60'",
            limits(),
            FaultKind::Crash,
            vec!["it closed its output"],
        ),
        (
            "sh -c 'echo hello; sleep 60'",
            short,
            FaultKind::Hang,
            vec!["no `aeiok` came within 0.3 s after `aei`", "\n  hello"],
        ),
        (
            "sh -c 'echo aeiok; sleep 60'",
            short,
            FaultKind::Hang,
            vec!["no `readyok` came within 0.3 s after `isready`"],
        ),
        (
            "sh -c 'while :; do echo rubbish; done'",
            short,
            FaultKind::Hang,
            vec!["no `aeiok`", "\n  rubbish"],
        ),
        (
            "yes log hello",
            short,
            FaultKind::Hang,
            vec!["no `aeiok`", "\n  log hello"],
        ),
        (
            "sh -c 'echo aeiok; yes bestmove Ee2n'",
            short,
            FaultKind::Hang,
            vec!["no `readyok`"],
        ),
        (
            "cat /dev/zero",
            limits(),
            FaultKind::Malformed,
            vec!["a line of more than 65536 bytes"],
        ),
        (
            "sh -c 'echo protocol-version 2; echo aeiok; sleep 60'",
            limits(),
            FaultKind::Malformed,
            vec!["it speaks version 2"],
        ),
    ] {
        let fault = fault(start_with(command, &[], limits));
        assert_eq!(fault.kind, kind, "{command}: {fault}");
        let message = fault.to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{command}: no `{part}` in: {message}"
            );
        }
    }
}

#[test]
fn turns_against_the_rules_are_named_with_the_rule() {
    for (answer, parts) in [
        ("bestmove Ee2s Ee1s", ["it played `Ee2s Ee1s`:", "board"]),
        (
            "bestmove Ee2n Ee3s",
            ["it played `Ee2n Ee3s`:", "changes nothing"],
        ),
        ("bestmove Ee2n Ee3n Ee4n", ["it played", "e4"]),
        ("bestmove Rh1s", ["it played `Rh1s`:", "board"]),
        (
            "bestmove banana",
            ["it played `banana`:", "`b` is not a piece"],
        ),
        ("bestmove", ["it played ``:", "not a turn"]),
    ] {
        let fault = fault(first_turn(&format!("echo {answer}"), "20s"));
        assert_eq!(fault.kind, FaultKind::IllegalTurn, "{answer}: {fault}");
        for part in parts {
            assert!(fault.reason.contains(part), "no `{part}` in: {fault}");
        }
        let last = fault.last_lines.last().map(|line| line.trim());
        assert_eq!(last, Some(answer));
    }
    let resigned = fault(first_turn("echo bestmove Resign", "20s"));
    assert_eq!(resigned.kind, FaultKind::Resignation);
}

#[test]
fn a_third_repetition_is_illegal() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = start(&script(folder.path(), "", "echo bestmove ed4e"));
    let mut game = game();
    for text in ["Ee2n", "ee4w", "Ee3s", "ed4e", "Ee2n", "ee4w", "Ee3s"] {
        let turn = parse_turn(text, game.position()).unwrap();
        game.play(&turn).unwrap();
    }
    let clock = clock("20s");
    begin(&mut engine, &game, "20s");
    let fault = fault(engine.choose(&game, &clock, &GO_ON));
    assert_eq!(fault.kind, FaultKind::IllegalTurn);
    assert!(fault.reason.contains("for the third time"), "{fault}");
}

#[test]
fn engines_that_fail_at_their_turn_lose_it_by_what_they_did() {
    for (on_go, kind, part) in [
        (
            "echo out of memory >&2; exit 7",
            FaultKind::Crash,
            "exit status: 7",
        ),
        ("kill -SEGV $$", FaultKind::Crash, "SIGSEGV"),
        (
            "while :; do sleep 1; done",
            FaultKind::Hang,
            "nor any within 0.3 s after `stop`",
        ),
        (
            "echo best move Ee2n; while :; do sleep 1; done",
            FaultKind::Hang,
            "gave none",
        ),
        (
            "yes info depth 3",
            FaultKind::Hang,
            "nor any within 0.3 s after `stop`",
        ),
        (
            "yes log thinking",
            FaultKind::Hang,
            "nor any within 0.3 s after `stop`",
        ),
        (
            "read -r stop; echo bestmove Ee2n",
            FaultKind::Time,
            "and it had 0.20 s",
        ),
        (
            "while :; do printf x; done",
            FaultKind::Malformed,
            "a line of more than 65536 bytes",
        ),
    ] {
        let control = if kind == FaultKind::Malformed {
            "60s"
        } else {
            "200ms"
        };
        let fault = fault(first_turn(on_go, control));
        assert_eq!(fault.kind, kind, "{on_go}: {fault}");
        assert!(
            fault.reason.contains(part),
            "{on_go}: no `{part}` in: {fault}"
        );
    }
    let fault = fault(first_turn("echo out of memory >&2; exit 7", "20s"));
    assert_eq!(
        fault.last_lines.last().map(String::as_str),
        Some("out of memory")
    );
}

/// Whether a process runs, its number standing in a file.
fn runs(file: &Path) -> bool {
    let pid = std::fs::read_to_string(file).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

/// Waits until something is so.
fn wait_for(what: impl Fn() -> bool) -> bool {
    let limit = Instant::now() + Duration::from_secs(20);
    while !what() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
    what()
}

/// In its own process group, in a session of their own, and after their parent has ended.
#[test]
fn processes_that_an_engine_started_end_with_it() {
    let started = "sh -c 'echo $$ > \"$0\"/child.part; mv \"$0\"/child.part \"$0\"/child; sleep 600' \"$folder\"";
    for how in [
        format!("{started} &"),
        format!("setsid {started} &"),
        format!("(setsid {started} &)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let before = format!("{how}\ntrap '' TERM");
        let engine = start(&script(folder.path(), &before, "sleep 600"));
        let child = folder.path().join("child");
        assert!(wait_for(|| child.exists()));
        assert!(runs(&child));
        drop(engine);
        assert!(wait_for(|| !runs(&child)), "{how}");
    }
}

#[test]
fn a_stopped_match_is_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = start(&script(folder.path(), "", "sleep 600"));
    let clock = clock("600s");
    begin(&mut engine, &game(), "600s");
    let stop = AtomicBool::new(false);
    let chosen = std::thread::scope(|scope| {
        let choosing = scope.spawn(|| engine.choose(&game(), &clock, &stop));
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        choosing.join().unwrap()
    });
    assert!(matches!(chosen, Err(Interruption::Stopped)));
}

#[test]
fn an_engine_that_reads_nothing_blocks_nothing() {
    let limits = Limits {
        ready: Duration::from_millis(300),
        ..limits()
    };
    let value = "x".repeat(1 << 18);
    let begun = Instant::now();
    let option = format!("long={value}");
    let fault = fault(start_with(
        "sh -c 'echo aeiok; sleep 600'",
        &[&option],
        limits,
    ));
    assert_eq!(fault.kind, FaultKind::Hang);
    assert!(begun.elapsed() < Duration::from_secs(20));
}
