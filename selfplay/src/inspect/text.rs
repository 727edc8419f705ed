//! The summary as text: a name, then its lines.

use super::journals::JournalSummary;
use super::lengths::Lengths;
use super::summary::{Rows, Searches, Setups, ShardSummary, Version};
use crate::output::table;
use crate::statistics::{Mean, line, percent, write_calibration};
use std::fmt::{self, Display, Formatter};

impl Display for ShardSummary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.games(f)?;
        self.turns(f)?;
        write_calibration(f, "search", &self.search_calibration.report())?;
        write_calibration(f, "network", &self.network_calibration.report())?;
        for total in &self.evaluators {
            let name = printable(&total.evaluator.name);
            let identity = printable(&total.evaluator.identity);
            let (games, turns) = (total.games, total.turns);
            let what = format_args!("{name} ({identity}): {turns} turns in {games} games");
            line(f, "evaluator", what)?;
        }
        versions(f, "format", &self.versions.format)?;
        versions(f, "encoding", &self.versions.encoding)?;
        versions(f, "program", &self.versions.program)?;
        versions(f, "config", &self.versions.config)?;
        if self.journal.games > 0 {
            let JournalSummary { games, turns, .. } = &self.journal;
            let what = format_args!("{games} games in flight, {turns} turns");
            line(f, "journal", what)?;
        }
        line(f, "bad frames", format_args!("{}", self.bad_frames))?;
        for repaired in &self.repaired {
            line(f, "repair", format_args!("{repaired}"))?;
        }
        Ok(())
    }
}

impl ShardSummary {
    fn games(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kib = self.bytes as f64 / 1024.0;
        let a_row = self.bytes_per_row;
        let a_row = a_row.map_or_else(String::new, |bytes| format!(", {bytes:.1} bytes a row"));
        let what = format_args!("{} ({kib:.1} KiB{a_row})", self.shards);
        line(f, "shards", what)?;
        let starts = listed(&[
            (self.starts.empty, "from the empty board"),
            (self.starts.fork, "forked"),
            (self.starts.opening, "after given openings"),
            (self.starts.position, "from given positions"),
        ]);
        line(f, "games", format_args!("{}{starts}", self.games))?;
        if let (Some(lengths), Some(mean)) = (&self.lengths, self.mean_turns) {
            write_lengths(f, lengths, mean)?;
        }
        let endings = [
            (self.endings.goal, "by goal"),
            (self.endings.elimination, "by elimination"),
            (self.endings.immobilization, "by immobilization"),
            (self.endings.resigned, "resigned"),
            (self.endings.forfeited, "forfeited"),
            (self.unfinished, "unfinished"),
        ];
        let endings = endings.map(|(games, way)| format!("{games} {way}"));
        line(f, "endings", format_args!("{}", endings.join(", ")))?;
        if let (Some(share), Some(interval)) = (self.gold_share, self.gold_share_interval) {
            let (part, whole) = (self.gold_wins, self.games - self.unfinished);
            let share = percent(share, interval);
            line(f, "won by Gold", format_args!("{part} of {whole}, {share}"))?;
        }
        if let Some(it) = &self.avoidable_losses
            && let (Some(share), Some(interval)) = (it.share, it.share_interval)
        {
            let share = percent(share, interval);
            let what = format_args!(
                "losses: {} of {}, {share}, {} of them by immobilization",
                it.games, it.of, it.by_immobilization
            );
            line(f, "avoidable", what)?;
        }
        let it = &self.resignations;
        if let (Some(rate), Some(interval)) = (it.error_rate, it.error_rate_interval) {
            let (waived, not_lost, unfinished) = (it.waived, it.not_lost, it.not_lost_unfinished);
            let share = percent(rate, interval);
            let what = format_args!(
                "waived in {waived} games, not lost in {not_lost} ({unfinished} unfinished), {share}"
            );
            line(f, "resignation", what)?;
        }
        Ok(())
    }

