//! Reading a shard, which may be anything.

mod resync;

use super::error::{ShardError, ShardFault};
use super::frame::{
    Content, FRAME_HEAD_BYTES, FrameHead, MAGIC, MAX_FRAME_BYTES, START_BYTES, Unpacker,
};
use crate::record::game::{FORMAT_VERSION, GameRecord, Header};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where a frame is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLocation {
    /// Which frame it is: 0 is the header, games count from 1.
    pub frame: u64,
    /// Its first byte in the file.
    pub offset: u64,
}

/// Reads a shard: the iterator gives its games in order.
///
/// A frame that can't be read is an error of its own, and the iterator continues behind it as long as the frame's length can be
/// true; [`resync`](Self::resync) finds what is behind it in any case. A file whose games have all come without an error, up to the iterator's end, is exactly what was written: whole,
/// and with nothing behind it.
pub struct ShardReader {
    frames: FrameReader,
    header: Header,
    first_game: FrameLocation,
    next: FrameLocation,
    last: FrameLocation,
    last_was_bad: bool,
    /// Whether the last frame could not be read at all, so that its length may be wrong too.
    last_was_damaged: bool,
    /// Whether no frame was passed over unseen.
    frames_are_counted: bool,
    done: bool,
}

impl ShardReader {
    /// Opens a shard and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ShardError> {
        let mut frames = FrameReader::open(path.as_ref())?;
        let at = FrameLocation {
            frame: 0,
            offset: START_BYTES,
        };
        let (content, end) = frames.read(at.offset);
        let header = match content {
            Ok(Content::Header {
                format_version,
                header,
            }) if format_version == FORMAT_VERSION => Ok(header),
            Ok(Content::Header { format_version, .. }) => Err(ShardFault::Versions {
                start: FORMAT_VERSION,
                header: format_version,
            }),
            Ok(content) => Err(content.instead_of("header")),
            Err(fault) => Err(fault),
        };
        let header = header.map_err(|fault| frames.error(at, fault))?;
        let first_game = FrameLocation {
            frame: 1,
            // A header that was read has an end.
            offset: end.unwrap_or(frames.bytes),
        };
        Ok(Self {
            frames,
            header,
            first_game,
            next: first_game,
            last: at,
            last_was_bad: false,
            last_was_damaged: false,
            frames_are_counted: true,
            done: false,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.frames.path
    }

    /// The file's size when it was opened, in bytes.
    pub fn bytes(&self) -> u64 {
        self.frames.bytes
    }

    /// What all its games have in common.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the game (or the error) that the iterator gave last is in the file.
    pub fn last_location(&self) -> FrameLocation {
        self.last
    }

    /// The first byte of every game's frame, for [`read_at`](Self::read_at). Only lengths and the end frame are read; the games
    /// are not checked, but a shard that is not whole is an error. The iterator is not moved.
    pub fn frame_offsets(&mut self) -> Result<Vec<u64>, ShardError> {
        let mut offsets = Vec::new();
        let mut at = self.first_game;
        while at.offset < self.frames.bytes {
            offsets.push(at.offset);
            let end = self.frames.read_head(at.offset).map(|(_, end)| end);
            at = FrameLocation {
                frame: at.frame + 1,
                offset: end.map_err(|fault| self.frames.error(at, fault))?,
            };
        }
        let Some(offset) = offsets.pop() else {
            return Err(self.frames.error(at, ShardFault::CutOff));
        };
        let at = FrameLocation {
            frame: at.frame - 1,
            offset,
        };
        let found = offsets.len() as u64;
        match self.frames.read(offset).0 {
            Ok(Content::End { games }) if games == found => Ok(offsets),
            Ok(Content::End { games: stated }) => {
                Err(self.frames.error(at, ShardFault::Count { stated, found }))
            }
            Ok(_) => Err(self.frames.error(at, ShardFault::CutOff)),
            Err(fault) => Err(self.frames.error(at, fault)),
        }
    }

    /// The game whose frame begins at a byte of the file. The iterator is not moved.
    pub fn read_at(&mut self, offset: u64) -> Result<GameRecord, ShardError> {
        match self.frames.read(offset).0 {
            Ok(Content::Game(record)) => Ok(record),
            Ok(content) => Err(content.instead_of("game")),
            Err(fault) => Err(fault),
        }
        .map_err(|fault| ShardError::at(self.path(), offset, fault))
    }

    /// The game or fault of the next frame; none behind the end frame, where all is well.
    fn next_game(&mut self) -> Option<Result<GameRecord, ShardFault>> {
        if self.next.offset >= self.frames.bytes {
            self.done = true;
            // A last frame that was bad may have been the end, and has been named.
            return (!self.last_was_bad).then_some(Err(ShardFault::CutOff));
        }
        let (content, end) = self.frames.read(self.next.offset);
        self.last_was_damaged = content.is_err();
        match end {
            Some(offset) => {
                self.next = FrameLocation {
                    frame: self.next.frame + 1,
                    offset,
                }
            }
            None => self.done = true,
        }
        match content {
            Ok(Content::Game(record)) => Some(Ok(record)),
            Ok(Content::End { games }) => {
                self.done = true;
                self.fault_at_end(games).map(Err)
            }
            Ok(content) => Some(Err(content.instead_of("game"))),
            Err(fault) => Some(Err(fault)),
        }
    }

    /// What is wrong with an end frame that was just read.
    fn fault_at_end(&self, stated: u64) -> Option<ShardFault> {
        let found = self.last.frame - self.first_game.frame;
        let trailing = self.frames.bytes - self.next.offset;
        if trailing > 0 {
            Some(ShardFault::Trailing { bytes: trailing })
        } else if stated != found && self.frames_are_counted {
            Some(ShardFault::Count { stated, found })
        } else {
            None
        }
    }
}

impl Iterator for ShardReader {
    type Item = Result<GameRecord, ShardError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        self.last = self.next;
        self.last_was_damaged = false;
        let game = self.next_game()?;
        self.last_was_bad = game.is_err();
        Some(game.map_err(|fault| self.frames.error(self.last, fault)))
    }
}

