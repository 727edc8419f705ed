//! What is told of a search while it goes on, and how open its decision is.

use arimaa::aei::{Info, format_variation};
use arimaa::rules::Side;
use engine::search::{Decision, Proven, ReportedTurn, Search, SearchReport};
use std::time::Duration;

/// Steps in a whole turn.
const STEPS: f64 = 4.0;

/// When the first news of a search are due; then every second.
const FIRST: Duration = Duration::from_millis(100);
const INTERVAL: Duration = Duration::from_secs(1);
/// Simulations of a stage that say little yet.
const FEW: u32 = 100;
/// Making reports takes no more than one part of so many of the time.
const REPORTING: u32 = 20;

/// How much better the chosen turn must be than any other for a clear decision, as a win probability; and how little for an open one.
const CLEAR: f32 = 0.1;
const OPEN: f32 = 0.02;

/// The logarithm of the odds that a rabbit is worth at the start of a game, as `material` counts it. The protocol's scores are
/// hundredths of that.
const RABBIT: f64 = 0.35;
/// The score of a win that is proven, less the turns to it; what is not proven has less.
const WON: i64 = 10_000;
const MOST_OPEN: f64 = 9_000.0;

/// Tells what a search has found.
#[derive(Debug)]
pub(super) struct Teller {
    lines: usize,
    next: Duration,
    next_depth: Duration,
    /// Simulations of the stages before.
    visits: u64,
}

impl Teller {
    /// One that tells of so many turns.
    pub(super) fn new(lines: usize) -> Self {
        Self {
            lines,
            next: FIRST,
            next_depth: Duration::ZERO,
            visits: 0,
        }
    }

    /// Counts a stage that is over.
    pub(super) fn count(&mut self, decision: &Decision) {
        self.visits += u64::from(decision.visits);
    }

    /// Whether news are due.
    pub(super) fn is_due(&self, passed: Duration) -> bool {
        passed >= self.next
    }

    /// Puts the next news off.
    pub(super) fn wait(&mut self, passed: Duration, cost: Duration) {
        let usual = if passed < INTERVAL { passed } else { INTERVAL };
        self.next = passed + usual.max(REPORTING * cost);
    }

    /// What a search has found, and the turn that it would choose now. Nothing at the beginning of a stage that is not the first:
    /// the one before knew better.
    pub(super) fn tell(&self, search: &Search, passed: Duration) -> (Vec<Info>, Option<String>) {
        let report = search.report(self.lines);
        if self.visits > 0 && report.visits < FEW {
            return (Vec::new(), None);
        }
        let infos = infos(&report, self.visits, passed, self.lines);
        let best = report.line.into_iter().next().map(|turn| turn.turn);
        (infos, best)
    }

    /// The turn that a search would choose now, if it has found any.
    pub(super) fn best(search: &Search) -> Option<String> {
        let line = search.report(1).line;
        line.into_iter().next().map(|turn| turn.turn)
    }

    /// Whether this is the first stage.
    pub(super) fn is_at_first_stage(&self) -> bool {
        self.visits == 0
    }

    /// Whether simulations are so many steps deep on average.
    pub(super) fn is_deep(&mut self, search: &Search, steps: u32, passed: Duration) -> bool {
        if passed < self.next_depth {
            return false;
        }
        // Deeper searches grow slowly: there is no need to look often.
        self.next_depth = passed + (passed / REPORTING).max(Duration::from_millis(1));
        STEPS * search.report(1).depth.mean >= f64::from(steps)
    }
}

fn infos(report: &SearchReport, visits: u64, passed: Duration, lines: usize) -> Vec<Info> {
    let mut infos = vec![
        Info::Depth {
            steps: (STEPS * report.depth.mean) as u32,
            goes_on: !report.is_decided,
        },
        Info::Time((100.0 * passed.as_secs_f64()).round() / 100.0),
        Info::Nodes(visits + u64::from(report.visits)),
    ];
    if let Some(value) = report.value {
        infos.push(Info::Score(score(value, report.proven, report.side)));
        infos.push(other("winchance", format!("{:.1}%", 100.0 * value)));
    }
    let line = report.line.iter().map(|turn| turn.turn.as_str());
    if !report.line.is_empty() {
        infos.push(Info::Variation(format_variation(report.side, line)));
    }
    if lines > 1 {
        // The chosen turn need not be the most visited one.
        let is_chosen = |turn: &&ReportedTurn| turn.is_chosen;
        let chosen = report.turns.iter().filter(is_chosen);
        let others = report.turns.iter().filter(|turn| !is_chosen(turn));
        for (place, turn) in chosen.chain(others).take(lines).enumerate() {
            infos.push(other("multipv", one_of_many(place + 1, turn, report.side)));
        }
    }
    infos
}

fn other(kind: &str, value: String) -> Info {
    Info::Other {
        kind: kind.to_owned(),
        value,
    }
}

/// One of the best turns: its place, score, visits, and the turn. All in one line, as another `score` or `pv` would be taken for that
/// of the search.
fn one_of_many(place: usize, turn: &ReportedTurn, side: Side) -> String {
    let score = turn.value.map_or_else(String::new, |value| {
        format!(" score {}", score(value, turn.proven, side))
    });
    format!("{place}{score} visits {:.0} pv {}", turn.visits, turn.turn)
}

/// A win probability of `side` as a score from its view: 100 is what a first rabbit is worth.
fn score(value: f32, proven: Option<Proven>, side: Side) -> i64 {
    if let Some(Proven { winner, turns }) = proven {
        let won = WON - i64::from(turns);
        return if winner == side { won } else { -won };
    }
    let value = f64::from(value);
    let odds = (value / (1.0 - value)).ln();
    (100.0 * odds / RABBIT).clamp(-MOST_OPEN, MOST_OPEN).round() as i64
}

