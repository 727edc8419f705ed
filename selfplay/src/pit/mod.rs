//! `selfplay pit`: matches between players, in pairs of games from the same opening with colours swapped.
//!
//! ```text
//! arguments ─┐
//!            ├─ spec ── plan (player, opening) ──┬── folder    the kept games, for resuming
//! --match ───┘                                   └── schedule ── worker (game) ── result (record) ── standings, sprt ── report
//! ```

mod arguments;
mod external_engine;
mod folder;
mod game;
mod opening;
mod part;
mod plan;
mod player;
mod record;
mod referee;
mod report;
mod result;
mod sampling;
mod schedule;
mod spec;
mod sprt;
mod standings;
mod worker;

pub(crate) use arguments::PitArguments;
pub(crate) use external_engine::FaultKind;
pub(crate) use record::{OWN_SETUPS, RecordError, RecordRemarks, read_record, record_name};
pub(crate) use result::{End, GameSummary, MAX_RESULTS_BYTES, RESULTS};

use crate::output;
use crate::worker::devices::Devices;
use crate::worker::worker_pool;
use anyhow::{Result, bail, ensure};
use arguments::Resume;
use engine::config::Config;
use engine::progress::{Progress, say};
use engine::stop::{Exit, Stop};
use folder::{MatchFolder, Resumed, read_plan, read_results};
use opening::OpeningSource;
use part::Part;
use plan::{MATCH_FORMAT, MatchPlan, PlanError};
use player::{Defaults, LoadedPlayer, PlayerKind};
use record::lettered;
use report::MatchReport;
use schedule::Games;
use spec::{MatchSpec, SpecOrigin};
use sprt::SequentialTest;
use standings::{Results, in_whole};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;
use worker::{Finished, MatchTask, Unfinished, WorkTimes};

/// The most players whose ratings the line of progress shows.
const SHOWN_PLAYERS: usize = 5;

/// The most games at once of a worker with its own evaluators in a sequential test: games in flight at the decision are lost, and
/// larger batches are hardly faster there.
const IN_FLIGHT_FOR_A_TEST: u32 = 32;

/// A checked match with its open players, before it has a folder.
struct Prepared {
    plan: MatchPlan,
    players: Vec<LoadedPlayer>,
    /// The players' names in records.
    labels: Vec<String>,
    openings: OpeningSource,
    /// The name for the match's folder.
    name: String,
}

/// Runs `selfplay pit`.
pub(crate) fn run(arguments: &PitArguments) -> Result<ExitCode> {
    let config = arguments
        .config
        .resolve_without_selfplay(&["selfplay.games_in_flight"])?;
    if arguments.config.print_config {
        output::print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = arguments.workers.stop.listen()?;
    let prepared = match prepare(arguments, &config, &stop) {
        Err(_) if stop.is_requested() => return Ok(interrupted()),
        prepared => prepared?,
    };
    let plan = prepared.plan.clone();
    let (parts, resume) = if arguments.join {
        (
            MatchFolder::parts(&arguments.out, &plan)?,
            Some(Resume::OrBegin),
        )
    } else {
        (Vec::new(), arguments.resume)
    };
    let opened = open_folder(&arguments.out, &prepared.name, &plan, resume, &stop)?;
    let Some((mut folder, mut known)) = opened else {
        return Ok(interrupted());
    };
    folder.join(&parts, plan.is_repeatable(), &mut known)?;
    let mut results = results_of(&plan, known)?;
    let begun = Instant::now();
    let mut times = WorkTimes::default();
    if !arguments.join {
        let task = prepared.into_task(arguments, &config, &folder, &results, &stop)?;
        let Some(task) = task else {
            return Ok(interrupted());
        };
        times = task.play(
            arguments.workers.threads(),
            &stop,
            &mut folder,
            &mut results,
        )?;
    }
    let report = MatchReport::new(&plan, &results, &folder, times, begun.elapsed());
    let text = if arguments.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.to_string()
    };
    output::print(&text)?;
    if is_over(&plan, &results) {
        return Ok(ExitCode::SUCCESS);
    }
    let missing = plan.games_of(results.missing()).len();
    ensure!(
        !arguments.join,
        "--join: {missing} games are missing: play their parts to the end, or the rest here with --resume in place of --join"
    );
    Ok(interrupted())
}

