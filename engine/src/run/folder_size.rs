//! The sizes of a run's folders.

use super::status::Problems;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::Path;

/// The files in a folder of the run, and below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FolderSize {
    /// `.` for the run's own folder, without those in it.
    pub folder: String,
    /// Bytes of the files.
    pub bytes: u64,
    /// The number of files.
    pub files: u64,
}

/// The sizes of a run's folders, the largest first. Files that can't be read are left out, each with a problem.
pub fn folder_sizes(run: &Path, problems: &mut Problems) -> Vec<FolderSize> {
    let mut sizes = Vec::new();
    let size = |folder: &str| FolderSize {
        folder: folder.to_owned(),
        ..FolderSize::default()
    };
    let mut own = size(".");
    for entry in entries(run, problems) {
        // A link to a larger disk is followed here, and none below.
        match std::fs::metadata(entry.path()) {
            Ok(about) if about.is_dir() => {
                let mut folder = size(&entry.file_name().to_string_lossy());
                add(&entry.path(), &mut folder, problems);
                sizes.push(folder);
            }
            Ok(about) => {
                own.bytes += about.len();
                own.files += 1;
            }
            Err(error) => problems.add_unless_gone(&entry.path(), &error),
        }
    }
    sizes.push(own);
    sizes.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.folder.cmp(&b.folder)));
    sizes
}

fn add(folder: &Path, size: &mut FolderSize, problems: &mut Problems) {
    for entry in entries(folder, problems) {
        // Links are not followed: they might lead back.
        match entry.metadata() {
            Ok(about) if about.is_dir() => add(&entry.path(), size, problems),
            Ok(about) => {
                size.bytes += about.len();
                size.files += 1;
            }
            Err(error) => problems.add_unless_gone(&entry.path(), &error),
        }
    }
}

fn entries(folder: &Path, problems: &mut Problems) -> Vec<std::fs::DirEntry> {
    let listed = std::fs::read_dir(folder).and_then(|entries| entries.collect());
    listed.unwrap_or_else(|error: std::io::Error| {
        if error.kind() != ErrorKind::NotFound {
            problems.add(format!(
                "can't read the folder {}: {error}",
                folder.display()
            ));
        }
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_for_the_run_s_folder_that_they_are_below() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: usize| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![0; bytes]).unwrap();
        };
        write("config.toml", 3);
        write("logs/train.jsonl", 5);
        write("logs/tensorboard/training/events", 7);
        write("shards/a", 2);
        let mut problems = Problems::default();
        let sizes = folder_sizes(folder.path(), &mut problems);
        let sizes: Vec<_> = sizes
            .iter()
            .map(|size| (size.folder.as_str(), size.bytes, size.files))
            .collect();
        assert_eq!(sizes, [("logs", 12, 2), (".", 3, 1), ("shards", 2, 1)]);
        assert_eq!(
            folder_sizes(&folder.path().join("none"), &mut problems).len(),
            1
        );
        assert!(problems.is_empty());
    }
}
