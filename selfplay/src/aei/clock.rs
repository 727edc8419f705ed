//! The time for a turn.
//!
//! Time controls of the game server (and of the referees that follow it): each turn has `tcmove` seconds. `tcpercent` of the unused
//! time goes to the reserve, up to `tcmax`; time beyond `tcmove` comes from the reserve, and a side without reserve loses.
//! `tcturntime` limits a single turn and `tctotal` the whole game.
//!
//! A turn gets a target, most of its own time and a little of the reserve, and a maximum, up to which the search lasts while the
//! decision is open. A reserve that was not stated is not spent: the delay of messages is not known here. The maximum keeps a margin
//! to the end of the time: for messages in flight, for a busy machine, and for work that a search can't interrupt.

use arimaa::rules::Side;
use std::time::Duration;

/// The controller's time options in seconds; 0 is no limit unless [`StandardOption`](arimaa::aei::StandardOption) says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnClock {
    pub(super) of_turn: f64,
    pub(super) reserve: f64,
    pub(super) percent: f64,
    pub(super) most_reserve: f64,
    pub(super) of_game: f64,
    pub(super) turns_of_game: u32,
    pub(super) most_of_turn: f64,
    /// The reserves of Gold and of Silver that the controller has stated.
    pub(super) reserves: [Option<f64>; 2],
    /// The remaining reserves by the turns counted since the last statement.
    pub(super) counted: [Option<f64>; 2],
    /// The used time of the turn that is due.
    pub(super) used: f64,
}

impl Default for TurnClock {
    fn default() -> Self {
        Self {
            of_turn: 0.0,
            reserve: 0.0,
            percent: 100.0,
            most_reserve: 0.0,
            of_game: 0.0,
            turns_of_game: 0,
            most_of_turn: 0.0,
            reserves: [None; 2],
            counted: [None; 2],
            used: 0.0,
        }
    }
}

/// The times of a turn from its `go` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    /// The duration if the decision is neither clear nor open.
    pub(super) target: Duration,
    /// The longest duration; not less than the target.
    pub(super) most: Duration,
    /// The end of the time.
    pub(super) end: Duration,
    /// Whether unused time can be used later.
    pub(super) saves: bool,
}

/// The reserve is divided as if so many turns of a side remained.
const TURNS_AHEAD: f64 = 30.0;
/// The part of a turn's own time that is its target.
const USUAL_PART: f64 = 0.8;
/// The part of the reserve that an open decision may take.
const RESERVE_PART: f64 = 0.2;
/// The part of the time that is kept free besides the lag, up to a number of seconds.
const FREE_PART: f64 = 0.02;
const MAX_FREE: f64 = 1.0;
/// The shortest duration in seconds: even without time the search must find a turn.
const MIN_SECONDS: f64 = 0.001;

impl TurnClock {
    /// The times of a side's turn; none without a limit. `lag` is the allowance for messages and a busy machine, `passed` the duration
    /// of the game so far, both in seconds, and `turn` the turn's number from 1.
    pub(super) fn times(&self, side: Side, lag: f64, passed: f64, turn: u32) -> Option<Times> {
        let reserve = self.reserve_of(side);
        let own = (self.of_turn - self.used).max(0.0);
        // If one side has a reserve, the other has used up its own.
        let mut reserves = self.reserves.into_iter().flatten();
        let has_base =
            self.of_turn > 0.0 || self.reserve > 0.0 || reserves.any(|reserve| reserve > 0.0);
        let limits = [
            has_base.then_some(self.of_turn + reserve - self.used),
            (self.most_of_turn > 0.0).then_some(self.most_of_turn - self.used),
            (self.of_game > 0.0).then_some(self.of_game - passed),
        ];
        let end = limits
            .into_iter()
            .flatten()
            .reduce(f64::min)?
            .max(MIN_SECONDS);
        let margin = (lag + FREE_PART * end.min(MAX_FREE / FREE_PART)).min(end / 2.0);
        let turns_ahead = match self.turns_of_game {
            0 => TURNS_AHEAD,
            turns => f64::from((turns + 1).saturating_sub(turn)).clamp(1.0, TURNS_AHEAD),
        };
        let saves = if has_base {
            self.of_turn == 0.0
                || self.percent > 0.0 && (self.most_reserve == 0.0 || reserve < self.most_reserve)
        } else {
            self.of_game > 0.0
        };
        let (target, most) = if has_base {
            let usual = if saves { USUAL_PART * own } else { own };
            let target = usual + reserve / turns_ahead;
            (target, target.max(own + RESERVE_PART * reserve))
        } else if self.of_game > 0.0 {
            let share = (self.of_game - passed).max(0.0) / turns_ahead;
            (share, 3.0 * share)
        } else {
            (end, end)
        };
        let most = most.min(end - margin).max(MIN_SECONDS);
        Some(Times {
            target: seconds(target.clamp(MIN_SECONDS, most)),
            most: seconds(most),
            end: seconds(end),
            saves,
        })
    }

