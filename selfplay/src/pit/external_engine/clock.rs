//! The referee's clock: time controls in Arimaa's notation, and the time that engines have left.

use arimaa::aei::{Command, StandardOption};
use arimaa::rules::Side;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The tolerance for late answers, because of pipes and a busy machine. It counts as used time.
pub(crate) const LAG: Duration = Duration::from_millis(100);

/// The longest time of a control: longer than any game, and short enough for any sum of times.
const MAX_TIME: Duration = Duration::from_secs(100 * 86_400);

/// The largest share of the unused time that a reserve can gain, in percent.
const MAX_PERCENT: u32 = 1_000;

/// The time of an engine: `TURN/RESERVE/PERCENT/MAX/GAME/TURNTIME`. All but the first may be left out.
///
/// A turn may take TURN and the reserve, TURNTIME at most. Time beyond TURN is taken from the reserve; PERCENT of the unused time goes
/// into it, up to MAX. Setups change no reserve, as with the reference referee. GAME is 0: a match has a turn limit instead. Times
/// are like `30s`, `1m30s`, `500ms` or `1:30` (minutes and seconds); 0 means no limit for MAX and TURNTIME. A number without a unit is
/// refused: it means minutes in the notation, and seconds for most people.
///
/// Source of the notation: the match rules of arimaa.com (`M/R/P/L/G/T`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct TimeControl {
    turn: Duration,
    reserve: Duration,
    percent: u32,
    /// Zero for none.
    most_reserve: Duration,
    /// Zero for none.
    most_turn: Duration,
}

/// Why a text is no time control.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeControlError {
    #[error(
        "`{0}` is not a time: expected one like 30s, 1m30s, 500ms, 1:30 (minutes and seconds) or 0"
    )]
    Time(String),
    #[error("`{0}` has no unit: give {0}s or {0}m")]
    Unit(String),
    #[error("`{0}` is longer than 100 days")]
    Long(String),
    #[error("`{0}` is not a percentage from 0 to {MAX_PERCENT}")]
    Percent(String),
    #[error(
        "the time of a whole game (`{0}`) can't be limited, only that of turns, and the number of turns by the turn limit: give 0"
    )]
    Game(String),
    #[error("neither turn nor reserve gives any time")]
    Nothing,
    #[error("a time control has six parts at most, TURN/RESERVE/PERCENT/MAX/GAME/TURNTIME")]
    Parts,
}

fn parse_time(text: &str) -> Result<Duration, TimeControlError> {
    let text = text.trim();
    let no_time = || TimeControlError::Time(text.to_owned());
    let seconds = |digits: &str| -> Option<u64> {
        let is_number = digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    let time = if text.is_empty() || text == "0" {
        Duration::ZERO
    } else if let Some((minutes, rest)) = text.split_once(':') {
        let minutes = if minutes.is_empty() { "0" } else { minutes };
        let (Some(minutes), Some(rest @ ..60)) = (seconds(minutes), seconds(rest)) else {
            return Err(no_time());
        };
        Duration::from_secs(60 * minutes + rest)
    } else if text.parse::<f64>().is_ok() {
        return Err(TimeControlError::Unit(text.to_owned()));
    } else {
        humantime::parse_duration(text).map_err(|_| no_time())?
    };
    if time <= MAX_TIME {
        Ok(time)
    } else {
        Err(TimeControlError::Long(text.to_owned()))
    }
}

impl FromStr for TimeControl {
    type Err = TimeControlError;

    fn from_str(text: &str) -> Result<Self, TimeControlError> {
        let mut parts = text.split('/').map(str::trim);
        let mut next = || parts.next().unwrap_or("");
        let (turn, reserve) = (parse_time(next())?, parse_time(next())?);
        let percent = match next() {
            "" => 100,
            digits => match digits.parse() {
                Ok(percent @ 0..=MAX_PERCENT) => percent,
                _ => return Err(TimeControlError::Percent(digits.to_owned())),
            },
        };
        let most_reserve = parse_time(next())?;
        let game = next();
        if !matches!(game, "" | "0") {
            return Err(TimeControlError::Game(game.to_owned()));
        }
        let most_turn = parse_time(next())?;
        if parts.next().is_some() {
            return Err(TimeControlError::Parts);
        }
        if turn + reserve == Duration::ZERO {
            return Err(TimeControlError::Nothing);
        }
        Ok(Self {
            turn,
            reserve,
            percent,
            most_reserve,
            most_turn,
        })
    }
}

/// The notation, without parts at the end that change nothing.
impl fmt::Display for TimeControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: Duration| {
            if time.is_zero() {
                "0".to_owned()
            } else {
                humantime::format_duration(time)
                    .to_string()
                    .replace(' ', "")
            }
        };
        let mut parts = vec![
            (time(self.turn), ""),
            (time(self.reserve), "0"),
            (self.percent.to_string(), "100"),
            (time(self.most_reserve), "0"),
            ("0".into(), "0"),
            (time(self.most_turn), "0"),
        ];
        while parts.last().is_some_and(|(part, usual)| part == usual) {
            parts.pop();
        }
        let parts: Vec<String> = parts.into_iter().map(|(part, _)| part).collect();
        f.write_str(&parts.join("/"))
    }
}

