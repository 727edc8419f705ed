//! Faults on purpose: an operation on a file fails, or the program is killed in it.
//!
//! `TUSKER_FAULT=PROGRAM:N:FAULT` is for the Nth operation, from 1, of each process of that program; with `N+`, for all later ones
//! too. `TUSKER_FAULT_TRACE=FILE` adds a line for each operation of each process: program, number, operation, file. Without these
//! variables an operation costs one look at a variable of the program.
//!
//! | fault | what happens |
//! |---|---|
//! | `kill` | the program is killed before the operation |
//! | `torn` | the same, but of a write half has been done |
//! | `power` | killed, and the disk has nothing that was not flushed: neither contents nor names |
//! | `reorder` | killed, and the disk has the names, but no contents that were not flushed |
//! | `EIO`, `ENOSPC`, `EROFS` | the operation fails; of a write half has been done |
//! | `EINTR` | a signal interrupts the operation before it has done anything |
//!
//! An interrupted operation is repeated, so `N+` is not for `EINTR`. The tests are in `train/tests/training_loop/faults.rs`.

use super::folder_of;
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The variables.
const FAULT: &str = "TUSKER_FAULT";
const TRACE: &str = "TUSKER_FAULT_TRACE";

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Write,
    Cut,
    Sync,
    Rename,
    Link,
    Remove,
    SyncFolder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Torn,
    Power,
    Reorder,
    Error(Errno),
}

/// The operations of this process, and what is to happen to one of them.
struct FaultPlan {
    program: String,
    /// The number of the operation, whether all later ones fail too, and how. None for a trace alone.
    fault: Option<(u64, bool, Fault)>,
    trace: Option<Mutex<File>>,
    count: AtomicU64,
    /// What the disk does not have yet; only noted where it is to be lost.
    unflushed: Mutex<Unflushed>,
}

#[derive(Default)]
struct Unflushed {
    /// The flushed length of each file that was written, by device and number.
    lengths: BTreeMap<(u64, u64), (File, u64)>,
    names: Vec<NewName>,
}

/// A name that a file got in a folder that has not been flushed since.
struct NewName {
    from: PathBuf,
    to: PathBuf,
    /// Another name of the file that had this name before.
    before: Option<PathBuf>,
}

/// The plan of this process; none without the variables, and an error if they can't be understood.
fn plan() -> io::Result<Option<&'static FaultPlan>> {
    static PLAN: OnceLock<Result<Option<FaultPlan>, String>> = OnceLock::new();
    let plan = PLAN.get_or_init(|| {
        let variable = |name| std::env::var(name).ok();
        FaultPlan::new(variable(FAULT), variable(TRACE))
    });
    match plan {
        Ok(plan) => Ok(plan.as_ref()),
        Err(reason) => Err(io::Error::new(io::ErrorKind::InvalidInput, reason.clone())),
    }
}

