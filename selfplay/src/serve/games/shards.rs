//! The games of a shard, decoded and not replayed.

use super::entry::{FoundFile, GameEntry, IndexedFile};
use super::scan::is_absent;
use crate::inspect::ShardGames;
use engine::record::{GameRecord, ShardError, ShardFault};
use rustc_hash::FxHashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Reads a shard; none where it is gone, or the index is to stop.
pub(super) fn index_shard(root: &Path, file: &FoundFile, stop: &AtomicBool) -> Option<IndexedFile> {
    let mut indexed = IndexedFile::new(file.clone());
    match ShardGames::open(&root.join(&file.path)) {
        Ok(games) => {
            for (at, game) in games {
                if stop.load(Relaxed) {
                    return None;
                }
                match game {
                    Ok(record) => indexed.add_game(&record, at.offset),
                    Err(error) => indexed.add_fault(error),
                }
            }
        }
        Err(error) if matches!(&error.fault, ShardFault::Io(io) if is_absent(io)) => return None,
        Err(error) => indexed.add_fault(error),
    }
    indexed.games.shrink_to_fit();
    Some(indexed)
}

impl IndexedFile {
    fn add_game(&mut self, record: &GameRecord, offset: u64) {
        let networks = self.place_of(&networks_of(record));
        self.games.push(GameEntry {
            id: record.id,
            place: offset,
            turns: u32::try_from(record.turns.len()).unwrap_or(u32::MAX),
            networks,
            surprise: mean_surprise(record),
            end: record.ending.into(),
            winner: record.ending.winner(),
            start: record.start.into(),
        });
    }

    fn add_fault(&mut self, mut error: ShardError) {
        self.may_recover |= matches!(error.fault, ShardFault::Io(_));
        error.path = (&self.file.path).into();
        self.add_problem(error.to_string());
    }
}

/// The networks that chose turns of a game, in the order of its evaluators.
pub(super) fn networks_of(record: &GameRecord) -> Vec<&str> {
    let mut has_turns = vec![false; record.evaluators.len()];
    for place in record.turns.iter().filter_map(|it| it.origin.evaluator()) {
        if let Some(has_turns) = has_turns.get_mut(usize::from(place)) {
            *has_turns = true;
        }
    }
    // Two files of one name are one network here.
    let mut known = FxHashSet::default();
    let evaluators = record.evaluators.iter().zip(has_turns);
    let names = evaluators.filter(|(_, has_turns)| *has_turns);
    let names = names.map(|(evaluator, _)| evaluator.name.as_str());
    names.filter(|&name| known.insert(name)).collect()
}

/// None without rows, and where the numbers are none that a row may have.
fn mean_surprise(record: &GameRecord) -> Option<f32> {
    let rows = record.turns.iter().flat_map(|turn| &turn.rows);
    let (mut sum, mut count) = (0.0, 0u32);
    for row in rows {
        sum += f64::from(row.surprise);
        count += 1;
    }
    let mean = (sum / f64::from(count)) as f32;
    (0.0..=f32::MAX).contains(&mean).then_some(mean)
}
