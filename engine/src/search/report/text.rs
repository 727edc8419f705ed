//! A report as a table.

use super::{Proven, ReportedTurn, SearchReport};
use arimaa::rules::Side;
use std::fmt::{self, Display, Formatter};

impl Display for SearchReport {
    /// Lines of about 100 columns, with no line break at the end. Win probabilities, priors and shares in percent.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.write_turns(f)?;
        for (place, turn) in self.line.iter().enumerate() {
            let before = if place == 0 { "\n\nline" } else { "\n" };
            let width = if place == 0 { 12 } else { 11 };
            write!(
                f,
                "{before:<width$}{:<8}{}",
                turn.side.to_string(),
                turn.turn
            )?;
        }
        Ok(())
    }
}

impl SearchReport {
    fn write_head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "position  {}", self.position)?;
        match self.value {
            Some(value) => write!(
                f,
                "value     {} wins {}%",
                self.side,
                percent(value.into(), 1)
            )?,
            None => write!(f, "value     not known yet, {} to move", self.side)?,
        }
        if let Some(value) = self.own_value {
            write!(f, ", {}% by the evaluator", percent(value.into(), 1))?;
        }
        if let Some(Proven { winner, turns }) = self.proven {
            let s = if turns == 1 { "" } else { "s" };
            write!(f, "; proven: {winner} wins in {turns} turn{s}")?;
        }
        let Self {
            mode,
            visits,
            evaluations,
            seconds,
            evaluations_per_second: speed,
            ..
        } = self;
        let mode = format!("{mode:?}").to_lowercase();
        let state = if self.is_decided {
            ""
        } else {
            ", not decided yet"
        };
        write!(
            f,
            "\nsearch    {mode}{state}: visits {visits}, evaluations {evaluations}, {seconds:.2} s, {speed:.0} evaluations/s"
        )?;
        write!(
            f,
            "\ntree      {} nodes, {:.1} MiB, {}% merged; {:.2} turns deep, {} at most",
            self.nodes,
            self.bytes as f64 / f64::from(1 << 20),
            percent(self.merged_share, 1),
            self.depth.mean,
            self.depth.deepest
        )
    }

    fn write_turns(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // A setup's turn is long and nothing of it proven.
        let proofs = self.turns.iter().any(|turn| turn.proven.is_some());
        if !self.turns.is_empty() {
            let proof = if proofs { "proof       " } else { "" };
            write!(f, "\n\n         visits   win%  prior%  {proof}turn")?;
        }
        for turn in &self.turns {
            turn.write(f, self.side, proofs)?;
        }
        let listed = self.turns.len();
        write!(f, "\nturns: {listed} of {}", self.known_turns)?;
        if self.unfinished_visits > 0.0 {
            write!(
                f,
                "; {:.1} of {:.1} visits ended inside the turn",
                self.unfinished_visits, self.shared_visits
            )?;
        }
        Ok(())
    }
}

impl ReportedTurn {
    fn write(&self, f: &mut Formatter<'_>, side: Side, proofs: bool) -> fmt::Result {
        let mark = if self.is_chosen { '>' } else { ' ' };
        let value = self.value.map(|value| percent(value.into(), 1));
        let prior = self.prior.map(small_percent);
        write!(
            f,
            "\n{mark}{:>4} {:>9.1}  {:>5}  {:>6}  ",
            self.rank,
            self.visits,
            value.as_deref().unwrap_or("-"),
            prior.as_deref().unwrap_or("-"),
        )?;
        if proofs {
            let proof = self
                .proven
                .map_or_else(String::new, |Proven { winner, turns }| {
                    let what = if winner == side { "win" } else { "loss" };
                    format!("{what} in {turns}")
                });
            write!(f, "{proof:<12}")?;
        }
        f.write_str(&self.turn)
    }
}

/// A share in percent.
fn percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$}", 100.0 * share)
}

/// A share in percent that may be very small.
fn small_percent(share: f64) -> String {
    if share > 0.0 && share < 5e-5 {
        format!("{:.0e}", 100.0 * share)
    } else {
        percent(share, 2)
    }
}
