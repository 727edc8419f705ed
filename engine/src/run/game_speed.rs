//! The speed at which a run's games come.

use serde::Serialize;
use std::time::{Duration, SystemTime};

/// The speed is measured over this time.
const RECENTLY: Duration = Duration::from_hours(24);

/// The speed at which games come, by the times at which shards were written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GameSpeed {
    /// Games an hour.
    pub games_an_hour: f64,
    /// Over so many seconds, pauses included …
    pub seconds: f64,
    /// … which ended so many seconds ago.
    pub seconds_since: f64,
}

impl GameSpeed {
    /// Of shards, each with the time when it was written and its number of games, by those of the day before the newest. The games of
    /// the first are left out: they began earlier. None if the shards have one time, as copied ones may.
    pub fn of(shards: &[(SystemTime, f64)], now: SystemTime) -> Option<Self> {
        let newest = shards.iter().map(|(written, _)| *written).max()?;
        let recent = shards.iter().filter(|(written, _)| {
            let before = newest.duration_since(*written);
            before.is_ok_and(|before| before <= RECENTLY)
        });
        let first = recent.clone().min_by_key(|(written, _)| *written)?;
        let seconds = newest.duration_since(first.0).ok()?.as_secs_f64();
        let games: f64 = recent.map(|(_, games)| games).sum();
        (seconds >= 1.0).then(|| Self {
            games_an_hour: (games - first.1) * 3_600.0 / seconds,
            seconds,
            seconds_since: now.duration_since(newest).unwrap_or_default().as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_that_of_the_last_day_without_the_first_shard() {
        let hour = |hours| SystemTime::UNIX_EPOCH + Duration::from_hours(hours);
        let shards = [(10, 99.0), (102, 40.0), (100, 60.0), (105, 80.0)];
        let shards = shards.map(|(hours, games)| (hour(hours), games));
        let expected = GameSpeed {
            games_an_hour: 24.0,
            seconds: 5.0 * 3_600.0,
            seconds_since: 3_600.0,
        };
        assert_eq!(GameSpeed::of(&shards, hour(106)), Some(expected));
        assert_eq!(GameSpeed::of(&shards[..1], hour(106)), None);
        assert_eq!(GameSpeed::of(&[], hour(106)), None);
        assert_eq!(GameSpeed::of(&[(hour(10), 99.0); 2], hour(9)), None);
    }
}
