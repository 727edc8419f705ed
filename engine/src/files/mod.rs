//! Files that are there whole or not at all, and the operations by which all that must not be lost is written.
//!
//! Tests let these operations fail, or kill the program in them: `faults.rs`.

mod checksum;
mod faults;
mod lock;

pub use checksum::{ChecksumForm, WrongChecksum};
pub use lock::FileLock;

use faults::Operation;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::NamedTempFile;

/// How temporary names end.
const TEMPORARY: &str = ".tmp";

const NOT_REGULAR: &str = "this is not a regular file";

/// Whether an error of the system may be temporary: all but those of an impossible request.
pub fn is_temporary(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::InvalidData
    )
}

/// The folder that a file is in: `.` for a mere name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes a whole file or nothing: under a temporary name, flushed to the disk, then renamed over what was there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary_in(folder_of(path))?;
    file.write_all(bytes)?;
    sync(file.as_file())?;
    file.persist(path)?;
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

/// The present time by the clock that a folder's files get their times from: on a shared folder, another machine's.
pub fn now_in(folder: &Path) -> io::Result<SystemTime> {
    let file = tempfile::Builder::new()
        .suffix(TEMPORARY)
        .tempfile_in(folder)?;
    file.as_file().metadata()?.modified()
}

/// Writes a file without flushing it: after a power cut it may be missing, empty or cut.
pub fn write_unflushed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_all(&create(path)?, bytes)
}

/// An empty file of this name, whatever was there.
pub fn create(path: &Path) -> io::Result<File> {
    uninterrupted(|| {
        faults::check(Operation::Create, path)?;
        File::create(path)
    })
}

/// Repeats a call that a signal interrupts before it has done anything. The standard library does so for some calls, but not for those
/// with names of files and locks.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

/// A file to add to; it is made if it is missing.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    uninterrupted(|| {
        faults::check(Operation::Create, path)?;
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true).open(path)
    })
}

/// Adds a line to a text file, which is made if it is missing. Half a line that a kill or a full disk has left is ended first. The
/// line is written with a single call: a kill leaves it or nothing, and on a local disk the lines of two programs don't mix.
///
/// # Errors
/// The path is not a regular file, as opening a pipe without a reader would block. A part of the line may be there if the disk is full.
pub fn append_line(path: &Path, line: &str) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() => return Err(invalid(NOT_REGULAR.into())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = open_to_append(path)?;
    let start = if ends_in_half_a_line(&mut file)? {
        "\n"
    } else {
        ""
    };
    let text = format!("{start}{line}\n");
    write_at_once(&file, text.as_bytes())
}

fn write_at_once(file: &File, bytes: &[u8]) -> io::Result<()> {
    let written = uninterrupted(|| Writes(file).write(bytes))?;
    if written < bytes.len() {
        let reason = format!("only {written} of {} bytes found room", bytes.len());
        return Err(io::Error::new(io::ErrorKind::WriteZero, reason));
    }
    Ok(())
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

fn ends_in_half_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Writes at the file's place, or at its end if it was opened so. After an error any part of the bytes may be there.
pub fn write_all(file: &File, bytes: &[u8]) -> io::Result<()> {
    Writes(file).write_all(bytes)
}

/// Writes from a byte of the file on. After an error any part of the bytes may be there.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    Writes(file).write_all_at(bytes, offset)
}

/// A file whose writes may meet faults. The standard library repeats those that are short or interrupted.
struct Writes<'a>(&'a File);

impl Write for Writes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        faults::write(self.0, bytes, |bytes| {
            let mut file = self.0;
            file.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileExt for Writes<'_> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        faults::write(self.0, bytes, |bytes| self.0.write_at(bytes, offset))
    }
}

/// Cuts or lengthens a file.
pub fn set_length(file: &File, length: u64) -> io::Result<()> {
    uninterrupted(|| {
        faults::check_file(Operation::Cut, file)?;
        file.set_len(length)
    })
}

