//! The presets hold what the program accepts, all of it, and nothing else.

use engine::config::Config;
use std::path::PathBuf;

/// All keys, those of sections in sections too.
fn keys(table: &toml::Table) -> Vec<String> {
    let of = |(name, value): (&String, &toml::Value)| match value.as_table() {
        Some(section) => keys(section)
            .into_iter()
            .map(|key| format!("{name}.{key}"))
            .collect(),
        None => vec![name.clone()],
    };
    table.iter().flat_map(of).collect()
}

#[test]
fn every_preset_names_and_explains_every_key() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let all = keys(&toml::from_str(&Config::default().to_toml()).unwrap());
    let mut presets = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // A match's file is read by `selfplay pit`; a README by people.
        let preset = path
            .extension()
            .is_some_and(|extension| extension == "toml");
        if !preset || path.ends_with("match.toml") {
            continue;
        }
        Config::load(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut named = keys(&toml::from_str(&text).unwrap());
        for key in &all {
            let at = named.iter().position(|name| name == key);
            named.remove(at.unwrap_or_else(|| panic!("{}: no {key}", path.display())));
        }
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[1].contains(" = ")) {
            assert!(
                pair[0].starts_with("# "),
                "{}: `{}` is not explained",
                path.display(),
                pair[1]
            );
        }
        presets += 1;
    }
    assert!(presets >= 1);
}