/// Reads single frames of a file.
struct FrameReader {
    path: PathBuf,
    file: File,
    /// The file's size when it was opened.
    bytes: u64,
    /// The bytes that looked like frames' payloads and were none.
    decoys: u64,
    payload: Vec<u8>,
    unpacker: Unpacker,
}

impl FrameReader {
    /// Opens a file whose magic and version are right.
    fn open(path: &Path) -> Result<Self, ShardError> {
        let of_file = |fault| ShardError::of_file(path, fault);
        let io = |error: std::io::Error| of_file(error.into());
        // Asked before opening: a pipe would wait for its writer.
        let metadata = std::fs::metadata(path).map_err(io)?;
        if !metadata.is_file() || metadata.len() < START_BYTES {
            return Err(of_file(ShardFault::NotAShard));
        }
        let file = File::open(path).map_err(io)?;
        let frames = Self {
            path: path.to_owned(),
            file,
            bytes: metadata.len(),
            decoys: 0,
            payload: Vec::new(),
            unpacker: Unpacker::new().map_err(of_file)?,
        };
        if frames.read_array(0).map_err(of_file)? != MAGIC {
            return Err(of_file(ShardFault::NotAShard));
        }
        let version = MAGIC.len() as u64;
        let at_version = |fault| ShardError::at(path, version, fault);
        let found = u32::from_le_bytes(frames.read_array(version).map_err(at_version)?);
        if found != FORMAT_VERSION {
            return Err(at_version(ShardFault::Version { found }));
        }
        Ok(frames)
    }

    /// What the frame at a byte holds, and where the next one begins: none where the length can't be true.
    fn read(&mut self, offset: u64) -> (Result<Content, ShardFault>, Option<u64>) {
        let (head, end) = match self.read_head(offset) {
            Ok((head, end)) => (head, end),
            Err(fault) => return (Err(fault), None),
        };
        let content = self.read_payload(offset + FRAME_HEAD_BYTES, head);
        (content, Some(end))
    }

    fn read_payload(&mut self, offset: u64, head: FrameHead) -> Result<Content, ShardFault> {
        // The length is at most `MAX_FRAME_BYTES`, and all of it is in the file.
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(head.length as usize, 0);
        let read = self.file.read_exact_at(&mut payload, offset);
        let content = read
            .map_err(ShardFault::from)
            .and_then(|()| self.unpacker.unpack(head, &payload));
        self.payload = payload;
        content
    }

    /// Length and checksum of the frame at a byte, and where the next one begins.
    fn read_head(&self, offset: u64) -> Result<(FrameHead, u64), ShardFault> {
        let begin = match offset.checked_add(FRAME_HEAD_BYTES) {
            Some(begin) if begin <= self.bytes => begin,
            _ => return Err(ShardFault::CutOff),
        };
        let head = FrameHead::from_bytes(self.read_array(offset)?);
        let left = (self.bytes - begin).min(MAX_FRAME_BYTES.into()) as u32;
        if head.length > left {
            let length = head.length;
            return Err(ShardFault::Length { length, left });
        }
        Ok((head, begin + u64::from(head.length)))
    }

    fn read_array<const COUNT: usize>(&self, offset: u64) -> Result<[u8; COUNT], ShardFault> {
        let mut bytes = [0; COUNT];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    fn error(&self, at: FrameLocation, fault: ShardFault) -> ShardError {
        ShardError {
            path: self.path.clone(),
            frame: Some(at.frame),
            offset: at.offset,
            fault,
        }
    }
}
