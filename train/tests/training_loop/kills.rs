//! Programs and their children that are killed at random moments: the same command ends well, with nothing lost, doubled or changed.

use super::cases::{Case, GENERATE, LOOP, LOOP_SIDE_BY_SIDE, MATCH, MATCH_OF_ENGINES, TRAIN};
use super::programs::{build_selfplay, signal};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for a program whose child or parent was killed.
const END_LIMIT: Duration = Duration::from_secs(120);

/// Kills a case's programs so often.
fn kill_often(case: &Case, kills: u32, seed: u64) {
    build_selfplay();
    let children = Path::new("/proc/thread-self/children");
    assert!(children.exists(), "this system does not show children");
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    (case.prepare)(&whole);
    let begun = Instant::now();
    assert!((case.command)(&whole).output().unwrap().status.success());
    let time = begun.elapsed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut killed, mut runs) = (0, 0);
    while killed < kills {
        let place = folder.path().join(runs.to_string());
        // Some are left alone soon, and others are killed until they hardly come forward.
        let most = rng.random_range(1..=10).min(kills - killed);
        killed += kill_until_done(case, &place, most, time, &mut rng);
        let what = format!("{}, run {runs} of seed {seed}", case.name);
        (case.check)(&whole, &place, &what);
        fs::remove_dir_all(&place).unwrap();
        runs += 1;
    }
    println!(
        "{}: {killed} kills in {runs} runs; 0 lost, 0 doubled, 0 changed",
        case.name
    );
}

/// Runs a command again and again until it has done all, and kills it so often at most. `time` is what it takes undisturbed. Returns
/// how often it was killed.
fn kill_until_done(
    case: &Case,
    place: &Path,
    most: u32,
    time: Duration,
    rng: &mut ChaCha8Rng,
) -> u32 {
    (case.prepare)(place);
    let mut kills = 0;
    let mut children = Vec::new();
    loop {
        let said = tempfile::NamedTempFile::new().unwrap();
        let mut command = (case.command)(place);
        command.stdout(Stdio::null());
        command.stderr(File::create(said.path()).unwrap());
        let mut child = command.spawn().unwrap();
        let is_killed = kills < most && {
            std::thread::sleep(time.mul_f64(rng.random_range(0.0..1.0)));
            kill(&mut child, &mut children, rng)
        };
        kills += u32::from(is_killed);
        let status = child.wait().unwrap();
        let said = fs::read_to_string(said.path()).unwrap();
        assert!(!said.contains("panicked"), "{}: {said}", case.name);
        let is_done = status.success() || (case.is_done)(place);
        // The same command may also start while children of the killed one are still ending.
        if is_done || rng.random() {
            let is_over = || !children.iter().any(|&child| lives(child));
            wait_for(&format!("{}: a child outlives it", case.name), is_over);
        }
        if is_done {
            return kills;
        }
        assert!(is_killed, "{}: {said}", case.name);
    }
}

/// Kills a program, its children, or both, unless it has ended. Adds its children to `all_children`. Whether it killed.
fn kill(program: &mut Child, all_children: &mut Vec<u32>, rng: &mut ChaCha8Rng) -> bool {
    let children = children_of(program.id());
    all_children.extend(&children);
    if program.try_wait().unwrap().is_some() {
        return false;
    }
    let (itself, others) = match rng.random_range(0..3) {
        _ if children.is_empty() => (true, false),
        0 => (true, false),
        1 => (false, true),
        _ => (true, true),
    };
    if itself {
        program.kill().unwrap();
    }
    if others {
        for &child in &children {
            signal("KILL", child);
        }
    }
    wait_for("the program doesn't end after a kill", || {
        program.try_wait().unwrap().is_some()
    });
    true
}

/// Waits until a condition is true; panics with the complaint after [`END_LIMIT`].
fn wait_for(complaint: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + END_LIMIT;
    while !is_so() {
        assert!(Instant::now() < limit, "{complaint}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process has not ended.
fn lives(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

fn children_of(process: u32) -> Vec<u32> {
    let of_thread = |folder: fs::DirEntry| fs::read_to_string(folder.path().join("children")).ok();
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let children: Vec<String> = threads.filter_map(of_thread).collect();
    let numbers = children.iter().flat_map(|text| text.split_whitespace());
    numbers.map(|number| number.parse().unwrap()).collect()
}

#[test]
fn kills_at_random_moments_change_nothing() {
    kill_often(&GENERATE, 46, 1);
    kill_often(&MATCH, 24, 2);
    kill_often(&MATCH_OF_ENGINES, 6, 2);
    kill_often(&TRAIN, 15, 3);
    kill_often(&LOOP, 6, 4);
    kill_often(&LOOP_SIDE_BY_SIDE, 3, 5);
}

/// `scripts/kill_everything` runs this one, with the number of kills in `KILLS`.
#[test]
#[ignore = "an hour for 1,000"]
fn many_kills() {
    let kills = std::env::var("KILLS").map_or(1_000, |kills| kills.parse().unwrap());
    for (case, share) in [
        (&GENERATE, 0.3),
        (&MATCH, 0.15),
        (&MATCH_OF_ENGINES, 0.1),
        (&TRAIN, 0.2),
        (&LOOP, 0.15),
        (&LOOP_SIDE_BY_SIDE, 0.1),
    ] {
        kill_often(case, (share * f64::from(kills)).ceil() as u32, 6);
    }
}
