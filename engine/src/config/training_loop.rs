//! The loop of generating, training and comparing.

use super::player::PlayerSpec;
use super::values::{AutoOr, MAX_EVALUATIONS, auto_within, even_within, not_allowed, within};
use crate::files::texts;
use garde::Validate;
use serde::{Deserialize, Serialize};

/// The loop of generating, training and comparing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct LoopConfig {
    /// Networks to train, one after the other.
    #[garde(custom(within(1..=1_000_000)))]
    pub generations: u32,
    /// Which generator plays, and whether it rests while the trainer works.
    pub order: LoopOrder,
    /// The generator's share of the threads, where both work at once.
    #[garde(custom(auto_within(1..=1_024)))]
    pub generator_threads: AutoOr,
    /// Games that `uniform` plays in place of the first network, which is no stronger; 0 lets the first network play as
    /// many as the others.
    #[garde(custom(within(0..=100_000_000)))]
    pub first_games: u32,
    /// New games that come before the next network is trained.
    #[garde(custom(within(1..=100_000_000)))]
    pub games_per_generation: u32,
    /// A new network plays matches against so many of those before it.
    #[garde(custom(within(0..=1_000)))]
    pub match_opponents: u32,
    /// It plays matches against these, too, which stay the same.
    #[garde(custom(known_anchors(self.match_evaluations)))]
    #[serde(with = "texts")]
    pub anchors: Vec<PlayerSpec>,
    /// Games of each match of a new network; 0 for no matches.
    #[garde(custom(even_within(0..=1_000_000)))]
    pub match_games: u32,
    /// Games of each of the last network's matches instead.
    #[garde(custom(even_within(0..=1_000_000)))]
    pub final_match_games: u32,
    /// Evaluations a turn in those matches, but for anchors that have a number of their own.
    #[garde(custom(within(1..=MAX_EVALUATIONS)))]
    pub match_evaluations: u32,
    /// The points a game that a new network must have against the one that plays before it takes over; 0 disables the gate.
    #[garde(custom(within(0.0..=1.0)))]
    pub gate_score: f64,
    /// Games of that match.
    #[garde(custom(even_within(2..=1_000_000)))]
    pub gate_games: u32,
    /// Evaluations a turn of the game without noise that each new network plays to be shown; 0 for none, `auto` for ten times those of
    /// self-play.
    #[garde(custom(auto_within(0..=MAX_EVALUATIONS)))]
    pub show_evaluations: AutoOr,
}

/// Which generator plays, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopOrder {
    /// First all games of a generation, then the training.
    InTurns,
    /// The generator plays all the time.
    SideBySide,
    /// The loop has no generator: others play all the time, on other machines for example.
    External,
}

/// Anchors are `random`, `first` (the run's first network), and `material` and `uniform`, which may have evaluations of their own:
/// without, they have those of the matches. Each is there once.
fn known_anchors(evaluations: u32) -> impl FnOnce(&Vec<PlayerSpec>, &()) -> garde::Result {
    move |anchors, ()| {
        let mut resolved: Vec<PlayerSpec> = Vec::new();
        for anchor in anchors {
            let mut allowed = PlayerSpec::of(&anchor.player);
            match anchor.player.as_str() {
                "random" | "first" => {}
                "material" | "uniform" => allowed.evaluations = anchor.evaluations,
                old if old
                    .split_once(':')
                    .is_some_and(|(name, _)| ["material", "uniform"].contains(&name)) =>
                {
                    let now = old.replacen(':', " evaluations=", 1);
                    return Err(not_allowed(format!("`{old}`"), format!("`{now}`")));
                }
                _ => {
                    let known = "random, first, material or uniform";
                    return Err(not_allowed(format!("`{anchor}`"), known));
                }
            }
            if *anchor != allowed {
                let settings = "evaluations of material and uniform, and no other setting";
                return Err(not_allowed(format!("`{anchor}`"), settings));
            }
            if let Some((key, reason)) = anchor.out_of_range() {
                return Err(garde::Error::new(format!(": `{anchor}`: {key} {reason}")));
            }
            if ["material", "uniform"].contains(&anchor.player.as_str()) {
                allowed.evaluations.get_or_insert(evaluations);
            }
            if resolved.contains(&allowed) {
                return Err(not_allowed(format!("`{anchor}`"), "each anchor once"));
            }
            resolved.push(allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn bad_settings_of_the_loop_are_refused_by_key() {
        for (settings, key) in [
            (&["loop.match_games=3"][..], "loop.match_games = 3"),
            (&["loop.gate_games=0"], "loop.gate_games = 0"),
            (&["loop.gate_score=1.5"], "loop.gate_score = 1.5"),
            (&["loop.generator_threads=0"], "loop.generator_threads = 0"),
            (
                &["loop.anchors=[\"random\", \"random\"]"],
                "loop.anchors = `random`",
            ),
            (
                &[
                    "loop.match_evaluations=50",
                    "loop.anchors=[\"material\", \"material evaluations=50\"]",
                ],
                "loop.anchors = `material evaluations=50`",
            ),
            (
                &["loop.anchors=[\"tusker\"]"],
                "loop.anchors = `tusker` is out of range: allowed is random, first",
            ),
            (
                &["loop.anchors=[\"random evaluations=5\"]"],
                "loop.anchors = `random evaluations=5` is out of range: allowed is evaluations of",
            ),
            (
                &["loop.anchors=[\"material evaluations=0\"]"],
                "loop.anchors : `material evaluations=0`: evaluations = 0 is out of range",
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
        let wrong = Config::default().with("loop.anchors=[\"material mode=x\"]");
        let message = wrong.unwrap_err().to_string();
        assert!(
            message.contains("`material mode=x`: `mode=x`: unknown key"),
            "{message}"
        );
        let old = Config::default()
            .with("loop.anchors=[\"material:512\"]")
            .unwrap();
        let message = old.validate().unwrap_err().to_string();
        assert!(message.contains("material evaluations=512"), "{message}");
        let none = Config::default().with("loop.anchors=[]").unwrap();
        assert!(none.validate().is_ok() && none.training_loop.anchors.is_empty());
    }
}
