//! The presets hold what the program accepts, and explain it.

use engine::config::Config;
use std::path::{Path, PathBuf};

#[test]
fn presets_are_accepted_and_explain_each_key() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs");
    for name in ["tiny.toml", "small.toml", "large.toml"] {
        let path = folder.join(name);
        Config::load(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut section = "";
        let mut previous = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            // The search of matches has the keys of self-play's search, which are explained there.
            let is_explained = previous.starts_with("# ") || section.starts_with("[match.search");
            assert!(
                is_explained || line.starts_with('#') || !line.contains(" = "),
                "{name}: `{line}` is not explained"
            );
            previous = line;
        }
    }
}

#[test]
fn the_default_configuration_is_the_small_preset() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/small.toml");
    assert_eq!(Config::load(&path).unwrap(), Config::default());
}
