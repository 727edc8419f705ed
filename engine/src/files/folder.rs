//! The folder of a path.

use std::path::Path;

/// The folder that a file is in: `.` for a mere name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
