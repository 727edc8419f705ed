//! The report on a run as text.

use super::file::steps;
use super::games::GamesReport;
use super::generators::GeneratorReport;
use super::run::{InTraining, NewestNetwork, RunReport, RunningReport, TimeLeft, WindowReport};
use crate::plots::ratings as rating_plot;
use crate::ratings::{RatedPlayer, signed};
use crate::terminal::{Facts, columns, grouped};
use engine::progress::{bytes_in_words, in_words};
use network::{DeviceUse, Head};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = Facts::default();
        facts.add("run", self.path.display());
        facts.add_some("newest network", self.newest_network.as_ref());
        facts.add_some("training", self.training.as_ref());
        facts.add("running", &self.at_work);
        for generator in &self.generators {
            facts.add(&format!("generator {}", generator.generator), generator);
        }
        facts.add("games", &self.games);
        facts.add_some("speed", self.speed());
        facts.add("window", &self.window);
        facts.add("disk", self.disk_in_words());
        facts.add_some("time left", self.time_left.as_ref());
        facts.add_some("last steps", self.last_steps.as_ref().map(measured));
        let validation = self.last_validation.as_ref();
        facts.add_some("validation", validation.map(measured));
        facts.add_some("rating", self.newest_rating());
        let curves = self.path.join("logs").join("curves.svg");
        facts.add_some(
            "curves",
            curves.exists().then(|| curves.display().to_string()),
        );
        let ratings = rating_plot::file(&self.path.join("logs"));
        facts.add_some(
            "ratings",
            ratings.exists().then(|| ratings.display().to_string()),
        );
        writeln!(f, "{}", facts.finish())?;
        f.write_str(&self.table())?;
        match self.problems.is_empty() {
            true => Ok(()),
            false => write!(f, "\n{}", self.problems),
        }
    }
}

impl RunReport {
    fn speed(&self) -> Option<String> {
        let played = self.games.speed.map(|speed| {
            let rows = self.games.rows_a_game.map_or(String::new(), |rows| {
                format!(" with {} rows", about(rows * speed.games_an_hour))
            });
            format!(
                "about {} games{rows} an hour, in the {} until {} ago",
                about(speed.games_an_hour),
                duration(speed.seconds),
                duration(speed.seconds_since)
            )
        });
        let steps = self.last_steps.as_ref();
        let trained = steps.and_then(|steps| steps["rows_per_second"].as_f64());
        let trained = trained.map(|rows| format!("trained at {rows:.0} rows/s"));
        let parts: Vec<String> = played.into_iter().chain(trained).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn disk_in_words(&self) -> String {
        let total = self.disk.iter().map(|folder| folder.bytes).sum();
        let folders = self.disk.iter().filter(|folder| folder.bytes > 0);
        let folders = folders.map(|folder| {
            let name = match folder.folder.as_str() {
                "." => "other files",
                name => name,
            };
            let size = bytes_in_words(folder.bytes);
            let bytes_a_game = self.games.shard_bytes.checked_div(self.games.games);
            match bytes_a_game.filter(|_| name == "shards") {
                Some(bytes) => format!("{name} {size} ({} a game)", bytes_in_words(bytes)),
                None => format!("{name} {size}"),
            }
        });
        let folders: Vec<String> = folders.collect();
        format!("{}: {}", bytes_in_words(total), folders.join(", "))
    }

    /// The rating of the newest generation that has one, and the best.
    fn newest_rating(&self) -> Option<String> {
        let rated = || self.ratings.iter().filter(|one| one.generation.is_some());
        let newest = rated().max_by_key(|one| one.generation)?;
        let best = rated().max_by(|a, b| a.rating.total_cmp(&b.rating))?;
        Some(match newest == best {
            true => format!("{newest}, the best so far"),
            false => format!("{newest}; the best so far: {best}"),
        })
    }

    /// The newest generations, one a row.
    fn table(&self) -> String {
        const KEYS: [(&str, &str); 6] = [
            ("games", "new_games"),
            ("rows", "new_rows"),
            ("policy loss", "policy_loss"),
            ("value loss", "value_loss"),
            ("validation: policy", "validation_policy_loss"),
            ("value", "validation_value_loss"),
        ];
        let names = KEYS.map(|(name, _)| name);
        let header = ["network"].into_iter().chain(names).chain(["Elo"]);
        let header = header.map(str::to_owned).collect();
        let rows = self.generations.iter().map(|generation| {
            let number = Some(generation.generation);
            let origin = |(_, key)| generation.origin.get(key).cloned();
            let rating = self.ratings.iter().find(|one| one.generation == number);
            let rating = rating.map(|one| signed(one.rating));
            let cells = KEYS.map(origin).into_iter().chain([rating]);
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            let number = generation.generation.to_string();
            [number].into_iter().chain(cells).collect()
        });
        columns(std::iter::once(header).chain(rows))
    }
}

impl fmt::Display for NewestNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.generation, self.file.display())?;
        match &self.size {
            Some(size) => write!(f, ", {}, {} an evaluation", size.shape(), size.cost()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for InTraining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (generation, steps) = (self.state.generation, steps(&self.state));
        let checkpoint = self.checkpoint.display();
        write!(f, "network {generation}, step {steps}: {checkpoint}")
    }
}

