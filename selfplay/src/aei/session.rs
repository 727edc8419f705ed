//! A session: it handles the controller's commands in order, also during a search.

use super::channel::Channel;
use super::clock::TurnClock;
use super::messages::{Ended, Event, Order, SearchMessage, SearchTask};
use super::no_search::turn_to_fall_back_on;
use super::options::{AUTHOR, NAME, Offered, Settings, VERSION};
use super::running_search::RunningSearch;
use crate::worker::player::PlayerName;
use arimaa::aei::{
    Command, IdentityKind, Info, LogLevel, MessageError, PROTOCOL_VERSION, Reply, StandardOption,
    format_variation,
};
use arimaa::notation::parse_turn;
use arimaa::rules::{Game, Phase, Position, Side};
use network::NetworkSource;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

type Outcome = Result<(), Ended>;

pub(super) struct Session {
    channel: Channel,
    /// A token for each line of the controller that was received.
    room: Receiver<()>,
    orders: Sender<Order>,
    settings: Settings,
    /// The network of the start.
    first_network: String,
    /// Whether `aei` has been received.
    is_open: bool,
    /// How long it may take from the beginning of the session.
    opening_limit: Option<Duration>,
    game: Game,
    /// When the game began.
    begun: Instant,
    /// Load orders without an answer yet.
    loading: usize,
    /// Whether an evaluator was ever loaded.
    has_evaluator: bool,
    /// The number of `isready` that wait for an evaluator.
    waiting: usize,
    search: Option<RunningSearch>,
    /// The side of the last turn by the clock, and its seconds: they count once the turn is played.
    took: Option<(Side, f64)>,
    /// The turns of both sides since the game began, with those that were given as positions.
    turns: usize,
    /// Searches so far.
    searches: u64,
}

impl Session {
    /// A session that receives from `room` once for each line, as [`Channel::listen`] requires. It ends if `aei` doesn't come within
    /// the limit.
    pub(super) fn new(
        channel: Channel,
        room: Receiver<()>,
        orders: Sender<Order>,
        settings: Settings,
        opening_limit: Option<Duration>,
    ) -> Self {
        Self {
            channel,
            room,
            orders,
            first_network: settings.network.clone(),
            settings,
            is_open: false,
            opening_limit,
            game: Game::new(),
            begun: Instant::now(),
            loading: 0,
            has_evaluator: false,
            waiting: 0,
            search: None,
            took: None,
            turns: 0,
            searches: 0,
        }
    }

    /// Handles events until the session ends.
    pub(super) fn run(mut self, events: &Receiver<Event>) -> Ended {
        loop {
            if let Err(ended) = self.next(events) {
                self.cancel();
                return ended;
            }
        }
    }

