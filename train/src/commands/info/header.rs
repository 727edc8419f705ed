//! The metadata of a safetensors file, which tells networks from checkpoints without reading their tensors.

use crate::trainer::{bad_batch, checkpoint};
use engine::files::open_regular;
use serde_json::Value;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a header that are read.
const MAX_BYTES: u64 = 16 << 20;

/// The first bytes of every shard.
const SHARD: &[u8] = b"Tusker\r\n";

/// The kind of a file, by the name of its metadata. The metadata itself may be damaged.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FileHeader {
    Network,
    Checkpoint,
    /// Neither: what it is, in words.
    Other(String),
}

/// The header of a file. The rest of the file isn't checked.
///
/// # Errors
///
/// Fails where the file can't be read.
pub(super) fn read(path: &Path) -> io::Result<FileHeader> {
    let (mut file, _) = open_regular(path, u64::MAX)?;
    let mut beginning = Vec::new();
    file.by_ref().take(8).read_to_end(&mut beginning)?;
    let Ok(length) = <[u8; 8]>::try_from(beginning.as_slice()) else {
        let found = match beginning.len() {
            0 => "the file is empty".to_owned(),
            bytes => format!("it has no more than {bytes} bytes"),
        };
        return Ok(FileHeader::Other(found));
    };
    if beginning == SHARD {
        let found = "it is a shard of games, which `selfplay inspect` describes";
        return Ok(FileHeader::Other(found.to_owned()));
    }
    let length = u64::from_le_bytes(length);
    let mut header = Vec::new();
    if length <= MAX_BYTES {
        file.take(length).read_to_end(&mut header)?;
    }
    Ok(of_header(&header, &beginning))
}

fn of_header(header: &[u8], beginning: &[u8]) -> FileHeader {
    let Ok(Value::Object(header)) = serde_json::from_slice(header) else {
        return FileHeader::Other(format!(
            "it is not a safetensors file, or it is damaged; it begins with \"{}\"",
            beginning.escape_ascii()
        ));
    };
    let metadata = header.get("__metadata__").and_then(Value::as_object);
    for (name, _) in metadata.into_iter().flatten() {
        match name.as_str() {
            checkpoint::FORMAT => return FileHeader::Checkpoint,
            bad_batch::FORMAT => {
                return FileHeader::Other("it is a batch that training dropped".into());
            }
            name if name.starts_with("tusker") => return FileHeader::Network,
            _ => {}
        }
    }
    let tensors = header.keys().filter(|name| *name != "__metadata__");
    FileHeader::Other(format!(
        "it is a safetensors file of another program, with {} tensors",
        tensors.count()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_header(header: &str) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes
    }

    #[test]
    fn what_is_neither_is_said_to_be_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let other = with_header(r#"{"__metadata__":{"format":"pt"},"a":{},"b":{}}"#);
        let batch = with_header(r#"{"__metadata__":{"tusker-bad-batch":"{}"},"planes":{}}"#);
        for (bytes, part) in [
            (vec![], "the file is empty"),
            (b"abc".to_vec(), "no more than 3 bytes"),
            (b"Tusker\r\nrest".to_vec(), "a shard of games"),
            (b"[train]\nrows = 2".to_vec(), "begins with \"[train]\\n\""),
            (with_header("{\"a\""), "not a safetensors file"),
            (u64::MAX.to_le_bytes().to_vec(), "not a safetensors file"),
            (other, "of another program, with 2 tensors"),
            (batch, "a batch that training dropped"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let found = read(&path).unwrap();
            let FileHeader::Other(found) = found else {
                panic!("{found:?} is not {part}");
            };
            assert!(found.contains(part), "{found}");
        }
        assert!(read(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn networks_and_checkpoints_are_distinguished_whether_they_are_damaged_or_not() {
        let of = |name: &str, text: &str| {
            let header = serde_json::json!({"__metadata__": {name: text}, "tensor": {}});
            of_header(header.to_string().as_bytes(), b"")
        };
        for text in ["{\"format\":3}", "{\"format\":", ""] {
            assert_eq!(of(checkpoint::FORMAT, text), FileHeader::Checkpoint);
            assert_eq!(of("tusker-network", text), FileHeader::Network);
            assert!(matches!(of("other", text), FileHeader::Other(_)));
        }
    }
}
