//! The thread that takes finished games: it writes them, checks the limits, and shows the progress.

use super::disk::{WriteQueue, bytes_free};
use super::game_writer::GameWriter;
use super::memory_guard::{Advice, MemoryGuard};
use super::worker::GenerationTask;
use crate::memory::Resident;
use crate::output::print;
use crate::telemetry::{Counters, Limits, NetworkInUse, State, Telemetry};
use crate::worker::batch::Tally;
use anyhow::{Result, bail, ensure};
use engine::progress::{bytes_in_words, say};
use engine::record::GameRecord;
use engine::run::{FolderSize, Generator, GeneratorPaths, Problems, folder_sizes};
use engine::stop::{Exit, Stop};
use network::EvaluationService;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Interval between checks of memory and free disk space.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval between walks over all files of the run, into which others write too.
const DISK_INTERVAL: Duration = Duration::from_secs(30);

/// Interval between attempts to write the last games.
const CLOSE_INTERVAL: Duration = Duration::from_millis(200);

/// After so long without a failure the journal counts as flushed again.
const FLUSHED_AGAIN: Duration = Duration::from_secs(5);

/// Finished games that may wait in memory until they are taken.
const UNTAKEN: u64 = 1_024;

/// Time for the workers to stop: each evaluates its batch to the end.
const GRACE: Duration = Duration::from_secs(3);

/// Exits the program at once: no thread is waited for, and no destructor runs.
pub(super) fn leave(ended: Result<Exit>) -> ! {
    let status = match ended {
        Ok(exit) => exit.code().into(),
        Err(error) => {
            say(&format!("error: {error:#}"));
            1
        }
    };
    signal_hook::low_level::exit(status)
}

/// Why a generator ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Games,
    Hours,
    Disk,
    Memory,
    Stopped,
    Error,
}

impl Reason {
    fn in_words(self) -> &'static str {
        match self {
            Self::Games => "all games are played",
            Self::Hours => "the hours are over",
            Self::Disk => "--max-disk is reached",
            Self::Memory => "--max-memory is exceeded with a single game a thread",
            Self::Stopped => "asked to stop",
            Self::Error => "an error",
        }
    }
}

/// Takes finished games, and stops the workers at the limits.
pub(crate) struct Supervisor<'a> {
    work: &'a GenerationTask,
    generator: Arc<Generator>,
    writer: GameWriter,
    write_queue: Arc<WriteQueue>,
    requested: Stop,
    telemetry: Option<Telemetry>,
    /// What the finished games add up to.
    finished: Counters,
    limits: Limits,
    begun: Instant,
    paths: GeneratorPaths,
    disk: DiskUse,
    memory: Option<u64>,
    guard: Option<MemoryGuard>,
    last_check: Instant,
    reason: Option<Reason>,
    stopping_since: Option<Instant>,
    was_in_trouble: bool,
    is_behind: bool,
    journal_is_gone: bool,
    /// When the journal's last flush failed, if it did.
    unflushed: Option<Instant>,
}

/// What a supervisor watches.
pub(crate) struct SupervisorOptions<'a> {
    pub(crate) paths: &'a GeneratorPaths,
    pub(crate) limits: Limits,
    pub(crate) work: &'a GenerationTask,
    pub(crate) generator: Arc<Generator>,
    pub(crate) writer: GameWriter,
    /// Where writers wait while the disk is full.
    pub(crate) write_queue: Arc<WriteQueue>,
    /// Whether a user asked to stop.
    pub(crate) requested: Stop,
}

/// Bytes on the disk when they were last measured.
struct DiskUse {
    measured: Instant,
    /// What measuring took.
    took: Duration,
    used: u64,
    shards: u64,
    free: Option<u64>,
    /// What the writer and the journal had written when it was measured.
    written_then: i64,
    journal_then: u64,
}

