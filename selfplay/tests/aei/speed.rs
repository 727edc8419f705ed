//! The response times of the engine beside threads that keep all cores busy: ignored by default.

use crate::child::{Engine, OPEN, network};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a function beside threads that keep cores busy.
fn beside_others<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        done.store(true, Relaxed);
        result
    })
}

/// The largest, the middle and the mean of some times.
fn say(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    let most = times[times.len() - 1];
    let middle = times[times.len() / 2];
    println!(
        "{what}: {} times, most {most:?}, median {middle:?}, mean {mean:?}",
        times.len()
    );
    most
}

fn moves() -> usize {
    let wanted = std::env::var("MOVES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(500)
}

/// The time from `go` to `bestmove` in games of the engine against itself.
fn seconds_of_turns(engine: &mut Engine) -> Vec<Duration> {
    let mut times = Vec::new();
    while times.len() < moves() {
        engine.say("newgame\nisready");
        engine.until("readyok");
        for _ in 0..80 {
            let begun = Instant::now();
            engine.say("go");
            let (said, at) = engine.timed_until("bestmove");
            let turn = said.last().unwrap()["bestmove".len()..].trim().to_owned();
            if turn.is_empty() {
                break;
            }
            times.push(at - begun);
            engine.say(&format!("makemove {turn}"));
        }
    }
    times
}

#[test]
#[ignore = "500 turns of a second each for either evaluator; prints the longest"]
fn turns_of_a_second_end_within_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = network(folder.path(), 6, 64);
    for arguments in [&[][..], &["--network", path.to_str().unwrap()][..]] {
        let mut engine = Engine::ready(arguments);
        engine.say("setoption name tcmove value 1");
        let times = beside_others(1, || seconds_of_turns(&mut engine));
        let most = say(&format!("go to bestmove {arguments:?}"), times);
        assert!(most <= Duration::from_secs(1), "{most:?}");
    }
}

#[test]
#[ignore = "stops 500 searches of either evaluator, some at once; prints the longest time to the turn"]
fn stops_are_answered_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = network(folder.path(), 6, 64);
    for arguments in [&[][..], &["--network", path.to_str().unwrap()][..]] {
        let mut engine = Engine::ready(arguments);
        let times = beside_others(1, || {
            let stop = |number: usize| {
                engine.say(&format!("{OPEN}\ngo"));
                thread::sleep(Duration::from_millis([0, 1, 50, 300, 700][number % 5]));
                let begun = Instant::now();
                engine.say("stop");
                let (_, at) = engine.timed_until("bestmove");
                at - begun
            };
            (0..moves()).map(stop).collect()
        });
        let most = say(&format!("stop to bestmove {arguments:?}"), times);
        assert!(most < Duration::from_millis(50), "{most:?}");
    }
}

#[test]
#[ignore = "starts the engine 20 times; prints how long it takes to say aeiok"]
fn the_opening_phase_is_short() {
    let (mut from_start, mut from_aei) = (Vec::new(), Vec::new());
    beside_others(1, || {
        for _ in 0..20 {
            let begun = Instant::now();
            let mut engine = Engine::start(&[]);
            engine.say("aei");
            from_start.push(engine.timed_until("aeiok").1 - begun);
            let mut engine = Engine::start(&[]);
            thread::sleep(Duration::from_secs(2));
            let begun = Instant::now();
            engine.say("aei");
            from_aei.push(engine.timed_until("aeiok").1 - begun);
        }
    });
    say("start of the program to aeiok", from_start);
    let most = say("aei to aeiok", from_aei);
    assert!(most < Duration::from_millis(100), "{most:?}");
}
