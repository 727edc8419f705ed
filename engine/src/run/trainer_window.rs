//! `trainer.window`: what the trainer says of the run's shards, for the generators that remove old ones.

use super::{RunDirectory, RunError, write_file};
use crate::files;
use crate::record::ShardName;
use serde::{Deserialize, Serialize};
use std::io;

/// The bytes of such a file: a million shards have some 20 MB.
const LARGEST: u64 = 1 << 30;

/// Which shards the trainer reads and which it will never read again. What is in neither list it has not seen yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrainerWindow {
    /// The shards of the present window.
    pub reads: Vec<ShardName>,
    /// The shards that the trainer has known and that are older than its window.
    pub left_behind: Vec<ShardName>,
}

/// As written: the names are their files'.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    reads: Vec<String>,
    left_behind: Vec<String>,
}

impl RunDirectory {
    /// Says what the trainer reads from now on.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub fn write_trainer_window(&self, window: &TrainerWindow) -> Result<(), RunError> {
        let names = |shards: &[ShardName]| shards.iter().map(ShardName::to_string).collect();
        let written = Written {
            reads: names(&window.reads),
            left_behind: names(&window.left_behind),
        };
        let path = self.trainer_window();
        let text = toml::to_string(&written).map_err(|error| RunError::TrainerWindow {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        write_file(&path, text.as_bytes())
    }

    /// What the trainer reads; nothing where no trainer has worked on the run yet.
    ///
    /// # Errors
    ///
    /// A file that can't be read, or that says nothing of the kind.
    pub fn read_trainer_window(&self) -> Result<Option<TrainerWindow>, RunError> {
        let path = self.trainer_window();
        let bytes = match files::read_whole(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let what = "read";
                return Err(RunError::Io { what, path, error });
            }
        };
        match parse(&bytes) {
            Ok(window) => Ok(Some(window)),
            Err(reason) => Err(RunError::TrainerWindow { path, reason }),
        }
    }
}

fn parse(bytes: &[u8]) -> Result<TrainerWindow, String> {
    let written: Written = toml::from_slice(bytes).map_err(|error| error.to_string())?;
    let names = |texts: Vec<String>| -> Result<Vec<ShardName>, String> {
        let name = |text: String| {
            let parsed = text.parse::<ShardName>();
            parsed.map_err(|reason| format!("`{text}`: {reason}"))
        };
        texts.into_iter().map(name).collect()
    };
    Ok(TrainerWindow {
        reads: names(written.reads)?,
        left_behind: names(written.left_behind)?,
    })
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
    fn what_says_nothing_of_the_kind_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        for (text, reason) in [
            ("000-000001.shard\n", "000-000001"),
            ("reads = []", "left_behind"),
            ("reads = [\"nonsense\"]\nleft_behind = []", "`nonsense`: "),
            ("reads = []\nleft_behind = []\nmore = 1", "more"),
        ] {
            fs::write(run.trainer_window(), text).unwrap();
            let message = run.read_trainer_window().unwrap_err().to_string();
            assert!(message.contains("trainer.window"), "{message}");
            assert!(message.contains(reason), "{message}");
        }
    }
}
