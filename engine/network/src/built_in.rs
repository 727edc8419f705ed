//! The network that is built into the programs.

use crate::error::NetworkError;
use crate::file::NetworkFile;
use crate::model::Network;
use std::path::Path;

/// How it was made: `engine/network/built_in/README.md`.
const FILE: &[u8] = include_bytes!("../built_in/tusker.safetensors");

/// Its name in errors.
const NAME: &str = "the built-in network";

impl Network {
    /// The network that is built into the program: the strongest one of at most 8 MB that this project has trained. Its training and
    /// strength are described in `engine/network/built_in/README.md`, beside its file.
    pub fn built_in() -> Result<NetworkFile, NetworkError> {
        Self::from_bytes(Path::new(NAME), FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::encoding::ENCODING_VERSION;

    /// The bytes of the largest network that a clone should have to carry.
    const LARGEST: usize = 8_000_000;

    #[test]
    fn the_built_in_network_is_the_one_that_its_readme_names() {
        assert!(FILE.len() <= LARGEST, "{} bytes", FILE.len());
        let file = Network::built_in().unwrap();
        let readme = include_str!("../built_in/README.md");
        let architecture = file.network.architecture();
        for said in [
            format!("`{}`", file.identity),
            format!(
                "{} blocks, {} channels",
                architecture.blocks, architecture.channels
            ),
            format!("encoding version {ENCODING_VERSION}"),
        ] {
            assert!(readme.contains(&said), "the README does not contain {said}");
        }
    }
}
