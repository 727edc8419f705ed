//! The version of a run's layout, so that a program leaves alone what it does not understand.
//!
//! `format.toml` holds `format = 1` and, as information, `program`, the version of the program that made the run.

use super::{RunDirectory, RunError, make_folder};
use crate::files;
use serde::Deserialize;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The format of runs that this program makes and works on.
pub const RUN_FORMAT: u32 = 1;

/// What is read of the file. Later formats may say more in it.
#[derive(Deserialize)]
struct RunFormat {
    format: u32,
}

impl RunDirectory {
    /// `format.toml`.
    pub fn format(&self) -> PathBuf {
        self.root().join("format.toml")
    }

    /// Refuses a run of another format. One that doesn't say its format is of the first, as one that isn't there yet.
    pub fn check_format(&self) -> Result<(), RunError> {
        let path = self.format();
        let io = |error: io::Error| RunError::Io {
            what: "read",
            path: path.clone(),
            error,
        };
        let text = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io(error)),
            Ok(_) => files::read_whole(&path, 1 << 20).map_err(io)?,
        };
        match toml::from_slice::<RunFormat>(&text) {
            Ok(RunFormat { format: RUN_FORMAT }) => Ok(()),
            Ok(RunFormat { format: found }) => Err(RunError::Format {
                path: self.root().to_owned(),
                found,
            }),
            Err(error) => Err(RunError::FormatFile {
                path,
                reason: error.message().to_owned(),
            }),
        }
    }

    /// Refuses a run of another format, and makes one that doesn't say its format say so, its folder too if need be. Several programs
    /// may do so at once: the first one's file stays.
    pub fn ensure_format(&self) -> Result<(), RunError> {
        make_folder(self.root())?;
        let path = self.format();
        let program = env!("CARGO_PKG_VERSION");
        let text = format!("format = {RUN_FORMAT}\nprogram = \"{program}\"\n");
        let is_there = path.try_exists().map_err(|error| (error, "read"));
        let written = is_there.and_then(|is_there| match is_there {
            true => Ok(false),
            false => files::write_new(&path, text.as_bytes()).map_err(|error| (error, "write")),
        });
        written.map_err(|(error, what)| RunError::Io { what, path, error })?;
        self.check_format()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_its_format_once() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path().join("run"));
        run.check_format().unwrap();
        assert!(!run.root().exists(), "looking makes nothing");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| run.ensure_format().unwrap());
            }
        });
        let text = fs::read_to_string(run.format()).unwrap();
        assert!(text.starts_with("format = 1\nprogram = \""), "{text}");
        assert_eq!(fs::read_dir(run.root()).unwrap().count(), 1);
        // What another program of the format has written stays.
        fs::write(run.format(), "format = 1\nprogram = \"other\"\nmore = 1\n").unwrap();
        run.ensure_format().unwrap();
        assert!(fs::read_to_string(run.format()).unwrap().contains("other"));
    }

    #[test]
    fn a_run_of_another_format_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        let later = "format = 2\nlayout = [\"new\"]\n";
        fs::write(run.format(), later).unwrap();
        for refused in [run.check_format(), run.ensure_format()] {
            let message = refused.unwrap_err().to_string();
            let name = folder.path().display().to_string();
            assert!(message.starts_with(&name), "{message}");
            assert!(message.contains("format 2; this") && message.ends_with("format 1"));
        }
        assert_eq!(fs::read_to_string(run.format()).unwrap(), later);
        for nonsense in ["", "format = \"one\"", "format = -1", "\u{0}"] {
            fs::write(run.format(), nonsense).unwrap();
            let message = run.ensure_format().unwrap_err().to_string();
            assert!(message.contains("format.toml does not say"), "{message}");
        }
        fs::remove_file(run.format()).unwrap();
        fs::create_dir(run.format()).unwrap();
        assert!(run.ensure_format().is_err());
    }
}