/// Flushes a file's content and length to the disk.
pub fn sync(file: &File) -> io::Result<()> {
    uninterrupted(|| {
        faults::check_file(Operation::Sync, file)?;
        file.sync_data()
    })?;
    faults::has_synced(file);
    Ok(())
}

/// Gives a file another name, at once and whole. Lasting once the folder is flushed.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    uninterrupted(|| {
        faults::check(Operation::Rename, to)?;
        faults::renames(from, to)?;
        fs::rename(from, to)
    })
}

/// Gives a file a second name, which nothing may have yet.
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    uninterrupted(|| {
        faults::check(Operation::Link, to)?;
        fs::hard_link(from, to)
    })
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    uninterrupted(|| {
        faults::check(Operation::Remove, path)?;
        fs::remove_file(path)
    })
}

/// Makes a folder and those above it.
pub fn make_folders(path: &Path) -> io::Result<()> {
    uninterrupted(|| fs::create_dir_all(path))
}

/// Makes a folder, which may not be there yet.
pub fn make_new_folder(path: &Path) -> io::Result<()> {
    uninterrupted(|| {
        faults::check(Operation::Create, path)?;
        fs::create_dir(path)
    })
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
    if !about.is_file() {
        return Err(invalid(NOT_REGULAR.into()));
    }
    if about.len() > limit {
        return Err(invalid(format!(
            "{} bytes are more than the {limit} that such a file may have",
            about.len()
        )));
    }
    Ok((File::open(path)?, about.len()))
}

/// An empty file with a temporary name (`.….tmp`) in a folder, gone when it is dropped. Once it is renamed, others may read it
/// as far as the user's umask lets them.
pub fn temporary_in(folder: &Path) -> io::Result<Temporary> {
    temporary_as(folder, ".")
}

/// As [`temporary_in`], with this prefix of its name.
pub fn temporary_as(folder: &Path, beginning: &str) -> io::Result<Temporary> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(beginning).suffix(TEMPORARY);
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = uninterrupted(|| {
        faults::check(Operation::Create, folder)?;
        builder.tempfile_in(folder)
    })?;
    Ok(Temporary(file))
}

/// Removes the files with temporary names that begin so. Killed programs leave them; another program's may be in use.
pub fn remove_temporaries(folder: &Path, beginning: &str) -> io::Result<()> {
    for path in entries(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(beginning) && name.ends_with(TEMPORARY) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// A file with a temporary name.
#[derive(Debug)]
pub struct Temporary(NamedTempFile);

impl Temporary {
    /// The open file.
    pub fn as_file(&self) -> &File {
        self.0.as_file()
    }

    /// Gives it its own name, whatever has it.
    fn persist(mut self, path: &Path) -> io::Result<()> {
        rename(self.0.path(), path)?;
        self.0.disable_cleanup(true);
        Ok(())
    }

    /// Gives it its own name, which nothing may have yet.
    fn persist_new(self, path: &Path) -> io::Result<()> {
        let from = self.0.path().to_owned();
        let mut file = Some(self.0);
        uninterrupted(|| {
            faults::check(Operation::Rename, path)?;
            let temporary = file.take().ok_or(io::ErrorKind::NotFound)?;
            let renamed = temporary.persist_noclobber(path);
            renamed.map(drop).map_err(|error| {
                file = Some(error.file);
                error.error
            })
        })?;
        faults::renames(&from, path)
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_all(self.as_file(), bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Temporary {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.0.seek(place)
    }
}

/// Flushes a file of [`temporary_in`] to the disk and gives it its own name, which nothing may have yet.
pub fn publish_new(file: Temporary, path: &Path) -> io::Result<()> {
    sync(file.as_file())?;
    file.persist_new(path)?;
    sync_folder_of(path)
}

/// As [`publish_new`], but a file of that name with the same bytes is as good: an interrupted command may have published it.
///
/// # Errors
///
/// `AlreadyExists` where a file of that name has other bytes, which stay.
pub fn publish_same(file: Temporary, path: &Path) -> io::Result<()> {
    let mut own = file.as_file().try_clone()?;
    match publish_new(file, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            own.rewind()?;
            match open_regular(path, u64::MAX) {
                Ok((there, _)) if have_same_bytes(&own, &there)? => sync_folder_of(path),
                // Of what could not be read the contents are unknown.
                Err(unread) if unread.kind() != io::ErrorKind::InvalidInput => Err(unread),
                _ => Err(error),
            }
        }
        published => published,
    }
}

/// Whether two files have the same bytes from here on.
fn have_same_bytes(one: &File, other: &File) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (ours, theirs) = (one.fill_buf()?, other.fill_buf()?);
        let length = ours.len().min(theirs.len());
        if length == 0 {
            return Ok(ours.is_empty() && theirs.is_empty());
        }
        if ours[..length] != theirs[..length] {
            return Ok(false);
        }
        one.consume(length);
        other.consume(length);
    }
}

/// Flushes the folder that a file was renamed in, so that the name outlasts a power cut.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = folder_of(path);
    uninterrupted(|| {
        faults::check(Operation::SyncFolder, folder)?;
        File::open(folder)?.sync_all()
    })?;
    faults::has_synced_folder(folder);
    Ok(())
}

