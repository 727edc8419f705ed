//! The loop of generating, training and comparing.

use super::{Anchor, AutoOr, ConfigError, NetworkChange, SelfplayConfig, check};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The loop of generating, training and comparing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopConfig {
    /// Networks to train, one after the other.
    pub generations: u32,
    /// Whether the generator rests while the trainer works.
    pub order: LoopOrder,
    /// The generator's share of the threads, where both work at once.
    pub generator_threads: AutoOr,
    /// Games that `uniform` plays in place of the first network, which knows no more than it; 0 lets the first network play as
    /// many as the others.
    pub first_games: u32,
    /// New games that come before the next network is trained.
    pub games_per_generation: u32,
    /// A new network plays matches against so many of those before it.
    pub pit_last: u32,
    /// It plays matches against these, too, which stay the same.
    pub anchors: Vec<Anchor>,
    /// Games of each match of a new network; 0 for no matches.
    pub pit_games: u32,
    /// Games of each of the last network's matches instead.
    pub final_pit_games: u32,
    /// Evaluations a turn in those matches, but for anchors that have a number of their own.
    pub pit_evaluations: u32,
    /// The points a game that a new network must have against the one that plays before it takes over; 0 asks for nothing.
    pub gate_score: f64,
    /// Games of that match.
    pub gate_games: u32,
}

/// Who works when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopOrder {
    /// First all games of a generation, then the training.
    InTurns,
    /// The generator plays all the time.
    SideBySide,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            generations: 50,
            order: LoopOrder::InTurns,
            generator_threads: AutoOr::Auto,
            first_games: 10_000,
            games_per_generation: 2_000,
            pit_last: 2,
            anchors: vec![Anchor::Random, Anchor::Material(Some(64)), Anchor::First],
            pit_games: 200,
            final_pit_games: 400,
            pit_evaluations: 64,
            gate_score: 0.0,
            gate_games: 200,
        }
    }
}

impl LoopConfig {
    pub(super) fn validate(&self, selfplay: &SelfplayConfig) -> Result<(), ConfigError> {
        check("loop.generations", self.generations, 1..=1_000_000)?;
        let threads = self.generator_threads.number().unwrap_or(1);
        check("loop.generator_threads", threads, 1..=1_024)?;
        check("loop.first_games", self.first_games, 0..=100_000_000)?;
        check(
            "loop.games_per_generation",
            self.games_per_generation,
            1..=100_000_000,
        )?;
        check("loop.pit_last", self.pit_last, 0..=1_000)?;
        for (key, games, fewest) in [
            ("loop.pit_games", self.pit_games, 0),
            ("loop.final_pit_games", self.final_pit_games, 0),
            ("loop.gate_games", self.gate_games, 2),
        ] {
            check(key, games, fewest..=1_000_000)?;
            check_even(key, games)?;
        }
        check("loop.pit_evaluations", self.pit_evaluations, 1..=10_000_000)?;
        check("loop.gate_score", self.gate_score, 0.0..=1.0)?;
        self.check_anchors()?;
        self.check_order(selfplay)
    }

    /// An anchor without a number of its own is the same as with the matches' one.
    fn check_anchors(&self) -> Result<(), ConfigError> {
        let resolved = |anchor: &Anchor| anchor.with_evaluations(self.pit_evaluations);
        let different: BTreeSet<Anchor> = self.anchors.iter().map(resolved).collect();
        if different.len() == self.anchors.len() {
            return Ok(());
        }
        let names: Vec<String> = self.anchors.iter().map(Anchor::to_string).collect();
        Err(ConfigError::OutOfRange {
            key: "loop.anchors",
            value: format!("[{}]", names.join(", ")),
            allowed: "each once".into(),
        })
    }

    /// A generator that plays all the time has to hear of new networks.
    fn check_order(&self, selfplay: &SelfplayConfig) -> Result<(), ConfigError> {
        if self.order == LoopOrder::InTurns || selfplay.network_change != NetworkChange::Never {
            return Ok(());
        }
        Err(ConfigError::OutOfRange {
            key: "selfplay.network_change",
            value: "\"never\"".into(),
            allowed: "\"turn\" or \"game\" where loop.order is \"side_by_side\"".into(),
        })
    }
}

/// Matches are made of pairs of games.
fn check_even(key: &'static str, value: u32) -> Result<(), ConfigError> {
    if value.is_multiple_of(2) {
        return Ok(());
    }
    Err(ConfigError::OutOfRange {
        key,
        value: value.to_string(),
        allowed: "an even number".into(),
    })
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn what_the_loop_can_t_do_is_refused_by_key() {
        for (settings, key) in [
            (&["loop.pit_games=3"][..], "loop.pit_games = 3"),
            (&["loop.gate_games=0"], "loop.gate_games = 0"),
            (&["loop.gate_score=1.5"], "loop.gate_score = 1.5"),
            (&["loop.generator_threads=0"], "loop.generator_threads = 0"),
            (
                &["loop.anchors=[\"random\", \"random\"]"],
                "loop.anchors = [random, random]",
            ),
            (
                &[
                    "loop.pit_evaluations=50",
                    "loop.anchors=[\"material\", \"material:50\"]",
                ],
                "loop.anchors = [material, material:50]",
            ),
            (
                &["loop.order=side_by_side", "selfplay.network_change=never"],
                "selfplay.network_change = \"never\"",
            ),
        ] {
            let set = |config: Config, setting: &&str| config.with(setting).unwrap();
            let config = settings.iter().fold(Config::default(), set);
            let message = config.validate().unwrap_err().to_string();
            assert!(message.starts_with(key), "{message}");
        }
        let none = Config::default().with("loop.anchors=[]").unwrap();
        assert!(none.validate().is_ok() && none.cycle.anchors.is_empty());
    }
}
