//! Which games are imported, and which of their rows.

use super::source::PlayedGame;
use clap::Args;
use engine::record::GameRecord;

/// Which games to import, and which rows of them.
#[derive(Debug, Clone, Args)]
pub(super) struct Choice {
    /// Only games in which both players had at least this rating, which the archive alone states
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    min_rating: Option<f64>,
    /// Only rated games; the archive alone says which are
    #[arg(long)]
    rated_only: bool,
    /// Only games of at least this many turns, of both sides together, setups included
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_turns: usize,
    /// Learn only from the winner's turns; games without a known winner are left out
    #[arg(long)]
    winner_only: bool,
}

impl Choice {
    /// Why a game is not wanted, in words that follow a number of games.
    pub(super) fn refuses(&self, played: &PlayedGame) -> Option<&'static str> {
        let is_strong = |rating: &Option<f64>| match self.min_rating {
            Some(least) => rating.is_some_and(|rating| rating >= least),
            None => true,
        };
        if !played.ratings.iter().all(is_strong) {
            Some("of players with a lower rating or none")
        } else if self.rated_only && played.is_rated != Some(true) {
            Some("not known to be rated")
        } else if played.game.turns().len() < self.min_turns {
            Some("too short")
        } else if self.winner_only && played.game.outcome().is_none() && played.conclusion.is_none()
        {
            Some("without a winner")
        } else {
            None
        }
    }

    /// Removes the rows that are not wanted.
    pub(super) fn remove_rows(&self, record: &mut GameRecord) {
        if !self.winner_only {
            return;
        }
        let winner = record.ending.winner();
        for index in 0..record.turns.len() {
            if Some(record.turn_number(index).side) != winner {
                record.turns[index].rows.clear();
            }
        }
    }
}