/// The results of a match, from its games that are over.
fn results_of(plan: &MatchPlan, over: BTreeMap<u64, GameSummary>) -> Result<Results> {
    let games = Games::new(plan.schedule, plan.players.len(), plan.games);
    let test = plan.sprt.map(SequentialTest::new).transpose()?;
    Ok(Results::new(games, over, test))
}

/// Whether no game of the plan is left to play.
fn is_over(plan: &MatchPlan, results: &Results) -> bool {
    results.is_decided() || plan.games_of(results.missing()).is_empty()
}

/// Whether the match in a folder is finished, of which so many games are over. A match of another format version is not known to be.
///
/// # Errors
/// The plan is damaged, or the results can't be read.
pub(crate) fn is_finished(folder: &Path, over: u64) -> Result<bool> {
    let plan = match read_plan(folder) {
        Ok(Some(plan)) => plan,
        Ok(None) | Err(PlanError::Version(_)) => return Ok(false),
        Err(error) => bail!("{}: {error}", folder.join(folder::PLAN).display()),
    };
    if plan.sprt.is_some() {
        let (results, _) = read_results(folder)?;
        return Ok(is_over(&plan, &results_of(&plan, results)?));
    }
    let all = Games::new(plan.schedule, plan.players.len(), plan.games).count();
    Ok(over >= plan.games_of((0..all).collect()).len() as u64)
}

/// After a stop.
fn interrupted() -> ExitCode {
    say("the match was stopped: the same command resumes it");
    Exit::Interrupted.into()
}

/// Checks the request, and opens all players.
fn prepare(arguments: &PitArguments, config: &Config, stop: &Stop) -> Result<Prepared> {
    let (spec, origin) = arguments.spec()?;
    spec.check(&origin)?;
    let devices = arguments.workers.device.devices(config)?;
    devices.open("--device")?;
    open_own_devices(&spec, &origin, config)?;
    let defaults = Defaults {
        config,
        evaluations: spec.evaluations,
        clock: spec.clock,
        devices: &devices,
        stop,
    };
    let max_turns = spec.max_turns.unwrap_or(config.matches.max_turns);
    let (openings, openings_plan) = OpeningSource::new(&spec, &origin, defaults, max_turns)?;
    let players = open_players(&spec, &origin, defaults)?;
    let is_engine = |player: &LoadedPlayer| matches!(player.kind, PlayerKind::Engine(_));
    ensure!(
        spec.clock.is_none() || players.iter().any(is_engine),
        "{}: a clock is for external engines (`aei:COMMAND`), and the match has none",
        origin.key("clock")
    );
    ensure!(
        spec.sprt.is_none() || arguments.part.is_none() && !arguments.join,
        "{}: a sequential test needs the games in their order, and can't be played in parts",
        origin.key("sprt")
    );
    let resolved = players.iter().map(LoadedPlayer::resolved);
    Ok(Prepared {
        plan: MatchPlan {
            format: MATCH_FORMAT,
            games: spec.games,
            schedule: spec.schedule,
            seed: spec.seed,
            max_turns,
            openings: openings_plan,
            sprt: spec.sprt,
            part: arguments.part,
            players: resolved.collect::<Result<_>>()?,
        },
        labels: labels(&players, &origin),
        name: folder_name(&players, &origin, spec.seed)
            + &arguments.part.map_or_else(String::new, Part::suffix),
        players,
        openings,
    })
}