/// How open a decision is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Openness {
    /// How much better the chosen turn is than the best other one that was looked at as closely; none where there is no such.
    pub(super) gap: Option<f32>,
    /// Whether the stage before had chosen another turn.
    pub(super) changed: bool,
}

impl Openness {
    /// That of a search which has decided, with the turn that the stage before had chosen.
    pub(super) fn of(search: &Search, before: Option<&str>) -> Self {
        let report = search.report(4);
        let chosen = report.turns.iter().find(|turn| turn.is_chosen);
        let Some(chosen) = chosen else {
            return Self {
                gap: Some(0.0),
                changed: true,
            };
        };
        let as_closely =
            |turn: &&ReportedTurn| !turn.is_chosen && turn.visits >= chosen.visits / 4.0;
        let others = report.turns.iter().filter(as_closely);
        let best = others.filter_map(|turn| turn.value).reduce(f32::max);
        Self {
            gap: best.zip(chosen.value).map(|(best, chosen)| chosen - best),
            changed: before.is_some_and(|before| before != chosen.turn),
        }
    }

    /// Whether more thinking would hardly change the decision.
    pub(super) fn is_clear(&self) -> bool {
        !self.changed && self.gap.is_none_or(|gap| gap >= CLEAR)
    }

    /// Whether more thinking may well change the decision.
    pub(super) fn is_open(&self) -> bool {
        self.changed || self.gap.is_some_and(|gap| gap < OPEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::rules::Game;
    use engine::config::SearchConfig;
    use engine::search::{Material, SearchOptions, run_search};
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    #[test]
    fn a_rabbit_is_a_hundred_and_a_proof_more_than_any_opinion() {
        let of_rabbit = (1.0 / (1.0 + (-RABBIT).exp())) as f32;
        let open = |value| score(value, None, Side::Silver);
        assert_eq!((open(0.5), open(of_rabbit)), (0, 100));
        assert_eq!(open(1.0 - of_rabbit), -100);
        assert_eq!((open(1.0), open(0.0)), (9_000, -9_000));
        let proven = |winner| score(1.0, Some(Proven { winner, turns: 3 }), Side::Silver);
        assert_eq!((proven(Side::Silver), proven(Side::Gold)), (9_997, -9_997));
    }

    #[test]
    fn news_come_soon_and_then_every_second() {
        let mut teller = Teller::new(1);
        let mut times = Vec::new();
        for tenth in 0..50 {
            let passed = Duration::from_millis(100 * tenth);
            if teller.is_due(passed) {
                times.push(tenth);
                teller.wait(passed, Duration::ZERO);
            }
        }
        assert_eq!(times, [1, 2, 4, 8, 16, 26, 36, 46]);
        let slow = Duration::from_millis(200);
        teller.wait(Duration::from_secs(10), slow);
        assert!(!teller.is_due(Duration::from_secs(13)));
        assert!(teller.is_due(Duration::from_secs(14)));
    }

    #[test]
    fn the_chosen_turn_comes_first_though_others_have_more_visits() {
        let text = "g [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]";
        let game = Game::from_position(text.parse().unwrap());
        let options = SearchOptions::strongest(&SearchConfig::default(), 200);
        let mut search = Search::new(game.position(), game.history(), options).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        run_search(
            &mut search,
            &mut Material::default(),
            game.history(),
            &mut rng,
        )
        .unwrap();
        let mut report = search.report(4);
        let last = report.turns.len() - 1;
        for (place, turn) in report.turns.iter_mut().enumerate() {
            turn.is_chosen = place == last;
        }
        let infos = infos(&report, 0, Duration::ZERO, 2);
        let told: Vec<String> = infos.iter().map(Info::to_string).collect();
        let told: Vec<&String> = told
            .iter()
            .filter(|info| info.starts_with("multipv"))
            .collect();
        assert_eq!(told.len(), 2);
        for (number, place) in [(1, last), (2, 0)] {
            assert!(told[number - 1].starts_with(&format!("multipv {number} ")));
            assert!(told[number - 1].ends_with(&report.turns[place].turn));
        }
    }

    #[test]
    fn the_best_turns_are_told_with_the_line() {
        let text = "g [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]";
        let game = Game::from_position(text.parse().unwrap());
        let options = SearchOptions::strongest(&SearchConfig::default(), 200);
        let mut search = Search::new(game.position(), game.history(), options).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut material = Material::default();
        let decision = run_search(&mut search, &mut material, game.history(), &mut rng).unwrap();
        let mut teller = Teller::new(3);
        teller.count(&decision);
        let (infos, best) = teller.tell(&search, Duration::from_millis(1234));
        let written: Vec<String> = infos.iter().map(Info::to_string).collect();
        let has = |start: &str| written.iter().any(|info| info.starts_with(start));
        let best = best.unwrap();
        for start in [
            "depth ",
            "time 1.23",
            "score ",
            "winchance ",
            &format!("pv {best}"),
        ] {
            assert!(has(start), "{start}: {written:?}");
        }
        let nodes = format!("nodes {}", 2 * decision.visits);
        assert!(decision.visits > FEW);
        assert!(has(&nodes), "{nodes}: {written:?}");
        assert!(has("multipv 1 score ") && has("multipv 3 score ") && !has("multipv 4"));
        let first = written.iter().find(|info| info.starts_with("multipv 1 "));
        assert!(first.unwrap().ends_with(&format!(" pv {best}")));
        assert!(infos.contains(&Info::Time(1.23)));
    }
}