impl FaultPlan {
    fn new(fault: Option<String>, trace: Option<String>) -> Result<Option<Self>, String> {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_stem);
        let program = program.unwrap_or_default().to_string_lossy().into_owned();
        let fault = match fault {
            Some(text) => parse(&text, &program)?,
            None => None,
        };
        let trace = match trace {
            Some(path) => {
                let opened = OpenOptions::new().create(true).append(true).open(&path);
                Some(opened.map_err(|error| format!("{TRACE}={path}: {error}"))?)
            }
            None => None,
        };
        if fault.is_none() && trace.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            program,
            fault,
            trace: trace.map(Mutex::new),
            count: AtomicU64::new(0),
            unflushed: Mutex::default(),
        }))
    }

    /// The fault of the next operation, if it is to have one.
    fn next(&self, operation: Operation, place: impl FnOnce() -> PathBuf) -> Option<Fault> {
        let number = self.count.fetch_add(1, Relaxed) + 1;
        if let Some(trace) = &self.trace {
            let line = format!(
                "{} {number} {operation:?} {}\n",
                self.program,
                place().display()
            );
            // A trace that can't be written is missed by the test that reads it.
            let _ = lock(trace).write_all(line.as_bytes());
        }
        let (at, stays, fault) = self.fault?;
        (number == at || stays && number > at).then_some(fault)
    }

    fn loses(&self) -> bool {
        matches!(self.fault, Some((_, _, Fault::Power | Fault::Reorder)))
    }

    /// Fails as planned, or never returns.
    fn fail(&self, fault: Fault) -> io::Error {
        match fault {
            Fault::Error(errno) => return errno.into(),
            Fault::Kill | Fault::Torn => {}
            Fault::Power => self.lose(true),
            Fault::Reorder => self.lose(false),
        }
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }

    /// Takes from the disk what was not flushed. No other thread may flush it meanwhile.
    fn lose(&self, names_too: bool) {
        let unflushed = lock(&self.unflushed);
        for (file, flushed) in unflushed.lengths.values() {
            if file.metadata().is_ok_and(|about| about.len() > *flushed) {
                let _ = file.set_len(*flushed);
            }
        }
        for NewName { from, to, before } in unflushed.names.iter().rev() {
            if names_too {
                let _ = fs::rename(to, from);
            }
            if let Some(before) = before {
                let _ = if names_too {
                    fs::rename(before, to)
                } else {
                    fs::remove_file(before)
                };
            }
        }
        // Held until the end: all other threads wait.
        std::mem::forget(unflushed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The fault of a text, if it is for this program.
fn parse(text: &str, program: &str) -> Result<Option<(u64, bool, Fault)>, String> {
    let wrong = || format!("{FAULT}={text}: expected PROGRAM:N:FAULT, such as selfplay:17:kill");
    let parts: Vec<&str> = text.split(':').collect();
    let [of_program, number, fault] = parts[..] else {
        return Err(wrong());
    };
    let fault = match fault {
        "kill" => Fault::Kill,
        "torn" => Fault::Torn,
        "power" => Fault::Power,
        "reorder" => Fault::Reorder,
        "EIO" => Fault::Error(Errno::IO),
        "ENOSPC" => Fault::Error(Errno::NOSPC),
        "EROFS" => Fault::Error(Errno::ROFS),
        "EINTR" => Fault::Error(Errno::INTR),
        _ => return Err(wrong()),
    };
    let (digits, stays) = match number.strip_suffix('+') {
        Some(digits) => (digits, true),
        None => (number, false),
    };
    if stays && fault == Fault::Error(Errno::INTR) {
        return Err(wrong());
    }
    let number = digits.parse().map_err(|_| wrong())?;
    Ok((of_program == program).then_some((number, stays, fault)))
}

/// Called before an operation with a path.
pub(super) fn check(operation: Operation, path: &Path) -> io::Result<()> {
    let Some(plan) = plan()? else {
        return Ok(());
    };
    match plan.next(operation, || path.to_owned()) {
        Some(fault) => Err(plan.fail(fault)),
        None => Ok(()),
    }
}

/// Called before an operation with an open file that is no write.
pub(super) fn check_file(operation: Operation, file: &File) -> io::Result<()> {
    let Some(plan) = plan()? else {
        return Ok(());
    };
    match plan.next(operation, || path_of(file)) {
        Some(fault) => Err(plan.fail(fault)),
        None => Ok(()),
    }
}

/// Writes all bytes or a part of them. Returns how many.
pub(super) fn write(
    file: &File,
    bytes: &[u8],
    write: impl Fn(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let Some(plan) = plan()? else {
        return write(bytes);
    };
    if plan.loses() {
        plan.note(file)?;
    }
    match plan.next(Operation::Write, || path_of(file)) {
        None => write(bytes),
        Some(fault) => {
            if !matches!(fault, Fault::Kill | Fault::Error(Errno::INTR)) {
                let _ = write(&bytes[..bytes.len() / 2]);
            }
            Err(plan.fail(fault))
        }
    }
}

impl FaultPlan {
    /// Notes the length of a file before its first write: up to there it counts as flushed.
    fn note(&self, file: &File) -> io::Result<()> {
        let about = file.metadata()?;
        let mut unflushed = lock(&self.unflushed);
        let key = (about.dev(), about.ino());
        if let std::collections::btree_map::Entry::Vacant(entry) = unflushed.lengths.entry(key) {
            entry.insert((file.try_clone()?, about.len()));
        }
        Ok(())
    }
}

/// Called after a file was flushed.
pub(super) fn has_synced(file: &File) {
    let Ok(Some(plan)) = plan() else { return };
    if let Ok(about) = file.metadata()
        && let Some((_, flushed)) = lock(&plan.unflushed)
            .lengths
            .get_mut(&(about.dev(), about.ino()))
    {
        *flushed = about.len();
    }
}

/// Called before a file gets another name, or after it has got one that nothing had.
pub(super) fn renames(from: &Path, to: &Path) -> io::Result<()> {
    let Some(plan) = plan()?.filter(|plan| plan.loses()) else {
        return Ok(());
    };
    let mut unflushed = lock(&plan.unflushed);
    let is_there = from.exists() && to.exists();
    let before = is_there.then(|| {
        let mut name = to.as_os_str().to_owned();
        name.push(format!(".before-{}", unflushed.names.len()));
        PathBuf::from(name)
    });
    if let Some(before) = &before {
        fs::hard_link(to, before)?;
    }
    unflushed.names.push(NewName {
        from: from.to_owned(),
        to: to.to_owned(),
        before,
    });
    Ok(())
}

/// Called after a folder was flushed: the new names in it last.
pub(super) fn has_synced_folder(folder: &Path) {
    let Ok(Some(plan)) = plan() else { return };
    let mut unflushed = lock(&plan.unflushed);
    let is_in = |new: &mut NewName| folder_of(&new.to) == folder;
    for new in unflushed.names.extract_if(.., is_in) {
        if let Some(before) = new.before {
            let _ = fs::remove_file(before);
        }
    }
}

/// The path of an open file, for the trace.
fn path_of(file: &File) -> PathBuf {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::read_link(&link).unwrap_or(PathBuf::from(link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_for_one_program_and_one_operation_or_all_later_ones() {
        let of = |text| parse(text, "selfplay");
        assert_eq!(of("selfplay:17:kill"), Ok(Some((17, false, Fault::Kill))));
        let full = Fault::Error(Errno::NOSPC);
        assert_eq!(of("selfplay:3+:ENOSPC"), Ok(Some((3, true, full))));
        assert_eq!(of("train:17:kill"), Ok(None));
        for wrong in [
            "",
            "selfplay:x:kill",
            "selfplay:1:EPERM",
            "selfplay:1",
            "selfplay:1+:EINTR",
        ] {
            assert!(
                of(wrong).unwrap_err().contains("PROGRAM:N:FAULT"),
                "{wrong}"
            );
        }
    }

    fn plan_of(fault: Fault) -> FaultPlan {
        FaultPlan {
            program: String::new(),
            fault: Some((3, false, fault)),
            trace: None,
            count: AtomicU64::new(0),
            unflushed: Mutex::default(),
        }
    }

    #[test]
    fn the_operation_of_the_number_fails() {
        let plan = plan_of(Fault::Error(Errno::IO));
        let next = || plan.next(Operation::Sync, PathBuf::new);
        assert_eq!([next(), next()], [None, None]);
        assert_eq!(next(), Some(Fault::Error(Errno::IO)));
        assert_eq!(next(), None);
        let error = plan.fail(Fault::Error(Errno::NOSPC));
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_was_not_flushed_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (fault, names_too) in [(Fault::Power, true), (Fault::Reorder, false)] {
            fs::write(&path, "old").unwrap();
            let new = folder.path().join("new");
            fs::write(&new, "").unwrap();
            let plan = plan_of(fault);
            let file = OpenOptions::new().append(true).open(&new).unwrap();
            plan.note(&file).unwrap();
            (&file).write_all(b"contents").unwrap();
            let before = folder.path().join("before");
            fs::hard_link(&path, &before).unwrap();
            fs::rename(&new, &path).unwrap();
            lock(&plan.unflushed).names.push(NewName {
                from: new.clone(),
                to: path.clone(),
                before: Some(before.clone()),
            });
            plan.lose(names_too);
            let expected = if names_too { "old" } else { "" };
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            let _ = fs::remove_file(before);
        }
    }
}
