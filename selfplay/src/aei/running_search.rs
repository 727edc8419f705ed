//! A running search, as the session sees it.

use super::clock::Times;
use arimaa::aei::Info;
use arimaa::rules::Side;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The wait after `stop` before the best turn so far is played, if the search is held up.
const STOP_TIMEOUT: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(super) struct RunningSearch {
    pub(super) number: u64,
    pub(super) flag: Arc<AtomicBool>,
    pub(super) side: Side,
    /// The start of the turn's clock: earlier than `go` if the controller reports used time.
    pub(super) begun: Instant,
    pub(super) has_clock: bool,
    /// Whether it is the opponent's turn.
    pub(super) ponders: bool,
    /// Whether the turn is held until `stop`: while pondering, and in an analysis without clock and limits.
    pub(super) holds: bool,
    /// Whether the controller has sent `stop`, and waits for the turn.
    pub(super) is_stopped: bool,
    /// The held turn.
    pub(super) decided: Option<String>,
    /// The best turn so far; at first a turn to fall back on.
    pub(super) best: Option<String>,
    /// The first turn of the principal variation that was reported last.
    told: Option<String>,
    /// When to stop the search.
    pub(super) stop_at: Option<Instant>,
    /// When to play the best turn so far, even if the search is held up.
    pub(super) play_at: Option<Instant>,
}

impl RunningSearch {
    /// A search without a clock, requested at an instant.
    pub(super) fn new(number: u64, side: Side, asked: Instant, ponders: bool) -> Self {
        Self {
            number,
            flag: Arc::new(AtomicBool::new(false)),
            side,
            begun: asked,
            has_clock: false,
            ponders,
            holds: ponders,
            is_stopped: false,
            decided: None,
            best: None,
            told: None,
            stop_at: None,
            play_at: None,
        }
    }

    /// Sets the times, counted from an instant. A search that was told to end gets no more time.
    pub(super) fn keep_to(&mut self, times: &Times, from: Instant) {
        self.has_clock = true;
        // In the middle of the time that is kept free.
        let play_at = from + (times.most + times.end) / 2;
        if self.flag.load(Relaxed) {
            self.play_at = self.play_at.map(|at| at.min(play_at));
        } else {
            self.stop_at = Some(from + times.most);
            self.play_at = Some(play_at);
        }
    }

    /// Sets the seconds that the turn had used at an instant. Controllers round them down, so the clock never moves later.
    pub(super) fn has_used(&mut self, seconds: f64, at: Instant) {
        let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let begun = at.checked_sub(seconds).unwrap_or(at);
        self.begun = self.begun.min(begun);
    }

    /// The next time limit.
    pub(super) fn alarm(&self) -> Option<Instant> {
        [self.stop_at, self.play_at].into_iter().flatten().min()
    }

    /// Ends the search soon, or returns the held turn.
    pub(super) fn stop(&mut self) -> Option<String> {
        (self.ponders, self.holds) = (false, false);
        self.is_stopped = true;
        self.end();
        let soon = Instant::now() + STOP_TIMEOUT;
        self.stop_at = None;
        self.play_at = Some(self.play_at.map_or(soon, |at| at.min(soon)));
        self.decided.take()
    }

    /// Tells the search to end.
    pub(super) fn end(&self) {
        self.flag.store(true, Relaxed);
    }

    /// Notes the principal variation of a report.
    pub(super) fn note(&mut self, info: &Info) {
        if let Info::Variation(line) = info {
            // The opponent's turns follow its side's letter.
            let opponent = format!(" {} ", self.side.opponent().letter());
            let first = line.split(opponent.as_str()).next();
            self.told = first.map(str::to_owned);
        }
    }

    /// Whether the principal variation that was reported last begins with another turn.
    pub(super) fn has_told_another(&self, turn: &str) -> bool {
        self.told.as_deref().is_some_and(|told| told != turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_be_moved_until_the_search_is_told_to_end() {
        let seconds = Duration::from_secs;
        let times = |most, end| Times {
            target: seconds(1),
            most: seconds(most),
            end: seconds(end),
            saves: true,
        };
        let begun = Instant::now();
        let mut running = RunningSearch::new(1, Side::Gold, begun, false);
        assert_eq!(running.alarm(), None);
        running.keep_to(&times(80, 100), begun);
        assert_eq!(running.alarm(), Some(begun + seconds(80)));
        assert_eq!(running.play_at, Some(begun + seconds(90)));
        running.keep_to(&times(180, 200), begun);
        assert_eq!(running.alarm(), Some(begun + seconds(180)));
        assert_eq!(running.stop(), None);
        let soon = running.alarm().unwrap();
        assert!(soon < begun + seconds(80));
        running.keep_to(&times(380, 400), begun);
        assert_eq!(running.alarm(), Some(soon));
    }

    #[test]
    fn the_clock_of_a_turn_began_with_the_search_or_before() {
        let asked = Instant::now();
        let mut running = RunningSearch::new(1, Side::Gold, asked, false);
        let seconds = Duration::from_secs;
        running.has_used(0.0, asked + seconds(3));
        assert_eq!(running.begun, asked);
        running.has_used(5.0, asked + seconds(3));
        assert_eq!(running.begun, asked - seconds(2));
        running.has_used(5.0, asked + seconds(4));
        assert_eq!(running.begun, asked - seconds(2));
    }

    #[test]
    fn the_turn_that_was_reported_last_is_known() {
        let mut running = RunningSearch::new(1, Side::Silver, Instant::now(), false);
        assert!(!running.has_told_another("ee7s"));
        running.note(&Info::Variation("ee7s ee6s g Ee2n s ee5s".into()));
        running.note(&Info::Nodes(3));
        assert!(!running.has_told_another("ee7s ee6s"));
        assert!(running.has_told_another("ee7s"));
    }
}
