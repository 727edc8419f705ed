//! The wish to stop: the user's, or that of a part of the program that can't go on.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Says whether it is time to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    by_user: Arc<AtomicBool>,
    /// Apart from the user's, whose second wish ends the program at once.
    by_program: Arc<AtomicBool>,
}

impl Stop {
    /// Listens for Ctrl-C, SIGTERM and a closed terminal: the first one is a wish to stop soon, a second one ends the program at once.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: only the second signal finds the flag set.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop.by_user))?;
            flag::register(signal, Arc::clone(&stop.by_user))?;
        }
        Ok(stop)
    }

    /// Asks everything to stop.
    pub(crate) fn ask(&self) {
        self.by_program.store(true, Relaxed);
    }

    /// Whether it is time to stop.
    pub(crate) fn asked(&self) -> bool {
        self.by_user.load(Relaxed) || self.by_program.load(Relaxed)
    }
}
