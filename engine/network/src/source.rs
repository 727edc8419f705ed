//! The source of a network: a file, or the program itself.

use crate::error::NetworkError;
use crate::file::NetworkFile;
use crate::model::Network;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A network as named on the command line: `tusker`, or else a file. A file of that name is `./tusker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkSource {
    /// The one that is built into the program.
    BuiltIn,
    /// A safetensors file.
    File(PathBuf),
}

impl FromStr for NetworkSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            Self::BUILT_IN => Self::BuiltIn,
            path => Self::File(path.into()),
        })
    }
}

impl fmt::Display for NetworkSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str(Self::BUILT_IN),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl NetworkSource {
    /// The name of the built-in network.
    pub const BUILT_IN: &str = "tusker";

    /// Loads the network.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is no network of this version.
    pub fn load(&self) -> Result<NetworkFile, NetworkError> {
        match self {
            Self::BuiltIn => Network::built_in(),
            Self::File(path) if path.as_os_str().is_empty() => Err(NetworkError::Read {
                path: path.clone(),
                error: io::Error::new(io::ErrorKind::InvalidInput, "name a file, or `tusker`"),
            }),
            Self::File(path) => Network::load(path),
        }
    }

    /// A file's name without folder and ending, or the built-in network's.
    pub fn short_name(&self) -> String {
        let path = match self {
            Self::BuiltIn => Path::new(Self::BUILT_IN),
            Self::File(path) => path,
        };
        let name = path.file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}
