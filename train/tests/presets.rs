//! The presets hold what the program accepts, and explain it; the smallest holds all of it.

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

/// Presets are the files that `train` reads; `match.toml` is one that `selfplay pit` does.
fn presets() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let paths = std::fs::read_dir(folder).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .filter(|path| !path.ends_with("match.toml"))
        .collect()
}

#[test]
fn presets_are_accepted_and_explain_each_key() {
    let presets = presets();
    for name in ["tiny.toml", "small.toml", "large.toml"] {
        assert!(presets.iter().any(|path| path.ends_with(name)), "{name}");
    }
    for path in presets {
        Config::load(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[1].contains(" = ")) {
            assert!(
                pair[0].starts_with("# "),
                "{}: `{}` is not explained",
                path.display(),
                pair[1]
            );
        }
    }
}

#[test]
fn the_smallest_preset_names_every_key() {
    let all = keys(&toml::from_str(&Config::default().to_toml()).unwrap());
    let path = presets()
        .into_iter()
        .find(|path| path.ends_with("tiny.toml"))
        .unwrap();
    let mut named = keys(&toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap());
    for key in &all {
        let at = named.iter().position(|name| name == key);
        named.remove(at.unwrap_or_else(|| panic!("no {key}")));
    }
    assert_eq!(named, Vec::<String>::new());
}
