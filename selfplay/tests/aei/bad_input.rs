//! Wrong messages of controllers.

use crate::child::{Engine, GOLD, OPEN, command};

/// "An engine upon receiving an unrecognized message should indicate an error and exit."
#[test]
fn an_unknown_message_is_an_error_that_ends_the_session() {
    for (message, named) in [
        ("hello there", "`hello` does not begin a message"),
        ("Go", "`Go` does not begin a message"),
        ("\u{1}\u{2}", "does not begin a message"),
    ] {
        let mut engine = Engine::ready(&[]);
        engine.say(message);
        let (status, rest, complaints) = engine.end();
        assert!(!status.success());
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert!(
            rest[0].starts_with("log Error: ") && rest[0].contains(named),
            "{rest:?}"
        );
        assert!(complaints.starts_with("error: "), "{complaints}");
    }
    let mut engine = Engine::ready(&[]);
    // The engine doesn't wait for the end of the line.
    engine.try_say(&"go ".repeat(100_000));
    let said = engine.until("log Error: a line of more than 65536 bytes");
    assert_eq!(said.len(), 1);
}

#[test]
fn a_known_message_with_an_error_does_not_end_the_session() {
    let mut engine = Engine::ready(&[]);
    for (message, said) in [
        ("aei", "aei: the session has already begun"),
        ("go infinite", "go: `infinite` is not expected here"),
        ("setposition", "setposition: a side and a board must follow"),
        (
            "setposition g [E]",
            "setposition: line 1, column 5: a board has 64 squares, not 1; the position stays as it was",
        ),
        ("setposition x [E]", "`x` is not a side"),
        (
            "setposition g [                  R             r                               ]",
            "column 22: the rabbit of Gold on the trap c6 has no friend beside it",
        ),
        ("makemove", "makemove: a turn must follow"),
        ("makemove Ee2n", "makemove: column 1: "),
        ("makemove Ra1 Rb1", "makemove: column 1: "),
        (
            "setoption",
            "setoption: `name` and the option's name must follow",
        ),
    ] {
        engine.say(message);
        let lines = engine.said();
        assert_eq!(lines.len(), 1, "{message}: {lines:?}");
        assert!(
            lines[0].starts_with("log Error: ") && lines[0].contains(said),
            "{lines:?}"
        );
    }
    engine.say("\n  \n\r");
    for (option, said) in [
        (
            "tcmove value -1",
            "setoption tcmove: `-1` is not a number from 0 to",
        ),
        ("tcmove", "setoption tcmove: a value must follow"),
        (
            "hash value many",
            "setoption hash: `many` is not a whole number",
        ),
        (
            "colour value red",
            "setoption colour: `colour` is not an option",
        ),
    ] {
        engine.say(&format!("setoption name {option}"));
        let lines = engine.said();
        assert_eq!(lines.len(), 1, "{option}: {lines:?}");
        assert!(
            lines[0].starts_with("log Warning: ") && lines[0].contains(said),
            "{lines:?}"
        );
    }
    // The game is unchanged.
    engine.say(&format!("makemove {GOLD}"));
    assert_eq!(engine.said(), [] as [&str; 0]);
}

#[test]
fn illegal_turns_leave_the_position_as_it_was() {
    let mut engine = Engine::ready(&[]);
    engine.say(OPEN);
    for (turn, said) in [
        ("Ee2s", "is occupied"),
        ("Ee3n", "no piece on e3"),
        ("Ed2n", "`E` is written, but `M` is on d2"),
        ("ee7s", "makemove"),
        ("Ee2n Ee3s", "the turn changes nothing"),
        ("Ee2n Ee3n Ee4n Ee5n Ee6n", "makemove"),
        ("Ee2n nonsense", "column 6"),
    ] {
        engine.say(&format!("makemove {turn}"));
        let lines = engine.said();
        assert_eq!(lines.len(), 1, "{turn}: {lines:?}");
        assert!(lines[0].starts_with("log Error: makemove"), "{lines:?}");
        assert!(lines[0].contains(said), "{turn}: {lines:?}");
    }
    engine.say("makemove Ee2n Ee3n\nmakemove ed7s");
    assert_eq!(engine.said(), [] as [&str; 0]);
}

#[test]
fn nothing_is_done_before_the_session_has_begun() {
    let mut engine = Engine::start(&[]);
    engine.say("newgame\nisready\naei");
    let said = engine.until("aeiok");
    assert_eq!(said[0], "log Error: newgame: a session begins with aei");
    assert_eq!(said[1], "log Error: isready: a session begins with aei");
    assert_eq!(said[2], "protocol-version 1");
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, said) in [
        (&["--network", "random"][..], "this player doesn't search"),
        (
            &["--network", "policy:some.safetensors"],
            "policy:some.safetensors: this player doesn't search",
        ),
        (
            &["--network", "aei:some engine"],
            "this player doesn't search",
        ),
        (
            &["--set", "selfplay.evaluations=5"],
            "this key is for self-play",
        ),
        (&["--listen", "nowhere"], "can't listen at nowhere"),
        (&["--server", "localhost"], "--port"),
        (&["--device", "cuda:900"], "cuda:900"),
    ] {
        let output = command(arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        if arguments[0] != "--device" {
            assert!(!output.status.success(), "{arguments:?}");
            assert!(complaint.contains(said), "{arguments:?}: {complaint}");
        }
    }
    let mut engine = Engine::start(&["--device", "cuda:900"]);
    engine.say("aei\nisready");
    let said = engine.until("log Error: ").pop().unwrap();
    assert!(said.contains("cuda:900"), "{said}");
    assert!(!engine.end().0.success());
}
