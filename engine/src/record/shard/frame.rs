//! One frame: value to content to payload to frame, and back. Nothing is believed before the checksum is right, and nothing
//! is allocated on the word of the file alone.

use super::error::ShardFault;
use crate::record::codec::{self, CodecError, MAX_CONTENT_BYTES};
use crate::record::game::{FORMAT_VERSION, GameRecord, Header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe;

/// The first bytes of every shard. A copy that changed line ends or dropped the eighth bit is noticed at once.
pub(crate) const MAGIC: [u8; 8] = *b"Tusker\r\n";

/// Magic and format version, in bytes: where the header's frame begins.
pub(super) const START_BYTES: u64 = 12;

/// The most bytes that a frame's payload may have.
pub const MAX_FRAME_BYTES: u32 = MAX_CONTENT_BYTES as u32;

/// The bytes of a frame before its payload: length and checksum.
pub(super) const FRAME_HEAD_BYTES: u64 = 8;

/// Visit shares take 29 bytes a row (improved policies 47), at 9,000 games a second and core; level 9 saves 4% at a sixth of the
/// speed.
const COMPRESSION_LEVEL: i32 = 3;

/// What a frame holds; borrowed for writing, owned when read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Content<HeaderPart = Header, GamePart = GameRecord> {
    Header {
        format_version: u32,
        header: HeaderPart,
    },
    Game(GamePart),
    End {
        games: u64,
    },
}

impl<HeaderPart, GamePart> Content<HeaderPart, GamePart> {
    /// The fault of this frame where one of another kind is due.
    pub(super) fn instead_of(&self, expected: &'static str) -> ShardFault {
        let found = match self {
            Self::Header { .. } => "header",
            Self::Game(_) => "game",
            Self::End { .. } => "end",
        };
        ShardFault::Kind { found, expected }
    }
}

pub(crate) type ContentToWrite<'a> = Content<&'a Header, &'a GameRecord>;

impl<'a> ContentToWrite<'a> {
    pub(crate) fn header(header: &'a Header) -> Self {
        Self::Header {
            format_version: FORMAT_VERSION,
            header,
        }
    }
}

/// The length and the checksum that stand before a payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHead {
    pub(super) length: u32,
    pub(super) checksum: u32,
}

impl FrameHead {
    fn of(payload: &[u8]) -> Result<Self, ShardFault> {
        match u32::try_from(payload.len()) {
            Ok(length) if length <= MAX_FRAME_BYTES => Ok(Self {
                length,
                checksum: crc32c::crc32c(payload),
            }),
            _ => Err(ShardFault::TooLarge {
                bytes: payload.len() as u64,
                limit: MAX_FRAME_BYTES.into(),
            }),
        }
    }

    pub(super) fn from_bytes(bytes: [u8; FRAME_HEAD_BYTES as usize]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            length: u32::from_le_bytes([a, b, c, d]),
            checksum: u32::from_le_bytes([e, f, g, h]),
        }
    }
}

/// Makes frames.
pub(crate) struct Packer {
    compressor: Compressor<'static>,
    content: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> Result<Self, ShardFault> {
        Ok(Self {
            compressor: Compressor::new(COMPRESSION_LEVEL)?,
            content: Vec::new(),
        })
    }

    /// The whole frame: length, checksum and payload.
    pub(crate) fn pack(&mut self, content: &ContentToWrite) -> Result<Vec<u8>, ShardFault> {
        codec::encode(content, &mut self.content)?;
        if self.content.len() > MAX_CONTENT_BYTES {
            return Err(ShardFault::TooLarge {
                bytes: self.content.len() as u64,
                limit: MAX_CONTENT_BYTES as u64,
            });
        }
        frame_of(&self.compressor.compress(&self.content)?)
    }
}

/// A payload behind its length and checksum.
pub(crate) fn frame_of(payload: &[u8]) -> Result<Vec<u8>, ShardFault> {
    let head = FrameHead::of(payload)?;
    let mut frame = Vec::with_capacity(FRAME_HEAD_BYTES as usize + payload.len());
    frame.extend(head.length.to_le_bytes());
    frame.extend(head.checksum.to_le_bytes());
    frame.extend(payload);
    Ok(frame)
}

/// Opens payloads.
pub(super) struct Unpacker {
    decompressor: Decompressor<'static>,
    content: Vec<u8>,
}