impl DiskUse {
    /// Walks over all files.
    fn measure(paths: &GeneratorPaths, writer: &GameWriter, generator: &Generator) -> Self {
        let begun = Instant::now();
        // What can't be read counts 0: it may have been removed.
        let folders = folder_sizes(&paths.root, &mut Problems::default());
        let bytes = |folder: &FolderSize| folder.bytes;
        // With `--out` the shards are the folder's own files.
        let in_root = if paths.shards == paths.root {
            "."
        } else {
            "shards"
        };
        let shards = folders.iter().find(|folder| folder.folder == in_root);
        Self {
            measured: Instant::now(),
            took: begun.elapsed(),
            used: folders.iter().map(bytes).sum(),
            shards: shards.map_or(0, bytes),
            free: bytes_free(&paths.shards),
            written_then: writer.written.on_disk(),
            journal_then: generator.journal().bytes(),
        }
    }
}

impl<'a> Supervisor<'a> {
    /// Measures the disk and the memory, and begins to count the time.
    pub(crate) fn new(options: SupervisorOptions<'a>) -> Self {
        let limit_mib = options.limits.memory_bytes.map(|bytes| bytes >> 20);
        let mut this = Self {
            work: options.work,
            disk: DiskUse::measure(options.paths, &options.writer, &options.generator),
            generator: options.generator,
            writer: options.writer,
            write_queue: options.write_queue,
            requested: options.requested,
            telemetry: None,
            finished: Counters::default(),
            limits: options.limits,
            begun: Instant::now(),
            paths: options.paths.clone(),
            memory: None,
            guard: limit_mib.map(|mib| MemoryGuard::new(mib, options.work.room.load(Relaxed))),
            last_check: Instant::now(),
            reason: None,
            stopping_since: None,
            was_in_trouble: false,
            is_behind: false,
            journal_is_gone: false,
            unflushed: None,
        };
        this.check_memory();
        this
    }

    /// Shows the progress from now on.
    pub(crate) fn show(&mut self, telemetry: Telemetry) {
        self.telemetry = Some(telemetry);
    }

    /// Takes a finished game, or none after some time without one.
    ///
    /// # Errors
    /// The game can't be written, for a reason that is not temporary; the journal is no longer flushed.
    pub(crate) fn take(&mut self, record: Option<GameRecord>) -> Result<()> {
        match record {
            Some(record) => {
                self.finished.count(&record);
                self.work.starts.remember(&record);
                self.writer.take(record)?;
            }
            None => self.writer.write_pending()?,
        }
        self.pause_in_trouble();
        if self.last_check.elapsed() >= CHECK_INTERVAL {
            self.last_check = Instant::now();
            self.check_disk();
            self.check_memory();
            self.check_journal();
            self.generator.journal().check_flushing()?;
            self.report_flushing();
        }
        self.stop_at_limits();
        // After a failure of a worker the others are waited for: its error is reported once they have ended.
        let is_requested = self.reason.is_some() || self.requested.is_requested();
        if is_requested && self.work.stop.load(Relaxed) {
            let since = *self.stopping_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= GRACE {
                self.leave_without_workers();
            }
        }
        self.tick();
        Ok(())
    }

