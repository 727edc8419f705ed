//! A match's end in words.

use super::super::standings::in_whole;
use super::{MatchReport, Participant, Players, SeveralPlayers, TwoPlayers};
use std::fmt;

impl fmt::Display for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.resolved.settings;
        f.write_str(&self.resolved.spec)?;
        if settings.clock.is_some() {
            write!(f, ": used {:.2} s a turn", self.milliseconds_per_turn / 1e3)?;
        } else if self.turns > 0 && (settings.temperature.is_some() || !settings.search.is_empty())
        {
            write!(
                f,
                ": used {:.1} evaluations and {:.2} ms a turn",
                self.evaluations_per_turn, self.milliseconds_per_turn
            )?;
        }
        if self.faults.is_empty() {
            return Ok(());
        }
        let by = self
            .faults
            .iter()
            .map(|(end, games)| format!("{end} {games}"));
        write!(
            f,
            "; {} games were lost not by the rules, but by: {}",
            self.faults.values().sum::<u64>(),
            by.collect::<Vec<_>>().join(", ")
        )
    }
}

impl fmt::Display for TwoPlayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { a, b, score, sprt } = self;
        writeln!(f, "a: {a}")?;
        writeln!(f, "b: {b}")?;
        writeln!(f, "a has {score}")?;
        writeln!(
            f,
            "a is stronger with a likelihood of {:.1}%",
            100.0 * score.los
        )?;
        if let Some(sprt) = sprt {
            writeln!(f, "{sprt}")?;
        }
        let [none, half, one, one_and_a_half, two] = score.pairs;
        writeln!(
            f,
            "pairs with 0, ½, 1, 1½, 2 points for a: {none}, {half}, {one}, {one_and_a_half}, {two}"
        )
    }
}

impl SeveralPlayers {
    /// The width of the longest name.
    fn width(&self) -> usize {
        let names = self
            .players
            .iter()
            .map(|rated| rated.player.resolved.name().chars().count());
        names.max().unwrap_or_default().max("player".len())
    }

    /// The ratings, the best first.
    fn write_ratings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.width();
        writeln!(
            f,
            "{:width$}     Elo  95% interval     games   points",
            "player"
        )?;
        let mut order: Vec<_> = self.players.iter().collect();
        let elo = |elo: Option<f64>| elo.unwrap_or(f64::NEG_INFINITY);
        order.sort_by(|a, b| elo(b.elo).total_cmp(&elo(a.elo)));
        for rated in order {
            let name = rated.player.resolved.name();
            let rating = match (rated.elo, rated.elo_low, rated.elo_high) {
                (Some(elo), Some(low), Some(high)) => {
                    let [elo, low, high] = [elo, low, high].map(in_whole);
                    format!("{elo:>7}  {:16}", format!("{low} to {high}"))
                }
                _ => format!("{:>7}  {:16}", "", ""),
            };
            let share = 100.0 * rated.points / rated.games.max(1) as f64;
            writeln!(
                f,
                "{name:width$} {rating} {:>6}   {share:>5.1}%",
                rated.games
            )?;
        }
        Ok(())
    }

    /// The pairings.
    fn write_pairings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.width();
        writeln!(
            f,
            "{:width$}  {:width$}   games    won   lost  points      Elo  95% interval     likelihood",
            "player", "against"
        )?;
        for pairing in &self.pairings {
            let score = &pairing.score;
            let [elo, low, high] = [score.elo, score.elo_low, score.elo_high].map(in_whole);
            let interval = format!("{low} to {high}");
            writeln!(
                f,
                "{:width$}  {:width$}  {:>6} {:>6} {:>6}  {:>5.1}%  {elo:>7}  {interval:16} {:>9.1}%",
                pairing.a,
                pairing.b,
                score.games,
                score.wins_a,
                score.losses_a,
                100.0 * score.score,
                100.0 * score.los
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for SeveralPlayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rated in &self.players {
            writeln!(f, "{}", rated.player)?;
        }
        writeln!(f)?;
        self.write_ratings(f)?;
        writeln!(f)?;
        self.write_pairings(f)?;
        writeln!(f)
    }
}

impl fmt::Display for MatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (games, unfinished) = match &self.players {
            Players::Two(two) => {
                write!(f, "{two}")?;
                (two.score.games, two.score.unfinished)
            }
            Players::Several(several) => {
                write!(f, "{several}")?;
                (several.games, several.unfinished)
            }
        };
        let ends: Vec<String> = self
            .ends
            .iter()
            .map(|(end, games)| format!("{end} {games}"))
            .collect();
        if !ends.is_empty() {
            writeln!(f, "games ended by: {}", ends.join(", "))?;
        }
        if let Some(fault) = &self.first_fault {
            writeln!(
                f,
                "what was lost otherwise than by the rules says little of strength; the first such game, {}: {}",
                fault.game, fault.reason
            )?;
        }
        if unfinished > 0 {
            writeln!(
                f,
                "{unfinished} games truncated at the turn limit, half a point each"
            )?;
        }
        if self.distinct_games < games {
            writeln!(
                f,
                "only {} of {games} games differ: copies prove nothing, and the intervals are too narrow",
                self.distinct_games
            )?;
        }
        if !self.reproducible {
            writeln!(
                f,
                "turns were limited by time: the same command plays other games"
            )?;
        }
        if let Some(overhead) = self.overhead {
            writeln!(f, "overhead: {:.1}% of the workers' time", 100.0 * overhead)?;
        }
        writeln!(f, "games: {}", self.records.display())
    }
}
