//! The files: each is written whole or not at all, and replaces none. One that is there with the same bytes is kept, so that an
//! interrupted export can be repeated.

use super::rows::{self, Row};
use crate::output::print;
use anyhow::{Context, Result, anyhow, ensure};
use engine::files::{Temporary, folder_of, publish_same, temporary_in};
use engine::progress::say;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file of the games' text.
pub(super) struct TextFile {
    path: PathBuf,
    /// None for standard output.
    file: Option<BufWriter<Temporary>>,
}

impl TextFile {
    /// `-` is standard output.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = if path == Path::new("-") {
            None
        } else {
            note_existing(path);
            Some(BufWriter::new(begin(path)?))
        };
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    pub(super) fn write(&mut self, text: &str) -> Result<()> {
        match &mut self.file {
            None => print(text),
            Some(file) => file
                .write_all(text.as_bytes())
                .with_context(|| cant_write(&self.path)),
        }
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Result<PathBuf> {
        if let Some(file) = self.file {
            publish(file, &self.path)?;
        }
        Ok(self.path)
    }
}

/// The files of the rows: `NAME.npz` if one file holds them all, else `NAME-000.npz` and on.
pub(super) struct RowFiles {
    path: PathBuf,
    rows_per_file: usize,
    /// The rows that are in no file yet.
    rows: Vec<Row>,
    /// The files, with their rows.
    written: Vec<(PathBuf, usize)>,
}

impl RowFiles {
    /// Checks now that files can be written there; the rows are written once a file is full.
    pub(super) fn create(path: &Path, rows_per_file: usize) -> Result<Self> {
        begin(path)?;
        let files = Self {
            path: path.to_owned(),
            rows_per_file,
            rows: Vec::new(),
            written: Vec::new(),
        };
        note_existing(path);
        note_existing(&files.numbered(0));
        Ok(files)
    }

    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        if self.rows.len() >= self.rows_per_file {
            check_missing(&self.path)?;
            self.write(self.numbered(self.written.len()))?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Completes the files, and returns them with their rows. There is one even without a row.
    pub(super) fn finish(mut self) -> Result<Vec<(PathBuf, usize)>> {
        if self.written.is_empty() {
            check_missing(&self.numbered(0))?;
            self.write(self.path.clone())?;
        } else {
            self.write(self.numbered(self.written.len()))?;
            check_missing(&self.numbered(self.written.len()))?;
        }
        Ok(self.written)
    }

    fn write(&mut self, path: PathBuf) -> Result<()> {
        let mut file = BufWriter::new(begin(&path)?);
        rows::write(&self.rows, &mut file).with_context(|| cant_write(&path))?;
        publish(file, &path)?;
        self.written.push((path, self.rows.len()));
        self.rows.clear();
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let stem = self.path.file_stem().unwrap_or_default();
        let mut name = stem.to_os_string();
        name.push(format!("-{number:03}.npz"));
        self.path.with_file_name(name)
    }
}

/// Refuses a file that readers of the new ones would take for one of them.
fn check_missing(path: &Path) -> Result<()> {
    ensure!(
        !path.exists(),
        "{} exists already, and is of another export: remove it, or write to another file",
        path.display()
    );
    Ok(())
}

/// Says before the work what may end it.
fn note_existing(path: &Path) {
    if path.exists() {
        say(&format!(
            "note: {} exists: the export fails unless it makes the same file",
            path.display()
        ));
    }
}

/// Begins a new file under a temporary name.
fn begin(path: &Path) -> Result<Temporary> {
    temporary_in(folder_of(path)).with_context(|| cant_write(path))
}

/// Gives a file its name, unless another has it.
fn publish(file: BufWriter<Temporary>, path: &Path) -> Result<()> {
    let file = file.into_inner().map_err(|error| error.into_error());
    let published = file.and_then(|file| publish_same(file, path));
    published.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow!(
            "{} exists already with other contents, and is not overwritten: remove it, or write to another file",
            path.display()
        ),
        _ => anyhow::Error::new(error).context(cant_write(path)),
    })
}

fn cant_write(path: &Path) -> String {
    format!("can't write {}", path.display())
}
