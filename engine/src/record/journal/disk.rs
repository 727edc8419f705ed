//! The disk under a journal: another in tests, where disks fill up and fail.

use crate::files;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file that is written.
pub(super) trait Storage: Send + Sync {
    /// Writes bytes from a place on, through to the operating system. After an error any part of them may be there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Flushes the file's content to the disk.
    fn sync(&self) -> io::Result<()>;
}

/// Where files are made and get their names.
pub(super) trait Disk: Send + Sync {
    /// An empty file of this name, whatever was there.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Storage>>;
    /// Gives a file another name, at once and whole. After an error it may have either.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Flushes the folder of a file, so that renamings outlast a power cut.
    fn sync_folder_of(&self, path: &Path) -> io::Result<()>;
    /// Removes a file, if it is there.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

impl Storage for File {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // A turn is written every few microseconds where searches are cheap.
        files::write_all_at(self, bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        files::set_length(self, length)
    }

    fn sync(&self) -> io::Result<()> {
        files::sync(self)
    }
}

/// The operating system's.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileSystem;

impl Disk for FileSystem {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Storage>> {
        Ok(Arc::new(files::create(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        files::rename(from, to)
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        files::sync_folder_of(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match files::remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
