//! The session with an engine: the opening phase, games, and turns.

use super::clock::{EngineClock, LAG, TimeControl};
use super::command::EngineCommand;
use super::fault::{EngineFault, FaultKind, Interruption};
use super::process::EngineProcess;
use arimaa::aei::{Command, IdentityKind, Info, LogLevel, PROTOCOL_VERSION, Reply, StandardOption};
use arimaa::notation::{format_turn, parse_turn};
use arimaa::rules::{Game, Position, Turn};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The longest waits for an engine while no clock runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// From `aei` to `aeiok`.
    pub(crate) opening: Duration,
    /// From `isready` to `readyok`: networks are loaded here.
    pub(crate) ready: Duration,
    /// From `stop` to `bestmove`, once its time has run out.
    pub(crate) stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(30),
            ready: Duration::from_secs(120),
            stop: Duration::from_secs(5),
        }
    }
}

/// A turn that an engine chose, legal and in time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EngineTurn {
    pub(crate) turn: Turn,
    /// From `go` to `bestmove`.
    pub(crate) used: Duration,
    /// Its last remarks on its search, if there were any.
    pub(crate) remark: Option<String>,
}

/// An engine's last remark of each kind on its search: score, depth, nodes, variation.
#[derive(Debug, Default)]
struct Remarks([Option<Info>; 4]);

impl Remarks {
    fn take(&mut self, info: Info) {
        let place = match info {
            Info::Score(_) => 0,
            Info::Depth { .. } => 1,
            Info::Nodes(_) => 2,
            Info::Variation(_) => 3,
            Info::Time(_) | Info::CurrentMoveNumber(_) | Info::Other { .. } => return,
        };
        self.0[place] = Some(info);
    }

    /// In one line.
    fn in_words(self) -> Option<String> {
        let infos = self.0.iter().flatten();
        let parts: Vec<String> = infos.map(Info::to_string).collect();
        let words = parts.join(", ").replace(char::is_control, "?");
        (!words.is_empty()).then_some(words)
    }
}

/// A running engine.
#[derive(Debug)]
pub(crate) struct Engine {
    process: EngineProcess,
    limits: Limits,
    /// The name and version that it gives; empty if it gives none.
    pub(crate) identity: String,
    /// The warnings and errors that it logged on its options.
    pub(crate) complaints: Vec<String>,
}

/// The most warnings and errors that are kept.
const MAX_COMPLAINTS: usize = 10;

impl Engine {
    /// Starts an engine, sets its options, and waits until it is ready.
    pub(crate) fn start(
        command: &EngineCommand,
        options: &[Command],
        limits: Limits,
        stop: &AtomicBool,
    ) -> Result<Self, Interruption> {
        let process = EngineProcess::start(command).map_err(|error| EngineFault {
            kind: FaultKind::Crash,
            reason: format!("{} can't be started: {error}", command.program),
            last_lines: Vec::new(),
        })?;
        let mut engine = Self {
            process,
            limits,
            identity: String::new(),
            complaints: Vec::new(),
        };
        engine.open(stop)?;
        for option in options {
            engine.process.send(option);
        }
        engine.complaints = engine.wait_until_ready(stop)?;
        Ok(engine)
    }

    /// The opening phase.
    fn open(&mut self, stop: &AtomicBool) -> Result<(), Interruption> {
        let deadline = Instant::now() + self.limits.opening;
        self.process.send(Command::Aei);
        let (mut name, mut version) = (String::new(), String::new());
        loop {
            match self.next_reply(deadline, stop)? {
                Some((Reply::AeiOk, _)) => break,
                Some((Reply::Identity { kind, value }, _)) => match kind {
                    IdentityKind::Name => name = value,
                    IdentityKind::Version => version = value,
                    IdentityKind::Author => {}
                },
                Some((Reply::ProtocolVersion(spoken), _)) if spoken != PROTOCOL_VERSION => {
                    let reason = format!(
                        "it speaks version {spoken} of the protocol, and a match speaks version {PROTOCOL_VERSION}"
                    );
                    return Err(self.process.fault(FaultKind::Malformed, reason).into());
                }
                Some((_, at)) if at <= deadline => {}
                _ => return Err(self.no_answer("aeiok", "aei", self.limits.opening).into()),
            }
        }
        self.identity = format!("{name} {version}")
            .trim()
            .replace(char::is_control, "?");
        Ok(())
    }

    /// Begins a game: the engine is told the clock, the turn limit of both sides together, its opponent, and the turns so far.
    pub(crate) fn new_game(
        &mut self,
        game: &Game,
        control: &TimeControl,
        max_turns: usize,
        opponent: &str,
        stop: &AtomicBool,
    ) -> Result<(), Interruption> {
        let mut commands = control.commands(max_turns);
        commands.push(Command::set(StandardOption::Rated, 0));
        commands.push(Command::set(StandardOption::Opponent, opponent));
        commands.push(Command::NewGame);
        for command in commands {
            self.process.send(command);
        }
        if *game.start() != Position::INITIAL {
            self.process.send(Command::SetPosition(*game.start()));
        }
        let mut position = *game.start();
        for turn in game.turns() {
            self.tell(turn, &position);
            position = position.after_turn_unchecked(turn);
        }
        self.wait_until_ready(stop).map(drop)
    }