impl TryFrom<String> for TimeControl {
    type Error = TimeControlError;

    fn try_from(text: String) -> Result<Self, TimeControlError> {
        text.parse()
    }
}

impl TimeControl {
    /// The options that tell an engine the control before a game. `max_turns` is the match's turn limit, counting the turns of both sides.
    pub(super) fn commands(&self, max_turns: usize) -> Vec<Command> {
        use StandardOption as Name;
        vec![
            Command::set(Name::TcMove, self.turn.as_secs_f64()),
            Command::set(Name::TcReserve, self.reserve.as_secs_f64()),
            Command::set(Name::TcPercent, self.percent),
            Command::set(Name::TcMax, self.most_reserve.as_secs_f64()),
            Command::set(Name::TcTotal, 0),
            Command::set(Name::TcTurns, max_turns.div_ceil(2)),
            Command::set(Name::TcTurnTime, self.most_turn.as_secs_f64()),
        ]
    }
}

/// The clock of one game, for both sides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EngineClock {
    /// Gold's and Silver's.
    controls: [TimeControl; 2],
    /// Gold's and Silver's.
    reserves: [Duration; 2],
    /// Time of the last turn of Gold and of Silver, if there was one.
    used: [Option<Duration>; 2],
    /// Time of the last turn.
    last_used: Option<Duration>,
}

impl EngineClock {
    /// At the start of a game, with the controls of Gold and Silver.
    pub(crate) fn new(controls: [TimeControl; 2]) -> Self {
        Self {
            controls,
            reserves: controls.map(|control| control.reserve),
            used: [None; 2],
            last_used: None,
        }
    }

    /// The time that the turn of a side may take, without the lag.
    pub(crate) fn allowance(&self, side: Side) -> Duration {
        let control = &self.controls[side.index()];
        let all = control.turn + self.reserves[side.index()];
        match control.most_turn {
            Duration::ZERO => all,
            most => all.min(most),
        }
    }

    /// Counts a turn of a side.
    pub(crate) fn count(&mut self, side: Side, used: Duration, is_setup: bool) {
        self.used[side.index()] = Some(used);
        self.last_used = Some(used);
        if is_setup {
            return;
        }
        let control = &self.controls[side.index()];
        let reserve = &mut self.reserves[side.index()];
        match control.turn.checked_sub(used) {
            Some(left) => {
                let most = control.most_reserve.max(*reserve);
                *reserve += left * control.percent / 100;
                if !control.most_reserve.is_zero() {
                    *reserve = (*reserve).min(most);
                }
            }
            None => *reserve = reserve.saturating_sub(used - control.turn),
        }
    }

