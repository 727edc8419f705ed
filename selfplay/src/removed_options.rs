//! Options of earlier versions, and what replaced them.

use std::ffi::OsString;

/// Settings of one player of `pit`, once the options `--a-NAME` and `--b-NAME`, and the words that replaced them.
const OF_A_PLAYER: [(&str, &str); 7] = [
    ("evaluations", "evaluations=N"),
    ("time", "time=SECONDS"),
    ("temperature", "temperature=T"),
    ("device", "device=DEVICE"),
    ("set", "search.KEY=VALUE"),
    ("option", "option=NAME=VALUE"),
    ("clock", "clock=CONTROL"),
];

/// What replaced the first removed option of a command line (without the program's name), in words.
pub(crate) fn replacement(mut arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let command = arguments.next()?;
    arguments.find_map(|argument| {
        let option = argument.to_str()?.split('=').next()?;
        match command.to_str()? {
            "bench" if option == "--keeping" => Some(
                "--keeping was removed: `selfplay generate` reports the share of time that records take"
                    .into(),
            ),
            "pit" => {
                let (player, name) = option.strip_prefix("--")?.split_once('-')?;
                let (_, word) = OF_A_PLAYER.iter().find(|(old, _)| *old == name)?;
                ["a", "b"].contains(&player).then(|| {
                    format!("{option} was removed: {word} is a word of --{player} \"PLAYER {word}\"")
                })
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_options_are_refused_with_what_replaced_them() {
        let answer = |line: &str| replacement(line.split(' ').map(OsString::from));
        for (line, expected) in [
            ("bench --keeping 5", "`selfplay generate` reports"),
            (
                "pit --b uniform --b-clock 2s",
                "--b-clock was removed: clock=CONTROL",
            ),
            (
                "pit --a-set=search.mode=puct",
                "--a \"PLAYER search.KEY=VALUE\"",
            ),
        ] {
            let answer = answer(line).unwrap();
            assert!(answer.contains(expected), "{line}: {answer}");
        }
        for line in [
            "pit --a uniform --b material",
            "generate --keeping 5",
            "bench",
        ] {
            assert_eq!(answer(line), None, "{line}");
        }
    }
}