/// The paths of all entries of a folder, in no order.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.path())).collect()
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_line_that_finds_no_room_is_an_error() {
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let error = write_at_once(&full, b"line\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// Carries out every operation in a folder, and checks what has come of them.
    fn carry_out_all(folder: &Path) {
        let at = |name: &str| folder.join(name);
        make_new_folder(&at("new")).unwrap();
        write_unflushed(&at("one"), b"one").unwrap();
        link(&at("one"), &at("two")).unwrap();
        rename(&at("one"), &at("three")).unwrap();
        let file = open_to_append(&at("three")).unwrap();
        write_all(&file, b" and more").unwrap();
        set_length(&file, 7).unwrap();
        append_line(&at("three"), "end").unwrap();
        set_length(&file, 7).unwrap();
        sync(&file).unwrap();
        sync_folder_of(&at("three")).unwrap();
        write_all_at(&create(&at("four")).unwrap(), b"four", 0).unwrap();
        assert!(write_new(&at("five"), b"five").unwrap());
        write_whole(&at("five"), b"six").unwrap();
        remove(&at("two")).unwrap();
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!(
            [read("three"), read("four"), read("five")],
            ["one and", "four", "six"]
        );
        assert_eq!(entries(folder).unwrap().len(), 4);
    }

    const OPERATIONS: &str = "TUSKER_TEST_OPERATIONS";

    #[test]
    #[ignore = "part of the next one, in a process of its own"]
    fn all_operations() {
        let folder = tempfile::tempdir().unwrap();
        let named = std::env::var_os(OPERATIONS).map(PathBuf::from);
        carry_out_all(named.as_deref().unwrap_or(folder.path()));
    }

    #[test]
    fn every_interrupted_operation_is_repeated() {
        let program = std::env::current_exe().unwrap();
        let name = program.file_stem().unwrap().to_str().unwrap();
        let traced = |fault: Option<usize>| {
            let folder = tempfile::tempdir().unwrap();
            let trace = tempfile::NamedTempFile::new().unwrap();
            let mut command = std::process::Command::new(&program);
            command.args(["--ignored", "--exact", "files::tests::all_operations"]);
            command.env(OPERATIONS, folder.path());
            command.env("TUSKER_FAULT_TRACE", trace.path());
            if let Some(number) = fault {
                command.env("TUSKER_FAULT", format!("{name}:{number}:EINTR"));
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{fault:?}: {output:?}");
            fs::read_to_string(trace.path()).unwrap()
        };
        let spared = traced(None);
        for operation in [
            "Create",
            "Write",
            "Cut",
            "Sync",
            "Rename",
            "Link",
            "Remove",
            "SyncFolder",
        ] {
            assert!(spared.contains(&format!(" {operation} ")), "{spared}");
        }
        let operations = spared.lines().count();
        for number in 1..=operations {
            assert_eq!(traced(Some(number)).lines().count(), operations + 1);
        }
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
