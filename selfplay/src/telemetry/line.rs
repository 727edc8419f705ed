//! The progress line and the last line, as text.

use super::counters::{Counters, State};
use super::snapshot::Snapshot;
use super::window::Change;
use engine::progress::{bytes_in_words, in_words};
use engine::run::DeviceUse;
use std::time::Duration;

/// The progress line, without the number of games before it, which the progress bar adds.
pub(super) fn message(snapshot: &Snapshot) -> String {
    let Snapshot { now, recent, .. } = snapshot;
    let devices = DeviceUse::in_words(&recent.devices(), now.rows_waiting);
    let left = snapshot
        .seconds_left
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .map(|left| format!("{} left", in_words(left)));
    let mut parts = vec!["games".to_owned()];
    parts.extend(pause(&now.state));
    // With a service, its own batches are shown in place of the workers'.
    parts.extend(figures(
        now,
        recent,
        devices.or_else(|| batches(now, recent)),
    ));
    parts.extend(left);
    parts.join(", ")
}

/// The last line: the whole time.
pub(super) fn summary(snapshot: &Snapshot) -> String {
    let Snapshot {
        now, since_start, ..
    } = snapshot;
    let mut parts = vec![format!("{} games", now.games())];
    parts.extend(figures(now, since_start, batches(now, since_start)));
    parts.join(", ")
}

/// Why it does not play now.
fn pause(state: &State) -> Option<String> {
    match state {
        State::Running | State::Ended => None,
        State::WaitingForDisk { reason } => Some(format!("waiting for the disk ({reason})")),
        State::Stopping => Some("stopping".to_owned()),
    }
}

/// How full the workers' batches were.
fn batches(now: &Counters, change: &Change) -> Option<String> {
    let mean = change.mean_batch()?;
    Some(match now.batch_fill(Some(mean)) {
        Some(fill) => format!("batches {} full", percent(fill)),
        None => format!("batches of {mean:.0}"),
    })
}

/// The known figures as words.
fn figures(now: &Counters, change: &Change, batches: Option<String>) -> Vec<String> {
    let mut parts = vec![
        format!("{:.0} turns/s", change.per_second(|now| now.turns)),
        format!(
            "{:.0} evaluations/s",
            change.per_second(|now| now.evaluations)
        ),
    ];
    if let Some(turns) = now.mean_game_turns() {
        parts.push(format!("{turns:.0} turns a game"));
    }
    if let Some(share) = now.gold_share() {
        parts.push(format!("Gold wins {}", percent(share)));
    }
    if now.unfinished > 0 {
        parts.push(format!("{} unfinished", now.unfinished));
    }
    if now.resignation_checks > 0 {
        parts.push(format!(
            "{} of {} checked resignations wrong",
            now.resignation_errors, now.resignation_checks
        ));
    }
    parts.extend(batches);
    if !now.network.name.is_empty() {
        parts.push(format!("network {}", now.network.name));
    }
    parts.push(format!("disk {}", bytes_in_words(now.disk_used)));
    parts
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::counters::Limits;
    use crate::telemetry::snapshot::Reporter;
    use crate::telemetry::testing::{busy, devices, moment};

    fn after_ten_seconds(counters: &Counters, limits: Limits) -> Snapshot {
        Reporter::new(limits, Duration::from_secs(15), &Counters::default())
            .report(counters, moment(10.0))
    }

    #[test]
    fn a_line_has_all_known_figures() {
        let limits = Limits {
            games: Some(200),
            ..Limits::default()
        };
        let snapshot = after_ten_seconds(&busy(), limits);
        let figures = "412 turns/s, 26368 evaluations/s, 90 turns a game, Gold wins 56%, 4 unfinished, \
             1 of 8 checked resignations wrong, batches 80% full, network 000012, disk 1.50 GiB";
        assert_eq!(message(&snapshot), format!("games, {figures}, 40s left"));
        assert_eq!(summary(&snapshot), format!("40 games, {figures}"));
    }

    #[test]
    fn devices_replace_the_workers_batches() {
        let counters = Counters {
            devices: devices(),
            rows_waiting: Some(1_204),
            ..busy()
        };
        let snapshot = after_ten_seconds(&counters, Limits::default());
        let line = message(&snapshot);
        assert!(
            line.contains(
                "wrong, cuda:0 93%, cuda:1 50% busy, batches of 406 (97% full), 1,204 rows wait, network"
            ),
            "{line}"
        );
        let summary = summary(&snapshot);
        assert!(
            summary.contains("wrong, batches 80% full, network"),
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
                "40 games, 103 turns/s, 6592 evaluations/s, {figures}, batches 80% full, {end}"
            )
        );
    }

    #[test]
    fn unknown_figures_are_left_out() {
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
