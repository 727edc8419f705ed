//! A run's directory: where its configuration, networks and games are.
//!
//! ```text
//! format.toml   the version of this layout
//! config.toml   the configuration as resolved when the run began
//! networks/     00000.safetensors, 00001.safetensors, …: by generation, complete and never changed
//! candidates/   trained networks that wait for the match of their gate
//! rejected/     networks that the gate refused
//! shards/       000-000000.shard, …: games, by generator and sequence
//! journal/      the games in flight, by generator
//! generators/   000, 001, …: one folder for each generator
//! checkpoints/  what the trainer needs to resume
//! pit/          the matches' games and results
//! show/         a game of each network without noise, as shards
//! cache/        what the page of `selfplay serve` makes of the games; it may be deleted
//! ratings.json  ratings, and each result behind them
//! clock.json    time of generating and training, games and time behind each network
//! logs/         the trainer's measurements: one JSON object a line, TensorBoard's event files, curves.svg and ratings.svg
//! trainer.lock  held by the one trainer that may work on the run
//! trainer.window  shards that the trainer reads, and those that it will not read again
//! ```

mod directory;
mod error;
mod folder_size;
mod game_speed;
mod generator_status;
mod generators;
mod io;
mod published;
mod run_clock;
mod status;
mod train_log;
mod trainer_window;
mod workers;

pub use directory::{FoundNetworks, RUN_FORMAT, RunDirectory, generation_of, network_name};
pub use error::RunError;
pub use folder_size::{FolderSize, folder_sizes};
pub use game_speed::GameSpeed;
pub use generator_status::{DeviceUse, GeneratorStatus, WorkerTimes};
pub use generators::{
    BLOCKS, Generator, GeneratorPaths, GeneratorPlan, LostGenerator, block_numbers,
    claim_generator, lost_generators, running_generators,
};
pub use io::{make_folder, write_file};
pub use published::{GenerationTime, PublishedTimes};
pub use run_clock::{Effort, RunClock};
pub use status::{GeneratorReport, GeneratorState, Problems, TimeLeft};
pub use train_log::{LineKind, LogLine, LogPart, LogReader, LogSummary, StepSeries};
pub use trainer_window::TrainerWindow;
pub use workers::{WorkerName, WrongWorkerName};
