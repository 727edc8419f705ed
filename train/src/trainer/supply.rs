//! The data to train on: the known shards, the rows that have come since the run began, and the rows that may be drawn before more
//! must come.

use crate::data::{Index, Window, WindowCounts, window_rows};
use crate::error::TrainError;
use crate::terminal::grouped;
use engine::config::TrainConfig;
use engine::run::RunDirectory;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The part of the data supply that a checkpoint holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SupplyState {
    /// The shards at the last look, oldest first.
    pub(crate) shards: Vec<String>,
    /// The games since the run began, validation games included.
    pub(crate) seen_games: u64,
    /// The training rows since the run began.
    pub(crate) seen_rows: u64,
    /// The rows that may be drawn before new ones must come: each new row adds `train.reuse_factor`, each drawn row takes 1.
    /// (The train bucket of KataGo's `-max-train-bucket-per-new-data`.)
    pub(crate) allowance: f64,
    /// The mean uses that the allowance was given for each row of the present window; 0 before the first rows.
    pub(crate) reuse_factor: f64,
    /// The rows trained on since the run began.
    pub(crate) trained_rows: u64,
    /// The size of the present window: so many of the newest rows.
    pub(crate) window_rows: u64,
}

/// The shards of a run, and how far training has used them up.
#[derive(Debug)]
pub(crate) struct DataSupply {
    index: Index,
    state: SupplyState,
}

impl DataSupply {
    /// The supply of a run, from its last known state.
    pub(crate) fn new(run: &RunDirectory, config: &TrainConfig, state: SupplyState) -> Self {
        Self {
            index: Index::new(&run.shards(), config.validation_share),
            state,
        }
    }

    /// The state that a checkpoint must hold to resume from here.
    pub(crate) fn state(&self) -> &SupplyState {
        &self.state
    }

    /// Notes which shards have come and which are gone. Returns the counts of the new ones.
    pub(crate) fn look(&mut self, config: &TrainConfig) -> Result<WindowCounts, TrainError> {
        self.credit_rise(config);
        let listed = self.index.list()?;
        let there: HashSet<&str> = listed.iter().map(String::as_str).collect();
        let state = &mut self.state;
        state.shards.retain(|name| there.contains(name.as_str()));
        let known: HashSet<&str> = state.shards.iter().map(String::as_str).collect();
        let new: Vec<String> = listed
            .iter()
            .filter(|name| !known.contains(name.as_str()))
            .cloned()
            .collect();
        if new.is_empty() {
            return Ok(WindowCounts::default());
        }
        let counts = self.index.count(&new)?;
        let uses = f64::from(config.reuse_factor);
        state.shards.extend(new);
        state.seen_games += counts.games;
        state.seen_rows += counts.training_rows;
        if state.reuse_factor > uses {
            let rows = state.seen_rows.min(window_rows(config, state.seen_rows));
            let new_share = (counts.training_rows as f64 / rows.max(1) as f64).min(1.0);
            state.reuse_factor += (uses - state.reuse_factor) * new_share;
        }
        state.allowance += counts.training_rows as f64 * uses;
        Ok(counts)
    }

    /// If the reuse factor has risen, the rows of the present window may be used more often too. A fall takes back only what expires.
    fn credit_rise(&mut self, config: &TrainConfig) {
        let state = &mut self.state;
        let uses = f64::from(config.reuse_factor);
        let rows = state.seen_rows.min(window_rows(config, state.seen_rows));
        let rise = (uses - state.reuse_factor).max(0.0);
        state.allowance += rise * rows as f64;
        state.reuse_factor = state.reuse_factor.max(uses);
    }

    /// Opens the window whose size follows from the rows so far. An unused allowance beyond it expires: the window's rows can't be
    /// drawn more often than `train.reuse_factor` on average.
    pub(crate) fn open_window(&mut self, config: &TrainConfig) -> Result<Window, TrainError> {
        self.state.window_rows = window_rows(config, self.state.seen_rows);
        let window = self.reopen_window()?;
        let (rows, uses) = (
            window.training_rows() as f64,
            f64::from(config.reuse_factor),
        );
        let state = &mut self.state;
        let expired = (state.allowance - rows * uses).max(0.0);
        if expired > 0.0 {
            state.allowance = rows * uses;
            // What expires may be given again by a rise.
            state.reuse_factor = (state.reuse_factor - expired / rows).max(uses);
        }
        Ok(window)
    }

    /// Opens the last window again.
    pub(crate) fn reopen_window(&mut self) -> Result<Window, TrainError> {
        self.index
            .window(&self.state.shards, self.state.window_rows)
    }

    /// Whether a batch of so many rows may be drawn.
    pub(crate) fn allows(&self, rows: u32) -> bool {
        self.state.allowance >= f64::from(rows)
    }

    /// How many batches of so many rows may be drawn.
    pub(crate) fn batches(&self, rows: u32) -> u64 {
        (self.state.allowance / f64::from(rows)).max(0.0) as u64
    }

    /// What is missing for so many batches, in words.
    pub(crate) fn shortage(&self, config: &TrainConfig, batches: u64) -> String {
        let size = config.batch_size;
        let wanted = if batches == 1 {
            format!("a batch of {size} needs")
        } else {
            format!("{} batches of {size} need", grouped(batches))
        };
        let uses = batches as f64 * f64::from(size) - self.state.allowance;
        format!(
            "the {} rows so far have been used as often as they may be (train.reuse_factor = {}): {wanted} {} more uses",
            grouped(self.state.seen_rows),
            config.reuse_factor,
            grouped(uses.ceil() as u64),
        )
    }

    /// Notes that a batch was drawn.
    pub(crate) fn take(&mut self, rows: u32) {
        self.state.allowance -= f64::from(rows);
        self.state.trained_rows += u64::from(rows);
    }
}
