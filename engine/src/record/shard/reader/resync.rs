//! Finding the next whole frame behind one that can't be read.

use super::super::error::{ShardError, ShardFault};
use super::{FRAME_HEAD_BYTES, FrameLocation, FrameReader, ShardReader};
use std::os::unix::fs::FileExt;

/// What every payload begins with: the magic number of zstd frames.
const PAYLOAD_MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The bytes of a file that are searched at once.
const WINDOW_BYTES: usize = 8 << 10;

/// The bytes that a reader checks of what looks like frames and is none, before it gives up. Chance makes about one such place
/// in 2⁴⁰ bytes: a length that can be true, and the magic number behind it.
const DECOY_BYTES: u64 = 1 << 30;

impl ShardReader {
    /// Continues behind a frame that could not be read: the iterator gives next what is in the nearest frame behind that frame's
    /// first byte that is whole, wherever it begins. Without this, the iterator trusts the bad frame's length, and ends where that
    /// can't be true. Nothing is done where the iterator's last frame could be read, or was the shard's end.
    ///
    /// Gives where the next frame is, if there is one more. How many frames were lost on the way is not known: they are counted
    /// as one from here on, and the count in the end frame is no longer held against the games that were found.
    ///
    /// An error says that the file could not be read, or that the search was given up
    /// ([`ShardFault::Decoys`]); the iterator has ended then.
    pub fn resync(&mut self) -> Result<Option<FrameLocation>, ShardError> {
        if self.last_was_damaged {
            let found = self.frames.find_frame(self.last.offset + 1);
            let expected = self.next;
            self.next.frame = self.last.frame + 1;
            match found {
                Ok(Some(offset)) => {
                    self.next.offset = offset;
                    self.done = false;
                    self.frames_are_counted &= self.next == expected;
                }
                Ok(None) => self.done = true,
                Err(fault) => {
                    self.done = true;
                    return Err(self.frames.error(self.last, fault));
                }
            }
            self.last_was_damaged = false;
        }
        Ok((!self.done).then_some(self.next))
    }
}

impl FrameReader {
    /// The first byte of the first whole frame that begins at a byte or behind it.
    fn find_frame(&mut self, from: u64) -> Result<Option<u64>, ShardFault> {
        let mut window = [0; WINDOW_BYTES];
        // Where a payload may begin.
        let mut begin = from.saturating_add(FRAME_HEAD_BYTES);
        while let left @ 4.. = self.bytes.saturating_sub(begin) {
            let window = &mut window[..left.min(WINDOW_BYTES as u64) as usize];
            self.file.read_exact_at(window, begin)?;
            for place in places_of(&PAYLOAD_MAGIC, window) {
                let payload = begin + place as u64;
                if self.is_whole(payload)? {
                    return Ok(Some(payload - FRAME_HEAD_BYTES));
                }
            }
            // The magic number may lie across the windows' border.
            begin += (window.len() - (PAYLOAD_MAGIC.len() - 1)) as u64;
        }
        Ok(None)
    }

    /// Whether a payload that is whole begins at a byte, behind its length and checksum.
    fn is_whole(&mut self, payload: u64) -> Result<bool, ShardFault> {
        let Ok((head, _)) = self.read_head(payload - FRAME_HEAD_BYTES) else {
            return Ok(false);
        };
        match self.read_payload(payload, head) {
            Ok(_) => Ok(true),
            Err(fault @ ShardFault::Io(_)) => Err(fault),
            Err(_) => {
                self.decoys += u64::from(head.length);
                if self.decoys > DECOY_BYTES {
                    return Err(ShardFault::Decoys { bytes: self.decoys });
                }
                Ok(false)
            }
        }
    }
}

/// Where a pattern begins in some bytes, in order.
fn places_of<'a>(pattern: &'a [u8; 4], bytes: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = bytes.windows(pattern.len()).enumerate();
    windows.filter_map(move |(place, window)| (window == pattern).then_some(place))
}

#[cfg(test)]
mod tests;
