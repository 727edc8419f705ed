//! Files and folders of a run, with errors that name them.

use super::error::RunError;
use crate::files;
use std::io;
use std::path::{Path, PathBuf};

/// Makes a folder and those above it.
pub fn make_folder(path: &Path) -> Result<(), RunError> {
    files::make_folders(path).map_err(RunError::io("make the folder", path))
}

/// Makes a folder that only one of several programs can make; false if it is there already.
pub(super) fn claim_folder(path: &Path) -> Result<bool, RunError> {
    match files::make_new_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        made => made
            .map(|()| true)
            .map_err(RunError::io("make the folder", path)),
    }
}

/// What is in a folder; nothing where there is no folder.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    match files::entries(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(RunError::io("read the folder", folder)),
    }
}

/// Writes a file of the run, whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    files::write_whole(path, bytes).map_err(RunError::io("write", path))
}

/// Reads a whole file of at most `limit` bytes, if it is there.
pub(super) fn read_file(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RunError> {
    match files::read_whole(path, limit) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => bytes.map(Some).map_err(RunError::io("read", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_can_t_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let message = write_file(&folder.path().join("missing").join("file"), b"x")
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("can't write") && message.contains("missing/file"),
            "{message}"
        );
    }
}
