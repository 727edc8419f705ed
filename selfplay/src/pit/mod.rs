//! `selfplay pit`: matches between players, in pairs of games from the same opening with colours swapped.
//!
//! ```text
//! arguments ─┐                      player  who plays            opening  where games begin
//!            ├─ order ── plan ──┬── schedule   the pairings         folder   what is kept, and resumed
//! --match ───┘                  └── worker     a thread's games ─► result ─► standings, sprt ─► report
//! ```

mod arguments;
mod beginning;
mod chance;
mod external_engine;
mod folder;
mod game;
mod opening;
mod plan;
mod player;
mod referee;
mod report;
mod result;
mod schedule;
mod spec;
mod sprt;
mod standings;
mod usage;
mod worker;

pub(crate) use arguments::PitArguments;

use crate::output;
use crate::worker::devices::Devices;
use crate::worker::worker_pool;
use anyhow::{Result, bail, ensure};
use arguments::Resume;
use beginning::OpeningSource;
use engine::config::Config;
use engine::progress::{Progress, say};
use folder::MatchFolder;
use plan::{MATCH_FORMAT, MatchPlan};
use player::{Defaults, LoadedPlayer, PlayerKind, ResolvedPlayer};
use report::{MatchInfo, MatchReport};
use result::GameSummary;
use schedule::Games;
use spec::{MatchSpec, SpecOrigin};
use sprt::SequentialTest;
use standings::{Results, in_whole};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;
use worker::{Finished, MatchTask, Unfinished, WorkTimes};

/// The most players whose ratings the line of progress shows.
const SHOWN_PLAYERS: usize = 5;

/// The most games that a worker which evaluates by itself plays at once for a sequential test: what is under way when it is decided is
/// given up, and larger batches are hardly faster there.
const IN_FLIGHT_FOR_A_TEST: u32 = 32;

/// A match that can be played.
struct Prepared {
    spec: MatchSpec,
    players: Vec<LoadedPlayer>,
    beginning: OpeningSource,
    plan: MatchPlan,
    /// What the players are called in records.
    labels: Vec<String>,
    /// What the match's folder is to be called.
    name: String,
}

/// Runs `selfplay pit`.
pub(crate) fn run(arguments: &PitArguments) -> Result<ExitCode> {
    let config = arguments.config.resolve(None)?;
    if arguments.config.print_config {
        output::print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let prepared = prepare(arguments, &config)?;
    let (out, plan) = (&arguments.out, prepared.plan.clone());
    let (mut folder, known) = open_folder(out, &prepared.name, &plan, arguments.resume)?;
    let games = Games::new(plan.schedule, plan.players.len(), plan.games);
    let test = plan.sprt.map(SequentialTest::new).transpose()?;
    let mut results = Results::new(games.clone(), known, test);
    let mut about = MatchInfo {
        seed: plan.seed,
        max_turns: plan.max_turns as usize,
        openings: in_words(&plan.openings),
        games_asked: games.count(),
        reproducible: !plan.players.iter().any(ResolvedPlayer::is_timed),
        times: WorkTimes::default(),
        seconds: 0.0,
        folder: folder.path().to_owned(),
        records: folder.games(),
    };
    let work = prepared.into_work(arguments, &config, games, &folder, &results)?;
    let begun = Instant::now();
    about.times = work.play(arguments.workers.threads(), &mut folder, &mut results)?;
    about.seconds = begun.elapsed().as_secs_f64();
    let report = MatchReport::new(&plan.players, &results, about);
    let text = match arguments.json {
        true => serde_json::to_string(&report)? + "\n",
        false => report.to_string(),
    };
    output::print(&text)?;
    let is_stopped = !results.is_decided() && (results.played() as u64) < work.games.count();
    if is_stopped {
        say("the match was stopped: the same command with --resume resumes it");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks everything that is requested, and opens all players.
fn prepare(arguments: &PitArguments, config: &Config) -> Result<Prepared> {
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
    };
    let max_turns = spec.max_turns.unwrap_or(config.matches.max_turns);
    let (beginning, openings) = OpeningSource::new(&spec, &origin, defaults, max_turns)?;
    let players = open_players(&spec, &origin, defaults)?;
    let engines = players.iter();
    let engines = engines.filter(|player| matches!(player.kind, PlayerKind::Engine(_)));
    ensure!(
        spec.clock.is_none() || engines.count() > 0,
        "{}: a clock is for external engines, `aei:COMMAND`, and none plays",
        origin.key("clock")
    );
    let resolved: Result<_> = players.iter().map(LoadedPlayer::resolved).collect();
    let resolved = resolved?;
    let plan = MatchPlan {
        format: MATCH_FORMAT,
        games: spec.games,
        schedule: spec.schedule,
        seed: spec.seed,
        max_turns,
        openings,
        sprt: spec.sprt,
        players: resolved,
    };
    Ok(Prepared {
        labels: labels(&players, &origin),
        name: folder_name(&players, &origin, spec.seed),
        spec,
        players,
        beginning,
        plan,
    })
}

impl Prepared {
    /// What the workers share: everything that is to be played.
    fn into_work(
        self,
        arguments: &PitArguments,
        config: &Config,
        games: Games,
        folder: &MatchFolder,
        results: &Results,
    ) -> Result<MatchTask> {
        let Self { spec, plan, .. } = &self;
        let threads = arguments.workers.threads();
        let to_play = match results.is_decided() {
            true => Vec::new(),
            false => results.missing(),
        };
        let mut limit = config.selfplay.games_in_flight;
        let mut players = self.players.iter().map(|player| &player.player);
        if spec.sprt.is_some() && players.all(|player| player.devices().is_local()) {
            limit = limit.min(IN_FLIGHT_FOR_A_TEST);
        }
        if plan.players.iter().any(ResolvedPlayer::is_timed) {
            // What a search finds in a second is not to depend on how many games share the thread.
            limit = 1;
        }
        let (seed, max_turns) = (plan.seed, plan.max_turns as usize);
        let openings = self
            .beginning
            .openings(folder, seed, games.pairs, threads)?;
        Ok(MatchTask {
            failures: self.players.iter().map(|_| AtomicU32::new(0)).collect(),
            players: self.players,
            labels: self.labels,
            games,
            openings,
            max_turns,
            seed,
            games_in_flight: arguments
                .workers
                .games_in_flight(to_play.len() as u64, limit),
            to_play,
            begun: AtomicUsize::new(0),
            stop: Arc::new(AtomicBool::new(false)),
        })
    }
}

/// Keeps games that are over, and says how many these are.
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

/// Makes the devices of single players ready: where one can't be used, no player is opened for minutes before that shows.
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
                "{} {name}: two players are called so; a match's file can give them names",
                origin.key(if *origin == SpecOrigin::Players {
                    "players"
                } else {
                    "player"
                })
            );
        }
    }
    Ok(players)
}

