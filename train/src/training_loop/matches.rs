//! The comparison of new networks: the gate, matches against earlier networks and anchors, ratings.

use super::selfplay::Match;
use super::state::TrainingLoop;
use crate::error::TrainError;
use crate::plots::ratings as rating_plot;
use crate::ratings::{MatchResult, Player, RatingMeasurements, RatingTable, result_file, signed};
use crate::trainer::plan::number_in;
use crate::trainer::record::Recorder;
use engine::progress::say;
use network::Network;
use std::path::Path;

impl TrainingLoop {
    /// Decides on the candidates: each plays against the newest network, and is accepted or rejected.
    pub(super) fn judge(&self) -> Result<(), TrainError> {
        let needed = self.config.training_loop.gate_score;
        for (generation, path) in self.run.list_candidates()? {
            let (champion, _) = self.newest()?;
            if needed == 0.0 {
                self.run.accept_candidate(generation)?;
                continue;
            }
            let opponent = Player::Network(champion);
            let games = self.config.training_loop.gate_games;
            let result = self.result(generation, &path, opponent, games)?;
            let verdict = if result.score >= needed {
                self.run.accept_candidate(generation)?;
                "accepted"
            } else {
                self.run.reject_candidate(generation)?;
                "rejected"
            };
            say(&format!(
                "network {generation} is {verdict}: {result} games against network {champion}, and loop.gate_score = {needed}"
            ));
        }
        Ok(())
    }

    /// Plays the newest network's matches without a result, or with fewer games than requested. The last network to play is known once
    /// all are trained: it need not be the last one trained.
    pub(super) fn compare(&self) -> Result<(), TrainError> {
        let settings = &self.config.training_loop;
        let (generation, path) = self.newest()?;
        let games = if self.trained()? >= settings.generations {
            settings.final_match_games
        } else {
            settings.match_games
        };
        if games == 0 {
            return Ok(());
        }
        let networks = self.run.list_networks()?;
        let before = networks.iter().map(|(number, _)| *number);
        for opponent in opponents(
            generation,
            before,
            settings.match_opponents as usize,
            settings.anchors.iter().filter_map(Player::of_anchor),
        ) {
            self.result(generation, &path, opponent, games)?;
        }
        Ok(())
    }

    /// The result of a match, which is played if it is missing.
    fn result(
        &self,
        generation: u32,
        network: &Path,
        opponent: Player,
        games: u32,
    ) -> Result<MatchResult, TrainError> {
        let path = result_file(&self.run, generation, opponent);
        let kept = match MatchResult::load(&path) {
            Err(error @ TrainError::Answer { .. }) => {
                say(&format!(
                    "{error}; the match's kept games are counted again"
                ));
                None
            }
            kept => kept?,
        };
        if let Some(kept) = kept.filter(|result| result.games >= games.into()) {
            return Ok(kept);
        }
        if self.stop.is_requested() {
            return Err(TrainError::Stopped);
        }
        self.wait_for_config()?;
        let pit = Match {
            network: network.to_owned(),
            opponent,
            games,
            seed: self.seed.wrapping_add(generation.into()),
        };
        let workers = &self.workers.matches;
        let (result, text) = self.selfplay.pit(&self.run, &self.config, &pit, workers)?;
        MatchResult::keep(&path, &text)?;
        Ok(result)
    }

    /// Rates all players again if there are new results, and logs the rating of the last trained network.
    pub(super) fn rate(&self) -> Result<(), TrainError> {
        let ratings = RatingTable::of_run(&self.run)?;
        let Some(reference) = ratings.reference() else {
            return Ok(());
        };
        if ratings.is_written(&self.run)? {
            return Ok(());
        }
        let file = ratings.file();
        let trained = self.run.newest_trained()?;
        let rated = trained.and_then(|(generation, path)| {
            let rating = ratings.rating(Player::Network(generation))?;
            Some((generation, path, RatingMeasurements::from(rating)))
        });
        if let Some((generation, path, measurements)) = rated {
            say(&format!(
                "network {generation}: rating {} ({} to {}), where {} has 0",
                signed(measurements.rating),
                signed(measurements.rating_low),
                signed(measurements.rating_high),
                reference.in_words(),
            ));
            let step = number_in(&Network::load(&path)?, "step").unwrap_or(0);
            let mut recorder = Recorder::new(&self.run, step);
            recorder.rated(generation, step, &measurements, &file);
        }
        if let Err(error) = rating_plot::write(&file, &self.run.logs()) {
            say(&format!(
                "{error}; the loop continues, and the plot is drawn with the next ratings"
            ));
        }
        // At the end: after a kill before it, the line is logged again.
        ratings.write(&self.run)
    }
}

/// The opponents of a network: those before it, the newest first, then the anchors; each once, and never itself.
fn opponents(
    generation: u32,
    networks: impl DoubleEndedIterator<Item = u32>,
    last: usize,
    anchors: impl Iterator<Item = Player>,
) -> Vec<Player> {
    let before = networks.rev().filter(|number| *number < generation);
    let before = before.take(last).map(Player::Network);
    let mut opponents = Vec::new();
    for player in before.chain(anchors) {
        if player != Player::Network(generation) && !opponents.contains(&player) {
            opponents.push(player);
        }
    }
    opponents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_opponent_is_played_twice_and_numbers_may_have_gaps() {
        let anchors = [Player::Random, Player::FIRST];
        let of = |generation, networks: &[u32], last| {
            let networks = networks.iter().copied();
            opponents(generation, networks, last, anchors.into_iter())
        };
        assert_eq!(of(0, &[0], 2), [Player::Random]);
        assert_eq!(of(1, &[0, 1], 2), [Player::FIRST, Player::Random]);
        assert_eq!(
            of(9, &[0, 1, 4, 6, 9], 2),
            [
                Player::Network(6),
                Player::Network(4),
                Player::Random,
                Player::FIRST
            ]
        );
        assert_eq!(of(9, &[0, 9], 0), [Player::Random, Player::FIRST]);
    }
}
