//! STUB
use super::{Window, WindowOptions, shard_names};
use crate::error::TrainError;
use engine::config::TrainConfig;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Index {
    folder: PathBuf,
    validation_share: f32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub games: u64,
    pub training_games: u64,
    pub training_rows: u64,
}
impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, o: Self) {
        self.games += o.games;
        self.training_games += o.training_games;
        self.training_rows += o.training_rows;
    }
}
impl Index {
    pub(crate) fn new(folder: &Path, validation_share: f32) -> Self {
        Self {
            folder: folder.to_owned(),
            validation_share,
        }
    }
    pub(crate) fn list(&self) -> Result<Vec<String>, TrainError> {
        shard_names(&self.folder)
    }
    pub(crate) fn count(&mut self, names: &[String]) -> Result<Counts, TrainError> {
        let w = Window::open(
            &self.folder,
            names,
            &HashSet::new(),
            WindowOptions {
                games: u64::MAX,
                validation_share: self.validation_share,
            },
        )?;
        Ok(Counts {
            games: w.games() as u64,
            training_games: w.training_games() as u64,
            training_rows: w.training_rows(),
        })
    }
    pub(crate) fn window(&mut self, names: &[String], rows: u64) -> Result<Window, TrainError> {
        Window::open(
            &self.folder,
            names,
            &HashSet::new(),
            WindowOptions {
                games: rows,
                validation_share: self.validation_share,
            },
        )
    }
}
pub(crate) fn window_rows(config: &TrainConfig, _seen: u64) -> u64 {
    config.window_games
}
