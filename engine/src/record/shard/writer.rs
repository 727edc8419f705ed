//! Writing a shard.

use super::error::{ShardError, ShardFault};
use super::frame::{ContentToWrite, MAGIC, Packer};
use super::name::ShardName;
use crate::files::{self, Temporary};
use crate::record::game::{FORMAT_VERSION, GameRecord, Header};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A shard that is being written, under a temporary name in its folder. Only [`finish`](Self::finish) gives it its own name;
/// dropped before that, it leaves nothing.
pub struct ShardWriter {
    path: PathBuf,
    file: BufWriter<Temporary>,
    packer: Packer,
    games: u64,
    bytes: u64,
    failed: bool,
}

impl ShardWriter {
    /// Begins a shard in a folder that is there.
    pub fn create(folder: &Path, name: ShardName, header: &Header) -> Result<Self, ShardError> {
        let path = folder.join(name.to_string());
        let fault = |fault| ShardError::of_file(&path, fault);
        if path.exists() {
            return Err(fault(ShardFault::Exists));
        }
        let file = files::temporary_as(folder, &unfinished(name.generator));
        let file = file.map_err(|error| fault(error.into()))?;
        let mut writer = Self {
            packer: Packer::new().map_err(fault)?,
            path,
            file: BufWriter::new(file),
            games: 0,
            bytes: 0,
            failed: false,
        };
        let start = [&MAGIC[..], &FORMAT_VERSION.to_le_bytes()].concat();
        writer.write(&start)?;
        writer.write_frame(&ContentToWrite::header(header))?;
        Ok(writer)
    }

    /// Adds a game. A record too large for a frame is refused, and the shard stays good; after a failed write it is given up.
    pub fn push(&mut self, record: &GameRecord) -> Result<(), ShardError> {
        self.write_frame(&ContentToWrite::Game(record))?;
        self.games += 1;
        Ok(())
    }

    /// The games written so far.
    pub fn len(&self) -> usize {
        self.games as usize
    }

    /// The bytes written so far, the end frame not among them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether no game has been written.
    pub fn is_empty(&self) -> bool {
        self.games == 0
    }

    /// Completes the shard: once this returns, it is on the disk under its own name. An existing file is never replaced.
    pub fn finish(mut self) -> Result<PathBuf, ShardError> {
        let games = self.games;
        self.write_frame(&ContentToWrite::End { games })?;
        let Self { path, file, .. } = self;
        match publish(file, &path) {
            Ok(()) => Ok(path),
            Err(fault) => Err(ShardError::of_file(&path, fault)),
        }
    }

    fn write_frame(&mut self, content: &ContentToWrite) -> Result<(), ShardError> {
        let frame = self
            .packer
            .pack(content)
            .map_err(|fault| ShardError::of_file(&self.path, fault))?;
        self.write(&frame)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ShardError> {
        let result = if self.failed {
            Err(ShardFault::GivenUp)
        } else {
            self.bytes += bytes.len() as u64;
            self.file.write_all(bytes).map_err(ShardFault::from)
        };
        result.map_err(|fault| {
            self.failed = true;
            ShardError::of_file(&self.path, fault)
        })
    }
}

/// How the temporary names of a generator's shards begin.
fn unfinished(generator: u32) -> String {
    format!(".{generator:03}-")
}

/// Removes the shards that a killed generator has left under their temporary names. No program may be writing under its number.
///
/// # Errors
///
/// What the disk says, at the first file that can't be removed.
pub fn remove_unfinished(folder: &Path, generator: u32) -> Result<(), ShardError> {
    let removed = files::remove_temporaries(folder, &unfinished(generator));
    removed.map_err(|error| ShardError::of_file(folder, error))
}

/// Flushes a file to the disk, gives it its name, and flushes the folder that now knows it.
fn publish(file: BufWriter<Temporary>, path: &Path) -> Result<(), ShardFault> {
    let file = file.into_inner().map_err(|error| error.into_error())?;
    files::publish_new(file, path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => ShardFault::Exists,
        _ => error.into(),
    })
}
