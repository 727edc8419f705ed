//! The command that starts an engine, and the options that it gets before the match.

use arimaa::aei::{Command, StandardOption};
use std::str::FromStr;

/// Whether a match itself sets an option, from its clock and its players.
fn is_set_by_match(option: StandardOption) -> bool {
    use StandardOption::{Depth, Event, Hash, OpponentRating, Rating};
    !matches!(option, Depth | Event | Hash | OpponentRating | Rating)
}

/// A program and its arguments. No shell reads the text, but quotes and backslashes have their meaning of a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineCommand {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
}

/// Why a text is no command.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("a quote is not closed, or the text ends with a backslash")]
    Quotes,
    #[error("a program must be named")]
    Empty,
    #[error("it contains a byte 0")]
    Zero,
}

impl FromStr for EngineCommand {
    type Err = CommandError;

    fn from_str(text: &str) -> Result<Self, CommandError> {
        if text.contains('\0') {
            return Err(CommandError::Zero);
        }
        let mut words = shlex::split(text).ok_or(CommandError::Quotes)?.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        Ok(Self {
            program: program.ok_or(CommandError::Empty)?,
            arguments: words.collect(),
        })
    }
}

/// Why a text sets no option.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OptionSettingError {
    #[error("an option's name is one word, and NAME=VALUE sets it: `{0}`")]
    Name(String),
    #[error("an option's value is one line: `{0}`")]
    Lines(String),
    #[error("`{0}` is set by the match itself, from its clock and its players")]
    OfMatch(String),
}

/// The command that sets an option of an engine: `NAME=VALUE`, or `NAME` alone for an action.
///
/// # Errors
///
/// A name that is not one word or is set by the match, or a text of several lines.
pub(crate) fn set_option(text: &str) -> Result<Command, OptionSettingError> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (text.trim(), None),
    };
    let shown = || text.escape_debug().to_string();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(OptionSettingError::Name(shown()));
    }
    if text.contains(char::is_control) {
        return Err(OptionSettingError::Lines(shown()));
    }
    if StandardOption::of(name).is_some_and(is_set_by_match) {
        return Err(OptionSettingError::OfMatch(name.to_owned()));
    }
    Ok(Command::SetOption {
        name: name.to_owned(),
        value: value.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them_without_a_shell() {
        let command: EngineCommand =
            r#" ./bot --book "my book" 'a $HOME' b\ c;d "#.parse().unwrap();
        assert_eq!(command.program, "./bot");
        assert_eq!(command.arguments, ["--book", "my book", "a $HOME", "b c;d"]);
        for (text, error) in [
            ("", CommandError::Empty),
            ("  ", CommandError::Empty),
            ("'' x", CommandError::Empty),
            ("bot 'x", CommandError::Quotes),
            ("bot x\\", CommandError::Quotes),
            ("bot \0", CommandError::Zero),
        ] {
            assert_eq!(text.parse::<EngineCommand>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn options_become_commands_except_those_of_the_match() {
        let written = |text: &str| set_option(text).map(|command| command.to_string());
        assert_eq!(
            written("hash=500").unwrap(),
            "setoption name hash value 500"
        );
        assert_eq!(
            written("book = a=b c").unwrap(),
            "setoption name book value a=b c"
        );
        assert_eq!(written("clear").unwrap(), "setoption name clear");
        for text in ["", "=3", "two words=3"] {
            assert!(
                matches!(written(text), Err(OptionSettingError::Name(_))),
                "{text}"
            );
        }
        assert!(matches!(
            written("a=b\nquit"),
            Err(OptionSettingError::Lines(_))
        ));
        assert!(matches!(
            written("tcmove=3"),
            Err(OptionSettingError::OfMatch(_))
        ));
    }
}
