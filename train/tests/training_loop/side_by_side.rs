//! The generator beside the trainer, and whatever may become of it.

use crate::programs::{StandIn, build_selfplay, generators_of, signal};
use crate::support::outcome;
use crate::support::train;
use crate::{GAMES, arguments, check_whole, records, start, wait_for};
use std::time::{Duration, Instant};

/// A few games at a time, so that the first ones are over soon.
pub(crate) const SIDE_BY_SIDE: [&str; 2] =
    ["loop.order=side_by_side", "selfplay.games_in_flight=8"];

#[test]
fn side_by_side_the_loop_goes_from_nothing_to_a_table() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (code, said, progress) = outcome(train().args(arguments(&run, &SIDE_BY_SIDE)));
    assert_eq!(code, 0, "{progress}");
    check_whole(&run, &said);
    assert!(records(&run).len() >= GAMES);
    assert!(generators_of(&run).is_empty(), "the generator has ended");
    let by_network = records(&run)
        .iter()
        .filter(|record| {
            let name = &record.evaluators[0].name;
            name != "uniform"
        })
        .count();
    assert!(by_network >= 24, "{by_network}");
}

#[test]
fn killed_side_by_side_the_loop_resumes_with_the_same_command() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    // The loop alone, and both.
    for both in [false, true] {
        let run = folder.path().join(both.to_string());
        let mut first = start(&run, &SIDE_BY_SIDE);
        wait_for(&run.join("pit/00001-against-random.json"), &mut first);
        let generators = generators_of(&run);
        first.kill().unwrap();
        first.wait().unwrap();
        if both {
            generators.into_iter().for_each(|it| signal("KILL", it));
        }
        let (code, said, progress) = outcome(train().args(arguments(&run, &SIDE_BY_SIDE)));
        assert_eq!(code, 0, "both: {both}: {progress}");
        check_whole(&run, &said);
    }
}

#[test]
fn after_a_requested_stop_everything_ends_well_and_resumes() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut first = start(&run, &SIDE_BY_SIDE);
    wait_for(&run.join("pit/00001-against-random.json"), &mut first);
    signal("TERM", first.id());
    assert_eq!(first.wait().unwrap().code(), Some(75));
    assert!(generators_of(&run).is_empty(), "the generator has ended");
    let (code, said, progress) = outcome(train().args(arguments(&run, &SIDE_BY_SIDE)));
    assert_eq!(code, 0, "{progress}");
    check_whole(&run, &said);
}

#[test]
fn a_killed_generator_ends_the_loop_which_then_resumes() {
    build_selfplay();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let killer = {
        let run = run.clone();
        std::thread::spawn(move || {
            let begun = Instant::now();
            // The one that plays beside the trainer comes after the first network.
            while begun.elapsed() < Duration::from_secs(120) {
                if run.join("networks/00001.safetensors").exists()
                    && let [generator] = generators_of(&run)[..]
                {
                    return signal("KILL", generator);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        })
    };
    let (code, _, progress) = outcome(train().args(arguments(&run, &SIDE_BY_SIDE)));
    killer.join().unwrap();
    assert_eq!(code, 128 + 9, "{progress}");
    assert!(
        progress.contains("error: selfplay generate ended with signal: 9 (SIGKILL)"),
        "{progress}"
    );
    let (code, said, progress) = outcome(train().args(arguments(&run, &SIDE_BY_SIDE)));
    assert_eq!(code, 0, "{progress}");
    check_whole(&run, &said);
}

#[test]
fn the_last_lines_of_whatever_fails_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    // The games of `uniform` are always played.
    let cases = [
        (
            "case \"$*\" in *--network*|pit*) exec \"$REAL\" \"$@\";; esac; echo the disk is full >&2; exit 7",
            1,
            "selfplay generate ended with exit status: 7\n  the disk is full",
        ),
        (
            "case \"$*\" in *--network*|pit*) exec \"$REAL\" \"$@\";; esac; echo done >&2",
            1,
            "selfplay generate ended before its end was requested\n  done",
        ),
        (
            "case $1 in pit) echo no players >&2; kill -9 $$;; esac; exec \"$REAL\" \"$@\"",
            128 + 9,
            "selfplay pit ended with signal: 9 (SIGKILL)\n  no players",
        ),
    ];
    for (case, (script, expected, message)) in cases.into_iter().enumerate() {
        let stand_in = StandIn::new(script);
        let run = folder.path().join(case.to_string());
        let command = &mut stand_in.train();
        let (code, _, progress) = outcome(command.args(arguments(&run, &SIDE_BY_SIDE)));
        assert_eq!(code, expected, "{progress}");
        assert!(progress.contains(message), "{message}: {progress}");
        assert!(generators_of(&run).is_empty());
    }
}

#[test]
fn a_mistake_in_the_configuration_pauses_the_loop_until_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let config = run.join("config.toml");
    // The first match ends with a mistake in the file.
    let script = format!(
        "[ \"$1\" = pit ] && ! [ -e {0}.good ] || exec \"$REAL\" \"$@\"\n\"$REAL\" \"$@\" || exit\ncp {0} {0}.good && echo wrong >> {0}",
        config.display()
    );
    let stand_in = StandIn::new(&script);
    let mender = std::thread::spawn(move || {
        let good = run.join("config.toml.good");
        let begun = Instant::now();
        while !good.exists() || std::fs::read(&config).unwrap() == std::fs::read(&good).unwrap() {
            assert!(begun.elapsed() < Duration::from_secs(120));
            std::thread::sleep(Duration::from_millis(20));
        }
        // The loop looks each second.
        std::thread::sleep(Duration::from_millis(2_500));
        let mended = config.with_extension("mended");
        std::fs::copy(good, &mended).unwrap();
        std::fs::rename(mended, config).unwrap();
    });
    let run = folder.path().join("run");
    let (code, said, progress) = outcome(stand_in.train().args(arguments(&run, &[])));
    mender.join().unwrap();
    assert_eq!(code, 0, "{progress}");
    let waits: Vec<&str> = progress
        .lines()
        .filter(|line| line.contains("waits until"))
        .collect();
    assert!(
        matches!(waits[..], [line] if line.contains("mended") && line.contains("config.toml")),
        "{waits:?}"
    );
    check_whole(&run, &said);
}

#[test]
fn a_page_that_has_ended_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let script = format!(
        "[ \"$1\" = serve ] || exec \"$REAL\" \"$@\"\necho x >> {}; echo the address is in use >&2; exit 1",
        folder.path().join("starts").display()
    );
    let stand_in = StandIn::new(&script);
    let command = &mut stand_in.train();
    let command = command
        .args(arguments(&run, &[]))
        .args(["--serve", "127.0.0.1:0"]);
    let (code, said, progress) = outcome(command);
    assert_eq!(code, 0, "{progress}");
    check_whole(&run, &said);
    assert!(progress.contains("the page's server is started again: selfplay serve ended"));
    let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
    assert!(starts.lines().count() > 1, "{starts}");
}
