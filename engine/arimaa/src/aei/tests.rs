use super::*;
use crate::rules::{Position, Side};
use proptest::prelude::*;

/// A text that may stand at a line's end: no line breaks, no blanks around it.
fn line() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9:;äß/.+-]{1,8}( [a-zA-Z0-9:;äß/.+-]{1,8}){0,4}"
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_ä-]{1,12}"
}

fn command() -> impl Strategy<Value = Command> {
    let board = "g [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]";
    let position: Position = board.parse().unwrap();
    prop_oneof![
        Just(Command::Aei),
        Just(Command::IsReady),
        Just(Command::NewGame),
        Just(Command::SetPosition(position)),
        (word(), proptest::option::of(line()))
            .prop_map(|(name, value)| Command::SetOption { name, value }),
        line().prop_map(Command::MakeMove),
        Just(Command::Go),
        Just(Command::Ponder),
        Just(Command::Stop),
        Just(Command::Quit),
    ]
}

fn info() -> impl Strategy<Value = Info> {
    prop_oneof![
        any::<i64>().prop_map(Info::Score),
        any::<(u32, bool)>().prop_map(|(steps, goes_on)| Info::Depth { steps, goes_on }),
        any::<u64>().prop_map(Info::Nodes),
        line().prop_map(Info::Variation),
        (0.0..1e12).prop_map(Info::Time),
        any::<u32>().prop_map(Info::CurrentMoveNumber),
        (word(), line()).prop_map(|(kind, value)| Info::Other {
            kind: format!("own-{kind}"),
            value
        }),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        any::<u32>().prop_map(Reply::ProtocolVersion),
        (proptest::sample::select(&IdentityKind::ALL[..]), line())
            .prop_map(|(kind, value)| Reply::Identity { kind, value }),
        Just(Reply::AeiOk),
        Just(Reply::ReadyOk),
        line().prop_map(Reply::BestMove),
        info().prop_map(Reply::Info),
        (proptest::sample::select(&LogLevel::ALL[..]), line())
            .prop_map(|(level, text)| Reply::log(level, text)),
        line().prop_map(|text| Reply::Log { level: None, text }),
    ]
}

proptest! {
    #[test]
    fn commands_read_back(command in command()) {
        let text = command.to_string();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(text.parse(), Ok(command));
    }

    #[test]
    fn replies_read_back(reply in reply()) {
        let text = reply.to_string();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(text.parse(), Ok(reply));
    }

    #[test]
    fn blanks_and_line_ends_around_a_message_don_t_matter(command in command(), reply in reply()) {
        prop_assert_eq!(format!(" {command} \r\n").parse(), Ok(command));
        prop_assert_eq!(format!("\t{reply}\n").parse(), Ok(reply));
    }
}

#[test]
fn the_protocol_s_own_examples_are_read() {
    let command = |text: &str| text.parse::<Command>().unwrap();
    assert_eq!(command("go"), Command::Go);
    assert_eq!(command("go  ponder"), Command::Ponder);
    assert_eq!(
        command("setoption name opponent value bot_Clueless 2009"),
        Command::set(StandardOption::Opponent, "bot_Clueless 2009")
    );
    let pressed = Command::SetOption {
        name: "clear".into(),
        value: None,
    };
    assert_eq!(command("setoption name clear"), pressed);
    let Command::SetPosition(position) =
        command("setposition s [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]")
    else {
        panic!("no position")
    };
    assert_eq!(position.side(), Side::Silver);
    for (text, expected) in [
        ("info time 5.3", Info::Time(5.3)),
        ("info score -17", Info::Score(-17)),
        (
            "info depth 4",
            Info::Depth {
                steps: 4,
                goes_on: false,
            },
        ),
        ("info pv Ee2n b ed7s", Info::Variation("Ee2n b ed7s".into())),
        (
            "info qnodes 3353",
            Info::Other {
                kind: "qnodes".into(),
                value: "3353".into(),
            },
        ),
    ] {
        assert_eq!(text.parse(), Ok(Reply::Info(expected)), "{text}");
    }
    assert_eq!("bestmove".parse(), Ok(Reply::BestMove(String::new())));
    let log = Reply::Log {
        level: None,
        text: "Min search: 13.50 Max: 94.00".into(),
    };
    assert_eq!("log Min search: 13.50 Max: 94.00".parse(), Ok(log));
}

