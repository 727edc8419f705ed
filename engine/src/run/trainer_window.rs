//! `trainer.window`: which shards the trainer still reads, for the generators that remove old ones.

use super::directory::RunDirectory;
use super::error::RunError;
use super::io::{read_file, write_file};
use crate::files::{ChecksumForm, texts};
use crate::record::ShardName;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::PathBuf;

/// The bytes of such a file: a million shards have some 20 MB.
const MAX_BYTES: u64 = 1 << 30;

/// Which shards the trainer reads and which it will never read again. What is in neither list it has not seen yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerWindow {
    /// The shards of the present window.
    #[serde(with = "texts")]
    pub reads: Vec<ShardName>,
    /// The shards that the trainer has known and that are older than its window.
    #[serde(with = "texts")]
    pub left_behind: Vec<ShardName>,
}

impl RunDirectory {
    /// Writes what the trainer reads from now on.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn write_trainer_window(&self, window: &TrainerWindow) -> Result<(), RunError> {
        let path = self.trainer_window();
        match toml::to_string(window) {
            Ok(text) => write_file(&path, ChecksumForm::Toml.sign(&text).as_bytes()),
            Err(error) => Err(fault(path, error)),
        }
    }

    /// What the trainer reads; nothing where no trainer has worked on the run yet.
    ///
    /// # Errors
    ///
    /// A file that can't be read, or that holds something else.
    pub fn read_trainer_window(&self) -> Result<Option<TrainerWindow>, RunError> {
        let path = self.trainer_window();
        let Some(bytes) = read_file(&path, MAX_BYTES)? else {
            return Ok(None);
        };
        let parse = || {
            let text = ChecksumForm::Toml.read(bytes)?;
            toml::from_str(&text).map_err(|error| error.to_string())
        };
        parse().map(Some).map_err(|reason| fault(path, reason))
    }
}

fn fault(path: PathBuf, error: impl Display) -> RunError {
    let reason = error.to_string();
    RunError::TrainerWindow { path, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn name(sequence: u32) -> ShardName {
        ShardName {
            generator: 3,
            sequence,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        assert_eq!(run.read_trainer_window().unwrap(), None);
        for window in [
            TrainerWindow::default(),
            TrainerWindow {
                reads: vec![name(7), name(8)],
                left_behind: (0..7).map(name).collect(),
            },
        ] {
            run.write_trainer_window(&window).unwrap();
            assert_eq!(run.read_trainer_window().unwrap(), Some(window));
        }
        let text = fs::read_to_string(run.trainer_window()).unwrap();
        assert!(
            text.starts_with("reads = [\"003-000007.shard\", \"003-000008.shard\"]"),
            "{text}"
        );
    }

    #[test]
    fn a_file_of_another_form_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        for (text, reason) in [
            ("000-000001.shard\n", "000-000001"),
            ("reads = []", "left_behind"),
            ("reads = [\"nonsense\"]\nleft_behind = []", "`nonsense`: "),
            ("reads = []\nleft_behind = []\nmore = 1", "more"),
            (
                "reads = []\nleft_behind = []\n# checksum: 0123456789abcdef\n",
                "its checksum does not match",
            ),
        ] {
            fs::write(run.trainer_window(), text).unwrap();
            let message = run.read_trainer_window().unwrap_err().to_string();
            assert!(message.contains("trainer.window"), "{message}");
            assert!(message.contains(reason), "{message}");
        }
    }
}