    /// Tells the engine that a turn was played in a position.
    pub(crate) fn tell(&self, turn: &Turn, position: &Position) {
        self.process
            .send(Command::MakeMove(format_turn(turn, position)));
    }

    /// Lets the engine choose the turn that is due in a game that it was told of, on a clock. It is not told yet that its turn is
    /// played.
    pub(crate) fn choose(
        &mut self,
        game: &Game,
        clock: &EngineClock,
        stop: &AtomicBool,
    ) -> Result<EngineTurn, Interruption> {
        self.process.forget_lines()?;
        for command in clock.commands() {
            self.process.send(command);
        }
        let allowance = clock.allowance(game.position().side());
        let begun = Instant::now();
        let deadline = begun + allowance + LAG;
        self.process.send(Command::Go);
        let mut remarks = Remarks::default();
        loop {
            match self.next_reply(deadline, stop)? {
                Some((Reply::BestMove(text), at)) if at <= deadline => {
                    return Ok(EngineTurn {
                        turn: self.read_turn(&text, game)?,
                        used: at.saturating_duration_since(begun),
                        remark: remarks.in_words(),
                    });
                }
                Some((Reply::BestMove(_), at)) => {
                    let used = at.saturating_duration_since(begun);
                    return Err(self.too_late(allowance, used).into());
                }
                Some((Reply::Info(info), at)) if at <= deadline => remarks.take(info),
                Some((_, at)) if at <= deadline => {}
                _ => return Err(self.out_of_time(allowance, begun, stop)?.into()),
            }
        }
    }

    fn read_turn(&self, text: &str, game: &Game) -> Result<Turn, EngineFault> {
        let shown: String = text.chars().take(200).collect();
        let illegal = |why: &dyn std::fmt::Display| {
            let reason = format!("it played `{shown}`: {why}").replace(char::is_control, "?");
            self.process.fault(FaultKind::IllegalTurn, reason)
        };
        match text.trim() {
            "" => Err(illegal(&"this is not a turn")),
            word if word.eq_ignore_ascii_case("resign") => {
                Err(self.process.fault(FaultKind::Resignation, "it resigned"))
            }
            text => {
                let position = game.position();
                let turn = parse_turn(text, position).map_err(|error| illegal(&error.reason))?;
                match position.after_turn(&turn, game.history()) {
                    Ok(_) => Ok(turn),
                    Err(error) => Err(illegal(&error)),
                }
            }
        }
    }

    fn too_late(&self, allowance: Duration, used: Duration) -> EngineFault {
        let reason = format!(
            "its turn came after {:.2} s, and it had {:.2} s",
            used.as_secs_f64(),
            allowance.as_secs_f64()
        );
        self.process.fault(FaultKind::Time, reason)
    }

    /// The fault of an engine that is out of time. Its answer to `stop` shows whether it is slow or hangs.
    fn out_of_time(
        &mut self,
        allowance: Duration,
        begun: Instant,
        stop: &AtomicBool,
    ) -> Result<EngineFault, Interruption> {
        self.process.send(Command::Stop);
        let deadline = Instant::now() + self.limits.stop;
        loop {
            match self.next_reply(deadline, stop)? {
                Some((Reply::BestMove(_), at)) => {
                    return Ok(self.too_late(allowance, at.saturating_duration_since(begun)));
                }
                Some((_, at)) if at <= deadline => {}
                _ => {
                    let reason = format!(
                        "it had {:.2} s for its turn and gave none, nor any within {} s after `stop`",
                        allowance.as_secs_f64(),
                        self.limits.stop.as_secs_f64()
                    );
                    return Ok(self.process.fault(FaultKind::Hang, reason));
                }
            }
        }
    }

    /// Returns the warnings and errors that it logs meanwhile.
    fn wait_until_ready(&mut self, stop: &AtomicBool) -> Result<Vec<String>, Interruption> {
        let mut complaints = Vec::new();
        let deadline = Instant::now() + self.limits.ready;
        self.process.send(Command::IsReady);
        loop {
            match self.next_reply(deadline, stop)? {
                Some((Reply::ReadyOk, _)) => return Ok(complaints),
                Some((
                    Reply::Log {
                        level: Some(LogLevel::Warning | LogLevel::Error),
                        text,
                    },
                    _,
                )) if complaints.len() < MAX_COMPLAINTS => complaints.push(text),
                Some((_, at)) if at <= deadline => {}
                _ => {
                    return Err(self
                        .no_answer("readyok", "isready", self.limits.ready)
                        .into());
                }
            }
        }
    }

    fn no_answer(&self, expected: &str, asked: &str, limit: Duration) -> EngineFault {
        let reason = format!(
            "no `{expected}` came within {} s after `{asked}`",
            limit.as_secs_f64()
        );
        self.process.fault(FaultKind::Hang, reason)
    }

    /// The next message and its time, which may be later than the deadline; none if there is none until then. Lines that are no
    /// messages are skipped: they stay among the last lines.
    ///
    /// An engine may write messages without end: a late one other than the expected one ends the wait.
    fn next_reply(
        &mut self,
        deadline: Instant,
        stop: &AtomicBool,
    ) -> Result<Option<(Reply, Instant)>, Interruption> {
        while let Some((line, at)) = self.process.next_line(deadline, stop)? {
            if let Ok(reply) = line.parse() {
                return Ok(Some((reply, at)));
            }
            if at > deadline {
                break;
            }
        }
        Ok(None)
    }
}
