//! `--max-memory`: fewer games at once while the program takes too much memory.

use std::time::Duration;

/// Time for a change to take effect before the next one.
const CHANGE_INTERVAL: Duration = Duration::from_secs(5);

/// With a single game a worker, how long the program may stay above its limit.
const STOP_DELAY: Duration = Duration::from_secs(60);

/// Below this share of the limit, more games are played again.
const RAISE_BELOW: f64 = 0.8;

/// Keeps the program's memory within a limit by how many games each worker plays at once.
#[derive(Debug)]
pub(super) struct MemoryGuard {
    limit_mib: f64,
    /// Games at once: configured, and allowed now.
    most: usize,
    room: usize,
    last_change: Duration,
    /// Since when the memory is above the limit, if it is.
    above_since: Option<Duration>,
}

/// What to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// Nothing.
    Unchanged,
    /// Play so many games at once.
    Play(usize),
    /// Stop: a single game a worker exceeds the limit.
    Stop,
}

impl MemoryGuard {
    /// A limit in MiB for a program whose workers play `games_in_flight` games at once.
    pub(super) fn new(limit_mib: u64, games_in_flight: usize) -> Self {
        Self {
            limit_mib: limit_mib as f64,
            most: games_in_flight,
            room: games_in_flight,
            last_change: Duration::ZERO,
            above_since: None,
        }
    }

    /// What to change with so many MiB resident, at a time since the start.
    pub(super) fn advise(&mut self, resident_mib: f64, now: Duration) -> Advice {
        let is_above = resident_mib > self.limit_mib;
        let above_since = is_above.then(|| self.above_since.unwrap_or(now));
        self.above_since = above_since;
        if now.saturating_sub(self.last_change) < CHANGE_INTERVAL {
            return Advice::Unchanged;
        }
        let room = if let Some(above_since) = above_since {
            match self.room {
                1 if now.saturating_sub(above_since.max(self.last_change)) >= STOP_DELAY => {
                    return Advice::Stop;
                }
                room => (room * 3 / 4).max(1),
            }
        } else if resident_mib < RAISE_BELOW * self.limit_mib {
            (self.room + self.room.div_ceil(16)).min(self.most)
        } else {
            self.room
        };
        if room == self.room {
            return Advice::Unchanged;
        }
        (self.room, self.last_change) = (room, now);
        Advice::Play(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn games_are_suspended_and_resumed() {
        let mut guard = MemoryGuard::new(1_000, 64);
        assert_eq!(guard.advise(999.0, seconds(10)), Advice::Unchanged);
        assert_eq!(guard.advise(1_001.0, seconds(11)), Advice::Play(48));
        assert_eq!(
            guard.advise(1_001.0, seconds(12)),
            Advice::Unchanged,
            "it takes time"
        );
        assert_eq!(guard.advise(1_001.0, seconds(16)), Advice::Play(36));
        assert_eq!(
            guard.advise(900.0, seconds(30)),
            Advice::Unchanged,
            "close to the limit"
        );
        assert_eq!(guard.advise(700.0, seconds(31)), Advice::Play(39));
        let last = (40..200).map(|second| guard.advise(700.0, seconds(second)));
        let rooms: Vec<Advice> = last.filter(|&advice| advice != Advice::Unchanged).collect();
        assert_eq!(rooms.last(), Some(&Advice::Play(64)));
    }

    #[test]
    fn a_single_game_above_the_limit_ends_the_generator() {
        let mut guard = MemoryGuard::new(10, 2);
        assert_eq!(guard.advise(50.0, seconds(5)), Advice::Play(1));
        for second in 6..65 {
            assert_eq!(guard.advise(50.0, seconds(second)), Advice::Unchanged);
        }
        assert_eq!(guard.advise(50.0, seconds(65)), Advice::Stop);
    }

    #[test]
    fn a_peak_of_a_single_game_does_not_end_the_generator() {
        let mut guard = MemoryGuard::new(10, 1);
        for second in 0..550 {
            let resident = if second % 100 == 99 { 50.0 } else { 9.0 };
            assert_eq!(guard.advise(resident, seconds(second)), Advice::Unchanged);
        }
        for second in 550..610 {
            assert_eq!(guard.advise(50.0, seconds(second)), Advice::Unchanged);
        }
        assert_eq!(guard.advise(50.0, seconds(610)), Advice::Stop);
    }
}
