//! The calibrations of earlier starts, in a file that users may delete.

use super::{Calibration, LARGEST};
use crate::files::{folder_of, read_whole, write_whole};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Some hundreds of calibrations.
const MOST_BYTES: u64 = 1 << 20;

/// Calibrations by the device's name, the network's size, the precision and the program's version.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// None: nothing is remembered beyond this process.
    path: Option<PathBuf>,
    /// What this process measured or found.
    known: BTreeMap<String, Calibration>,
}

/// `tusker/calibrations.json` in the user's cache folder, where there is one.
pub(super) fn default_path() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("tusker").join("calibrations.json"))
}

impl Remembered {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn get(&mut self, key: &str) -> Option<Calibration> {
        if !self.known.contains_key(key) {
            // What can't be read is measured anew, and written over.
            let file = self.read().unwrap_or_default();
            self.known.extend(file);
        }
        let found = self.known.get(key)?;
        let is_sound = found.rates.iter().any(|rate| rate.batch == found.batch)
            && found.rates.is_sorted_by(|a, b| a.batch < b.batch)
            && found.rates.iter().all(|rate| {
                (1..=LARGEST).contains(&rate.batch) && rate.evaluations_per_second >= 1.0
            });
        is_sound.then(|| found.clone())
    }

    /// Keeps a calibration. What could not be written, for people to read.
    pub(super) fn put(&mut self, key: String, calibration: &Calibration) -> Option<String> {
        self.known.insert(key, calibration.clone());
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
            "{}: calibrations can't be remembered, and are made anew at each start: {error}",
            path.display()
        ))
    }

    fn read(&self) -> std::io::Result<BTreeMap<String, Calibration>> {
        let path = self.path.as_ref().ok_or(ErrorKind::NotFound)?;
        let bytes = read_whole(path, MOST_BYTES)?;
        serde_json::from_slice(&bytes).map_err(std::io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::calibration::Rate;
    use super::*;

    fn calibration(batch: usize, rate: f64) -> Calibration {
        let rates = [(32, 100.0), (64, rate)];
        Calibration {
            rates: rates
                .map(|(batch, evaluations_per_second)| Rate {
                    batch,
                    evaluations_per_second,
                })
                .to_vec(),
            batch,
            fused: true,
        }
    }

    #[test]
    fn calibrations_outlast_the_process_and_a_damaged_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b.json");
        let remembered = || Remembered::new(Some(path.clone()));
        let mut first = remembered();
        assert_eq!(first.get("x"), None);
        assert_eq!(first.put("x".into(), &calibration(64, 150.0)), None);
        // Two processes add to one file.
        assert_eq!(remembered().put("y".into(), &calibration(32, 101.0)), None);
        let mut other = remembered();
        assert_eq!(other.get("x"), Some(calibration(64, 150.0)));
        assert_eq!(other.get("y"), Some(calibration(32, 101.0)));
        assert_eq!(other.get("z"), None);

        std::fs::write(&path, "{\"x\": 3").unwrap();
        assert_eq!(remembered().get("x"), None);
        assert_eq!(remembered().put("x".into(), &calibration(64, 7.0)), None);
        assert_eq!(remembered().get("x"), Some(calibration(64, 7.0)));
        // What no measurement gives is not believed.
        remembered().put("x".into(), &calibration(64, -1.0));
        assert_eq!(remembered().get("x"), None);
        remembered().put("x".into(), &calibration(128, 1.0));
        assert_eq!(remembered().get("x"), None);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut remembered = Remembered::new(Some(file.join("calibrations.json")));
        let note = remembered.put("x".into(), &calibration(32, 1.0)).unwrap();
        assert!(note.contains("can't be remembered"), "{note}");
        // In this process it is.
        assert_eq!(remembered.get("x"), Some(calibration(32, 1.0)));
        let mut nowhere = Remembered::default();
        assert_eq!(nowhere.put("x".into(), &calibration(32, 1.0)), None);
        assert!(nowhere.get("x").is_some());
    }
}
