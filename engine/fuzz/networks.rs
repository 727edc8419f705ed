//! What the fuzz target `networks` does with its bytes: damaged weights files, and headers that say something else.

use network::{Architecture, Network, Origin};
use std::sync::OnceLock;

/// The bytes of the length that a weights file begins with.
const LENGTH_BYTES: usize = size_of::<u64>();

/// Reads a weights file that has been changed by the bytes. The first one says how: 0, it is nothing but the rest; odd, bytes of a sound
/// file are replaced; even, a part of its header is, under a right length.
///
/// Nothing may panic or take much memory, and what is read is the network of the sound file.
pub(crate) fn networks(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let sound = sound();
    let changed = match kind {
        0 => rest.to_vec(),
        kind if kind % 2 == 1 => replaced(sound, rest),
        _ => with_other_header(sound, rest),
    };
    match saved_again(&changed) {
        Some(saved) => assert_eq!(saved, *sound),
        None => assert_ne!(changed, *sound),
    }
}

/// The file of a small network.
fn sound() -> &'static Vec<u8> {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sound.safetensors");
        let architecture = Architecture {
            blocks: 1,
            channels: 8,
        };
        let network = Network::new(architecture, 3).unwrap();
        network.save(&path, &Origin::new()).unwrap();
        std::fs::read(&path).unwrap()
    })
}

/// Reads a weights file and writes its network to another one; none if it is refused.
fn saved_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    std::fs::write(&path, bytes).unwrap();
    match Network::load(&path) {
        Ok(file) => {
            file.network.save(&path, &file.origin).unwrap();
            Some(std::fs::read(&path).unwrap())
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("a.safetensors"), "{error}");
            None
        }
    }
}

/// Each five of the changes are a place (four of them), and what stands there from now on.
fn replaced(sound: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for change in changes.chunks_exact(5) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize;
        let place = place % bytes.len();
        bytes[place] = change[4];
    }
    bytes
}

/// The first two bytes are a place in the header, the third is how many bytes of it are left out, and the rest stands there.
fn with_other_header(sound: &[u8], change: &[u8]) -> Vec<u8> {
    let Some(([low, high, count], text)) = change.split_first_chunk() else {
        return sound.to_vec();
    };
    let (length, rest) = sound.split_first_chunk::<LENGTH_BYTES>().unwrap();
    let (header, tensors) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let at = usize::from(u16::from_le_bytes([*low, *high])) % header.len();
    let end = (at + usize::from(*count)).min(header.len());
    let header = [&header[..at], text, &header[end..]].concat();
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], &header, tensors].concat()
}