    fn tick(&mut self) {
        let counters = self.counters();
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.tick(&counters);
        }
    }

    /// Pauses the workers while finished games can't be written, or are not written as fast as they are played.
    fn pause_in_trouble(&mut self) {
        let trouble = self.writer.trouble();
        let is_in_trouble = trouble.is_some();
        if is_in_trouble != self.was_in_trouble {
            match trouble {
                Some(reason) => self.say(&WriteQueue::pause_message(reason)),
                None => self.say(WriteQueue::RESUMED),
            }
            self.was_in_trouble = is_in_trouble;
        }
        let finished = self.work.counts.finished.load(Relaxed);
        let untaken = finished.saturating_sub(self.finished.games());
        let limit = if self.is_behind { UNTAKEN / 4 } else { UNTAKEN };
        self.is_behind = untaken > limit;
        let pause = is_in_trouble || self.is_behind;
        self.work.pause.store(pause, Relaxed);
    }

    fn stop_at_limits(&mut self) {
        let hours = self.begun.elapsed().as_secs_f64() / 3_600.0;
        if self.limits.hours.is_some_and(|limit| hours >= limit) {
            self.stop(Reason::Hours);
        }
        let used = self.disk_used();
        if self.limits.disk_bytes.is_some_and(|limit| used >= limit) {
            self.stop(Reason::Disk);
        }
    }

    fn stop(&mut self, reason: Reason) {
        if self.reason.is_none() && !self.work.stop.swap(true, Relaxed) {
            self.reason = Some(reason);
        }
    }

    fn check_disk(&mut self) {
        self.disk.free = bytes_free(&self.paths.shards);
        // Many files of a server take long, and finished games wait meanwhile.
        if self.disk.measured.elapsed() >= DISK_INTERVAL.max(20 * self.disk.took) {
            self.disk = DiskUse::measure(&self.paths, &self.writer, &self.generator);
        }
    }

    /// Reports when the journal can't be flushed, and when it can again.
    fn report_flushing(&mut self) {
        if let Some(reason) = self.generator.journal().trouble() {
            if self.unflushed.replace(Instant::now()).is_none() {
                self.say(&format!(
                    "the journal can't be flushed, and is tried again each second: {reason}"
                ));
            }
        } else if self
            .unflushed
            .is_some_and(|failed| failed.elapsed() >= FLUSHED_AGAIN)
        {
            self.unflushed = None;
            self.say("the journal is flushed again");
        }
    }

    /// Reports a removed journal.
    fn check_journal(&mut self) {
        let journal = self.generator.journal();
        let is_gone = !journal.is_there();
        if is_gone && !self.journal_is_gone {
            self.say(&format!(
                "{}: the journal was removed; the games in flight are lost if this ends before they do",
                journal.folder().display()
            ));
        }
        self.journal_is_gone = is_gone;
    }

    /// As it was measured last, with this generator's shards and journal since then.
    fn disk_used(&self) -> u64 {
        let shards = self.writer.written.on_disk() - self.disk.written_then;
        let journal = self.generator.journal().bytes() as i64 - self.disk.journal_then as i64;
        self.disk.used.saturating_add_signed(shards + journal)
    }

    fn check_memory(&mut self) {
        let Some(mib) = Resident::measure().now else {
            return;
        };
        self.memory = Some((mib * f64::from(1 << 20)) as u64);
        let advice = match &mut self.guard {
            Some(guard) => guard.advise(mib, self.begun.elapsed()),
            None => Advice::Unchanged,
        };
        match advice {
            Advice::Unchanged => {}
            Advice::Play(room) => {
                self.work.room.store(room, Relaxed);
                self.say(&format!("--max-memory: {room} games at once a thread"));
            }
            Advice::Stop => self.stop(Reason::Memory),
        }
    }

    fn say(&self, line: &str) {
        match &self.telemetry {
            Some(telemetry) => telemetry.say(line),
            None => say(line),
        }
    }

    /// The current counters.
    pub(crate) fn counters(&self) -> Counters {
        let (counts, tally) = (&self.work.counts, self.work.counts.tally());
        let playing = self.work.current_player.newest();
        let service = playing.player.service();
        let written = &self.writer.written;
        Counters {
            games_in_flight: (counts.in_flight.load(Relaxed) + self.work.suspended().len()) as u64,
            turns: tally.turns,
            searched_turns: tally.searched_turns,
            evaluations: tally.evaluations,
            batches: tally.batches,
            largest_batch: counts.largest_batch.load(Relaxed),
            times: tally.times,
            devices: service.map_or_else(Vec::new, EvaluationService::device_counters),
            rows_waiting: service.map(|service| service.rows_waiting() as u64),
            network: NetworkInUse {
                name: playing.evaluator.name.clone(),
                identity: (playing.evaluator.identity != playing.evaluator.name)
                    .then(|| playing.evaluator.identity.clone()),
            },
            networks_loaded: 1 + self.work.current_player.version(),
            shards: written.shards,
            shard_bytes: self
                .disk
                .shards
                .saturating_add_signed(written.on_disk() - self.disk.written_then),
            disk_used: self.disk_used(),
            disk_free: self.disk.free,
            memory: self.memory,
            state: self.state(),
            ..self.finished.clone()
        }
    }

    fn state(&self) -> State {
        let trouble = self.writer.trouble().map(str::to_owned);
        match trouble.or_else(|| self.write_queue.reason()) {
            _ if self.work.stop.load(Relaxed) => State::Stopping,
            Some(reason) => State::WaitingForDisk { reason },
            None => State::Running,
        }
    }

    /// Writes the finished games, and reports what was done and what is left.
    ///
    /// # Errors
    /// Those of the workers; finished games could not be written.
    pub(super) fn end(mut self, played: Result<Vec<Tally>>) -> Result<Exit> {
        // Finished games are written in spite of errors elsewhere. The first error is reported.
        let mut closed = self.writer.close();
        // Once all games are played, a full disk is still waited for.
        while played.is_ok() && closed.is_ok() && self.reason.is_none() {
            self.pause_in_trouble();
            if self.writer.waiting() == 0 || self.requested.is_requested() {
                break;
            }
            std::thread::sleep(CLOSE_INTERVAL);
            self.tick();
            closed = self.writer.close();
        }
        self.conclude(played, closed)
    }

    /// Exits without the workers where they take too long to stop: all turns that they played are in the journal.
    fn leave_without_workers(&mut self) -> ! {
        let closed = self.writer.close();
        leave(self.conclude(Ok(Vec::new()), closed))
    }

    /// Reports what was done and what is left.
    fn conclude(&mut self, played: Result<Vec<Tally>>, closed: Result<()>) -> Result<Exit> {
        let generator = Arc::clone(&self.generator);
        let synced = generator.journal().sync();
        let unfinished = generator
            .journal()
            .games()
            .saturating_sub(self.writer.waiting());
        let is_done = played.is_ok()
            && unfinished == 0
            && self.writer.waiting() == 0
            && self.work.has_begun_all();
        let mut reason = match (&played, self.reason) {
            (Err(_), _) => Reason::Error,
            (Ok(_), Some(reason)) => reason,
            (Ok(_), None) if is_done => Reason::Games,
            (Ok(_), None) => Reason::Stopped,
        };
        let counters = self.counters();
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.finish(&counters, reason.in_words());
        }
        let in_journal = |error: anyhow::Error| match unfinished {
            0 => error,
            _ if !generator.journal().is_there() => error,
            games => anyhow::anyhow!(
                "{error:#}; {games} games in flight are in the journal, and the same command resumes them"
            ),
        };
        let mut tally = Tally::default();
        let played = played.map_err(in_journal)?;
        played.iter().for_each(|worker| tally.add(worker));
        if !tally.times.total().is_zero() {
            say(&tally.times.to_string());
        }
        closed?;
        match synced {
            Err(error) if reason == Reason::Stopped && error.is_temporary() => say(&format!(
                "the last turns may be missing in the journal, and the same command plays them again: {error}"
            )),
            synced => synced?,
        }
        if reason == Reason::Games && self.limits.games.is_some() {
            // A full disk is waited for here too. After a stop meanwhile, the same command marks it.
            let marked = super::with_disk_space(&self.requested, || generator.mark_done())?;
            if marked.is_none() {
                reason = Reason::Stopped;
            }
        }
        let mut report = self.finished.report(&self.paths.shards);
        let removed = self.writer.written.removed;
        if removed.shards > 0 {
            report.push_str(&format!(
                "{} shards of {} removed, beyond the window of training\n",
                removed.shards,
                bytes_in_words(removed.bytes)
            ));
        }
        self.check_journal();
        if unfinished > 0 && self.journal_is_gone {
            print(&report)?;
            bail!(
                "{}: the journal was removed, and with it {unfinished} games in flight",
                generator.journal().folder().display()
            );
        }
        if unfinished > 0 {
            report.push_str(&format!(
                "stopped, {}: {unfinished} games in flight are in the journal; the same command resumes them\n",
                reason.in_words()
            ));
        }
        print(&report)?;
        if let Some(trouble) = self.writer.trouble() {
            let what = format!(
                "{} finished games are in the journal alone; the same command writes them to a shard: {trouble}",
                self.writer.waiting()
            );
            ensure!(reason == Reason::Stopped, what);
            say(&what);
        }
        ensure!(
            reason != Reason::Memory,
            "{}: allow more, or fewer --threads",
            reason.in_words()
        );
        Ok(Exit::of(reason != Reason::Stopped))
    }
}
