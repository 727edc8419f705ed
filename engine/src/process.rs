//! Settings of this process and its children in the operating system: whether freed memory is kept, and when children end.

use rustix::process::Signal;
#[cfg(target_os = "linux")]
use rustix::process::{getpid, getppid, set_parent_process_death_signal};
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Blocks of at least this many bytes are mapped for themselves and given back at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_ALONE: i32 = 32 << 20;

/// So many free bytes may stay at the end of the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FREE_AT_THE_END: i32 = 256 << 20;

/// Keeps freed memory for what is allocated next. Call it when a program begins.
///
/// glibc otherwise gives the end of its heap back to the system whenever some megabytes are free there. Each step of a training and each
/// batch of an evaluation frees all that it had, so that the next one gets every page anew, zeroed. Kept, on two cores: 6×64 trains
/// 1.20 times the rows a second, and self-play with it makes 1.06 times the evaluations (medians of 3 rounds in turns, set by glibc's
/// own environment variables, with 1 GB in place of 256 MiB at the heap's end). Other C libraries are left as they are.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let settings = [
            (libc::M_MMAP_THRESHOLD, MAPPED_ALONE),
            (libc::M_TRIM_THRESHOLD, FREE_AT_THE_END),
        ];
        for (name, value) in settings {
            // SAFETY: mallopt takes any two numbers and locks the allocator while it changes it. One that it refuses leaves everything
            // as it was, which is only slower.
            unsafe { libc::mallopt(name, value) };
        }
    }
}

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
