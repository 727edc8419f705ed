//! The report on a run as text.

use super::file::steps;
use super::games::GamesReport;
use super::run::{InTraining, NewestNetwork, RunReport, RunningReport, WindowReport};
use crate::plots::ratings as rating_plot;
use crate::ratings::{RatedPlayer, signed};
use crate::terminal::{Facts, columns, grouped};
use engine::progress::{bytes_in_words, in_words};
use engine::run::{DeviceUse, GeneratorReport, GeneratorState, LogLine, TimeLeft};
use network::Head;
use std::fmt;
use std::time::Duration;

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = Facts::default();
        facts.add("run", self.path.display());
        facts.add_some("newest network", self.newest_network.as_ref().map(newest));
        facts.add_some("training", self.training.as_ref().map(training));
        facts.add("running", running(&self.running));
        let (lost, running): (Vec<_>, Vec<_>) = self
            .generators
            .iter()
            .partition(|report| report.state == GeneratorState::Lost);
        for report in lost {
            facts.add("lost", lost_generator(report));
        }
        for report in running {
            facts.add(&format!("generator {}", report.number), generator(report));
        }
        facts.add("games", games(&self.games));
        facts.add_some("speed", self.speed());
        facts.add("window", window(&self.window));
        facts.add("disk", self.disk_in_words());
        facts.add_some("time left", self.time_left.as_ref().map(time_left));
        facts.add_some("last steps", self.last_steps.as_ref().map(measured));
        let validation = self.last_validation.as_ref();
        facts.add_some("validation", validation.map(measured));
        facts.add_some("rating", self.newest_rating());
        let logs = self.path.join("logs");
        for (name, plot) in [
            ("curves", logs.join("curves.svg")),
            ("ratings", rating_plot::file(&logs)),
        ] {
            facts.add_some(name, plot.exists().then(|| plot.display()));
        }
        writeln!(f, "{}", facts.finish())?;
        f.write_str(&self.table())?;
        if self.problems.is_empty() {
            Ok(())
        } else {
            write!(f, "\n{}", self.problems)
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
        let trained = steps.and_then(|steps| steps.number("rows_per_second"));
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
        Some(if newest == best {
            format!("{}, the best so far", rating(newest))
        } else {
            format!("{}; the best so far: {}", rating(newest), rating(best))
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

fn newest(network: &NewestNetwork) -> String {
    let size = network.size.map_or_else(String::new, |size| {
        format!(", {}, {} an evaluation", size.shape(), size.cost())
    });
    format!("{}: {}{size}", network.generation, network.file.display())
}

fn training(training: &InTraining) -> String {
    let (generation, steps) = (training.state.generation, steps(&training.state));
    let checkpoint = training.checkpoint.display();
    format!("network {generation}, step {steps}: {checkpoint}")
}

fn running(running: &RunningReport) -> String {
    let trainer = running.trainer.then(|| {
        let loops = running.phase.as_ref().map(|it| {
            let phase = it.phase.replace('_', "-");
            format!("train loop: {phase} for network {}", it.generation)
        });
        let trainer = loops.unwrap_or_else(|| "trainer".to_owned());
        match &running.waiting {
            Some(missing) => format!("{trainer}, which waits: {missing}"),
            None => trainer,
        }
    });
    let numbers: Vec<String> = running.generators.iter().map(u32::to_string).collect();
    let generators = (!numbers.is_empty()).then(|| format!("generators {}", numbers.join(", ")));
    joined(trainer.into_iter().chain(generators), "; ", "none")
}

fn lost_generator(lost: &GeneratorReport) -> String {
    let wait = if lost.is_elsewhere {
        "on its machine, until it starts again"
    } else {
        "for it, or for the next generator that starts"
    };
    format!(
        "generator {} of worker {}, silent for {}: its games in flight wait {wait}",
        lost.number,
        lost.status.worker,
        duration(lost.seconds_ago)
    )
}

fn generator(report: &GeneratorReport) -> String {
    let status = &report.status;
    let waiting = status.waiting_reason.iter();
    let waiting = waiting.map(|reason| format!("waiting for the disk ({reason})"));
    let speed = format!(
        "{:.0} turns/s, {:.0} evaluations/s",
        status.turns_per_second, status.evaluations_per_second
    );
    let place = if status.worker == status.host {
        status.host.clone()
    } else {
        format!("worker {} on {}", status.worker, status.host)
    };
    let devices = DeviceUse::in_words(&status.devices, status.rows_waiting);
    let network = format!("network {}", status.network);
    // A running generator writes it every 15 seconds, unless the disk is full.
    let age = (report.seconds_ago > 60.0).then(|| format!("{} ago", duration(report.seconds_ago)));
    let parts = [place].into_iter().filter(|place| !place.is_empty());
    let parts = parts.chain(waiting).chain([speed]).chain(devices);
    joined(parts.chain([network]).chain(age), ", ", "")
}

fn games(games: &GamesReport) -> String {
    let count = if games.is_estimated {
        format!("about {}", about(games.games as f64))
    } else {
        grouped(games.games)
    };
    let rows = games.rows_a_game.map_or_else(String::new, |rows| {
        format!(", of about {rows:.0} rows each")
    });
    format!("{count} in {} shards{rows}", grouped(games.shards))
}

fn window(window: &WindowReport) -> String {
    let rows = window.rows.map(|rows| format!("{} rows", grouped(rows)));
    let wanted = window
        .wanted
        .map(|rows| format!("{} wanted", grouped(rows)));
    let there = window.there;
    let there = there.map(|rows| format!("about {} there", about(rows as f64)));
    let parts = rows.into_iter().chain(wanted).chain(there);
    joined(parts, ", ", "nothing yet")
}

fn time_left(left: &TimeLeft) -> String {
    match (left.generations, left.seconds.zip(left.measured)) {
        (0, _) => "none: all networks are trained".to_owned(),
        (left, None) => format!("not known yet: {left} networks to train"),
        (left, Some((seconds, measured))) => format!(
            "{}: {left} networks, {} each (median of the last {})",
            duration(seconds),
            duration(measured.seconds),
            measured.generations
        ),
    }
}

fn rating(player: &RatedPlayer) -> String {
    let [rating, low, high] = [player.rating, player.low, player.high].map(signed);
    let whose = match player.generation {
        Some(it) => format!("network {it} of {} games", player.games),
        None => player.player.clone(),
    };
    format!("Elo {rating} ({low} to {high}) for {whose}")
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
fn measured(line: &LogLine) -> String {
    let number = |key: &str| line.number(key);
    let percent = |key: &str| number(key).map(|share| format!("{:.1}%", 100.0 * share));
    let losses = Head::ALL.into_iter().filter_map(|head| {
        let loss = number(&format!("{}_loss", head.name()))?;
        Some(format!("{} {loss:.3}", head.name().replace('_', " ")))
    });
    let losses: Vec<String> = losses.collect();
    let parts = [
        Some(format!("step {}", grouped(line.step.unwrap_or(0)))),
        (!losses.is_empty()).then(|| format!("losses: {}", losses.join(", "))),
        percent("policy_accuracy").map(|share| format!("policy accuracy {share}")),
        number("learning_rate").map(|rate| format!("learning rate {rate:.1e}")),
        percent("computing").map(|share| format!("computing {share} of the time")),
    ];
    joined(parts.into_iter().flatten(), "; ", "")
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
