//! Faults at the operations on files of each command: afterwards the same command ends well, with nothing lost, doubled or changed.
//!
//! `engine/src/files/faults.rs` describes the faults. By default some operations of each command meet each fault, and
//! `every_operation_of_…` go through all, with the faults that the variable `FAULTS` lists (`:kill,+:EROFS`), or with each.

use super::cases::{
    Case, EXPORT, GENERATE, IMPORT, INIT, INIT_FROM, JOIN, LOOP, LOOP_SELFPLAY, MATCH, REPAIR,
    TRAIN,
};
use super::programs::build_selfplay;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The commands that work for a moment only.
const SHORT: [&Case; 6] = [&INIT, &INIT_FROM, &IMPORT, &EXPORT, &REPAIR, &JOIN];

/// Faults of one operation, and of it and all later ones.
const FAULTS: [&str; 10] = [
    ":kill",
    ":torn",
    ":power",
    ":reorder",
    ":EIO",
    ":ENOSPC",
    ":EROFS",
    "+:ENOSPC",
    "+:EROFS",
    INTERRUPTED,
];

/// The fault that no program may notice.
const INTERRUPTED: &str = ":EINTR";

/// The time after the fault when a program is killed that waits for a disk to get well.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Lets all operations of a command meet the faults that the environment names.
fn meet_all_faults(case: &Case) {
    let named = std::env::var("FAULTS").unwrap_or_else(|_| FAULTS.join(","));
    let named: Vec<&str> = named.split(',').collect();
    assert!(
        named.iter().all(|fault| FAULTS.contains(fault)),
        "FAULTS={named:?}"
    );
    meet_faults(case, &named, None);
}

/// Lets operations of a command meet faults: about so many of each, or all.
fn meet_faults(case: &Case, faults: &[&str], points: Option<u64>) {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    (case.prepare)(&whole);
    let trace = folder.path().join("trace");
    let mut command = (case.command)(&whole);
    let (code, said) = run(command.env("TUSKER_FAULT_TRACE", &trace), None);
    assert!(code == 0 || (case.is_done)(&whole), "{said}");
    let trace = fs::read_to_string(&trace).unwrap();
    let numbers = trace.lines().filter_map(|line| {
        let (program, rest) = line.split_once(' ')?;
        let number: u64 = rest.split_once(' ')?.0.parse().ok()?;
        (program == case.program).then_some(number)
    });
    let operations = numbers.max().unwrap();
    assert!(operations > 5, "{trace}");
    let step = points.map_or(1, |points| operations.div_ceil(points));
    let (mut met, mut noticed, mut ended) = (0, 0, 0);
    for (kind, fault) in faults.iter().enumerate() {
        if kind > 0 && points.is_none() {
            println!(
                "{}: {met} faults so far, up to {}",
                case.name,
                faults[kind - 1]
            );
        }
        let first = 1 + kind as u64 * step / faults.len() as u64;
        for number in (first..=operations).step_by(step as usize) {
            let plan = format!("{}:{number}{fault}", case.program);
            let place = folder.path().join(format!("{kind}-{number}"));
            let has_ended = meet(case, &place, &plan, code);
            met += 1;
            noticed += usize::from(*fault != INTERRUPTED);
            ended += usize::from(has_ended);
            (case.check)(&whole, &place, &format!("{}, {plan}", case.name));
            fs::remove_dir_all(&place).unwrap();
        }
    }
    println!(
        "{}: {operations} operations, {met} faults, {ended} ended the program; 0 lost, 0 doubled, 0 changed",
        case.name
    );
    assert!(met >= faults.len() && (noticed == 0 || ended > noticed / 3));
}

/// An operation of which all from then on fail: the program that meets it may wait for ever.
struct Failing<'a> {
    program: &'a str,
    number: &'a str,
    trace: &'a Path,
}

