//! The reports of a running search to the controller.

use arimaa::aei::{Info, format_variation};
use arimaa::rules::Side;
use engine::search::{Decision, Proven, ReportedTurn, Search, SearchReport};
use std::time::Duration;

/// Steps in a whole turn.
const STEPS: f64 = 4.0;

/// The time of a search's first report. The time doubles up to a second; then reports follow each second.
const FIRST: Duration = Duration::from_millis(100);
const INTERVAL: Duration = Duration::from_secs(1);
/// A later stage with fewer simulations reports nothing: the stage before knew better.
const FEW: u32 = 100;
/// Reports take at most this fraction of the time, 1 / `REPORTING`.
const REPORTING: u32 = 20;

/// The logarithm of the odds that a rabbit is worth at the start of a game, as `material` counts it. The protocol's scores are
/// hundredths of that.
const RABBIT: f64 = 0.35;
/// The score of a proven win, less the turns to it; other scores are smaller.
const WON: i64 = 10_000;
const MAX_OPEN: f64 = 9_000.0;

/// Reports what a search has found.
#[derive(Debug)]
pub(super) struct Reporter {
    lines: usize,
    next: Duration,
    next_depth: Duration,
    /// Simulations of the stages before.
    visits: u64,
}

impl Reporter {
    /// One that reports so many turns.
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

    /// Whether a report is due.
    pub(super) fn is_due(&self, passed: Duration) -> bool {
        passed >= self.next
    }

    /// Sets the time of the next report, after one that took `cost`.
    pub(super) fn wait(&mut self, passed: Duration, cost: Duration) {
        let usual = if passed < INTERVAL { passed } else { INTERVAL };
        self.next = passed + usual.max(REPORTING * cost);
    }

    /// What a search has found, and the turn that it would choose now. Nothing at the beginning of a later stage.
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
        // The depth grows slowly: it need not be checked often.
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
    (100.0 * odds / RABBIT).clamp(-MAX_OPEN, MAX_OPEN).round() as i64
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
    fn a_rabbit_is_a_hundred_and_a_proof_more_than_any_estimate() {
        let of_rabbit = (1.0 / (1.0 + (-RABBIT).exp())) as f32;
        let open = |value| score(value, None, Side::Silver);
        assert_eq!((open(0.5), open(of_rabbit)), (0, 100));
        assert_eq!(open(1.0 - of_rabbit), -100);
        assert_eq!((open(1.0), open(0.0)), (9_000, -9_000));
        let proven = |winner| score(1.0, Some(Proven { winner, turns: 3 }), Side::Silver);
        assert_eq!((proven(Side::Silver), proven(Side::Gold)), (9_997, -9_997));
    }

    #[test]
    fn reports_come_soon_and_then_every_second() {
        let mut reporter = Reporter::new(1);
        let mut times = Vec::new();
        for tenth in 0..50 {
            let passed = Duration::from_millis(100 * tenth);
            if reporter.is_due(passed) {
                times.push(tenth);
                reporter.wait(passed, Duration::ZERO);
            }
        }
        assert_eq!(times, [1, 2, 4, 8, 16, 26, 36, 46]);
        let slow = Duration::from_millis(200);
        reporter.wait(Duration::from_secs(10), slow);
        assert!(!reporter.is_due(Duration::from_secs(13)));
        assert!(reporter.is_due(Duration::from_secs(14)));
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
    fn the_best_turns_are_reported_with_the_principal_variation() {
        let text = "g [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]";
        let game = Game::from_position(text.parse().unwrap());
        let options = SearchOptions::strongest(&SearchConfig::default(), 200);
        let mut search = Search::new(game.position(), game.history(), options).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut material = Material::default();
        let decision = run_search(&mut search, &mut material, game.history(), &mut rng).unwrap();
        let mut reporter = Reporter::new(3);
        reporter.count(&decision);
        let (infos, best) = reporter.tell(&search, Duration::from_millis(1234));
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
