//! The programs of these tests: the real ones side by side, or `train` beside another `selfplay`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Makes sure that `selfplay` lies beside `train`: cargo builds only this package's programs for this package's tests.
pub(crate) fn build_selfplay() {
    let train = Path::new(env!("CARGO_BIN_EXE_train"));
    if train.with_file_name("selfplay").exists() {
        return;
    }
    let profile = train
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap();
    let profile = if profile == "debug" { "dev" } else { profile };
    let build = Command::new(env!("CARGO"))
        .args(["build", "--package", "selfplay", "--profile", profile])
        .status();
    assert!(build.unwrap().success());
}

/// The program `selfplay` beside `train`.
pub(crate) fn selfplay() -> Command {
    Command::new(Path::new(env!("CARGO_BIN_EXE_train")).with_file_name("selfplay"))
}

/// `train` in a folder of its own, with a shell script in place of `selfplay`.
pub(crate) struct StandIn {
    folder: TempDir,
}

impl StandIn {
    /// The script has the arguments of `selfplay`, and the real program's path in `$REAL`.
    pub(crate) fn new(script: &str) -> Self {
        build_selfplay();
        let train = Path::new(env!("CARGO_BIN_EXE_train"));
        // Beside the others, where libtorch is found.
        let folder = tempfile::tempdir_in(train.parent().unwrap()).unwrap();
        std::fs::hard_link(train, folder.path().join("train")).unwrap();
        let real = train.with_file_name("selfplay");
        let script = format!("#!/bin/sh\nREAL='{}'\n{script}\n", real.display());
        let path = folder.path().join("selfplay");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    pub(crate) fn train(&self) -> assert_cmd::Command {
        assert_cmd::Command::new(self.folder.path().join("train"))
    }
}

/// The generators that play into a run, by their processes.
pub(crate) fn generators_of(run: &Path) -> Vec<u32> {
    let run = run.to_str().unwrap();
    let is_generator = |process: &PathBuf| {
        let Ok(line) = std::fs::read(process.join("cmdline")) else {
            return false;
        };
        let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
        words.get(1) == Some(&b"generate".as_slice()) && words.contains(&run.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let processes = processes.filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(is_generator)
        .filter_map(|process| process.file_name()?.to_str()?.parse().ok())
        .collect()
}

/// Sends a process a signal; it may have ended.
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(sent.is_ok());
}