impl Prepared {
    /// The task that all workers share: the games that are not over yet. None if a stop is requested while openings are sampled.
    fn into_task(
        self,
        arguments: &PitArguments,
        config: &Config,
        folder: &MatchFolder,
        results: &Results,
        stop: &Stop,
    ) -> Result<Option<MatchTask>> {
        let Self { plan, players, .. } = self;
        let to_play = if results.is_decided() {
            Vec::new()
        } else {
            plan.games_of(results.missing())
        };
        let mut limit = config.selfplay.games_in_flight;
        let is_local = |player: &LoadedPlayer| player.player.devices().is_local();
        if plan.sprt.is_some() && players.iter().all(is_local) {
            limit = limit.min(IN_FLIGHT_FOR_A_TEST);
        }
        if plan.is_timed() {
            // The evaluations within a second must not depend on how many games share the thread.
            limit = 1;
        }
        let (workers, games) = (&arguments.workers, results.games().clone());
        let openings =
            self.openings
                .open(folder, plan.seed, games.pairs, workers.threads(), stop)?;
        let Some(openings) = openings else {
            return Ok(None);
        };
        Ok(Some(MatchTask {
            failures: players.iter().map(|_| AtomicU32::new(0)).collect(),
            players,
            labels: self.labels,
            games,
            openings,
            max_turns: plan.max_turns as usize,
            seed: plan.seed,
            games_in_flight: workers.games_in_flight(to_play.len() as u64, limit),
            to_play,
            begun: AtomicUsize::new(0),
            stop: Arc::new(AtomicBool::new(false)),
        }))
    }
}

/// Keeps games that are over, and returns their number.
fn keep(
    over: impl IntoIterator<Item = Finished>,
    folder: &mut MatchFolder,
    results: &mut Results,
) -> Result<u64> {
    let mut count = 0;
    for Finished { summary, record } in over {
        folder.keep(&summary, &record)?;
        results.add(summary);
        count += 1;
    }
    Ok(count)
}

/// Opens the devices of single players: an unusable one is an error before any player is opened, which may take minutes.
fn open_own_devices(spec: &MatchSpec, origin: &SpecOrigin, config: &Config) -> Result<()> {
    for (index, player) in spec.players.iter().enumerate() {
        if let Some(list) = &player.device {
            let key = origin.of_player(index, player, "device");
            Devices::parse(list, config, &key)?.open(&key)?;
        }
    }
    Ok(())
}

/// Opens all players: one that can't play is an error before the first game.
fn open_players(
    spec: &MatchSpec,
    origin: &SpecOrigin,
    defaults: Defaults,
) -> Result<Vec<LoadedPlayer>> {
    let players = spec.players.iter().enumerate();
    let players: Result<Vec<LoadedPlayer>> = players
        .map(|(index, player)| LoadedPlayer::new(index, player, defaults, origin))
        .collect();
    let players = players?;
    if *origin != SpecOrigin::Pair {
        let mut names = BTreeSet::new();
        for player in &players {
            let name = &player.label;
            ensure!(
                names.insert(name),
                "{} {name}: two players have this name; give one another name",
                origin.of_players()
            );
        }
    }
    Ok(players)
}

/// The match's folder, and the games that are over already. None if a stop is requested while another program plays the match.
fn open_folder(
    out: &Path,
    name: &str,
    plan: &MatchPlan,
    resume: Option<Resume>,
    stop: &Stop,
) -> Result<Option<Resumed>> {
    let (mut same, others) = MatchFolder::find(out, name, plan)?;
    let found = match resume {
        Some(_) => same.pop().map(|(path, _)| path),
        None => last_unfinished(same, plan)?,
    };
    match (found, resume) {
        (Some(path), _) => {
            let resumed = MatchFolder::resume(&path, plan, stop)?;
            if let Some((_, known)) = &resumed {
                let (path, done) = (path.display(), known.len());
                say(&format!("resuming {path}: {done} games done"));
            }
            Ok(resumed)
        }
        (None, Some(Resume::Must)) => bail!("--resume: {others}"),
        (None, _) => Ok(Some((
            MatchFolder::begin(out, name, plan)?,
            BTreeMap::new(),
        ))),
    }
}

