//! The cache of tunings: a file that users may delete.

use crate::batch_tuning::BatchTuning;
use engine::files::{folder_of, read_whole, write_whole};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Some hundreds of tunings.
const MAX_BYTES: u64 = 1 << 20;

/// Tunings by the device's name, the network's size, the precision and the program's version.
#[derive(Debug, Default)]
pub(super) struct TuningCache {
    /// None: nothing is kept beyond this process.
    path: Option<PathBuf>,
    /// What this process measured or found.
    known: BTreeMap<String, BatchTuning>,
}

/// The file of the cache, `tusker/batch-tuning.json` in the user's cache folder (`$XDG_CACHE_HOME`, by default `~/.cache`), where
/// there is one.
pub fn tuning_file() -> Option<PathBuf> {
    let folder = |variable: &str| {
        let path = std::env::var_os(variable).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let cache = folder("XDG_CACHE_HOME");
    let cache = cache.or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("tusker").join("batch-tuning.json"))
}

impl TuningCache {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn get(&mut self, key: &str) -> Option<BatchTuning> {
        if !self.known.contains_key(key) {
            // What can't be read is measured anew, and written over.
            let file = self.read().unwrap_or_default();
            self.known.extend(file);
        }
        self.known.get(key).cloned()
    }

    /// Keeps a tuning if the device's memory held all sizes: other programs may leave more of it to the next network. Returns a message
    /// for the user if the file can't be written.
    pub(super) fn put(&mut self, key: String, tuning: &BatchTuning) -> Option<String> {
        if !tuning.is_complete() {
            return None;
        }
        self.known.insert(key, tuning.clone());
        let path = self.path.as_ref()?;
        // Another process may have written since.
        let mut all = self.read().unwrap_or_default();
        all.extend(self.known.clone());
        let written = std::fs::create_dir_all(folder_of(path)).and_then(|()| {
            let text = serde_json::to_string_pretty(&all).map_err(std::io::Error::other)?;
            write_whole(path, text.as_bytes())
        });
        let error = written.err()?;
        Some(format!(
            "{}: tunings can't be remembered, and are made anew at each start: {error}",
            path.display()
        ))
    }

    fn read(&self) -> std::io::Result<BTreeMap<String, BatchTuning>> {
        let path = self.path.as_ref().ok_or(ErrorKind::NotFound)?;
        let bytes = read_whole(path, MAX_BYTES)?;
        let entries: BTreeMap<String, Value> = serde_json::from_slice(&bytes)?;
        let entries = entries.into_iter().filter_map(|(key, entry)| {
            let found: BatchTuning = serde_json::from_value(entry).ok()?;
            is_sound(&found).then_some((key, found))
        });
        Ok(entries.collect())
    }
}

/// Whether a measurement can have given this.
fn is_sound(found: &BatchTuning) -> bool {
    let mut rates = found.rates.iter();
    found.is_complete()
        && rates.clone().any(|rate| rate.batch == found.batch)
        && rates.all(|rate| rate.evaluations_per_second >= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch_tuning::{Rate, SIZES};

    /// Sizes whose rates are 100, but for the chosen one's.
    fn tuning(sizes: &[usize], batch: usize, rate: f64) -> BatchTuning {
        let rates = sizes.iter().map(|&size| Rate {
            batch: size,
            evaluations_per_second: if size == batch { rate } else { 100.0 },
        });
        BatchTuning {
            rates: rates.collect(),
            batch,
            fused: true,
        }
    }

    #[test]
    fn tunings_outlast_the_process_and_a_damaged_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b.json");
        let cache = || TuningCache::new(Some(path.clone()));
        let complete = |batch, rate| tuning(&SIZES, batch, rate);
        let mut first = cache();
        assert_eq!(first.get("x"), None);
        assert_eq!(first.put("x".into(), &complete(64, 150.0)), None);
        // Two processes add to one file.
        assert_eq!(cache().put("y".into(), &complete(32, 101.0)), None);
        let mut other = cache();
        assert_eq!(other.get("x"), Some(complete(64, 150.0)));
        assert_eq!(other.get("y"), Some(complete(32, 101.0)));
        assert_eq!(other.get("z"), None);

        // Impossible values are dropped, and an entry of another form leaves the others.
        for (batch, rate) in [(64, -1.0), (63, 1.0)] {
            cache().put("x".into(), &complete(batch, rate));
            assert_eq!(cache().get("x"), None);
            assert!(cache().get("y").is_some());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replacen('{', "{\"w\": 3,", 1)).unwrap();
        assert!(cache().get("y").is_some());

        std::fs::write(&path, "{\"x\": 3").unwrap();
        assert_eq!(cache().get("x"), None);
        assert_eq!(cache().put("x".into(), &complete(64, 7.0)), None);
        assert_eq!(cache().get("x"), Some(complete(64, 7.0)));
    }

    #[test]
    fn an_incomplete_tuning_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.json");
        let mut cache = TuningCache::new(Some(path.clone()));
        let short = tuning(&SIZES[..2], 32, 100.0);
        assert_eq!(cache.put("x".into(), &short), None);
        cache.put("y".into(), &tuning(&SIZES, 32, 100.0));
        assert_eq!(cache.get("x"), None);
        let mut other = TuningCache::new(Some(path));
        assert_eq!(other.get("x"), None);
        assert!(other.get("y").is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_written_gives_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut cache = TuningCache::new(Some(file.join("batch-tuning.json")));
        let found = tuning(&SIZES, 32, 1.0);
        let note = cache.put("x".into(), &found).unwrap();
        assert!(note.contains("can't be remembered"), "{note}");
        // In this process it is.
        assert_eq!(cache.get("x"), Some(found.clone()));
        let mut nowhere = TuningCache::default();
        assert_eq!(nowhere.put("x".into(), &found), None);
        assert!(nowhere.get("x").is_some());
    }
}