/// The match's folder, and the games that are over already.
fn open_folder(
    out: &Path,
    name: &str,
    plan: &MatchPlan,
    resume: Option<Resume>,
) -> Result<(MatchFolder, BTreeMap<u64, GameSummary>)> {
    let Some(resume) = resume else {
        return Ok((MatchFolder::begin(out, name, plan)?, BTreeMap::new()));
    };
    match (MatchFolder::find(out, plan)?, resume) {
        (Ok(path), _) => {
            let (folder, known) = MatchFolder::resume(&path, plan)?;
            say(&format!(
                "resuming {}: {} games done",
                path.display(),
                known.len()
            ));
            Ok((folder, known))
        }
        (Err(_), Resume::OrBegin) => Ok((MatchFolder::begin(out, name, plan)?, BTreeMap::new())),
        (Err(reason), Resume::Must) => bail!("--resume: {reason}"),
    }
}

/// What the players are called in records. Of two, the letters tell them apart; their settings stand in the match's folder.
fn labels(players: &[LoadedPlayer], origin: &SpecOrigin) -> Vec<String> {
    let named = players.iter().zip(["a", "b"]);
    match origin {
        SpecOrigin::Pair => named
            .map(|(player, letter)| format!("{} ({letter})", player.player.short_name()))
            .collect(),
        _ => players.iter().map(|player| player.label.clone()).collect(),
    }
}

/// What a match's folder is called: by its players, their evaluations and the seed, or by its file.
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
        parts.extend(evaluations);
    }
    parts.push(seed.to_string());
    parts.join("-").replace(['/', ':'], "-")
}

fn in_words(openings: &plan::OpeningsPlan) -> String {
    match (&openings.file, &openings.sampled_by) {
        (Some(file), _) => file.clone(),
        (None, Some(_)) => format!("{}, {} turns by a policy", openings.from, openings.turns),
        (None, None) if openings.turns > 0 => {
            format!("{}, {} random turns", openings.from, openings.turns)
        }
        (None, None) => openings.from.clone(),
    }
}

impl MatchTask {
    /// Plays all games, or as many as are over when the match is decided or the user asks to stop. Keeps them as they end.
    fn play(
        &self,
        threads: usize,
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
            done += keep(doubtful, folder, results)?;
        }
        folder.flush()?;
        progress.finish(&format!("{done} games"));
        Ok(times)
    }

    /// How it stands, in a line.
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
