//! The request to stop, from the user, the system or a part of the program that failed; and how programs end after it.

use crate::progress::say;
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Signals within this time count once: a terminal sends Ctrl-C to all programs of a group, and some pass it on.
const SAME_SIGNAL: Duration = Duration::from_millis(200);

/// The time between two looks at whether a stop is requested.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How a program ends that met no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The work is done.
    Done,
    /// A stop was requested before the work was done: the same command resumes it.
    Interrupted,
}

impl Exit {
    /// The exit code: 0, or 75, which is `EX_TEMPFAIL` of `sysexits.h`. Schedulers start again what ends with it.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Interrupted => 75,
        }
    }

    /// Of work that is done or was stopped.
    pub fn of(is_done: bool) -> Self {
        if is_done {
            Self::Done
        } else {
            Self::Interrupted
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(ending: Exit) -> Self {
        Self::from(ending.code())
    }
}

/// The time that a stop may take.
#[derive(Debug, Clone, Copy, Args)]
pub struct StopArguments {
    /// Seconds that a stop may take; then the program exits at once, and what is saved is kept
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub grace: u32,
}

impl StopArguments {
    /// Listens as [`Stop::listen`] does. Once a signal has come, the program exits after the given time at the latest, with the code of
    /// [`Exit::Interrupted`].
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn listen(&self) -> io::Result<Stop> {
        listen(Some(Duration::from_secs(self.grace.into())))
    }
}

/// Whether a stop is requested. Clones share the request.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for Ctrl-C, SIGTERM, SIGHUP (a closed terminal; unless it was ignored at the start) and SIGUSR1 (a scheduler's notice):
    /// the first one requests a stop. A second one ends the program at once, unless one of the two is SIGUSR1: what follows a notice is a
    /// first one.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn listen() -> io::Result<Self> {
        listen(None)
    }

    /// Requests a stop.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether a stop is requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Sleeps; false, and earlier, if a stop is requested.
    pub fn sleep(&self, time: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < time && !self.is_requested() {
            std::thread::sleep(LOOK_INTERVAL.min(time));
        }
        !self.is_requested()
    }

    /// The flag itself, which is true once a stop is requested.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

fn listen(grace: Option<Duration>) -> io::Result<Stop> {
    let stop = Stop::default();
    let in_words = |error: io::Error| {
        io::Error::new(error.kind(), format!("can't listen for signals: {error}"))
    };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1]).map_err(in_words)?;
    // `nohup` ignores it: the end of a connection is not to stop the program.
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP).map_err(in_words)?;
    }
    let to_request = stop.clone();
    let thread = std::thread::Builder::new().name("signals".into());
    let listen = move || {
        let mut first: Option<Instant> = None;
        // From the first signal on, also where the program was stopping by itself.
        let mut grace = grace;
        for signal in signals.forever() {
            limit(grace.take());
            to_request.request();
            match first {
                _ if signal == SIGUSR1 => {}
                None => first = Some(Instant::now()),
                Some(first) if first.elapsed() < SAME_SIGNAL => {}
                Some(_) => low_level::exit(128 + signal),
            }
        }
    };
    thread.spawn(listen).map_err(in_words)?;
    Ok(stop)
}

/// Whether the program was started with this signal ignored, as far as the system says so.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut masks = status
        .lines()
        .filter_map(|line| line.strip_prefix("SigIgn:"));
    let mask = masks
        .next()
        .map(|mask| u64::from_str_radix(mask.trim(), 16));
    matches!(mask, Some(Ok(mask)) if mask >> (signal - 1) & 1 == 1)
}

/// Ends the program after a time.
fn limit(grace: Option<Duration>) {
    let Some(grace) = grace else { return };
    let exit = move || {
        std::thread::sleep(grace);
        say(&format!(
            "not stopped within {} s (--grace): exits now; what is saved is kept",
            grace.as_secs()
        ));
        low_level::exit(Exit::Interrupted.code().into())
    };
    // Without the thread, the stop takes as long as it takes.
    let _ = std::thread::Builder::new().name("grace".into()).spawn(exit);
}