    /// Counts a turn of a side, for controllers that don't state the remaining reserve: each turn as if messages had taken `lag` more. The
    /// reserve never exceeds the stated one.
    pub(super) fn count(&mut self, side: Side, used: f64, lag: f64) {
        let place = side.index();
        let told = self.reserves[place].unwrap_or(self.reserve).max(0.0);
        let unused = self.of_turn - used - lag;
        let change = if unused > 0.0 {
            unused * self.percent / 100.0
        } else {
            unused
        };
        let left = self.reserve_of(side);
        let most = match self.most_reserve {
            0.0 => told,
            most => most.max(left).min(told),
        };
        self.counted[place] = Some((left + change).clamp(0.0, most));
    }

    /// Sets the reserve that both sides begin with, and discards the counted ones.
    pub(super) fn begin_with(&mut self, reserve: f64) {
        self.reserve = reserve;
        self.counted = [None; 2];
    }

    /// Sets a side's remaining reserve.
    pub(super) fn tell(&mut self, side: Side, reserve: f64) {
        self.reserves[side.index()] = Some(reserve);
        self.counted[side.index()] = None;
    }

    /// Begins a new game with the first reserves.
    pub(super) fn new_game(&mut self) {
        self.reserves = [None; 2];
        self.counted = [None; 2];
        self.used = 0.0;
    }

    fn reserve_of(&self, side: Side) -> f64 {
        let place = side.index();
        let known = self.counted[place].or(self.reserves[place]);
        known.unwrap_or(self.reserve).max(0.0)
    }
}

fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number.clamp(MIN_SECONDS, 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: f64 = 0.1;

    fn clock(of_turn: f64, reserve: f64) -> TurnClock {
        TurnClock {
            of_turn,
            reserve,
            ..TurnClock::default()
        }
    }

    fn times(clock: &TurnClock) -> [f64; 3] {
        let times = clock.times(Side::Gold, LAG, 0.0, 3).unwrap();
        assert!(times.target <= times.most && times.most <= times.end);
        [times.target, times.most, times.end].map(|time| time.as_secs_f64())
    }

    #[test]
    fn without_a_clock_there_is_no_limit() {
        assert_eq!(TurnClock::default().times(Side::Gold, LAG, 5.0, 1), None);
        // The turns of a game are no time, and what was used of a turn limits nothing by itself.
        let turns = TurnClock {
            turns_of_game: 80,
            used: 3.0,
            ..TurnClock::default()
        };
        assert_eq!(turns.times(Side::Gold, LAG, 5.0, 1), None);
    }

    #[test]
    fn a_side_that_has_used_its_reserve_up_has_a_clock_where_the_other_has_one() {
        let mut clock = TurnClock::default();
        clock.tell(Side::Gold, 0.0);
        clock.tell(Side::Silver, 0.0);
        assert_eq!(clock.times(Side::Gold, LAG, 0.0, 3), None);
        clock.tell(Side::Silver, 5.0);
        let [_, most, end] = times(&clock);
        assert!(most <= end && end <= 2.0 * MIN_SECONDS, "{most} {end}");
    }

    #[test]
    fn a_turn_without_reserve_ends_before_its_own_time() {
        let [target, most, end] = times(&clock(1.0, 0.0));
        assert_eq!(end, 1.0);
        assert!((0.7..=0.85).contains(&target), "{target}");
        assert!((0.8..=0.9).contains(&most), "{most}");
        let used = TurnClock {
            used: 0.6,
            ..clock(1.0, 0.0)
        };
        let [_, most, end] = times(&used);
        assert!((end - 0.4).abs() < 1e-9 && most < 0.3, "{most} {end}");
    }

    #[test]
    fn the_margin_is_kept_for_all_options() {
        for of_turn in [0.0, 0.2, 1.0, 30.0, 1e8] {
            for reserve in [0.0, 0.05, 10.0, 1e9] {
                for (of_game, most_of_turn, used) in [
                    (0.0, 0.0, 0.0),
                    (5.0, 0.0, 0.0),
                    (0.0, 3.0, 2.0),
                    (9.0, 1.0, 40.0),
                ] {
                    let clock = TurnClock {
                        of_game,
                        most_of_turn,
                        used,
                        ..clock(of_turn, reserve)
                    };
                    let Some(times) = clock.times(Side::Silver, LAG, 4.0, 7) else {
                        assert_eq!(
                            (of_turn, reserve, of_game, most_of_turn),
                            (0.0, 0.0, 0.0, 0.0)
                        );
                        continue;
                    };
                    let (most, end) = (times.most.as_secs_f64(), times.end.as_secs_f64());
                    assert!(times.target <= times.most, "{clock:?}");
                    assert!(
                        most <= (end - LAG.min(end / 2.0)).max(MIN_SECONDS) + 1e-6,
                        "{clock:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_reserve_is_spent_a_little_at_a_time() {
        let [target, most, end] = times(&clock(10.0, 60.0));
        assert_eq!(end, 70.0);
        assert!((9.0..12.0).contains(&target), "{target}");
        assert!((20.0..25.0).contains(&most), "{most}");
        let [target, most, _] = times(&clock(0.0, 300.0));
        assert!((5.0..15.0).contains(&target), "{target}");
        assert!(most <= 60.0, "{most}");
    }

    #[test]
    fn the_stated_reserve_counts_and_not_the_first_one() {
        let told = TurnClock {
            reserves: [Some(0.0), Some(100.0)],
            ..clock(2.0, 50.0)
        };
        let end = |side| told.times(side, LAG, 0.0, 3).unwrap().end.as_secs_f64();
        assert_eq!((end(Side::Gold), end(Side::Silver)), (2.0, 102.0));
        let below = TurnClock {
            reserves: [Some(-5.0), None],
            ..clock(2.0, 50.0)
        };
        let end = below.times(Side::Gold, LAG, 0.0, 3).unwrap().end;
        assert_eq!(end, Duration::from_secs(2));
    }

    #[test]
    fn time_is_saved_only_if_it_can_be_used_later() {
        let saves = |clock: &TurnClock| clock.times(Side::Gold, LAG, 0.0, 3).unwrap().saves;
        let full = TurnClock {
            most_reserve: 20.0,
            ..clock(5.0, 20.0)
        };
        let lost = TurnClock {
            percent: 0.0,
            ..clock(5.0, 20.0)
        };
        assert!(saves(&clock(5.0, 20.0)));
        assert!(!saves(&full) && !saves(&lost));
        let turn_alone = TurnClock {
            most_of_turn: 10.0,
            ..TurnClock::default()
        };
        assert!(!saves(&turn_alone));
        let game = TurnClock {
            of_game: 100.0,
            ..turn_alone
        };
        assert!(saves(&game));
        assert!(times(&lost)[0] > times(&clock(5.0, 20.0))[0]);
    }

    #[test]
    fn turns_are_counted_as_the_referee_counts_them_but_for_the_lag() {
        let mut counted = TurnClock {
            percent: 50.0,
            ..clock(4.0, 10.0)
        };
        let reserves = |clock: &TurnClock| Side::ALL.map(|side| clock.reserve_of(side));
        counted.count(Side::Gold, 6.0, 0.5);
        assert_eq!(reserves(&counted), [7.5, 10.0]);
        counted.count(Side::Gold, 1.5, 0.5);
        // It grows, and never beyond the stated reserve.
        counted.count(Side::Silver, 0.0, 0.5);
        assert_eq!(reserves(&counted), [8.5, 10.0]);
        counted.most_reserve = 9.0;
        counted.count(Side::Gold, 0.0, 0.5);
        assert_eq!(reserves(&counted), [9.0, 10.0]);
        // A stated reserve replaces the counted one.
        counted.tell(Side::Gold, 5.0);
        counted.count(Side::Gold, 4.5, 0.5);
        assert_eq!(reserves(&counted), [4.0, 10.0]);
        counted.count(Side::Gold, 500.0, 0.5);
        assert_eq!(reserves(&counted), [0.0, 10.0]);
        counted.new_game();
        assert_eq!(reserves(&counted), [10.0, 10.0]);
        counted.count(Side::Silver, 8.5, 0.5);
        counted.begin_with(20.0);
        assert_eq!(reserves(&counted), [20.0, 20.0]);
    }

    #[test]
    fn a_reserve_that_was_not_stated_is_not_spent() {
        let mut silent = clock(1.0, 0.0);
        let before = times(&silent);
        for _ in 0..100 {
            silent.count(Side::Gold, 0.2, LAG);
        }
        assert_eq!(times(&silent), before);
        silent.tell(Side::Gold, 3.0);
        assert_eq!(times(&silent)[2], 4.0);
        for _ in 0..100 {
            silent.count(Side::Gold, 0.2, LAG);
        }
        assert_eq!(times(&silent)[2], 4.0);
    }

    #[test]
    fn a_removed_clock_leaves_no_reserve() {
        let mut gone = clock(1.0, 0.0);
        gone.count(Side::Gold, 0.5, LAG);
        assert!(gone.times(Side::Gold, LAG, 0.0, 3).is_some());
        gone.of_turn = 0.0;
        assert_eq!(gone.times(Side::Gold, LAG, 0.0, 3), None);
    }
}
