//! `selfplay generate`: plays games against itself and writes them to shards.
//!
//! ```text
//!              ┌─ begins, turns ──> journal ──┐ a killed generator resumes from it
//! worker 0: games ── leaves ──> evaluator ─┐  │
//! worker 1: games ── leaves ──> evaluator ─┼─ finished games ──> this thread ──> game writer ──> shards
//! …             ^                          ┘
//!               └── current player <── network watcher <── networks/
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`arguments`] | the command line |
//! | [`game`] | one game: what is drawn for it ([`plan`]), its start ([`starts`]), its turns, [`resignation`], its record |
//! | [`worker`] | a thread's games |
//! | [`current_player`], [`network_watcher`] | changes of the network |
//! | [`log`], [`game_writer`], [`prune`], [`disk`] | turns to the journal, games to shards; waiting while the disk is full |
//! | [`supervisor`], [`memory_guard`] | limits and progress |

mod arguments;
pub(crate) mod current_player;
pub(crate) mod disk;
pub(crate) mod game;
pub(crate) mod game_writer;
pub(crate) mod log;
mod memory_guard;
mod network_watcher;
mod plan;
mod prune;
mod resignation;
pub(crate) mod starts;
pub(crate) mod supervisor;
pub(crate) mod worker;

pub(crate) use arguments::GenerateArguments;

use crate::output::print;
use crate::telemetry::{About, Limits, Telemetry};
use crate::worker::player::{Player, PlayerName};
use crate::worker::worker_pool;
use anyhow::{Context, Result, ensure};
use arguments::GenerationPlan;
use current_player::LoadedPlayer;
use disk::{StoppedWhileWaiting, WriteQueue};
use engine::files::FileLock;
use engine::progress::say;
use engine::record::GameId;
use engine::record::journal::{GameInFlight, JournalFault, Recovery};
use engine::run::{Generator, GeneratorPaths, GeneratorPlan, RunError, WorkerName};
use engine::stop::{Exit, Stop};
use game_writer::{GameWriter, GameWriterOptions};
use log::JournalLog;
use network_watcher::NetworkWatcher;
use prune::Pruning;
use starts::Starts;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use supervisor::{Supervisor, SupervisorOptions};
use worker::{GenerationTask, NextGame};

