//! Settings of child processes in the operating system: when they end.

use rustix::process::Signal;
#[cfg(target_os = "linux")]
use rustix::process::{getpid, getppid, set_parent_process_death_signal};
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::process::Command;

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
            match getppid() == parent {
                true => Ok(()),
                false => Err(std::io::ErrorKind::NotFound.into()),
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
