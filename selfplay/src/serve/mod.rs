//! `selfplay serve`: a page for a run, its games, analysis and play, and the JSON API behind it ([`API.md`](API.md)).
//!
//! | module | what it does |
//! |---|---|
//! | `error` | errors as answers |
//! | `extract` | bodies, queries and paths of requests |
//! | `guard` | which requests are answered: `Host`, `Origin`, the token; headers of each answer |
//! | `page` | the files of the page, part of the program |
//! | `rules` | positions, legal steps, records |
//! | `players` | the players that searches may use, and their evaluators |
//! | `policy` | the best turns by a network's policy alone |
//! | `searches`, `reviews` | live searches and whole-game analysis, each on a thread of its own |
//! | `search_messages` | searches as requests and answers state them |
//! | `registry`, `threads` | all work of a kind: its limits and its threads |
//! | `run`, `series`, `seen` | a run as its files show it, and what changes |
//! | `games` | the index of a run's games, and single games |
//! | `router` | the paths |
//!
//! The run's files are only read, but for `cache/games.index`. No path of a request reaches the file system.

mod error;
mod extract;
mod games;
mod guard;
mod page;
mod players;
mod policy;
mod registry;
mod reviews;
mod router;
mod rules;
mod run;
mod search_messages;
mod searches;
mod seen;
mod series;
#[cfg(test)]
mod tests;
mod threads;

use crate::http::{HttpLimits, HttpServer};
use crate::worker::devices::DeviceArguments;
use crate::worker::worker_pool;
use anyhow::{Context, Result, ensure};
use clap::Args;
use engine::config::{ConfigArguments, MATCH_SET_HELP};
use engine::progress::say;
use engine::run::RunDirectory;
use engine::stop::Stop;
use guard::Guard;
use players::Players;
use router::Server;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

const LIMITS: HttpLimits = HttpLimits {
    connections: 128,
    answer_time: Duration::from_secs(30),
    stream_time: Duration::from_secs(3_600),
};

/// What is shown, and where.
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.help(MATCH_SET_HELP)))]
pub(crate) struct ServeArguments {
    /// Show this run. Without it the page offers analysis and play with the built-in network
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Serve at this address; port 0 takes a free one. Other addresses than this machine's own need the token that is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8420")]
    address: String,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    device: DeviceArguments,
    /// Threads of each search that evaluate a network on the CPU [default: half of the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// Runs `selfplay serve` until it is stopped.
pub(crate) fn run(arguments: &ServeArguments) -> Result<ExitCode> {
    let config = arguments.config.resolve_without_selfplay(&[])?;
    if arguments.config.print_config {
        crate::output::print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = arguments.run.as_ref().map(RunDirectory::new);
    if let Some(run) = &run {
        run.check_format()?;
        ensure!(
            run.config().exists(),
            "--run {}: this is no run: it has no config.toml",
            run.root().display()
        );
    }
    let stop = Stop::listen()?;
    let devices = arguments.device.devices(&config)?;
    devices.open("--device")?;
    let threads = arguments
        .threads
        .map_or_else(|| worker_pool::cores().div_ceil(2), usize::from);
    let players = Players::new(run.clone(), devices, threads, config.matches.search);
    let server = Arc::new(Server::new(run, players)?);
    let mut url = String::new();
    let http = HttpServer::start("page", &arguments.address, LIMITS, |address| {
        let guard = Guard::new(address);
        url = page_url(address, guard.token());
        router::router(Arc::clone(&server), Arc::new(guard))
    })?;
    say(&format!("page: {url}"));
    if http.address().ip().is_unspecified() {
        let local = local(http.address()).ip();
        say(&format!(
            "other machines: put this machine's name in place of {local}"
        ));
    }
    if arguments.open
        && let Err(error) = open_browser(&url)
    {
        say(&format!("--open: {error:#}"));
    }
    while !http.has_ended() && stop.sleep(Duration::from_millis(200)) {}
    let has_ended = http.has_ended();
    drop(http);
    server.end();
    ensure!(
        !has_ended,
        "the thread that serves the page has ended: start it again"
    );
    Ok(ExitCode::SUCCESS)
}

/// An address as this machine can open it.
fn local(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn page_url(address: SocketAddr, token: Option<&str>) -> String {
    let address = local(address);
    match token {
        Some(token) => format!("http://{address}/?token={token}"),
        None => format!("http://{address}/"),
    }
}

/// Opens a page in the user's browser.
fn open_browser(url: &str) -> Result<()> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("can't start {program}: open {url} yourself"))?;
    Ok(())
}
