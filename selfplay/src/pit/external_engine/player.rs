//! An external engine as a player: started when it is needed, and restarted after a fault.

use super::clock::{EngineClock, TimeControl};
use super::command::EngineCommand;
use super::fault::{EngineFault, FaultKind, Interruption};
use super::session::{Engine, EngineTurn, Limits};
use arimaa::aei::Command;
use arimaa::rules::{Game, Position, Turn};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An engine as requested.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EngineSpec {
    pub(crate) command: EngineCommand,
    /// The commands that set its options.
    pub(crate) options: Vec<Command>,
    pub(crate) control: TimeControl,
}

impl EngineSpec {
    /// Starts it, and waits until it is ready; it is interrupted once `stop` is set.
    pub(crate) fn start(&self, stop: &AtomicBool) -> Result<Engine, Interruption> {
        Engine::start(&self.command, &self.options, Limits::default(), stop)
    }
}

/// An engine that plays one game at a time.
#[derive(Debug)]
pub(crate) struct EnginePlayer {
    pub(crate) spec: EngineSpec,
    /// None before the first game, and after a game that it lost by a fault.
    engine: Option<Engine>,
    /// Its opponent in the present game.
    opponent: String,
    stop: Arc<AtomicBool>,
}

impl EnginePlayer {
    /// An engine that isn't started yet. It is interrupted once `stop` is set.
    pub(crate) fn new(spec: EngineSpec, stop: Arc<AtomicBool>) -> Self {
        Self {
            spec,
            engine: None,
            opponent: String::new(),
            stop,
        }
    }

    /// Sets its opponent in its next game.
    pub(crate) fn meet(&mut self, opponent: &str) {
        opponent.clone_into(&mut self.opponent);
    }

    /// Begins a game. An engine that ended since its last game, or doesn't answer, is restarted once: no game was in progress.
    pub(crate) fn begin(&mut self, game: &Game, max_turns: usize) -> Result<(), Interruption> {
        let (control, opponent) = (&self.spec.control, &self.opponent);
        if let Some(engine) = &mut self.engine {
            match engine.new_game(game, control, max_turns, opponent, &self.stop) {
                Err(Interruption::Fault(_)) => self.engine = None,
                result => return result,
            }
        }
        let mut engine = self.spec.start(&self.stop)?;
        engine.new_game(game, control, max_turns, opponent, &self.stop)?;
        self.engine = Some(engine);
        Ok(())
    }

    /// Lets the engine choose the turn that is due. After a fault other than a resignation the engine is ended.
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
        match &chosen {
            Ok(_) => {}
            Err(Interruption::Fault(fault)) if fault.kind == FaultKind::Resignation => {}
            Err(_) => self.engine = None,
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
