//! The referee of a game: it keeps the clock of external engines, and decides faults that the rules don't cover.

use super::external_engine::{EngineClock, EngineFault, EnginePlayer, Interruption};
use crate::worker::turn_decider::TurnDecider;
use arimaa::rules::{Game, Phase, Side, Turn};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The source of a player's turns, from its first turn on. After the game another game may use its memory.
#[derive(Debug)]
pub(super) enum TurnSource {
    /// A search or a policy.
    Decider(Box<TurnDecider>),
    Engine(Box<EnginePlayer>),
}

/// A game lost other than by the rules.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Forfeit {
    pub(super) loser: Side,
    pub(super) fault: EngineFault,
}

/// The referee of a game. It has nothing to do without external engines.
#[derive(Debug, Default)]
pub(super) struct Referee {
    /// None before the game has begun.
    clock: Option<EngineClock>,
    /// When the turn that is due began.
    turn_begun: Option<Instant>,
    /// The time that an engine used for it, once it has chosen its turn.
    used: Option<Duration>,
    /// The time before the first turn, in which engines start.
    pub(super) preparation: Duration,
    /// How the game was lost other than by the rules, if it was.
    pub(super) forfeit: Option<Forfeit>,
    /// Whether the match stopped before the game had a result.
    pub(super) is_given_up: bool,
    /// By the turn's place in the game: an engine's time and its remark.
    pub(super) remarks: BTreeMap<usize, String>,
}

impl Referee {
    /// Whether the game was lost other than by the rules, or given up.
    pub(super) fn has_ended(&self) -> bool {
        self.forfeit.is_some() || self.is_given_up
    }

    /// Begins the game, unless that is done, and the turn that is due.
    pub(super) fn begin(
        &mut self,
        sources: &mut [Option<TurnSource>; 2],
        game: &Game,
        max_turns: usize,
    ) {
        let is_engine = |source: &Option<TurnSource>| matches!(source, Some(TurnSource::Engine(_)));
        if !sources.iter().any(is_engine) {
            return;
        }
        if self.clock.is_none() {
            let begun = Instant::now();
            self.begin_game(sources, game, max_turns);
            self.preparation = begun.elapsed();
        }
        self.turn_begun.get_or_insert_with(Instant::now);
    }

    fn begin_game(&mut self, sources: &mut [Option<TurnSource>; 2], game: &Game, max_turns: usize) {
        let controls = sources.each_ref().map(|source| match source {
            Some(TurnSource::Engine(engine)) => Some(engine.spec.control),
            _ => None,
        });
        // A player without a control is shown with the other's.
        let (gold, silver) = match controls {
            [Some(gold), Some(silver)] => (gold, silver),
            [Some(control), None] | [None, Some(control)] => (control, control),
            [None, None] => return,
        };
        self.clock = Some(EngineClock::new([gold, silver]));
        for (loser, source) in Side::ALL.into_iter().zip(sources) {
            if let Some(TurnSource::Engine(engine)) = source
                && let Err(interruption) = engine.begin(game, max_turns)
            {
                self.interrupt(loser, interruption);
                return;
            }
        }
    }

    fn interrupt(&mut self, loser: Side, interruption: Interruption) {
        match interruption {
            Interruption::Stopped => self.is_given_up = true,
            Interruption::Fault(fault) => {
                self.forfeit = Some(Forfeit {
                    loser,
                    fault: *fault,
                });
            }
        }
    }

    /// The turn that an engine chooses; none if it loses the game or the match stops.
    pub(super) fn choose(&mut self, engine: &mut EnginePlayer, game: &Game) -> Option<Turn> {
        let clock = self.clock.as_ref()?;
        match engine.choose(game, clock) {
            Ok(chosen) => {
                self.used = Some(chosen.used);
                let mut remark = format!("{:.2} s", chosen.used.as_secs_f64());
                if let Some(said) = chosen.remark {
                    remark = format!("{remark}, {said}");
                }
                self.remarks.insert(game.turns().len(), remark);
                Some(chosen.turn)
            }
            Err(interruption) => {
                self.interrupt(game.position().side(), interruption);
                None
            }
        }
    }

    /// Notes the turn that is played next in a game, and tells the engines of it.
    pub(super) fn note(&mut self, turn: &Turn, game: &Game, sources: &[Option<TurnSource>; 2]) {
        let position = game.position();
        let since_begun = self.turn_begun.take().map(|begun| begun.elapsed());
        let used = self.used.take().or(since_begun).unwrap_or_default();
        if let Some(clock) = &mut self.clock {
            clock.count(position.side(), used, position.phase() == Phase::Setup);
        }
        for source in sources {
            if let Some(TurnSource::Engine(engine)) = source {
                engine.tell(turn, position);
            }
        }
    }
}

impl Forfeit {
    /// The side, the fault, and the engine's last lines below.
    pub(super) fn in_words(&self) -> String {
        let Self { loser, fault } = self;
        format!("{loser:?} lost by {}: {fault}", fault.kind)
    }
}
