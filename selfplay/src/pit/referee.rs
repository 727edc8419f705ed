//! What a game with external engines has beside the rules: the engines, their clock, and the ways to lose that the rules don't know.

use super::external_engine::{EngineClock, EngineFault, EnginePlayer, FaultKind, Interruption};
use arimaa::rules::{Game, Phase, Side, Turn};
use engine::search::{PolicySampler, Search};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a player's turns come from, from its first turn on. Once the game is over another game may use its memory.
#[derive(Debug)]
pub(super) enum TurnSource {
    Search(Box<Search>),
    Policy(Box<PolicySampler>),
    Engine(Box<EnginePlayer>),
}

/// A game lost besides by the rules.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Forfeit {
    pub(super) loser: Side,
    pub(super) fault: EngineFault,
}

/// The referee of a game with engines.
#[derive(Debug, Default)]
pub(super) struct Referee {
    /// None before the game has begun.
    clock: Option<EngineClock>,
    /// When the turn that is due began.
    turn_begun: Option<Instant>,
    /// What an engine needed for it, where it has chosen its turn.
    used: Option<Duration>,
    /// What was needed before the first turn: engines start.
    preparation: Duration,
    forfeit: Option<Forfeit>,
    is_given_up: bool,
    /// By the turn's place in the game.
    remarks: BTreeMap<usize, String>,
}

impl Referee {
    /// How the game was lost, if it was, besides by the rules.
    pub(super) fn forfeit(&self) -> Option<&Forfeit> {
        self.forfeit.as_ref()
    }

    /// Whether the match stops, and nothing came of the game.
    pub(super) fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// What was needed before the first turn.
    pub(super) fn preparation(&self) -> Duration {
        self.preparation
    }

    /// What an engine said of the turn at a place in the game, and how long it took.
    pub(super) fn remark(&self, turn: usize) -> Option<&str> {
        self.remarks.get(&turn).map(String::as_str)
    }

    /// Begins the game, unless that is done, and the turn that is due.
    pub(super) fn begin(
        &mut self,
        sources: &mut [Option<TurnSource>; 2],
        game: &Game,
        max_turns: usize,
    ) {
        if self.clock.is_none() {
            let begun = Instant::now();
            self.begin_game(sources, game, max_turns);
            self.preparation = begun.elapsed();
        }
        self.turn_begun.get_or_insert_with(Instant::now);
    }

    fn begin_game(&mut self, sources: &mut [Option<TurnSource>; 2], game: &Game, max_turns: usize) {
        let controls = sources.each_ref().map(|source| match source {
            Some(TurnSource::Engine(engine)) => Some(*engine.control()),
            _ => None,
        });
        // Who has none is shown with the other's.
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

    /// The turn that an engine chooses; none where it loses the game, or the match stops.
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
    /// In words, with the loser's last lines below.
    pub(super) fn in_words(&self) -> String {
        let Self { loser, fault } = self;
        format!("{loser:?} lost by {}: {fault}", fault.kind)
    }

    /// In what way.
    pub(super) fn kind(&self) -> FaultKind {
        self.fault.kind
    }
}