    fn next(&mut self, events: &Receiver<Event>) -> Outcome {
        let alarm = if self.is_open {
            self.search.as_ref().and_then(RunningSearch::alarm)
        } else {
            self.opening_limit.map(|limit| self.begun + limit)
        };
        let event = match alarm {
            None => events.recv().map_err(|_| Ended::Quit)?,
            // Lines that keep coming must not defer it. A decided turn that waits among them comes first.
            Some(at) if Instant::now() >= at => match events.try_recv() {
                Ok(message @ Event::SearchMessage(_)) => message,
                Ok(event) => {
                    self.alarm()?;
                    event
                }
                Err(_) => return self.alarm(),
            },
            Some(at) => match events.recv_timeout(at.saturating_duration_since(Instant::now())) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => return self.alarm(),
                Err(RecvTimeoutError::Disconnected) => return Err(Ended::Quit),
            },
        };
        match event {
            Event::Line(line) => {
                let _ = self.room.try_recv();
                self.handle_line(&line)
            }
            Event::TooLong => {
                let why = "a line of more than 65536 bytes is not a message".to_owned();
                self.complain(&why)?;
                Err(Ended::Refused(why))
            }
            Event::End => Err(Ended::Quit),
            Event::SearchMessage(message) => self.take(message),
        }
    }

    fn handle_line(&mut self, line: &str) -> Outcome {
        let command = match line.parse::<Command>() {
            Ok(command) => command,
            Err(MessageError::Empty) => return Ok(()),
            Err(error @ MessageError::Unknown(_)) => {
                // "An engine upon receiving an unrecognized message should indicate an error and exit."
                self.complain(&error)?;
                return Err(Ended::Refused(error.to_string()));
            }
            Err(error) if line.trim_start().starts_with("setposition") => {
                return self.complain(&format!("{error}; the position stays as it was"));
            }
            Err(error) => return self.complain(&error),
        };
        match command {
            Command::Quit => Err(Ended::Quit),
            Command::Aei if !self.is_open => self.open(),
            Command::Aei => self.complain(&"aei: the session has already begun"),
            _ if !self.is_open => self.complain(&format!("{command}: a session begins with aei")),
            Command::IsReady => {
                self.waiting += 1;
                self.say_ready()
            }
            Command::NewGame => {
                self.leave()?;
                self.settings.clock.new_game();
                self.game = Game::new();
                self.begun = Instant::now();
                (self.took, self.turns) = (None, 0);
                Ok(())
            }
            Command::SetPosition(position) => {
                self.leave()?;
                self.set_position(position);
                Ok(())
            }
            Command::SetOption { name, value } => self.set_option(&name, value.as_deref()),
            Command::MakeMove(turn) => self.make_move(&turn),
            Command::Go => self.go(false),
            Command::Ponder => self.go(true),
            Command::Stop => self.stop(),
        }
    }

    /// Ends the opening phase, then loads the network.
    fn open(&mut self) -> Outcome {
        self.is_open = true;
        self.say(&Reply::ProtocolVersion(PROTOCOL_VERSION))?;
        for (kind, value) in [
            (IdentityKind::Name, NAME),
            (IdentityKind::Author, AUTHOR),
            (IdentityKind::Version, VERSION),
        ] {
            let value = value.to_owned();
            self.say(&Reply::Identity { kind, value })?;
        }
        self.say(&Reply::AeiOk)?;
        self.load(self.settings.network.clone())
    }

    fn load(&mut self, network: String) -> Outcome {
        let Ok(name) = network.parse::<PlayerName>();
        self.loading += 1;
        self.order(Order::Load(name))
    }

    fn say_ready(&mut self) -> Outcome {
        if self.loading == 0 {
            for _ in 0..std::mem::take(&mut self.waiting) {
                self.say(&Reply::ReadyOk)?;
            }
        }
        Ok(())
    }

    /// Sets the position within the same game: some controllers send turns this way, one or two at once. The same position again is
    /// no turn.
    fn set_position(&mut self, position: Position) {
        let took = self.took.take();
        let before = self.game.position();
        if position != *before {
            self.turns += 1 + usize::from(position.side() == before.side());
            if let Some((side, used)) = took {
                self.settings.clock.count(side, used, self.settings.lag);
            }
            self.settings.clock.used = 0.0;
        }
        self.game = Game::from_position(position);
    }

    fn set_option(&mut self, name: &str, value: Option<&str>) -> Outcome {
        if name == Offered::Network.name() && self.search.is_some() {
            return self.complain(&"setoption network: not during a search");
        }
        if name == Offered::Network.name() && value.is_some_and(|value| !self.may_load(value)) {
            let why = "setoption network: files can't be named over a connection, other than the network of the start";
            return self.log(LogLevel::Warning, &why);
        }
        match self.settings.set(name, value) {
            Ok(None) => {
                self.keep_time(name == StandardOption::MoveUsed.word());
                Ok(())
            }
            Ok(Some(network)) => self.load(network),
            Err(error) => self.log(LogLevel::Warning, &format!("setoption {name}: {error}")),
        }
    }

    /// Whether a controller may name a network: one at another machine can't find out which files there are.
    fn may_load(&self, network: &str) -> bool {
        let Ok(name) = network.trim().parse::<PlayerName>();
        let is_file = matches!(name, PlayerName::Network(NetworkSource::File(_)));
        !(is_file && self.channel.is_socket()) || network.trim() == self.first_network
    }

    /// Adapts the times of a running search to the clock's options; `is_use` if the used time of its turn was set.
    fn keep_time(&mut self, is_use: bool) {
        let Some(running) = self.search.as_mut().filter(|one| one.has_clock) else {
            return;
        };
        if is_use {
            running.has_used(self.settings.clock.used, Instant::now());
        }
        // The turn's beginning includes the used time already.
        let clock = TurnClock {
            used: 0.0,
            ..self.settings.clock.clone()
        };
        let passed = running.begun.saturating_duration_since(self.begun);
        let (passed, number) = (passed.as_secs_f64(), (self.turns / 2 + 1) as u32);
        if let Some(times) = clock.times(running.side, self.settings.lag, passed, number) {
            running.keep_to(&times, running.begun);
        }
    }

    /// Plays a turn. An illegal one changes nothing, and a search continues.
    fn make_move(&mut self, text: &str) -> Outcome {
        let turn = match parse_turn(text, self.game.position()) {
            Ok(turn) => turn,
            Err(error) => {
                return self.complain(&format!(
                    "makemove: column {}: {}",
                    error.column, error.reason
                ));
            }
        };
        let mover = self.game.position().side();
        let mut after = self.game.clone();
        match after.play(&turn) {
            Ok(()) => {
                self.leave()?;
                self.game = after;
                let took = self.took.take().filter(|&(side, _)| side == mover);
                if let Some((side, used)) = took {
                    self.settings.clock.count(side, used, self.settings.lag);
                }
                self.settings.clock.used = 0.0;
                self.turns += 1;
                Ok(())
            }
            Err(error) => self.complain(&format!("makemove {text}: {error}")),
        }
    }

    fn go(&mut self, ponders: bool) -> Outcome {
        let asked = Instant::now();
        if self
            .search
            .as_ref()
            .is_some_and(|running| !running.ponders && !running.is_stopped)
        {
            return self.complain(&"go: a search is running");
        }
        self.leave()?;
        if let Some(outcome) = self.game.outcome() {
            let over = format!("go: the game is over, {outcome}");
            if ponders {
                return self.log(LogLevel::Warning, &over);
            }
            self.complain(&over)?;
            // The controller must not wait for a turn without end.
            return self.say(&Reply::BestMove(String::new()));
        }
        let position = *self.game.position();
        let number = (self.turns / 2 + 1) as u32;
        let times = if ponders {
            None
        } else {
            self.settings.clock.times(
                position.side(),
                self.settings.lag,
                self.begun.elapsed().as_secs_f64(),
                number,
            )
        };
        self.searches += 1;
        let mut running = RunningSearch::new(self.searches, position.side(), asked, ponders);
        if let Some(times) = &times {
            running.has_used(self.settings.clock.used, asked);
            running.keep_to(times, asked);
        }
        let limit = |limit: Option<u32>| limit.filter(|_| !ponders);
        let task = SearchTask {
            number: self.searches,
            position,
            history: self.game.history().clone(),
            flag: Arc::clone(&running.flag),
            begun: asked,
            times,
            evaluations: limit(self.settings.evaluations),
            depth: limit(self.settings.depth),
            memory_mib: self.settings.memory_mib,
            lines: self.settings.lines,
            setups: self.settings.setups,
        };
        running.holds |= times.is_none() && task.evaluations.is_none() && task.depth.is_none();
        self.order(Order::Search(Box::new(task)))?;
        // The search thread works already.
        running.best = turn_to_fall_back_on(&position, self.game.history());
        self.search = Some(running);
        Ok(())
    }

    fn stop(&mut self) -> Outcome {
        let Some(running) = &mut self.search else {
            return self.log(LogLevel::Warning, &"stop: nothing is being searched");
        };
        let turn = running.stop();
        turn.map_or(Ok(()), |turn| self.play(turn))
    }

    /// Handles a time limit of the search, or of the wait for `aei`.
    fn alarm(&mut self) -> Outcome {
        if let (false, Some(limit)) = (self.is_open, self.opening_limit) {
            let why = format!("no `aei` came within {} s", limit.as_secs());
            self.complain(&why)?;
            return Err(Ended::Refused(why));
        }
        let Some(running) = &mut self.search else {
            return Ok(());
        };
        running.end();
        running.stop_at = None;
        if running.play_at.is_some_and(|at| Instant::now() >= at) {
            running.play_at = None;
            if let Some(turn) = running.best.take() {
                self.log(LogLevel::Debug, &"the search is held up")?;
                return self.play(turn);
            }
        }
        Ok(())
    }

    fn take(&mut self, message: SearchMessage) -> Outcome {
        let is_wanted = |running: &Option<RunningSearch>, number: u64| {
            running.as_ref().is_some_and(|one| one.number == number)
        };
        match message {
            SearchMessage::Loaded => {
                self.loading -= 1;
                self.has_evaluator = true;
                self.say_ready()
            }
            SearchMessage::NotLoaded(error) => {
                self.loading -= 1;
                self.complain(&error)?;
                if self.has_evaluator {
                    self.say_ready()
                } else {
                    Err(Ended::Failed(error))
                }
            }
            SearchMessage::Failed(error) => {
                self.complain(&error)?;
                let owed = self.search.as_mut();
                let owed = owed.filter(|running| !running.ponders && !running.holds);
                if let Some(turn) = owed.and_then(|running| running.best.take()) {
                    self.play(turn)?;
                }
                Err(Ended::Failed(error))
            }
            SearchMessage::Found {
                number,
                infos,
                best,
            } if is_wanted(&self.search, number) => {
                for info in infos {
                    if let Some(running) = &mut self.search {
                        running.note(&info);
                    }
                    self.say(&Reply::Info(info))?;
                }
                if let Some(running) = &mut self.search {
                    running.best = best.or(running.best.take());
                }
                Ok(())
            }
            SearchMessage::Decided {
                number,
                turn,
                is_known,
                cost,
            } if is_wanted(&self.search, number) => {
                self.log(LogLevel::Debug, &cost)?;
                match &mut self.search {
                    Some(running) if running.ponders || running.holds && !is_known => {
                        running.decided = Some(turn);
                        Ok(())
                    }
                    _ => self.play(turn),
                }
            }
            SearchMessage::Found { .. } | SearchMessage::Decided { .. } => Ok(()),
        }
    }

    /// Ends the running search, and sends its turn.
    fn play(&mut self, turn: String) -> Outcome {
        if let Some(running) = self.search.take() {
            running.end();
            if running.has_clock && self.game.position().phase() == Phase::Play {
                let used = running.begun.elapsed().as_secs_f64();
                self.took = Some((running.side, used));
            }
            if running.has_told_another(&turn) {
                // Programs that show the principal variation then show the turn that is played.
                let line = format_variation(running.side, [turn.as_str()]);
                self.say(&Reply::Info(Info::Variation(line)))?;
            }
        }
        self.say(&Reply::BestMove(turn))
    }

    /// Ends the search before the next command. A stopped search still sends its turn: the best so far.
    fn leave(&mut self) -> Outcome {
        let stopped = self.search.as_mut().filter(|one| one.is_stopped);
        if let Some(turn) = stopped.and_then(|running| running.best.take()) {
            self.play(turn)?;
        }
        self.cancel();
        Ok(())
    }

    /// Ends a search without sending its turn.
    fn cancel(&mut self) {
        if let Some(running) = self.search.take() {
            running.end();
        }
    }

    fn order(&mut self, order: Order) -> Outcome {
        let gone = |_| Ended::Failed("the search thread has ended".into());
        self.orders.send(order).map_err(gone)
    }

    fn complain(&mut self, what: &dyn fmt::Display) -> Outcome {
        self.log(LogLevel::Error, what)
    }

    fn log(&mut self, level: LogLevel, what: &dyn fmt::Display) -> Outcome {
        self.say(&Reply::log(level, what))
    }

    /// Sends a reply. A controller that can't be reached has left.
    fn say(&mut self, reply: &Reply) -> Outcome {
        self.channel
            .say(&reply.to_string())
            .map_err(|_| Ended::Quit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn positions_count_as_the_turns_before_them() {
        let gold =
            "setposition g [r                                   e               E          R]";
        let silver = gold.replace("setposition g", "setposition s");
        let later = gold.replace("e ", " e");
        let (_sender, room) = channel();
        let (orders, _receiver) = channel();
        let settings = Settings::new("material".into(), 256);
        let mut session = Session::new(Channel::Standard, room, orders, settings, None);
        session.is_open = true;
        session.settings.clock.of_turn = 10.0;
        session.settings.clock.reserve = 60.0;
        let move_used = "setoption name moveused value 8";
        for (line, turns, used) in [
            ("newgame", 0, 0.0),
            (move_used, 0, 8.0),
            (gold, 2, 0.0),
            (move_used, 2, 8.0),
            (gold, 2, 8.0),
            (silver.as_str(), 3, 0.0),
            (later.as_str(), 4, 0.0),
            (gold, 6, 0.0),
            ("newgame", 0, 0.0),
        ] {
            assert!(session.handle_line(line).is_ok(), "{line}");
            let found = (session.turns, session.settings.clock.used);
            assert_eq!(found, (turns, used), "{line}");
        }
        // The time of a turn counts once the turn is played.
        for (line, is_counted) in [(gold, true), (gold, false), (later.as_str(), true)] {
            session.settings.clock.begin_with(60.0);
            session.took = Some((Side::Gold, 15.0));
            assert!(session.handle_line(line).is_ok(), "{line}");
            let counted = session.settings.clock.counted.map(|left| left.is_some());
            assert_eq!((counted, session.took), ([is_counted, false], None));
        }
    }
}
