//! Which games are imported, and which of their turns.

use super::source::PlayedGame;
use clap::Args;
use engine::record::GameRecord;

/// What is asked of a game.
#[derive(Debug, Clone, Args)]
pub(super) struct Choice {
    /// Only games of which both players had this rating or a better one
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    min_rating: Option<f64>,
    /// Only games that counted for the ratings
    #[arg(long)]
    rated_only: bool,
    /// Only games of at least so many turns of both sides together, setups included
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_turns: usize,
    /// Learn only from the winner's turns; games without a known winner are left out
    #[arg(long)]
    winner_only: bool,
}

/// Why a good game is not imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unwanted {
    Rating,
    Unrated,
    Short,
    NoWinner,
}

impl Unwanted {
    /// In words, behind a number of games.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Rating => "of players with a lower rating or none",
            Self::Unrated => "not known to be rated",
            Self::Short => "too short",
            Self::NoWinner => "without a winner",
        }
    }
}

impl Choice {
    /// Why a game is not wanted, before its record is made.
    pub(super) fn refuses(&self, played: &PlayedGame) -> Option<Unwanted> {
        let is_strong = |rating: &Option<f64>| match self.min_rating {
            Some(least) => rating.is_some_and(|rating| rating >= least),
            None => true,
        };
        if !played.ratings.iter().all(is_strong) {
            Some(Unwanted::Rating)
        } else if self.rated_only && played.is_rated != Some(true) {
            Some(Unwanted::Unrated)
        } else if played.game.turns().len() < self.min_turns {
            Some(Unwanted::Short)
        } else if self.winner_only && played.game.outcome().is_none() && played.conclusion.is_none()
        {
            Some(Unwanted::NoWinner)
        } else {
            None
        }
    }

    /// Takes the rows away that are not wanted.
    pub(super) fn thin_out(&self, record: &mut GameRecord) {
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
