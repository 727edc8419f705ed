//! What the fuzz target `configuration` does with its bytes: configuration files, `--set` and players.

use engine::config::{Config, PlayerSpec};

/// The default configuration, with every key.
const PRESET: &str = include_str!("../../configs/small.toml");

/// Reads bytes as a configuration, as `--set`, as a player, and in the place of bytes of the default configuration: the first two say
/// where. Nothing may panic, and whatever is accepted must be written and read again as itself.
pub(crate) fn configuration(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    read(&text);
    for line in text.split('\n') {
        set(line);
        player(line);
    }
    let Some((at, rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let at = usize::from(u16::from_le_bytes(*at)) % PRESET.len();
    let end = (at + rest.len()).min(PRESET.len());
    let (before, after) = (&PRESET.as_bytes()[..at], &PRESET.as_bytes()[end..]);
    let replaced = [before, rest, after].concat();
    read(&String::from_utf8_lossy(&replaced));
}

fn read(text: &str) {
    match Config::parse(text) {
        Ok(config) => reads_back(&config),
        Err(error) => assert_ne!(error.to_string(), ""),
    }
}

fn set(setting: &str) {
    match Config::default().with(setting) {
        Ok(config) if config.validate().is_ok() => reads_back(&config),
        Ok(_) => {}
        Err(error) => assert!(error.to_string().starts_with("--set ")),
    }
}

fn reads_back(config: &Config) {
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), *config);
}

fn player(text: &str) {
    let Ok(player) = text.parse::<PlayerSpec>() else {
        return;
    };
    // By their texts: settings of the search may be no numbers.
    let again: PlayerSpec = player.to_string().parse().unwrap();
    assert_eq!(again.to_string(), player.to_string());
    let table = toml::to_string(&player).unwrap();
    let again: PlayerSpec = toml::from_str(&table).unwrap();
    assert_eq!(again.to_string(), player.to_string());
}
