//! The server of the run's page, beside the loop.

use super::child::BackgroundProcess;
use super::selfplay::Selfplay;
use super::state::TrainingLoop;
use crate::error::TrainError;
use engine::progress::say;
use engine::run::RunDirectory;
use engine::stop::Stop;

/// The server of the run's page. Its end ends nothing else.
pub(super) struct Page {
    address: String,
    server: BackgroundProcess,
    /// Requested when it has ended.
    ended: Stop,
}

impl Page {
    /// Starts it. It writes its address, and errors, to this program's standard error.
    pub(super) fn start(
        selfplay: &Selfplay,
        run: &RunDirectory,
        address: &str,
    ) -> Result<Self, TrainError> {
        let ended = Stop::default();
        Ok(Self {
            address: address.to_owned(),
            server: selfplay.start_page(run, address, ended.clone())?,
            ended,
        })
    }
}

impl TrainingLoop {
    /// Starts the page's server again if it has ended: its address may have been in use.
    pub(super) fn keep_page(&mut self) {
        let Some(page) = self.page.take_if(|page| page.ended.is_requested()) else {
            return;
        };
        if let Err(error) = page.server.end() {
            say(&format!("the page's server is started again: {error}"));
        }
        match Page::start(&self.selfplay, &self.run, &page.address) {
            Ok(page) => self.page = Some(page),
            Err(error) => say(&format!("the run has no page from now on: {error}")),
        }
    }
}
