//! A controller that sends nonsense.

use crate::child::{Engine, GOLD, SILVER};
use crate::mutation::{Mutations, cases};
use std::time::{Duration, Instant};

/// Messages that a session survives as they are.
const MESSAGES: [&str; 22] = [
    "isready",
    "newgame",
    "stop",
    "go",
    "go ponder",
    "setposition g [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]",
    "setposition s [r                                   e               E          R]",
    "makemove Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2",
    "makemove ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8",
    "makemove Ee2n Ee3n Ee4n",
    "setoption name tcmove value 0.01",
    "setoption name tcreserve value 1",
    "setoption name tcpercent value 50",
    "setoption name tcmax value 3",
    "setoption name greserve value 0.5",
    "setoption name moveused value 2",
    "setoption name hash value 16",
    "setoption name depth value 2",
    "setoption name evaluations value 20",
    "setoption name multipv value 3",
    "setoption name lag value 0",
    "setoption name network value material",
];

/// Messages between two games.
const BATCH: usize = 25;

/// After any messages the engine plays, or it has ended with an error.
#[test]
fn nonsense_neither_stops_the_engine_nor_makes_it_wait() {
    let mut messages = Mutations::new(&MESSAGES, 29);
    let mut engine = Engine::ready(&[]);
    let (mut sent, mut endings) = (0, 0);
    while sent < cases(1_000) {
        for _ in 0..BATCH {
            match messages.below(40) {
                0 => engine.try_send(&messages.next()),
                1..10 => engine.try_say(messages.sample()),
                // An unknown first word would end the session.
                _ => {
                    let word = messages.sample().split(' ').next().unwrap_or_default();
                    let changed = messages.next();
                    let rest = changed.splitn(2, |&byte| byte == b' ').nth(1);
                    engine.try_send(&[word.as_bytes(), b" ", rest.unwrap_or_default()].concat());
                }
            }
        }
        sent += BATCH;
        let last = format!("message{sent}");
        engine.try_say(&format!("stop\nsetoption name {last}"));
        if engine.says(&last) {
            play(&mut engine);
        } else {
            let (status, _, complaints) = engine.end();
            assert_eq!(status.code(), Some(1), "{complaints}");
            assert!(complaints.starts_with("error: "), "{complaints}");
            assert!(!complaints.contains("panicked"), "{complaints}");
            engine = Engine::ready(&[]);
            endings += 1;
        }
    }
    assert!(endings > 0 && endings < sent / BATCH);
    println!("{sent} messages, {endings} sessions ended by an unknown one");
}

/// Lets the engine choose a turn of a game that is not over, within its time.
fn play(engine: &mut Engine) {
    engine.say("newgame\nsetoption name tcmove value 0.05\nsetoption name tcreserve value 0");
    engine.say("setoption name moveused value 0\nsetoption name lag value 0");
    engine.say(&format!("makemove {GOLD}\nmakemove {SILVER}\nisready"));
    engine.until("readyok");
    let asked = Instant::now();
    engine.say("go");
    assert_ne!(engine.best_move(), "");
    assert!(asked.elapsed() < Duration::from_secs(20));
}