/// The last begun of the matches with as many games as the plan that is not over, and that no program plays.
fn last_unfinished(matches: Vec<(PathBuf, u64)>, plan: &MatchPlan) -> Result<Option<PathBuf>> {
    for (path, games) in matches.into_iter().rev() {
        if games == plan.games
            && !MatchFolder::is_played(&path)?
            && !is_over(plan, &results_of(plan, MatchFolder::games_over(&path)?)?)
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The players' names in records. Letters distinguish two players; their settings are in the match's folder.
fn labels(players: &[LoadedPlayer], origin: &SpecOrigin) -> Vec<String> {
    match (origin, players) {
        (SpecOrigin::Pair, [a, b]) => {
            let name = |player: &LoadedPlayer| player.spec.name.clone();
            let names = [a, b].map(|of| name(of).unwrap_or_else(|| of.player.short_name()));
            // Each record has them in one line.
            lettered(names.map(|name| name.replace(char::is_control, "?"))).into()
        }
        _ => players.iter().map(|player| player.label.clone()).collect(),
    }
}

/// The name of a match's folder: of its players, their evaluations and the seed, or of its file.
fn folder_name(players: &[LoadedPlayer], origin: &SpecOrigin, seed: u64) -> String {
    let mut parts: Vec<String> = match (origin, players) {
        (SpecOrigin::File(path), _) => {
            let stem = path.file_stem().unwrap_or_default();
            vec![stem.to_string_lossy().into_owned()]
        }
        (_, [a, b]) => vec![a.player.short_name(), b.player.short_name()],
        (_, several) => vec![format!("{}-players", several.len())],
    };
    if !matches!(origin, SpecOrigin::File(_)) {
        let mut evaluations: Vec<String> = players
            .iter()
            .filter_map(|player| match &player.kind {
                PlayerKind::Search { options, .. } => options.budget.evaluations,
                PlayerKind::Policy { .. } | PlayerKind::Random | PlayerKind::Engine(_) => None,
            })
            .map(|evaluations| evaluations.to_string())
            .collect();
        evaluations.dedup();
        // Of many players the folder's name would be too long.
        if players.len() == 2 || evaluations.len() == 1 {
            parts.extend(evaluations);
        }
    }
    parts.push(seed.to_string());
    parts.join("-").replace(['/', ':'], "-")
}

impl MatchTask {
    /// Plays all games, until the match is decided or stopped. Keeps each game as it ends.
    fn play(
        &self,
        threads: usize,
        requested: &Stop,
        folder: &mut MatchFolder,
        results: &mut Results,
    ) -> Result<WorkTimes> {
        if self.to_play.is_empty() {
            return Ok(WorkTimes::default());
        }
        let label = match &self.players[..] {
            [a, b] => format!("{} against {}", a.label, b.label),
            several => format!("{} players", several.len()),
        };
        let mut progress = Progress::new(&label, self.to_play.len() as u64);
        let mut done = 0;
        let of_workers = worker_pool::run(
            threads,
            &self.stop,
            requested,
            |finished| self.run(finished),
            |over| {
                done += keep(over.into_iter().flatten(), folder, results)?;
                folder.flush_if_due()?;
                if results.is_decided() {
                    self.stop.store(true, Relaxed);
                }
                progress.show(done, || self.standing(results));
                Ok(())
            },
        )?;
        let mut times = WorkTimes::default();
        for Unfinished {
            times: of_worker,
            doubtful,
        } in of_workers
        {
            times.add(of_worker);
            // After a stop they are played again: an engine that is at fault may be mended.
            if !requested.is_requested() {
                done += keep(doubtful, folder, results)?;
            }
        }
        folder.flush()?;
        progress.finish(&format!("{done} games"));
        Ok(times)
    }

    /// The standing in one line.
    fn standing(&self, results: &Results) -> String {
        if let [_, _] = self.labels[..] {
            let test = results.test().map(SequentialTest::in_short);
            let score = results.score(0).to_string();
            return match test {
                Some(test) => format!("{score} {test}"),
                None => score,
            };
        }
        let mut ratings: Vec<_> = results.ratings().into_iter().collect();
        ratings.sort_by(|(_, a), (_, b)| b.elo.total_cmp(&a.elo));
        let shown = ratings.iter().take(SHOWN_PLAYERS);
        let shown: Vec<String> = shown
            .map(|(player, rating)| format!("{} {}", self.labels[*player], in_whole(rating.elo)))
            .collect();
        shown.join(", ")
    }
}
