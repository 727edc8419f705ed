//! Counters and a clock for the tests.

use super::snapshot::Moment;
use super::{CacheUses, Counters, NetworkInUse, State};
use std::time::{Duration, UNIX_EPOCH};

/// A generator at work, of which everything is known.
pub(super) fn busy() -> Counters {
    Counters {
        gold_wins: 20,
        silver_wins: 16,
        unfinished: 4,
        resigned: 12,
        game_turns: 3_600,
        resignation_checks: 8,
        resignation_errors: 1,
        games_in_flight: 64,
        turns: 4_120,
        full_turns: 1_030,
        rows: 3_300,
        evaluations: 263_680,
        batches: 1_288,
        largest_batch: 256,
        cache: Some(CacheUses {
            queries: 1_000,
            hits: 250,
        }),
        network: NetworkInUse {
            name: "000012".to_owned(),
            identity: Some("c0ffee".to_owned()),
        },
        networks_loaded: 2,
        shards: 3,
        shard_bytes: 1 << 30,
        disk_used: 3 << 29,
        disk_free: Some(7 << 30),
        memory: Some(5 << 28),
        state: State::Running,
    }
}

/// So many seconds after the start, which was at 2026-11-21T06:30:00Z.
pub(super) fn moment(seconds: f64) -> Moment {
    let since_start = Duration::from_secs_f64(seconds);
    Moment {
        since_start,
        time: UNIX_EPOCH + Duration::from_secs(1_795_242_600) + since_start,
    }
}
