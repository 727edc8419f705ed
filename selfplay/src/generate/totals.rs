//! What finished games add up to.

use arimaa::rules::Side;
use engine::record::{Ending, GameRecord};
use std::fmt;
use std::path::Path;

/// What the games that were finished since the start add up to.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) games: u64,
    pub(super) turns: u64,
    pub(super) rows: u64,
    /// By side.
    pub(super) wins: [u64; 2],
    pub(super) unfinished: u64,
    pub(super) resigned: u64,
    pub(super) checks: ResignationChecks,
}

/// How good resignations are, by the games that were played on in spite of one.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ResignationChecks {
    /// Games in which a side would have resigned, and that a side won.
    pub(super) decided: u64,
    /// Those of them that it won.
    pub(super) errors: u64,
    /// Games in which a side would have resigned, and that stopped at the turn limit.
    pub(super) unfinished: u64,
}

impl Totals {
    pub(super) fn add(&mut self, record: &GameRecord) {
        self.games += 1;
        self.turns += record.turns.len() as u64;
        let rows = record.turns.iter().map(|turn| turn.rows.len() as u64);
        self.rows += rows.sum::<u64>();
        let winner = record.ending.winner();
        match winner {
            Some(winner) => self.wins[winner.index()] += 1,
            None => self.unfinished += 1,
        }
        self.resigned += u64::from(matches!(record.ending, Ending::Resigned { .. }));
        if let Some(waived) = record.resignation_waived {
            match winner {
                Some(winner) => {
                    self.checks.decided += 1;
                    self.checks.errors += u64::from(winner == waived.loser);
                }
                None => self.checks.unfinished += 1,
            }
        }
    }

    /// The games that a side has won.
    pub(super) fn wins_of(&self, side: Side) -> u64 {
        self.wins[side.index()]
    }

    /// The last lines of a generator: what there is now, and where.
    pub(super) fn report(&self, shards: &Path) -> String {
        let Self {
            games,
            turns,
            rows,
            unfinished,
            resigned,
            checks,
            ..
        } = self;
        let by_resignation = match resigned {
            0 => String::new(),
            games => format!(", {games} resigned"),
        };
        let mut report = format!(
            "{games} games, {turns} turns, {rows} rows, {unfinished} unfinished at the turn limit{by_resignation}: {}\n",
            shards.display()
        );
        if checks.decided + checks.unfinished > 0 {
            report.push_str(&format!("{checks}\n"));
        }
        report
    }
}

impl fmt::Display for ResignationChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            decided,
            errors,
            unfinished,
        } = self;
        let share = 100.0 * *errors as f64 / (*decided).max(1) as f64;
        write!(
            f,
            "resignation: a side would have given up in {} games that were played out; it won {errors} of the {decided} that were decided ({share:.1}%)",
            decided + unfinished
        )?;
        match unfinished {
            0 => Ok(()),
            games => write!(f, ", {games} stopped at the turn limit"),
        }
    }
}
