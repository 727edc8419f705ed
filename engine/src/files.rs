//! Files that are there whole or not at all, and texts that show damage.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How temporary names end.
pub const TEMPORARY: &str = ".tmp";

/// Writes a whole file or nothing: under a temporary name, flushed to the disk, then renamed over what was there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder_of(path)
}

/// As [`write_whole`], but what has the name already stays. Whether the file was written.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut file = temporary_in(folder_of(path))?;
    file.write_all(bytes)?;
    match publish_new(file, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads a whole file of at most `limit` bytes. What is no regular file is refused: a pipe or a device may have no end.
pub fn read_whole(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_regular(path, limit)?;
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file of at most `limit` bytes for reading; its length in bytes too. Opening a pipe would wait for its writer.
pub fn open_regular(path: &Path, limit: u64) -> io::Result<(File, u64)> {
    let about = std::fs::metadata(path)?;
    let fault = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    if !about.is_file() {
        return fault("this is not a regular file".into());
    }
    if about.len() > limit {
        return fault(format!(
            "{} bytes are more than the {limit} that such a file may have",
            about.len()
        ));
    }
    Ok((File::open(path)?, about.len()))
}

/// An empty file with a temporary name (`.….tmp`) in a folder, gone when it is dropped. Once it is renamed, others may read it
/// as far as the user's umask lets them.
pub fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    temporary_as(folder, ".")
}

/// As [`temporary_in`], with this prefix of its name.
pub fn temporary_as(folder: &Path, beginning: &str) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(beginning).suffix(TEMPORARY);
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Flushes a file of [`temporary_in`] to the disk and gives it its own name, which nothing may have yet.
pub fn publish_new(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder_of(path)
}

/// Flushes the folder that a file was renamed in, so that the name outlasts a power cut.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The paths of all entries of a folder, in no order.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// The folder that a file is in: `.` for a mere name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The form of a text that ends with a checksum of what stands before it: 16 hexadecimal digits of its BLAKE3 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumForm {
    /// A JSON object; its last field is `checksum`.
    Json,
    /// TOML; its last line is a comment.
    Toml,
}

/// A text is not the one that its checksum was computed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its checksum does not match its contents: it was damaged or edited since it was written; put back a copy of it, or remove it"
)]
pub struct WrongChecksum;

impl ChecksumForm {
    /// What stands before and behind the digits.
    const fn around(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => (",\"checksum\":\"", "\"}\n"),
            Self::Toml => ("# checksum: ", "\n"),
        }
    }

    /// The end of a text without a checksum that comes behind it.
    const fn end(self) -> &'static str {
        match self {
            Self::Json => "}",
            Self::Toml => "",
        }
    }

    /// The text with its checksum and a line's end.
    pub fn add(self, text: &str) -> String {
        let (before, behind) = self.around();
        let body = match self {
            Self::Json => without_brace(text.trim_end()).trim_end(),
            Self::Toml => text,
        };
        format!("{body}{before}{}{behind}", digits_of(body))
    }

    /// The text without its checksum; none if it has none, as files of earlier versions don't.
    ///
    /// # Errors
    ///
    /// The checksum is another text's.
    pub fn check(self, text: &str) -> Result<Option<String>, WrongChecksum> {
        let (before, behind) = self.around();
        let parts = text.strip_suffix(behind);
        let Some((body, digits)) = parts.and_then(|text| text.rsplit_once(before)) else {
            return Ok(None);
        };
        match digits == digits_of(body) {
            true => Ok(Some(format!("{body}{}", self.end()))),
            false => Err(WrongChecksum),
        }
    }
}

fn without_brace(object: &str) -> &str {
    object.strip_suffix('}').unwrap_or(object)
}

fn digits_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// Lists of values that a file holds as texts, for serde's `with`.
pub(crate) mod texts {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;
    use std::fmt::Display;
    use std::str::FromStr;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(T::to_string))
    }

    pub(crate) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let parse = |text: String| {
            let value = text.parse();
            value.map_err(|error| D::Error::custom(format!("`{text}`: {error}")))
        };
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.into_iter().map(parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_whole(&path, b"a long first text").unwrap();
        write_whole(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert!(!write_new(&path, b"third").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"second");
        fs::remove_file(&path).unwrap();
        assert!(write_new(&path, b"third").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"third");
        fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(write_whole(&folder.path().join("taken"), b"x").is_err());
        assert!(write_whole(&folder.path().join("missing").join("file"), b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_new_name_is_never_taken_from_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let publish = |text: &[u8]| {
            let mut file = temporary_in(folder_of(&path)).unwrap();
            file.write_all(text).unwrap();
            publish_new(file, &path)
        };
        publish(b"first").unwrap();
        let error = publish(b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"12345").unwrap();
        assert_eq!(read_whole(&path, 5).unwrap(), b"12345");
        let message = |path: &Path| read_whole(path, 4).unwrap_err().to_string();
        assert!(message(&path).contains("5 bytes are more than the 4"));
        assert!(message(folder.path()).contains("not a regular file"));
        #[cfg(unix)]
        assert!(message(Path::new("/dev/zero")).contains("not a regular file"));
    }

    #[test]
    fn no_changed_byte_of_a_text_with_a_checksum_changes_its_contents() {
        let json = r#"{"games":40,"score":0.625}"#;
        let toml = "games = 40\nscore = 0.625\n";
        for (form, text) in [(ChecksumForm::Json, json), (ChecksumForm::Toml, toml)] {
            let kept = form.add(text);
            assert!(kept.ends_with('\n'));
            assert_eq!(form.check(&kept), Ok(Some(text.to_owned())));
            assert_eq!(form.check(text), Ok(None));
            for place in 0..kept.len() {
                let mut bytes = kept.clone().into_bytes();
                bytes[place] ^= 1;
                let changed = String::from_utf8(bytes).unwrap();
                // Without the checksum, the rest must be as it was.
                match form.check(&changed) {
                    Err(WrongChecksum) => {}
                    Ok(None) => assert_eq!(changed[..20], text[..20], "byte {place}"),
                    Ok(Some(read)) => panic!("byte {place}: {read}"),
                }
            }
        }
        let pretty = "{\n  \"games\": 40\n}\n";
        let kept = ChecksumForm::Json.add(pretty);
        let value: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(value["games"], 40);
        assert_eq!(value["checksum"].as_str().unwrap().len(), 16);
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_it_as_the_umask_says() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        fs::write(folder.path().join("plain"), b"x").unwrap();
        write_whole(&folder.path().join("whole"), b"x").unwrap();
        assert_eq!(
            mode(&folder.path().join("whole")),
            mode(&folder.path().join("plain"))
        );
    }
}