    /// The options that tell an engine the clock before its turn. Seconds are whole and reserves rounded down: some engines read nothing
    /// else.
    pub(super) fn commands(&self) -> Vec<Command> {
        use StandardOption as Name;
        let reserves = [Name::GoldReserve, Name::SilverReserve].into_iter();
        let reserves = reserves.zip(self.reserves.map(|time| time.as_secs()));
        let used = [Name::GoldUsed, Name::SilverUsed, Name::LastMoveUsed].into_iter();
        let [gold, silver] = self.used;
        let used = used.zip([gold, silver, self.last_used]);
        let used = used.filter_map(|(name, time)| Some((name, time?.as_secs_f64().round() as u64)));
        let all = reserves.chain(used).chain([(Name::MoveUsed, 0)]);
        all.map(|(name, seconds)| Command::set(name, seconds))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(text: &str) -> TimeControl {
        text.parse().unwrap()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_notation_is_read_and_written() {
        for (text, written) in [
            ("2s", "2s"),
            ("30s/5m/100/10m", "30s/5m/100/10m"),
            ("0:30/5:00/100/10:00/0", "30s/5m/100/10m"),
            ("1:30", "1m30s"),
            ("500ms/0/100/0", "500ms"),
            ("15s/90s/50", "15s/1m30s/50"),
            ("0/5m", "0/5m"),
            ("1s//0//0/4s", "1s/0/0/0/0/4s"),
            (" 2s / 1m ", "2s/1m"),
        ] {
            assert_eq!(control(text).to_string(), written);
            assert_eq!(control(written), control(text));
        }
    }

    #[test]
    fn faults_name_the_part() {
        use TimeControlError as Fault;
        for (text, error) in [
            ("2", Fault::Unit("2".into())),
            ("2s/1.5", Fault::Unit("1.5".into())),
            ("", Fault::Nothing),
            ("0/0", Fault::Nothing),
            ("2x", Fault::Time("2x".into())),
            ("-2s", Fault::Time("-2s".into())),
            ("1:60", Fault::Time("1:60".into())),
            ("1:2:3", Fault::Time("1:2:3".into())),
            ("2s/1m/x", Fault::Percent("x".into())),
            ("2s/1m/2000", Fault::Percent("2000".into())),
            ("2s/1m/100/0/8h", Fault::Game("8h".into())),
            ("2s/1m/100/0/200t", Fault::Game("200t".into())),
            ("2s/1m/100/0/0/0/0", Fault::Parts),
            ("200days", Fault::Long("200days".into())),
            (
                "999999999999999999999s",
                Fault::Time("999999999999999999999s".into()),
            ),
        ] {
            assert_eq!(text.parse::<TimeControl>(), Err(error), "{text}");
        }
    }

    #[test]
    fn unused_time_goes_into_the_reserve_and_more_is_taken_from_it() {
        let mut clock = EngineClock::new([control("10s/20s/50/23s"), control("10s/20s")]);
        assert_eq!(clock.allowance(Side::Gold), seconds(30));
        clock.count(Side::Gold, seconds(1), true);
        assert_eq!(clock.allowance(Side::Gold), seconds(30), "a setup");
        clock.count(Side::Gold, seconds(6), false);
        assert_eq!(clock.allowance(Side::Gold), seconds(32));
        clock.count(Side::Gold, seconds(0), false);
        assert_eq!(
            clock.allowance(Side::Gold),
            seconds(33),
            "the reserve is full"
        );
        clock.count(Side::Gold, seconds(25), false);
        assert_eq!(clock.allowance(Side::Gold), seconds(18));
        clock.count(Side::Gold, seconds(60), false);
        assert_eq!(clock.allowance(Side::Gold), seconds(10));
        assert_eq!(clock.allowance(Side::Silver), seconds(30));
        let clock = EngineClock::new([control("10s/20s/100/0/0/12s"); 2]);
        assert_eq!(clock.allowance(Side::Gold), seconds(12));
    }

    #[test]
    fn a_first_reserve_above_the_most_stays_and_does_not_grow() {
        let mut clock = EngineClock::new([control("30s/5m/100/3m"); 2]);
        clock.count(Side::Gold, seconds(10), false);
        assert_eq!(clock.allowance(Side::Gold), seconds(330));
        clock.count(Side::Gold, seconds(180), false);
        assert_eq!(clock.allowance(Side::Gold), seconds(180));
        clock.count(Side::Gold, seconds(0), false);
        clock.count(Side::Gold, seconds(0), false);
        assert_eq!(clock.allowance(Side::Gold), seconds(210));
    }

    #[test]
    fn engines_are_told_in_whole_seconds() {
        let mut clock = EngineClock::new([control("2s/5s"); 2]);
        let written = |commands: Vec<Command>| {
            let lines = commands
                .iter()
                .map(|command| command.to_string().replace("setoption name ", ""));
            lines.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(
            written(control("2s/5s").commands(401)),
            "tcmove value 2; tcreserve value 5; tcpercent value 100; tcmax value 0; tctotal value 0; \
             tcturns value 201; tcturntime value 0"
        );
        assert_eq!(
            written(clock.commands()),
            "greserve value 5; sreserve value 5; moveused value 0"
        );
        clock.count(Side::Gold, Duration::from_millis(700), false);
        clock.count(Side::Silver, Duration::from_millis(2_300), false);
        assert_eq!(
            written(clock.commands()),
            "greserve value 6; sreserve value 4; gused value 1; sused value 2; lastmoveused value 2; moveused value 0"
        );
        assert_eq!(
            written(control("500ms").commands(2)).split(';').next(),
            Some("tcmove value 0.5")
        );
    }
}