impl fmt::Display for RunningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trainer = self.trainer.then(|| match &self.waiting {
            Some(missing) => format!("trainer, which waits: {missing}"),
            None => "trainer".to_owned(),
        });
        let numbers: Vec<String> = self.generators.iter().map(u32::to_string).collect();
        let numbers = Some(numbers.join(", ")).filter(|numbers| !numbers.is_empty());
        let generators = numbers.map(|numbers| format!("generators {numbers}"));
        f.write_str(&joined(trainer.into_iter().chain(generators), "; ", "none"))
    }
}

impl fmt::Display for GeneratorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = &self.status;
        if let Some(reason) = &status.waiting_reason {
            write!(f, "waiting for the disk ({reason}), ")?;
        }
        write!(
            f,
            "{:.0} turns/s, {:.0} evaluations/s",
            status.turns_per_second, status.evaluations_per_second
        )?;
        if let Some(devices) = DeviceUse::in_words(&status.devices, status.rows_waiting) {
            write!(f, ", {devices}")?;
        }
        write!(f, ", network {}", status.network)?;
        // A running generator writes it every 15 seconds, unless the disk is full.
        match self.seconds_since > 60.0 {
            true => write!(f, ", {} ago", duration(self.seconds_since)),
            false => Ok(()),
        }
    }
}

impl fmt::Display for GamesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let games = match self.is_estimated {
            true => format!("about {}", about(self.games as f64)),
            false => grouped(self.games),
        };
        write!(f, "{games} in {} shards", grouped(self.shards))?;
        match self.rows_a_game {
            Some(rows) => write!(f, ", of about {rows:.0} rows each"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for WindowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.map(|rows| format!("{} rows", grouped(rows)));
        let wanted = self.wanted.map(|rows| format!("{} wanted", grouped(rows)));
        let there = self
            .there
            .map(|rows| format!("about {} there", about(rows as f64)));
        let parts = rows.into_iter().chain(wanted).chain(there);
        f.write_str(&joined(parts, ", ", "nothing yet"))
    }
}

impl fmt::Display for TimeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.generations, &self.estimate) {
            (0, _) => f.write_str("none: all networks are trained"),
            (left, None) => write!(f, "not known yet: {left} networks to train"),
            (left, Some(estimate)) => write!(
                f,
                "{}: {left} networks, {} each (median of the last {})",
                duration(estimate.seconds),
                duration(estimate.measured.seconds),
                estimate.measured.generations
            ),
        }
    }
}

impl fmt::Display for RatedPlayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rating, low, high] = [self.rating, self.low, self.high].map(signed);
        write!(f, "Elo {rating} ({low} to {high})")?;
        match self.generation {
            Some(it) => write!(f, " for network {it} of {} games", self.games),
            None => write!(f, " for {}", self.player),
        }
    }
}

/// A share of 1 in percent.
fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// An estimate, rounded to three digits.
fn about(number: f64) -> String {
    let digits = number.abs().max(1.0).log10().floor();
    let unit = 10f64.powf((digits - 2.0).max(0.0));
    grouped(((number / unit).round() * unit) as u64)
}

fn joined(parts: impl Iterator<Item = String>, separator: &str, empty: &str) -> String {
    let parts: Vec<String> = parts.collect();
    match parts.as_slice() {
        [] => empty.to_owned(),
        parts => parts.join(separator),
    }
}

/// The measurements of a line of the log.
fn measured(line: &Value) -> String {
    let number = |key: &str| line[key].as_f64();
    let losses: Vec<String> = Head::ALL
        .into_iter()
        .filter_map(|head| {
            let loss = number(&format!("{}_loss", head.name()))?;
            Some(format!("{} {loss:.3}", head.name().replace('_', " ")))
        })
        .collect();
    let mut parts = vec![format!(
        "step {}",
        grouped(line["step"].as_u64().unwrap_or(0))
    )];
    if !losses.is_empty() {
        parts.push(format!("losses: {}", losses.join(", ")));
    }
    let accuracy = number("policy_accuracy");
    parts.extend(accuracy.map(|share| format!("policy accuracy {}", percent(share))));
    let rate = number("learning_rate");
    parts.extend(rate.map(|rate| format!("learning rate {rate:.1e}")));
    let computing = number("computing");
    parts.extend(computing.map(|share| format!("computing {} of the time", percent(share))));
    parts.join("; ")
}

fn duration(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| "-".to_owned(), in_words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_have_three_digits() {
        let texts = [0.0, 7.4, 999.6, 1_234.0, 852_846.3].map(about);
        assert_eq!(texts, ["0", "7", "1,000", "1,230", "853,000"]);
        assert_eq!(about(f64::NAN), "0");
    }
}