impl Failing<'_> {
    fn is_met(&self) -> bool {
        let trace = fs::read_to_string(self.trace).unwrap_or_default();
        let operation = format!("{} {} ", self.program, self.number);
        trace.lines().any(|line| line.starts_with(&operation))
    }
}

/// The exit code and standard error of a command; -1 if it was killed, as it is when it waits.
fn run(command: &mut Command, failing: Option<&Failing>) -> (i32, String) {
    let said = tempfile::NamedTempFile::new().unwrap();
    command.stdout(Stdio::null());
    command.stderr(File::create(said.path()).unwrap());
    let mut child = command.spawn().unwrap();
    if let Some(failing) = failing {
        let mut met: Option<Instant> = None;
        while child.try_wait().unwrap().is_none() {
            if met.is_none() && failing.is_met() {
                met = Some(Instant::now());
            }
            if met.is_some_and(|met| met.elapsed() > TIMEOUT) {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let status = child.wait().unwrap();
    let said = fs::read_to_string(said.path()).unwrap();
    (status.code().unwrap_or(-1), said)
}

/// Lets one operation meet a fault, and runs the command again until it has done all. `expected` is the exit code of a start without
/// faults. Whether the fault ended the program.
fn meet(case: &Case, place: &Path, plan: &str, expected: i32) -> bool {
    (case.prepare)(place);
    let trace = place.with_extension("trace");
    let mut command = (case.command)(place);
    command.env("TUSKER_FAULT", plan);
    let failing = plan.split_once("+:").map(|(operation, _)| {
        command.env("TUSKER_FAULT_TRACE", &trace);
        let (program, number) = operation.split_once(':').unwrap();
        Failing {
            program,
            number,
            trace: &trace,
        }
    });
    let (first, mut said) = run(&mut command, failing.as_ref());
    if plan.ends_with(INTERRUPTED) {
        // The generator survives errors of the disk: it pauses until they end.
        let is_noticed =
            first != expected || said.contains("Interrupted") || said.contains("paused");
        assert!(!is_noticed, "{}, {plan}: {said}", case.name);
    }
    let mut code = first;
    let mut starts = 0;
    while code != 0 && !(case.is_done)(place) {
        assert!(!said.contains("panicked"), "{}, {plan}: {said}", case.name);
        assert!(starts < 3, "{}, {plan}: {said}", case.name);
        (code, said) = run(&mut (case.command)(place), None);
        starts += 1;
    }
    assert!(!said.contains("panicked"), "{}, {plan}: {said}", case.name);
    first != expected
}

#[test]
fn faults_in_self_play_change_no_game() {
    meet_faults(&GENERATE, &FAULTS, Some(6));
}

#[test]
fn faults_in_training_change_no_network() {
    meet_faults(&TRAIN, &FAULTS, Some(3));
}

#[test]
fn faults_in_a_match_change_no_game() {
    meet_faults(&MATCH, &FAULTS, Some(6));
}

#[test]
fn faults_in_short_commands_leave_nothing_half_done() {
    for case in SHORT {
        meet_faults(case, &FAULTS, Some(1));
    }
}

#[test]
fn faults_in_the_loop_s_programs_are_overcome() {
    for case in [&LOOP, &LOOP_SELFPLAY] {
        meet_faults(case, &[":kill", ":power", "+:ENOSPC"], Some(1));
    }
}

#[test]
#[ignore = "an hour"]
fn every_operation_of_the_programs() {
    for case in [&GENERATE, &TRAIN, &MATCH] {
        meet_all_faults(case);
    }
}

#[test]
#[ignore = "minutes"]
fn every_operation_of_short_commands() {
    for case in SHORT {
        meet_all_faults(case);
    }
}

#[test]
#[ignore = "two hours"]
fn every_operation_of_the_loop() {
    meet_all_faults(&LOOP);
}

#[test]
#[ignore = "two hours"]
fn every_operation_of_the_loop_s_generator() {
    meet_all_faults(&LOOP_SELFPLAY);
}
