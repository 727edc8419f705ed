//! Programs that are started to work for this one.

use rustix::process::Signal;
#[cfg(target_os = "linux")]
use rustix::process::{getpid, getppid, set_parent_process_death_signal};
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Asks the system to send a child that is yet to be started a signal when the thread that starts it ends, which it does last with this
/// program, be it killed. Elsewhere than on Linux the child isn't told.
///
/// ```
/// use rustix::process::Signal;
/// let mut command = std::process::Command::new("true");
/// engine::child::end_with_parent(&mut command, Signal::KILL);
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
