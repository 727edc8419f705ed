//! Values to bytes and back: the only place that knows bincode.
//!
//! bincode has no further development. The format is plain enough to be written and read without it (the layout stands in
//! [`shard`](super::shard)), and the configuration stays exactly this one.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use serde::{Serialize, de::DeserializeOwned};

/// The most bytes that a value may have. A game of 1,000 turns has about 300 KiB.
pub const MAX_CONTENT_BYTES: usize = 16 << 20;

type Format = Configuration<LittleEndian, Fixint, Limit<{ MAX_CONTENT_BYTES }>>;

const FORMAT: Format = bincode::config::standard()
    .with_little_endian()
    .with_fixed_int_encoding()
    .with_limit::<{ MAX_CONTENT_BYTES }>();

/// Why bytes are no value.
#[derive(Debug)]
pub(super) enum CodecError {
    /// They don't have the value's form.
    Form(String),
    /// So many bytes are left over behind the value.
    LeftOver(usize),
}

/// Writes a value into `bytes`, which is emptied first.
pub(super) fn encode(value: &impl Serialize, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    bytes.clear();
    bincode::serde::encode_into_std_write(value, bytes, FORMAT)
        .map_err(|error| CodecError::Form(error.to_string()))?;
    Ok(())
}

/// Reads a value that takes up all of `bytes`.
pub(super) fn decode<Value: DeserializeOwned>(bytes: &[u8]) -> Result<Value, CodecError> {
    let (value, used) = bincode::serde::decode_from_slice(bytes, FORMAT)
        .map_err(|error| CodecError::Form(error.to_string()))?;
    if used == bytes.len() {
        Ok(value)
    } else {
        Err(CodecError::LeftOver(bytes.len() - used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_claims_more_than_there_is_takes_no_memory() {
        let claim = u64::MAX.to_le_bytes();
        assert!(matches!(
            decode::<Vec<u16>>(&claim),
            Err(CodecError::Form(_))
        ));
    }

    #[test]
    fn bytes_behind_a_value_are_noticed() {
        let mut bytes = Vec::new();
        encode(&7u32, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 0, 0, 0]);
        assert_eq!(decode::<u32>(&bytes).unwrap(), 7);
        bytes.push(0);
        assert!(matches!(
            decode::<u32>(&bytes),
            Err(CodecError::LeftOver(1))
        ));
    }
}
