//! The source of a network: a file, or the program itself.

use anyhow::{Result, ensure};
use network::{Network, NetworkFile};
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The name of the built-in network on the command line.
pub(crate) const BUILT_IN: &str = "tusker";

/// A network as named on the command line: `tusker`, or else a file. A file of that name is `./tusker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetworkSource {
    /// The one that is built into the program.
    BuiltIn,
    File(PathBuf),
}

impl FromStr for NetworkSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            BUILT_IN => Self::BuiltIn,
            path => Self::File(path.into()),
        })
    }
}

impl fmt::Display for NetworkSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str(BUILT_IN),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl NetworkSource {
    /// Loads the network.
    pub(crate) fn load(&self) -> Result<NetworkFile> {
        Ok(match self {
            Self::BuiltIn => Network::built_in()?,
            Self::File(path) => {
                ensure!(
                    !path.as_os_str().is_empty(),
                    "a network's file must be named"
                );
                Network::load(path)?
            }
        })
    }

    /// A file's name without folder and ending.
    pub(crate) fn short_name(&self) -> String {
        match self {
            Self::BuiltIn => BUILT_IN.into(),
            Self::File(path) => file_name(path),
        }
    }
}

/// A file's name without folder and ending.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