/// Runs `selfplay generate`.
pub(crate) fn run(arguments: &GenerateArguments) -> Result<ExitCode> {
    if arguments.config.print_config {
        print(&arguments.config()?.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut plan = arguments.plan()?;
    if let Some(run) = &plan.run {
        run.check_format()?;
    }
    plan.devices.open("--device")?;
    // Loading a network and waiting for the disk may take long, and can be interrupted.
    let stop = arguments.workers.stop.listen()?;
    let threads = arguments.workers.threads();
    let player = open_player(&mut plan)?;
    let loaded = LoadedPlayer::new(player, threads)?;
    let starts = Starts::open(&plan.config.selfplay.openings, Some(&plan.paths.shards))?;
    let config_digest = engine::record::digest(plan.config.to_toml().as_bytes());
    let worker = arguments.worker();
    let name = if worker.is_unique() {
        lock_name(&plan.paths, &worker, &stop)?
    } else {
        None
    };
    if worker.is_unique() && name.is_none() {
        say("stopped before the first game: the same command begins");
        return Ok(Exit::Interrupted.into());
    }
    let requested = GeneratorPlan {
        seed: arguments.seed,
        games: arguments.games,
        config_digest: config_digest.clone(),
        evaluator: plan.subject.clone(),
        worker: worker.to_string(),
    };
    let started = with_disk_space(&stop, || {
        if let Some(run) = &plan.run {
            run.ensure_format()?;
            run.ensure_config(&plan.config.to_toml())?;
        }
        Generator::start(&plan.paths, &requested)
    })?;
    let Some((generator, recovery)) = started else {
        say("stopped before the first game: the same command begins");
        return Ok(Exit::Interrupted.into());
    };
    let generator = Arc::new(generator);
    report_recovery(&generator, &recovery);
    for &number in recovery.adopted.iter().chain([&generator.number()]) {
        if let Err(error) = engine::record::remove_unfinished(&plan.paths.shards, number) {
            say(&format!(
                "unfinished shards of a killed generator are not removed: {error}"
            ));
        }
    }

    let games_in_flight = match arguments.games {
        Some(games) => {
            let limit = plan.config.selfplay.games_in_flight;
            arguments.workers.games_in_flight(games, limit)
        }
        None => plan.config.selfplay.games_in_flight as usize,
    };
    let mut work = GenerationTask::new(plan.config.clone(), loaded, starts, games_in_flight);
    let write_queue = Arc::new(WriteQueue::new(Arc::clone(&work.stop)));
    work.log = Arc::new(JournalLog {
        generator: Arc::clone(&generator),
        write_queue: Arc::clone(&write_queue),
    });
    work.seed = arguments.seed;
    work.generator = generator.number();
    let own_lost = recovery.lost.iter();
    let own_lost = own_lost.filter(|id| id.generator == generator.number());
    let again: Vec<u64> = own_lost.map(|id| id.counter).collect();
    let next_shard = recovery.next_shard;
    // Adopted games count towards `--games`.
    let is_adopted = |game: &&GameInFlight| game.beginning.id.generator != generator.number();
    let adopted = recovery.games.iter().filter(is_adopted).count() as u64;
    work.games = arguments
        .games
        .map_or(u64::MAX, |games| games.saturating_sub(adopted));
    // The games that this start has to finish: resumed and new ones.
    let resumed = (recovery.games.len() + again.len()) as u64;
    let left = resumed + work.games.saturating_sub(recovery.next_counter);
    work.next_game = Mutex::new(NextGame {
        again,
        new: recovery.next_counter,
    });
    work.suspended().extend(recovery.games);

    let selfplay = &plan.config.selfplay;
    let pruning = Pruning::new(&plan.paths, selfplay.keep_shards);
    let writer = GameWriter::new(GameWriterOptions {
        folder: &plan.paths.shards,
        config_digest: config_digest.clone(),
        next_shard,
        config: selfplay,
        current_player: Arc::clone(&work.current_player),
        generator: Some(Arc::clone(&generator)),
        pruning,
    });
    let about = About {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        config_digest,
        seed: arguments.seed,
        generator: generator.number(),
        worker: worker.to_string(),
        host: WorkerName::of_host().to_string(),
        device: plan.devices.to_string(),
        limits: Limits {
            games: arguments.games.map(|_| left),
            ..plan.limits
        },
    };
    let mut supervisor = Supervisor::new(SupervisorOptions {
        paths: &plan.paths,
        limits: plan.limits,
        work: &work,
        generator: Arc::clone(&generator),
        writer,
        write_queue,
        requested: stop.clone(),
    });
    let first = supervisor.counters();
    let mut telemetry = Telemetry::start(&arguments.telemetry, &about, &first)?;
    telemetry.keep_newest_in(plan.paths.status(generator.number()), &first);
    supervisor.show(telemetry);
    let watcher = follow(&plan, &work, threads)?;

    let played = worker_pool::run(
        threads,
        &work.stop,
        &stop,
        |finished| work.run(finished),
        |record| {
            NetworkWatcher::check(watcher.as_ref(), &work.stop)?;
            supervisor.take(record)
        },
    );
    work.stop.store(true, Relaxed);
    let ended = supervisor.end(played);
    if let Some(watcher) = watcher {
        // Loading a large network takes long: the program exits without it.
        std::thread::sleep(NetworkWatcher::NOTICE);
        if !watcher.is_finished() {
            supervisor::leave(ended);
        }
        if watcher.join().is_err() {
            say("the thread that loads networks panicked");
        }
    }
    Ok(ended?.into())
}

/// Takes the lock of a worker's name; none if a stop is requested while another program has the name or the disk is full.
///
/// # Errors
/// Two workers have the same name.
fn lock_name(paths: &GeneratorPaths, worker: &WorkerName, stop: &Stop) -> Result<Option<FileLock>> {
    let path = paths.worker_lock(worker);
    let taken = || {
        let path = path.display();
        format!("worker {worker} is running already and holds {path}")
    };
    let waits = || {
        say(&format!(
            "{}. This one waits up to 3 minutes for it.",
            taken()
        ));
    };
    let lock = with_disk_space(stop, || paths.lock_worker(worker, stop, waits))?.flatten();
    ensure!(
        lock.is_some() || stop.is_requested(),
        "{}; give each worker a name of its own with --worker",
        taken()
    );
    Ok(lock)
}

/// What an attempt to write returns. While the disk is full, it is made again; none if a stop is requested meanwhile.
///
/// # Errors
/// Any other fault of the folder.
fn with_disk_space<T>(
    stop: &Stop,
    attempt: impl FnMut() -> Result<T, RunError>,
) -> Result<Option<T>> {
    match WriteQueue::new(Arc::clone(stop.flag())).write(attempt, is_full) {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.is::<StoppedWhileWaiting>() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the disk is full.
fn is_full(error: &RunError) -> bool {
    let error = match error {
        RunError::Io { error, .. } => error,
        RunError::Journal(error) => match &error.fault {
            JournalFault::Io(error) => error,
            _ => return false,
        },
        _ => return false,
    };
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

/// Opens the player. A run's network that can't be used is replaced by the newest that can.
fn open_player(plan: &mut GenerationPlan) -> Result<Player> {
    let mut first_error = None;
    loop {
        let error = match Player::open(&plan.player, &plan.devices) {
            Ok(player) => return Ok(player),
            // Networks are not to blame for a failed device.
            Err(error) if plan.devices.has_failed() => return Err(error),
            Err(error) => error,
        };
        let Some((generation, path)) = plan.older.pop() else {
            return Err(first_error.unwrap_or(error));
        };
        say(&format!(
            "network {generation} plays: the run's network {} can't be used: {error:#}",
            plan.generation.unwrap_or_default()
        ));
        first_error.get_or_insert(error);
        plan.generation = Some(generation);
        plan.player = PlayerName::of_file(path);
    }
}

/// Starts to watch the run's networks, if new ones are to play.
fn follow(
    plan: &GenerationPlan,
    work: &GenerationTask,
    workers: usize,
) -> Result<Option<std::thread::JoinHandle<()>>> {
    let Some(run) = plan.run.as_ref().filter(|_| plan.follows) else {
        return Ok(None);
    };
    let devices = plan.devices.clone();
    let watcher = NetworkWatcher {
        run: run.clone(),
        load: Box::new(move |path| {
            let player = Player::open(&PlayerName::of_file(path), &devices)?;
            LoadedPlayer::new(player, workers)
        }),
        current_player: Arc::clone(&work.current_player),
        generation: plan.generation,
        stop: Arc::clone(&work.stop),
        complaints: BTreeSet::new(),
    };
    let thread = watcher
        .start()
        .context("can't start the thread that loads networks")?;
    Ok(Some(thread))
}

/// Reports what is resumed, and what was lost.
fn report_recovery(generator: &Generator, recovery: &Recovery) {
    let Recovery {
        games,
        finished,
        dropped,
        cut,
        lost,
        left,
        ..
    } = recovery;
    let number = generator.number();
    if generator.is_resumed() || !games.is_empty() {
        let turns: usize = games.iter().map(|game| game.turns.len()).sum();
        say(&format!(
            "generator {number} resumes {} games in flight, {turns} turns{}",
            games.len(),
            match finished {
                0 => String::new(),
                finished => format!("; {finished} in its journal are in shards already"),
            }
        ));
    }
    for part in dropped {
        if part.is_damage {
            say(&format!(
                "{part}; the file is kept as {}.damaged",
                part.path.display()
            ));
        } else {
            say(&part.to_string());
        }
    }
    for (games, what) in [
        (cut, "resume from the turns before the damage"),
        (
            lost,
            "have lost their beginning: this generator's begin again",
        ),
    ] {
        if !games.is_empty() {
            let games: Vec<String> = games.iter().map(GameId::to_string).collect();
            say(&format!("games {} {what}", games.join(", ")));
        }
    }
    for error in left {
        say(&format!("left as it is: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Error;

    #[test]
    fn a_full_disk_is_waited_for_and_nothing_else() {
        let tries = Cell::new(0);
        let fails_once_with = |kind: ErrorKind| {
            tries.set(0);
            let stop = Stop::default();
            with_disk_space(&stop, || {
                tries.set(tries.get() + 1);
                match tries.get() {
                    1 => Err(RunError::Io {
                        what: "lock",
                        path: "worker-a.lock".into(),
                        error: Error::from(kind),
                    }),
                    tries => Ok(tries),
                }
            })
        };
        assert_eq!(fails_once_with(ErrorKind::StorageFull).unwrap(), Some(2));
        let error = fails_once_with(ErrorKind::PermissionDenied).unwrap_err();
        assert!(error.to_string().contains("worker-a.lock"), "{error}");
        let stop = Stop::default();
        stop.request();
        let full = || {
            Err(RunError::Io {
                what: "lock",
                path: "worker-a.lock".into(),
                error: Error::from(ErrorKind::StorageFull),
            })
        };
        assert_eq!(with_disk_space::<()>(&stop, full).unwrap(), None);
    }
}
