//! An engine's place in a match: what is to be played, and the engine itself, started when it is needed and anew where it failed.

use super::clock::{EngineClock, TimeControl};
use super::command::{EngineCommand, OptionSetting};
use super::fault::{EngineFault, FaultKind, Interruption};
use super::session::{Engine, EngineTurn, GameSetting, Limits};
use arimaa::rules::{Game, Position, Turn};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An engine as requested.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EngineSpec {
    command: EngineCommand,
    options: Vec<OptionSetting>,
    control: TimeControl,
    limits: Limits,
}

impl EngineSpec {
    pub(crate) fn new(
        command: EngineCommand,
        options: Vec<OptionSetting>,
        control: TimeControl,
    ) -> Self {
        let limits = Limits::default();
        Self {
            command,
            options,
            control,
            limits,
        }
    }

    /// How long it may think.
    pub(crate) fn control(&self) -> &TimeControl {
        &self.control
    }

    /// Whether it can be started and answers; as what, and what it has to complain of.
    pub(crate) fn check(&self) -> Result<(String, Vec<String>), Interruption> {
        let engine = self.start(&AtomicBool::new(false))?;
        Ok((engine.identity().to_owned(), engine.complaints().to_vec()))
    }

    fn start(&self, stop: &AtomicBool) -> Result<Engine, Interruption> {
        Engine::start(&self.command, &self.options, self.limits, stop)
    }
}

/// An engine that plays one game at a time.
#[derive(Debug)]
pub(crate) struct EnginePlayer {
    order: EngineSpec,
    /// None before the first game, and after a game that it lost by a fault.
    engine: Option<Engine>,
    /// Who plays against it in its present game.
    opponent: String,
    stop: Arc<AtomicBool>,
}

impl EnginePlayer {
    /// An engine that isn't started yet. It is interrupted once `stop` is set.
    pub(crate) fn new(order: EngineSpec, stop: Arc<AtomicBool>) -> Self {
        Self {
            order,
            engine: None,
            opponent: String::new(),
            stop,
        }
    }

    /// Who plays against it in its next game.
    pub(crate) fn meet(&mut self, opponent: &str) {
        opponent.clone_into(&mut self.opponent);
    }

    /// How long it may think.
    pub(crate) fn control(&self) -> &TimeControl {
        self.order.control()
    }

    /// Begins a game. An engine that has left since its last one, or doesn't answer, is started anew once: no game was going on.
    pub(crate) fn begin(&mut self, game: &Game, max_turns: usize) -> Result<(), Interruption> {
        let setting = GameSetting {
            control: &self.order.control,
            max_turns,
            opponent: &self.opponent,
        };
        if let Some(engine) = &mut self.engine {
            match engine.new_game(game, setting, &self.stop) {
                Err(Interruption::Fault(_)) => self.engine = None,
                result => return result,
            }
        }
        let mut engine = self.order.start(&self.stop)?;
        engine.new_game(game, setting, &self.stop)?;
        self.engine = Some(engine);
        Ok(())
    }

    /// Has the engine choose the turn that is due. After a fault it is gone; after resigning it isn't.
    pub(crate) fn choose(
        &mut self,
        game: &Game,
        clock: &EngineClock,
    ) -> Result<EngineTurn, Interruption> {
        let Some(engine) = &mut self.engine else {
            let fault = EngineFault {
                kind: FaultKind::Crash,
                reason: "it was not started".to_owned(),
                last_lines: Vec::new(),
            };
            return Err(fault.into());
        };
        let chosen = engine.choose(game, clock, &self.stop);
        let stays = match &chosen {
            Ok(_) => true,
            Err(Interruption::Fault(fault)) => fault.kind == FaultKind::Resignation,
            Err(Interruption::Stopped) => false,
        };
        if !stays {
            self.engine = None;
        }
        chosen
    }

    /// Tells the engine that a turn was played in a position.
    pub(crate) fn tell(&self, turn: &Turn, position: &Position) {
        if let Some(engine) = &self.engine {
            engine.tell(turn, position);
        }
    }
}