impl Unpacker {
    pub(super) fn new() -> Result<Self, ShardFault> {
        Ok(Self {
            decompressor: Decompressor::new()?,
            content: Vec::new(),
        })
    }

    /// What a payload holds, in the form of its format version.
    pub(super) fn unpack<GamePart: DeserializeOwned>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Content<Header, GamePart>, ShardFault> {
        let computed = crc32c::crc32c(payload);
        if computed != head.checksum {
            return Err(ShardFault::Checksum {
                stored: head.checksum,
                computed,
            });
        }
        self.decompress(payload)?;
        Ok(codec::decode(&self.content)?)
    }

    /// Decompresses a payload, for which no more memory is taken than [`MAX_CONTENT_BYTES`].
    fn decompress(&mut self, payload: &[u8]) -> Result<(), ShardFault> {
        let broken = |reason: &str| ShardFault::Compression(reason.to_owned());
        let size = match zstd_safe::get_frame_content_size(payload) {
            Ok(Some(size)) => size,
            Ok(None) => return Err(broken("its size is not stated")),
            Err(_) => return Err(broken("it is no zstd frame")),
        };
        if size > MAX_CONTENT_BYTES as u64 {
            return Err(ShardFault::TooLarge {
                bytes: size,
                limit: MAX_CONTENT_BYTES as u64,
            });
        }
        let taken = zstd_safe::find_frame_compressed_size(payload)
            .map_err(|code| broken(zstd_safe::get_error_name(code)))?;
        if taken != payload.len() {
            return Err(ShardFault::LeftOver {
                bytes: payload.len() - taken,
            });
        }
        self.content.clear();
        self.content.reserve(size as usize);
        self.decompressor
            .decompress_to_buffer(payload, &mut self.content)
            .map_err(|error| broken(&error.to_string()))?;
        if self.content.len() as u64 == size {
            Ok(())
        } else {
            Err(broken("its size is not the one stated"))
        }
    }
}

impl From<CodecError> for ShardFault {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Form(reason) => Self::Content(reason),
            CodecError::LeftOver(bytes) => Self::LeftOver { bytes },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(payload: &[u8]) -> Result<Content, ShardFault> {
        Unpacker::new()?.unpack(FrameHead::of(payload)?, payload)
    }

    #[test]
    fn a_bomb_is_refused_by_its_stated_size() {
        let zeros = vec![0; MAX_CONTENT_BYTES + 1];
        let bomb = zstd::bulk::compress(&zeros, 3).unwrap();
        assert!(bomb.len() < 10_000);
        match unpack(&bomb) {
            Err(ShardFault::TooLarge { bytes, .. }) => assert_eq!(bytes, zeros.len() as u64),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_bomb_that_hides_its_size_is_refused() {
        let hidden = zstd::stream::encode_all(&vec![0; 1 << 20][..], 3).unwrap();
        assert!(matches!(
            zstd_safe::get_frame_content_size(&hidden),
            Ok(None)
        ));
        assert!(matches!(unpack(&hidden), Err(ShardFault::Compression(_))));
    }

    #[test]
    fn a_second_zstd_frame_behind_the_first_is_refused() {
        let mut payload = zstd::bulk::compress(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 3).unwrap();
        assert!(matches!(unpack(&payload), Ok(Content::End { games: 0 })));
        let second = zstd::bulk::compress(&[], 3).unwrap();
        payload.extend(&second);
        match unpack(&payload) {
            Err(ShardFault::LeftOver { bytes }) => assert_eq!(bytes, second.len()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn content_that_is_too_short_too_long_or_of_no_kind_is_refused() {
        let compressed = |content: &[u8]| zstd::bulk::compress(content, 3).unwrap();
        let end = [2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0];
        let short = unpack(&compressed(&end[..11]));
        assert!(matches!(short, Err(ShardFault::Content(_))), "{short:?}");
        let long = unpack(&compressed(&[&end[..], &[0]].concat()));
        assert!(matches!(long, Err(ShardFault::LeftOver { bytes: 1 })));
        let kind = unpack(&compressed(&[3, 0, 0, 0]));
        assert!(matches!(kind, Err(ShardFault::Content(_))), "{kind:?}");
        assert!(matches!(unpack(&[]), Err(ShardFault::Compression(_))));
        assert!(matches!(
            unpack(b"nothing"),
            Err(ShardFault::Compression(_))
        ));
    }
}
