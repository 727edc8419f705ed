//! The JSON files of a run that say how strong its networks are. Each ends with a checksum; files of earlier versions have none.

use crate::error::TrainError;
use engine::files::{ChecksumForm, read_whole};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::Path;

/// The bytes of a file, at most.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a file; none if there is none. `what` names its contents in errors.
///
/// # Errors
///
/// The file can't be read, or holds something else.
pub(super) fn read<Contents: DeserializeOwned>(
    path: &Path,
    what: &str,
) -> Result<Option<Contents>, TrainError> {
    let Some(text) = read_text(path)? else {
        return Ok(None);
    };
    let parsed = serde_json::from_str(&text);
    parsed.map(Some).map_err(|error| TrainError::Answer {
        what: format!("{} holds no {what}", path.display()),
        reason: error.to_string(),
    })
}

/// Reads the text of a file, without its checksum; none if there is no file.
///
/// # Errors
///
/// The file can't be read, or its checksum doesn't match.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, TrainError> {
    let bytes = match read_whole(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TrainError::io("read", path)(error)),
    };
    let text = ChecksumForm::Json.read(bytes);
    text.map(Some).map_err(|reason| TrainError::Answer {
        what: path.display().to_string(),
        reason,
    })
}

/// The text of a file, with its checksum.
pub(super) fn text(contents: &impl Serialize) -> Result<String, TrainError> {
    let text = serde_json::to_string_pretty(contents).map_err(|error| TrainError::Answer {
        what: "JSON".into(),
        reason: error.to_string(),
    })?;
    Ok(ChecksumForm::Json.sign(&text))
}
