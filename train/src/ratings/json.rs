//! The JSON files of a run that say how strong its networks are.

use crate::error::TrainError;
use engine::files::read_whole;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::Path;

/// The bytes of a file, at most.
const LARGEST: u64 = 64 << 20;

/// Reads a file; none if there is none. `what` names its contents in errors.
///
/// # Errors
///
/// The file can't be read, or holds something else.
pub(super) fn read<Contents: DeserializeOwned>(
    path: &Path,
    what: &str,
) -> Result<Option<Contents>, TrainError> {
    let bytes = match read_whole(path, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TrainError::io("read", path)(error)),
    };
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|error| TrainError::Answer {
        what: format!("{} holds no {what}", path.display()),
        reason: error.to_string(),
    })
}

/// The text of a file, the last line with its end.
pub(super) fn text(contents: &impl Serialize) -> Result<String, TrainError> {
    let text = serde_json::to_string_pretty(contents).map_err(|error| TrainError::Answer {
        what: "JSON".into(),
        reason: error.to_string(),
    })?;
    Ok(text + "\n")
}
