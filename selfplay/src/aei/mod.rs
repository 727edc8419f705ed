//! `selfplay aei`: an engine for game rooms, referees and programs for players, by the Arimaa Engine Interface.
//!
//! ```text
//! controller ── lines ──> [controller thread] ── events ──> session ── orders ──> search thread (evaluator, search)
//!            <─ replies ─────────────────────────────────── session <── events ── search thread
//! ```
//!
//! The session never waits for the search, so it handles each command at once. It also watches the clock, and stops the search by a
//! flag. The search thread loads the network after the opening phase.

mod channel;
mod clock;
mod findings;
mod messages;
mod no_search;
mod options;
mod running_search;
mod search_thread;
mod session;
mod stages;

pub(crate) use no_search::known_setup;

use crate::output;
use crate::worker::devices::DeviceArguments;
use crate::worker::player::PlayerName;
use crate::worker::worker_pool;
use anyhow::{Context, Result, bail, ensure};
use channel::Channel;
use clap::Args;
use engine::config::{Config, ConfigArguments, MATCH_SET_HELP};
use engine::files::open_regular;
use engine::progress::say;
use messages::Ended;
use network::NetworkSource;
use options::Settings;
use search_thread::Method;
use session::Session;
use signal_hook::low_level;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

/// The wait for the `aei` of a controller that came to the port: others may be waiting.
const OPENING_LIMIT: Duration = Duration::from_secs(5);

/// The engine's network, and its connection.
#[derive(Debug, Args)]
#[command(mut_arg("set", |set| set.help(MATCH_SET_HELP)))]
pub(crate) struct AeiArguments {
    /// Evaluator: `tusker` (the built-in network), a network's file, `material` (hand-made) or `uniform`
    /// (equal values and priors)
    #[arg(long, value_name = "PLAYER", default_value_t = PlayerName::BUILT_IN)]
    network: PlayerName,
    /// Wait for controllers there, and serve one after the other; with port 0 the system chooses one, which is printed to the standard
    /// error
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "server")]
    listen: Option<String>,
    /// Connect to the controller at this host, as game rooms with sockets require
    #[arg(long, value_name = "HOST", requires = "port")]
    server: Option<String>,
    /// Port of the controller
    #[arg(long, value_name = "PORT", requires = "server")]
    port: Option<u16>,
    /// Print the engine's manifest, `engine.json`, and exit. The manifest starts the engine with the other options given here
    #[arg(long)]
    manifest: bool,
    /// Threads that evaluate a network on the CPU [default: one per core]. One tree uses them all. `material` and `uniform` use
    /// one thread, and a GPU has its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Seed of all randomness, such as setups [default: different each time]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    device: DeviceArguments,
    #[command(flatten)]
    config: ConfigArguments,
}

/// Runs `selfplay aei`.
pub(crate) fn run(arguments: &AeiArguments) -> Result<ExitCode> {
    let config = arguments.config()?;
    if arguments.config.print_config {
        output::print(&config.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = &arguments.network;
    ensure!(
        !matches!(
            name,
            PlayerName::Random | PlayerName::Policy(_) | PlayerName::Engine(_)
        ),
        "--network {name}: this player doesn't search"
    );
    let method = Method {
        devices: arguments.device.devices(&config)?,
        threads: arguments
            .threads
            .map_or_else(worker_pool::cores, usize::from),
        search: config.matches.search,
        seed: arguments.seed.unwrap_or_else(rand::random),
    };
    let mut settings = Settings::new(
        arguments.network.to_string(),
        config.matches.search.memory_mib,
    );
    if arguments.manifest {
        if let PlayerName::Network(NetworkSource::File(path)) = name {
            // A manifest outlives this command: the file must exist.
            open_regular(path, u64::MAX)
                .with_context(|| format!("--network: can't read the network {name}"))?;
            settings.network = absolute(path)?;
        }
        let manifest = settings.manifest(&arguments.to_start_with(&method)?);
        output::print(&(serde_json::to_string_pretty(&manifest)? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(address) = &arguments.listen {
        return serve_all(address, &method, &settings);
    }
    let channel = match (&arguments.server, arguments.port) {
        (Some(host), Some(port)) => {
            let stream = TcpStream::connect((host.as_str(), port))
                .with_context(|| format!("can't reach the controller at {host}:{port}"))?;
            Channel::Socket(stream)
        }
        _ => Channel::Standard,
    };
    let code = match serve(channel, &method, &settings, None)? {
        Ended::Quit => 0,
        Ended::Refused(why) | Ended::Failed(why) => {
            say(&format!("error: {why}"));
            1
        }
    };
    // The program doesn't wait for a batch in flight.
    low_level::exit(code)
}

impl AeiArguments {
    fn config(&self) -> Result<Config> {
        Ok(self.config.resolve_without_selfplay(&[])?)
    }

    /// The arguments that start such an engine from any folder.
    fn to_start_with(&self, method: &Method) -> Result<Vec<String>> {
        let mut arguments = vec!["aei".to_owned()];
        let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        match &self.network {
            PlayerName::Network(NetworkSource::File(path)) => add("--network", absolute(path)?),
            PlayerName::Network(NetworkSource::BuiltIn) => {}
            other => add("--network", other.to_string()),
        }
        if !method.devices.is_local() {
            add("--device", method.devices.to_string());
        }
        if let Some(path) = &self.config.config {
            add("--config", absolute(path)?);
        }
        for setting in &self.config.set {
            add("--set", setting.clone());
        }
        if let Some(threads) = self.threads {
            add("--threads", threads.to_string());
        }
        if let Some(seed) = self.seed {
            add("--seed", seed.to_string());
        }
        Ok(arguments)
    }
}

/// A path that is the same from any folder, as text.
fn absolute(path: &Path) -> Result<String> {
    let path = std::path::absolute(path)
        .with_context(|| format!("can't tell where {} is", path.display()))?;
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("{} is not valid text for a manifest", path.display()),
    }
}

/// Serves controllers that come to an address, one after the other.
fn serve_all(address: &str, method: &Method, settings: &Settings) -> Result<ExitCode> {
    let listener =
        TcpListener::bind(address).with_context(|| format!("can't listen at {address}"))?;
    let at = listener.local_addr()?;
    say(&format!("listening at {at}"));
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(connection) => connection,
            Err(error) => {
                say(&format!("can't take a connection at {at}: {error}"));
                std::thread::sleep(Duration::from_secs(1));
                continue;
            }
        };
        match serve(
            Channel::Socket(stream),
            method,
            settings,
            Some(OPENING_LIMIT),
        ) {
            Ok(Ended::Quit) => {}
            // The next controller may name another network.
            Ok(Ended::Refused(why) | Ended::Failed(why)) => {
                let why = why.replace(char::is_control, "?");
                say(&format!("session with {peer}: {why}"));
            }
            // The controller left before its first message.
            Err(error) => say(&format!("session with {peer}: {error:#}")),
        }
        ensure!(
            !method.devices.has_failed(),
            "{} can't be used any more by this process: start it again",
            method.devices
        );
    }
}

/// Serves one controller, which begins the session within the limit.
fn serve(
    channel: Channel,
    method: &Method,
    settings: &Settings,
    opening_limit: Option<Duration>,
) -> Result<Ended> {
    let (sender, events) = mpsc::channel();
    let room = channel
        .listen(sender.clone())
        .context("can't listen to the controller")?;
    let orders = search_thread::start(method.clone(), sender)?;
    let session = Session::new(channel, room, orders, settings.clone(), opening_limit);
    Ok(session.run(&events))
}
