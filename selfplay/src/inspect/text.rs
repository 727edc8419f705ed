//! The report for people: a name, then what there is under it, line by line.

use super::report::{Report, RowMeans, SearchMeans, Version};
use crate::statistics::text::{calibration, line, percent};
use std::fmt::{self, Display, Formatter};

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let a_row = Optional(self.bytes_per_row, |bytes| {
            format!(", {bytes:.1} bytes a row")
        });
        let kib = self.bytes as f64 / 1024.0;
        line(
            f,
            "shards",
            format_args!("{} ({kib:.1} KiB{a_row})", self.shards),
        )?;
        let starts = self.starts;
        let begun = listed(&[
            (starts.empty, "from the empty board"),
            (starts.fork, "forked"),
            (starts.opening, "after given openings"),
            (starts.position, "from given positions"),
        ]);
        line(f, "games", format_args!("{}{begun}", self.games))?;
        self.lengths(f)?;
        self.endings(f)?;
        let origins = self.origins;
        let chosen = listed(&[
            (origins.full, "searched in full"),
            (origins.fast, "searched fast"),
            (origins.policy, "drawn from the policy"),
            (origins.given, "given"),
        ]);
        line(f, "turns", format_args!("{}{chosen}", self.turns))?;
        searches(f, "full", &self.full_searches)?;
        searches(f, "fast", &self.fast_searches)?;
        let weightless = self.policy.weightless;
        line(
            f,
            "rows",
            format_args!("{}, {weightless} of weight 0", self.rows),
        )?;
        rows(f, "setups", &self.setup_policy)?;
        rows(f, "play", &self.play_policy)?;
        calibration(f, "search", &self.search_calibration)?;
        calibration(f, "network", &self.network_calibration)?;
        for total in &self.evaluators {
            let name = printable(&total.evaluator.name);
            let identity = printable(&total.evaluator.identity);
            let (games, turns) = (total.games, total.turns);
            line(
                f,
                "evaluator",
                format_args!("{name} ({identity}): {turns} turns in {games} games"),
            )?;
        }
        versions(f, "format", &self.versions.format)?;
        versions(f, "encoding", &self.versions.encoding)?;
        versions(f, "program", &self.versions.program)?;
        versions(f, "config", &self.versions.config)?;
        line(f, "bad frames", format_args!("{}", self.bad_frames))?;
        for repaired in &self.repaired {
            line(f, "repair", format_args!("{repaired}"))?;
        }
        Ok(())
    }
}

impl Report {
    fn lengths(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (Some(lengths), Some(mean)) = (&self.lengths, self.mean_turns) else {
            return Ok(());
        };
        let (median, longest) = (lengths.median, lengths.longest);
        let (p10, p90) = (lengths.p10, lengths.p90);
        line(
            f,
            "lengths",
            format_args!(
                "mean {mean:.1} turns, median {median}, 10% to 90% {p10} to {p90}, longest {longest}"
            ),
        )?;
        let most = lengths.distribution.iter().map(|range| range.games).max();
        for range in &lengths.distribution {
            let width = (range.games * 40).div_ceil(most.unwrap_or(1).max(1));
            let bar = "#".repeat(width as usize);
            let turns = match (range.from, range.to) {
                (from, to) if from == to => from.to_string(),
                (from, to) => format!("{from} to {to}"),
            };
            let row = format!("{turns:>11} {:>8} {bar}", range.games);
            line(f, "", format_args!("{}", row.trim_end()))?;
        }
        Ok(())
    }

    fn endings(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let endings = self.endings;
        let list = [
            (endings.goal, "by goal"),
            (endings.elimination, "by elimination"),
            (endings.immobilization, "by immobilization"),
            (endings.resigned, "resigned"),
            (endings.forfeited, "forfeited"),
            (self.unfinished, "unfinished"),
        ]
        .map(|(games, way)| format!("{games} {way}"));
        line(f, "endings", format_args!("{}", list.join(", ")))?;
        if let (Some(share), Some(interval)) = (self.gold_share, self.gold_share_interval) {
            let (part, whole) = (self.gold_wins, self.games - self.unfinished);
            let share = percent(share, interval);
            line(f, "won by Gold", format_args!("{part} of {whole}, {share}"))?;
        }
        let waived = &self.resignations;
        if let (Some(rate), Some(interval)) = (waived.error_rate, waived.error_rate_interval) {
            line(
                f,
                "resignation",
                format_args!(
                    "waived in {} games, not lost in {} ({} unfinished), {}",
                    waived.waived,
                    waived.not_lost,
                    waived.not_lost_unfinished,
                    percent(rate, interval)
                ),
            )?;
        }
        Ok(())
    }
}

/// A number as text, or nothing.
struct Optional<Format: Fn(f64) -> String>(Option<f64>, Format);

impl<Format: Fn(f64) -> String> Display for Optional<Format> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |number| f.write_str(&self.1(number)))
    }
}

/// A text out of a shard, without what would move a terminal's cursor.
pub(super) fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{FFFD}")
}

/// What there is some of, behind a colon.
fn listed(counts: &[(u64, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match parts.as_slice() {
        [] => String::new(),
        parts => format!(": {}", parts.join(", ")),
    }
}

fn searches(f: &mut Formatter<'_>, kind: &str, means: &SearchMeans) -> fmt::Result {
    let Some(visits) = means.visits else {
        return Ok(());
    };
    let evaluations = Optional(means.evaluations, |mean| format!(", {mean:.1} evaluations"));
    let budget = Optional(means.budget, |mean| format!(" of {mean:.1} allowed"));
    let proven = Optional(means.proven, |share| {
        format!(", {:.1}% proven", 100.0 * share)
    });
    line(
        f,
        "",
        format_args!("{kind:<8}mean {visits:.1} visits{evaluations}{budget}{proven}"),
    )
}

fn rows(f: &mut Formatter<'_>, kind: &str, means: &RowMeans) -> fmt::Result {
    let (Some(entropy), Some(surprise), Some(weight)) =
        (means.entropy, means.surprise, means.weight)
    else {
        return Ok(());
    };
    let rows = means.rows;
    line(
        f,
        "",
        format_args!(
            "{kind:<8}{rows}: entropy {entropy:.3} nats, surprise {surprise:.3} nats, weight {weight:.3}"
        ),
    )
}

fn versions<Name: Display>(
    f: &mut Formatter<'_>,
    of: &str,
    versions: &[Version<Name>],
) -> fmt::Result {
    for version in versions {
        let name = printable(&version.version.to_string());
        let (shards, games) = (version.shards, version.games);
        line(
            f,
            of,
            format_args!("{name}: {games} games in {shards} shards"),
        )?;
    }
    Ok(())
}
