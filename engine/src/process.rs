//! Processes in the operating system: when children end, and a program as the first process of a container.

use crate::progress::say;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
#[cfg(target_os = "linux")]
use rustix::process::{getpid, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Has the system send a child a signal when the thread that will start it ends, at the latest with this program, also when it is
/// killed. Only on Linux.
///
/// ```
/// use rustix::process::Signal;
/// let mut command = std::process::Command::new("true");
/// engine::process::end_with_parent(&mut command, Signal::KILL);
/// assert!(command.status()?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn end_with_parent(command: &mut Command, signal: Signal) {
    #[cfg(target_os = "linux")]
    {
        let parent = Some(getpid());
        let end_with = move || {
            set_parent_process_death_signal(Some(signal))?;
            // It may have ended before that.
            if getppid() == parent {
                Ok(())
            } else {
                Err(std::io::ErrorKind::NotFound.into())
            }
        };
        // SAFETY: between fork and exec only these two system calls are made, which allocate nothing and take no lock.
        unsafe {
            command.pre_exec(end_with);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (command, signal);
}

/// Does what the first process of a container has to do, if this is one: runs the same program as its child, passes signals on to it,
/// and waits for all processes that end. Returns the child's exit code, or 128 and the signal that ended it; none elsewhere. Signals
/// have no default action in a first process, and what lost its parent becomes its child.
pub fn run_as_init() -> Option<ExitCode> {
    let is_first = std::process::id() == 1;
    is_first.then(|| {
        run_child().unwrap_or_else(|error| {
            say(&format!("error: can't run as the first process: {error}"));
            ExitCode::FAILURE
        })
    })
}

/// Runs the same program to its end.
fn run_child() -> io::Result<ExitCode> {
    // Before the child is there: those that come meanwhile are for it.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let child = Pid::from_child(&command.args(arguments).spawn()?);
    std::thread::spawn(move || {
        for signal in signals.forever().filter_map(Signal::from_named_raw) {
            // It may have ended.
            let _ = kill_process(child, signal);
        }
    });
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Ok(code_of(status)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn code_of(status: WaitStatus) -> ExitCode {
    let code = match status.terminating_signal() {
        Some(signal) => 128 + signal,
        None => status.exit_status().unwrap_or(1),
    };
    ExitCode::from(code as u8)
}
