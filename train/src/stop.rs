//! The user's wish to stop.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Says whether the user has asked to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for Ctrl-C, SIGTERM and a closed terminal: the first one is a wish to stop soon, a second one ends the program at once.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: only the second signal finds the flag set.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self(asked))
    }

    /// Asks to stop, as the user would.
    #[cfg(test)]
    pub(crate) fn ask(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it is time to stop.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Relaxed)
    }
}
