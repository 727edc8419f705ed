//! What a person reads of a snapshot.

use super::snapshot::Snapshot;
use super::window::ratio;
use engine::progress::{bytes_in_words, in_words};
use network::DeviceUse;
use std::time::Duration;

/// What differs between now and the whole time.
struct Figures {
    /// A second.
    turns: f64,
    /// A second.
    evaluations: f64,
    /// Evaluations.
    mean_batch: Option<f64>,
    /// What the devices did, in words; none where they are not known, or there are none.
    devices: Option<String>,
    /// Hits a query.
    cache_hits: Option<f64>,
}

/// How things go now. The number of games, which stands before it, is left to the progress bar.
pub(super) fn message(snapshot: &Snapshot) -> String {
    let now = Figures {
        turns: snapshot.turns_per_second,
        evaluations: snapshot.evaluations_per_second,
        mean_batch: snapshot.mean_batch,
        devices: DeviceUse::in_words(&snapshot.devices, snapshot.rows_waiting),
        cache_hits: snapshot.cache_hit_share,
    };
    let left = snapshot
        .seconds_left
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .map(|left| format!("{} left", in_words(left)));
    let mut parts = vec!["games".to_owned()];
    parts.extend(state(snapshot));
    parts.extend(in_parts(snapshot, &now));
    parts.extend(left);
    parts.join(", ")
}

/// How things went from the start to the end.
pub(super) fn summary(snapshot: &Snapshot) -> String {
    let quotient = |part: u64, whole: u64| ratio(part as f64, whole as f64);
    let throughout = Figures {
        turns: snapshot.turns_per_second_since_start,
        evaluations: snapshot.evaluations_per_second_since_start,
        mean_batch: quotient(snapshot.evaluations, snapshot.batches),
        devices: None,
        cache_hits: snapshot
            .cache_hits
            .zip(snapshot.cache_queries)
            .and_then(|(hits, queries)| quotient(hits, queries)),
    };
    let mut parts = vec![format!("{} games", snapshot.games)];
    parts.extend(in_parts(snapshot, &throughout));
    parts.join(", ")
}

/// Why it does not play as it should.
fn state(snapshot: &Snapshot) -> Option<String> {
    match (snapshot.state, &snapshot.waiting_reason) {
        (_, Some(reason)) => Some(format!("waiting for the disk ({reason})")),
        ("stopping", None) => Some("stopping".to_owned()),
        _ => None,
    }
}

/// What is known, in words.
fn in_parts(snapshot: &Snapshot, figures: &Figures) -> Vec<String> {
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    let mut parts = vec![
        format!("{:.0} turns/s", figures.turns),
        format!("{:.0} evaluations/s", figures.evaluations),
    ];
    if let Some(turns) = snapshot.mean_game_turns {
        parts.push(format!("{turns:.0} turns a game"));
    }
    if let Some(share) = snapshot.gold_share {
        parts.push(format!("Gold wins {}", percent(share)));
    }
    if snapshot.unfinished > 0 {
        parts.push(format!("{} unfinished", snapshot.unfinished));
    }
    if snapshot.resignation_checks > 0 {
        parts.push(format!(
            "{} of {} checked resignations wrong",
            snapshot.resignation_errors, snapshot.resignation_checks
        ));
    }
    match (&figures.devices, figures.mean_batch, snapshot.largest_batch) {
        // How large the workers' own batches are says little where a service makes others of them.
        (Some(devices), ..) => parts.push(devices.clone()),
        (None, Some(mean), Some(largest)) => {
            parts.push(format!("batches {} full", percent(mean / largest as f64)));
        }
        (None, Some(mean), None) => parts.push(format!("batches of {mean:.0}")),
        (None, None, _) => {}
    }
    if let Some(share) = figures.cache_hits {
        parts.push(format!("{} from the cache", percent(share)));
    }
    if !snapshot.network.is_empty() {
        parts.push(format!("network {}", snapshot.network));
    }
    parts.push(format!("disk {}", bytes_in_words(snapshot.disk_used_bytes)));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::counters::{Counters, Limits, State};
    use crate::telemetry::snapshot::Reporter;
    use crate::telemetry::testing::{busy, devices, moment};

    fn after_ten_seconds(counters: &Counters, limits: Limits) -> Snapshot {
        Reporter::new(limits, Duration::from_secs(15), &Counters::default())
            .report(counters, moment(10.0))
    }

    #[test]
    fn a_line_says_everything_that_is_known() {
        let limits = Limits {
            games: Some(200),
            ..Limits::default()
        };
        let snapshot = after_ten_seconds(&busy(), limits);
        let figures = "412 turns/s, 26368 evaluations/s, 90 turns a game, Gold wins 56%, 4 unfinished, \
             1 of 8 checked resignations wrong, batches 80% full, 25% from the cache, network 000012, disk 1.50 GiB";
        assert_eq!(message(&snapshot), format!("games, {figures}, 40s left"));
        assert_eq!(summary(&snapshot), format!("40 games, {figures}"));
    }

    #[test]
    fn devices_stand_for_the_workers_batches() {
        let counters = Counters {
            devices: devices(),
            rows_waiting: Some(1_204),
            ..busy()
        };
        let snapshot = after_ten_seconds(&counters, Limits::default());
        let line = message(&snapshot);
        assert!(
            line.contains(
                "wrong, cuda:0 93%, cuda:1 50% busy, batches of 406 (97% full), 1,204 rows wait, 25% from"
            ),
            "{line}"
        );
        let summary = summary(&snapshot);
        assert!(
            summary.contains("wrong, batches 80% full, 25% from"),
            "{summary}"
        );
    }

    #[test]
    fn a_line_is_of_now_and_a_summary_of_the_whole_time() {
        let mut reporter = Reporter::new(
            Limits::default(),
            Duration::from_secs(15),
            &Counters::default(),
        );
        reporter.report(&busy(), moment(10.0));
        let idle = reporter.report(&busy(), moment(40.0));
        let figures =
            "90 turns a game, Gold wins 56%, 4 unfinished, 1 of 8 checked resignations wrong";
        let end = "network 000012, disk 1.50 GiB";
        assert_eq!(
            message(&idle),
            format!("games, 0 turns/s, 0 evaluations/s, {figures}, {end}")
        );
        assert_eq!(
            summary(&idle),
            format!(
                "40 games, 103 turns/s, 6592 evaluations/s, {figures}, batches 80% full, 25% from the cache, {end}"
            )
        );
    }

    #[test]
    fn a_line_keeps_silent_about_the_rest() {
        let snapshot = after_ten_seconds(&Counters::default(), Limits::default());
        assert_eq!(
            message(&snapshot),
            "games, 0 turns/s, 0 evaluations/s, disk 0 B"
        );
        let unknown_room = Counters {
            largest_batch: 0,
            ..busy()
        };
        let line = message(&after_ten_seconds(&unknown_room, Limits::default()));
        assert!(line.contains(", batches of 205, "), "{line}");
    }

    #[test]
    fn a_pause_comes_first() {
        let line = |state| {
            let counters = Counters {
                state,
                ..Counters::default()
            };
            message(&after_ten_seconds(&counters, Limits::default()))
        };
        let reason = "shards/000.tmp: no space left".to_owned();
        assert_eq!(
            line(State::WaitingForDisk { reason }),
            "games, waiting for the disk (shards/000.tmp: no space left), 0 turns/s, 0 evaluations/s, disk 0 B"
        );
        assert!(line(State::Stopping).starts_with("games, stopping, 0 turns/s"));
    }
}