#[test]
fn what_is_wrong_is_named() {
    for (text, said) in [
        ("", "an empty line is not a message"),
        (" \r\n", "an empty line is not a message"),
        ("aei\naei", "a message is one line"),
        ("Go", "`Go` does not begin a message"),
        ("aei now", "aei: `now` is not expected here"),
        ("go infinite", "go: `infinite` is not expected here"),
        ("go ponder now", "go: `now` is not expected here"),
        ("makemove", "makemove: a turn must follow"),
        ("setposition", "setposition: a side and a board must follow"),
        ("setposition w []", "`w` is not a side"),
        ("setposition g [E]", "a board has 64 squares, not 1"),
        (
            "setoption",
            "setoption: `name` and the option's name must follow",
        ),
        (
            "setoption depth 4",
            "setoption: `depth` is not expected here",
        ),
        ("setoption name", "setoption: the option's name must follow"),
        (
            "setoption name depth 4",
            "setoption: `4` is not expected here",
        ),
    ] {
        let error = text.parse::<Command>().unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    for (text, said) in [
        ("hello", "`hello` does not begin a message"),
        ("protocol-version", "protocol-version: a number must follow"),
        ("protocol-version one", "`one` is not a version"),
        ("id", "id: name, author or version must follow"),
        ("id colour red", "id: `colour` is not expected here"),
        ("aeiok?", "`aeiok?` does not begin a message"),
        ("readyok yes", "readyok: `yes` is not expected here"),
        ("info", "info: the kind of information must follow"),
        ("info score high", "info: `high` is not a score"),
        ("info depth +", "info: `` is not a depth"),
        ("info nodes -1", "info: `-1` is not a count"),
        ("info time NaN", "info: `NaN` is not a number of seconds"),
        ("info time -1", "info: `-1` is not a number of seconds"),
    ] {
        let error = text.parse::<Reply>().unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    let long = "ä".repeat(10_000);
    let error = long.parse::<Command>().unwrap_err().to_string();
    assert!(error.chars().count() < 120, "{error}");
}

#[test]
fn what_holds_line_breaks_is_written_on_one_line() {
    let log = Reply::log(LogLevel::Error, "first\nsecond\r\nthird\rfourth");
    assert_eq!(log.to_string(), "log Error: first second third fourth");
    let command = Command::MakeMove("Ed2n\nquit".into());
    assert_eq!(command.to_string(), "makemove Ed2n quit");
}

#[test]
fn every_standard_option_is_found_by_its_name_and_takes_a_value() {
    for option in StandardOption::ALL {
        assert_eq!(option.to_string().parse(), Ok(option));
        let value = match option.kind() {
            OptionKind::Text => "someone else",
            _ => "1",
        };
        option.kind().read(Some(value)).unwrap();
        if option.kind() != OptionKind::Text {
            assert!(option.kind().read(None).is_err(), "{option}");
            assert!(option.kind().read(Some("many")).is_err(), "{option}");
        }
    }
    let error = "tcmoves".parse::<StandardOption>().unwrap_err();
    assert_eq!(error.to_string(), "`tcmoves` is not an option");
}

#[test]
fn values_out_of_range_are_refused() {
    let refused = [
        (StandardOption::TcMove, "-1"),
        (StandardOption::TcMove, "inf"),
        (StandardOption::TcMove, "nan"),
        (StandardOption::Hash, "0"),
        (StandardOption::Hash, "1.5"),
        (StandardOption::Rated, "2"),
        (StandardOption::TcTurns, "99999999999999999999"),
    ];
    for (option, value) in refused {
        let error = option.kind().read(Some(value)).unwrap_err().to_string();
        assert!(error.contains(&format!("`{value}` is not ")), "{error}");
    }
    let read = |kind: OptionKind, value| kind.read(value);
    assert_eq!(
        read(OptionKind::Check, Some("true")),
        Ok(OptionValue::Check(true))
    );
    assert!(read(OptionKind::Check, Some("1")).is_err());
    let modes = OptionKind::Choice(&["puct", "gumbel"]);
    assert_eq!(
        read(modes, Some(" gumbel")),
        Ok(OptionValue::Choice("gumbel"))
    );
    assert!(read(modes, Some("fast")).is_err());
    assert_eq!(read(OptionKind::Button, None), Ok(OptionValue::Pressed));
    assert!(read(OptionKind::Button, Some("now")).is_err());
    assert!(read(OptionKind::File, Some("")).is_err());
    assert_eq!(
        read(OptionKind::Text, None),
        Ok(OptionValue::Text(String::new()))
    );
}
