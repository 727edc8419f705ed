//! The phases of a generation and the speed of its self-play, in the run's log.

use super::state::{CurrentPhase, TrainingLoop};
use crate::trainer::checkpoint;
use crate::trainer::metrics::{EndedPhase, LoopPhase};
use crate::trainer::record::Recorder;
use std::time::Instant;

impl TrainingLoop {
    /// Logs that a phase for a generation's network begins, or none, and how long the last one took.
    pub(super) fn begin_phase(&mut self, phase: Option<(LoopPhase, u32)>) {
        if phase.is_some() && !self.stop.is_requested() {
            self.keep_page();
        }
        let last = self.phase.take();
        let is_same = |last: &CurrentPhase| phase == Some((last.phase, last.generation));
        if last.as_ref().is_some_and(is_same) {
            self.phase = last;
            return;
        }
        let ended = last.map(|last| EndedPhase {
            phase: last.phase,
            generation: last.generation,
            seconds: last.begun.elapsed().as_secs_f64(),
        });
        let generation = phase.map(|(_, generation)| generation);
        let generation = generation.or(ended.map(|ended| ended.generation));
        let phase_now = phase.map(|(phase, _)| phase);
        let (step, mut recorder) = self.recorder();
        recorder.phase(generation.unwrap_or(0), step, phase_now, ended);
        self.phase = phase.map(|(phase, generation)| CurrentPhase {
            phase,
            generation,
            begun: Instant::now(),
        });
    }

    /// Logs the speed of self-play since the meter was started or read, if a generator has reported since then.
    pub(super) fn log_self_play(&mut self, generation: u32, games: u64) {
        if let Some(measured) = self.self_play.read(&self.run, games) {
            let (step, mut recorder) = self.recorder();
            recorder.self_play(generation, step, &measured);
        }
    }

    fn recorder(&self) -> (u64, Recorder) {
        let step = checkpoint::newest_step(&self.run.checkpoints());
        (step, Recorder::new(&self.run, step))
    }
}
