//! Files of games: what each is, and its games one after another.

use anyhow::Context;
use arimaa::notation::{
    ArchiveColumns, ArchiveLine, ArchiveReader, Conclusion, NotationError, RecordReader, RecordText,
};
use arimaa::rules::Game;
use clap::ValueEnum;
use engine::files::open_regular;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;
use std::sync::Arc;

/// The most bytes of a file.
const MAX_BYTES: u64 = 1 << 36;

/// How the games of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Records one after another, one turn a line
    Text,
    /// The official server's archive: a game a line, in columns that the first line names
    Archive,
}

/// A file that is being read.
pub(super) enum Source {
    Text(RecordReader<BufReader<File>>),
    Archive(ArchiveReader<BufReader<File>>, Arc<ArchiveColumns>),
}

/// A game that has not been parsed.
pub(super) enum Unread {
    Text(RecordText),
    Archive(ArchiveLine, Arc<ArchiveColumns>),
}

/// The text of a game, or why the file has none there.
pub(super) type UnreadGame = Result<Unread, NotationError>;

/// A game under the rules, and what its file says of it.
pub(super) struct PlayedGame {
    /// Where it begins in its file.
    pub(super) line: usize,
    pub(super) game: Game,
    pub(super) conclusion: Option<Conclusion>,
    /// Of Gold and Silver, where they are known.
    pub(super) ratings: [Option<f64>; 2],
    /// Whether it counted for the ratings, where that is known.
    pub(super) is_rated: Option<bool>,
}

/// The BLAKE3 hash of a file in hexadecimal digits, and its size in bytes. A pipe is refused: it can't be read a second time.
pub(super) fn digest_of(path: &Path) -> anyhow::Result<(String, u64)> {
    let place = || format!("can't read {}", path.display());
    let (file, bytes) = open_regular(path, MAX_BYTES).with_context(place)?;
    let mut hash = blake3::Hasher::new();
    hash.update_reader(file).with_context(place)?;
    Ok((hash.finalize().to_hex().to_string(), bytes))
}

impl Source {
    /// Opens a file; without a format, its first line says which it has.
    pub(super) fn open(path: &Path, format: Option<Format>) -> anyhow::Result<Self> {
        let place = || format!("can't read {}", path.display());
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).with_context(place)?);
        let format = match format {
            Some(format) => format,
            None => detect(file.fill_buf().with_context(place)?),
        };
        file.rewind().with_context(place)?;
        Ok(match format {
            Format::Text => Self::Text(RecordReader::new(file)),
            Format::Archive => {
                let reader =
                    ArchiveReader::new(file).with_context(|| path.display().to_string())?;
                let columns = Arc::new(reader.columns().clone());
                Self::Archive(reader, columns)
            }
        })
    }

    /// The next game, or why there is none in its place.
    pub(super) fn next(&mut self) -> Option<UnreadGame> {
        match self {
            Self::Text(reader) => reader.next_text().map(|text| text.map(Unread::Text)),
            Self::Archive(reader, columns) => {
                let unread = |line| Unread::Archive(line, Arc::clone(columns));
                reader.next_line().map(|line| line.map(unread))
            }
        }
    }
}

impl Unread {
    /// Its size in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.bytes(),
            Self::Archive(line, _) => line.bytes(),
        }
    }

    /// Reads the game.
    pub(super) fn read(&self) -> Result<PlayedGame, NotationError> {
        match self {
            Self::Archive(line, columns) => {
                let game = columns.read(line)?;
                Ok(PlayedGame {
                    line: game.line,
                    game: game.game,
                    conclusion: game.conclusion,
                    ratings: [game.gold.rating, game.silver.rating],
                    is_rated: game.is_rated,
                })
            }
            Self::Text(text) => {
                let game = text.read()?;
                Ok(PlayedGame {
                    line: game.line,
                    game: game.game,
                    conclusion: game.conclusion,
                    ratings: [None; 2],
                    is_rated: None,
                })
            }
        }
    }
}

/// An archive's first line names a column of movelists; a record's has no tab in it.
fn detect(start: &[u8]) -> Format {
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or(start);
    let mut names = line.split(|&byte| byte == b'\t').map(<[u8]>::trim_ascii);
    if names.any(|name| name.ends_with(b"movelist")) && line.contains(&b'\t') {
        Format::Archive
    } else {
        Format::Text
    }
}
