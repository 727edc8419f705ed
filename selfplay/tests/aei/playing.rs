//! Whole games, as programs for players and referees play them.

use crate::child::{Engine, GOLD, OPEN, SILVER, small_network};
use arimaa::notation::{format_turn, parse_turn};
use arimaa::rules::{Game, Phase};

/// Plays the engine's turn in a game.
fn play(game: &mut Game, text: &str) {
    let turn = parse_turn(text, game.position()).unwrap_or_else(|error| panic!("{text}: {error}"));
    if game.position().phase() == Phase::Play {
        let written = format_turn(&turn, game.position());
        assert_eq!(written, text, "captures are said");
    }
    game.play(&turn)
        .unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// As Howdah does it: never a position, every turn by `makemove` with its captures, and the clock before each `go`.
#[test]
fn a_whole_game_is_played_by_makemove_alone() {
    let mut engine = Engine::ready(&["--seed", "3"]);
    for (name, value) in [
        ("tcmove", 1),
        ("tcreserve", 2),
        ("tcpercent", 100),
        ("tcmax", 0),
        ("tcturns", 0),
        ("tctotal", 0),
        ("tcturntime", 0),
        ("evaluations", 40),
    ] {
        engine.say(&format!("setoption name {name} value {value}"));
    }
    engine.say("newgame");
    assert_eq!(engine.said(), [] as [&str; 0]);
    let mut game = Game::new();
    let mut captures = 0;
    while game.outcome().is_none() && game.turns().len() < 300 {
        engine.say("setoption name greserve value 2\nsetoption name sreserve value 2");
        engine.say("setoption name moveused value 0\ngo");
        let said = engine.until("bestmove ");
        assert!(
            !said.iter().any(|line| line.starts_with("log Error")),
            "{said:?}"
        );
        let turn = said.last().unwrap()["bestmove ".len()..].to_owned();
        captures += turn.matches('x').count();
        play(&mut game, &turn);
        engine.say(&format!("makemove {turn}"));
    }
    assert_eq!(engine.said(), [] as [&str; 0]);
    assert!(game.outcome().is_some() && captures > 0);
    // The game is over: `go` is answered without a turn.
    engine.say("go");
    let said = engine.until("bestmove");
    assert!(
        said[0].starts_with("log Error: go: the game is over"),
        "{said:?}"
    );
    assert_eq!(said.last().unwrap(), "bestmove");
    engine.say(&format!("newgame\nmakemove {GOLD}\nmakemove {SILVER}\ngo"));
    let mut game = Game::new();
    play(&mut game, GOLD);
    play(&mut game, SILVER);
    play(&mut game, &engine.best_move());
}

#[test]
fn captures_may_be_written_or_left_out() {
    let position =
        "setposition g [r                                H       r                     R]";
    let mut engine = Engine::ready(&[]);
    for turn in ["rb3e rc3x Hb4s", "rb3e Hb4s"] {
        engine.say(position);
        engine.say(&format!("makemove {turn}"));
        assert_eq!(engine.said(), [] as [&str; 0], "{turn}");
        // The horse is where the rabbit was: this turn of Silver's last rabbit is the only kind there is.
        engine.say("setoption name evaluations value 10\ngo");
        assert!(engine.best_move().starts_with('r'));
    }
}

#[test]
fn both_sides_are_set_up_with_and_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let network = small_network(folder.path());
    for arguments in [&[][..], &["--network", network.to_str().unwrap()][..]] {
        let mut engine = Engine::ready(arguments);
        engine.say("setoption name evaluations value 40\nnewgame");
        let mut game = Game::new();
        for _ in 0..2 {
            engine.say("go");
            let setup = engine.best_move();
            play(&mut game, &setup);
            engine.say(&format!("makemove {setup}"));
        }
        assert_eq!(game.position().phase(), Phase::Play);
        assert_eq!(engine.said(), [] as [&str; 0]);
    }
}

#[test]
fn the_same_seed_sets_up_in_the_same_way() {
    let setup = |seed: &str| {
        let mut engine = Engine::ready(&["--seed", seed]);
        engine.say("newgame\ngo");
        engine.best_move()
    };
    assert_eq!(setup("1"), setup("1"));
    let others = ["2", "3", "4", "5", "6", "7"].map(setup);
    assert!(others.iter().any(|other| *other != setup("1")));
}

#[test]
fn a_proven_turn_is_played_without_using_the_time() {
    let mut engine = Engine::ready(&[]);
    engine.say("setoption name tcmove value 100000");
    // A goal in one step.
    engine.say(
        "setposition g [        R                       r                               ]\ngo",
    );
    assert_eq!(engine.best_move(), "Ra7n");
}

#[test]
fn limits_of_a_turn_end_it() {
    let mut engine = Engine::ready(&[]);
    for limit in [
        "depth value 6",
        "evaluations value 100",
        "tcturntime value 1",
    ] {
        engine.say(&format!("setoption name {limit}\n{OPEN}\ngo"));
        assert!(!engine.best_move().is_empty(), "{limit}");
        let name = limit.split(' ').next().unwrap();
        engine.say(&format!("setoption name {name} value 0"));
        assert_eq!(engine.said(), [] as [&str; 0]);
    }
}
