//! `engine.json`: what programs for players need to know to offer this engine (`ENGINE_MANIFEST.md` of Janzert/AEI, version 1).

use super::options::Settings;
use serde_json::{Value, json};

/// What this engine is called.
pub(super) const NAME: &str = "Tusker";
/// Who made it.
pub(super) const AUTHOR: &str = "Tusker's contributors";
/// Its version.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The manifest of an engine that is started with some arguments and has some settings then. It has no downloads: a publisher of
/// binaries adds theirs.
pub(super) fn manifest(arguments: &[String], settings: &Settings) -> Value {
    json!({
        "manifest_version": 1,
        "id": "tusker",
        "name": NAME,
        "version": VERSION,
        "author": AUTHOR,
        "description": "Searches whole turns with a policy and value network that it has learned from its own games.",
        "license": "MIT OR Apache-2.0",
        "args": arguments,
        "options": settings.described(),
    })
}