    fn turns(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let origins = listed(&[
            (self.origins.full, "searched in full"),
            (self.origins.fast, "searched fast"),
            (self.origins.policy, "drawn from the policy"),
            (self.origins.given, "given"),
        ]);
        line(f, "turns", format_args!("{}{origins}", self.turns))?;
        let it = &self.setups;
        if it.gold.turns + it.silver.turns > 0 {
            let different = |setups: &Setups| format!("{} of {}", setups.different, setups.turns);
            let (gold, silver) = (different(&it.gold), different(&it.silver));
            let what = format_args!("{gold} of Gold's differ, {silver} of Silver's");
            line(f, "setups", what)?;
        }
        let header = [
            "",
            "mean visits",
            "mean evaluations",
            "of allowed",
            "proven",
        ];
        let searches = [("full", &self.full_searches), ("fast", &self.fast_searches)];
        let known = searches.into_iter().filter(|(_, it)| it.turns > 0);
        write_table(f, header, known.map(|(kind, it)| searches_row(kind, it)))?;
        let weightless = self.policy.weightless;
        let what = format_args!("{}, {weightless} of weight 0", self.rows);
        line(f, "rows", what)?;
        let header = ["", "rows", "mean entropy", "mean surprise", "mean weight"];
        let rows = [("setups", &self.setup_policy), ("play", &self.play_policy)];
        let known = rows.into_iter().filter(|(_, it)| it.rows > 0);
        write_table(f, header, known.map(|(kind, it)| rows_row(kind, it)))
    }
}

fn write_lengths(f: &mut Formatter<'_>, lengths: &Lengths, mean: f64) -> fmt::Result {
    let (median, longest) = (lengths.median, lengths.longest);
    let (p10, p90) = (lengths.p10, lengths.p90);
    let what = format_args!(
        "mean {mean:.1} turns, median {median}, 10% to 90% {p10} to {p90}, longest {longest}"
    );
    line(f, "lengths", what)?;
    let most = lengths.distribution.iter().map(|range| range.games).max();
    let rows = lengths.distribution.iter().map(|range| {
        let width = (range.games * 40).div_ceil(most.unwrap_or(1).max(1));
        let turns = match (range.from, range.to) {
            (from, to) if from == to => from.to_string(),
            (from, to) => format!("{from} to {to}"),
        };
        [turns, range.games.to_string(), "#".repeat(width as usize)]
    });
    write_table(f, ["turns", "games", ""], rows)
}

fn searches_row(kind: &str, searches: &Searches) -> [String; 5] {
    let number = |mean: Mean| shown(mean, |mean| format!("{mean:.1}"));
    [
        kind.to_owned(),
        number(searches.visits),
        number(searches.evaluations),
        number(searches.budget),
        shown(searches.proven, |share| format!("{:.1}%", 100.0 * share)),
    ]
}

fn rows_row(kind: &str, rows: &Rows) -> [String; 5] {
    let nats = |mean: Mean| shown(mean, |mean| format!("{mean:.3} nats"));
    [
        kind.to_owned(),
        rows.rows.to_string(),
        nats(rows.entropy),
        nats(rows.surprise),
        shown(rows.weight, |mean| format!("{mean:.3}")),
    ]
}

/// A mean as text; a dash where there is none.
fn shown(mean: Mean, format: impl Fn(f64) -> String) -> String {
    mean.value().map_or_else(|| "-".to_owned(), format)
}

fn versions<Name: Display>(
    f: &mut Formatter<'_>,
    of: &str,
    versions: &[Version<Name>],
) -> fmt::Result {
    for version in versions {
        let name = printable(&version.version.to_string());
        let (shards, games) = (version.shards, version.games);
        let what = format_args!("{name}: {games} games in {shards} shards");
        line(f, of, what)?;
    }
    Ok(())
}

/// A table under the last name; none without rows. Columns with a header are aligned to the right.
fn write_table<const COLUMNS: usize>(
    f: &mut Formatter<'_>,
    header: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> fmt::Result {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let has_numbers = |column: usize| !header[column].is_empty();
    let table = table(header, has_numbers, rows);
    table
        .lines()
        .try_for_each(|row| line(f, "", format_args!("{row}")))
}

/// A text of a shard without control characters, which a terminal would obey.
pub(super) fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{FFFD}")
}

/// The counts above 0, after a colon.
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
