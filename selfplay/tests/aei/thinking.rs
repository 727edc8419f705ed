//! Messages during a search.

use crate::child::{Engine, OPEN, small_network};
use arimaa::aei::{Info, Reply};
use arimaa::notation::parse_turn;
use arimaa::rules::{Game, Side};

fn open_game() -> Game {
    let position = OPEN.strip_prefix("setposition ").unwrap();
    Game::from_position(position.parse().unwrap())
}

/// Checks that a line is a legal turn.
fn assert_legal(text: &str) {
    let mut game = open_game();
    let turn = parse_turn(text, game.position()).unwrap();
    game.play(&turn).unwrap();
}

#[test]
fn stop_is_answered_with_a_turn_however_soon_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let network = small_network(folder.path());
    for arguments in [&[][..], &["--network", network.to_str().unwrap()][..]] {
        let mut engine = Engine::ready(arguments);
        for _ in 0..20 {
            engine.say(&format!("{OPEN}\ngo\nstop"));
            assert_legal(&engine.best_move());
        }
        // The network need not be loaded yet.
        let mut loading = Engine::start(arguments);
        loading.say(&format!("aei\n{OPEN}\ngo\nstop"));
        assert_legal(&loading.best_move());
        // There is one turn for each.
        assert_eq!(engine.said(), [] as [&str; 0]);
        engine.say("newgame\ngo\nstop");
        assert_eq!(engine.best_move().split(' ').count(), 16);
    }
}

#[test]
fn the_turn_after_stop_comes_before_later_answers() {
    let mut engine = Engine::ready(&["--seed", "1"]);
    for next in ["newgame", OPEN, "makemove Ee2n"] {
        for search in ["go", "go ponder"] {
            engine.say(&format!("{OPEN}\n{search}\nstop\n{next}\nisready"));
            let said = engine.until("readyok");
            let turns = said.iter().filter(|line| line.starts_with("bestmove "));
            assert_eq!(turns.count(), 1, "{search}, stop, {next}: {said:?}");
        }
    }
    // The next search has a turn of its own.
    for search in ["go", "go ponder"] {
        engine.say(&format!("{OPEN}\n{search}\nstop\ngo\nstop"));
        assert_legal(&engine.best_move());
        assert_legal(&engine.best_move());
        assert_eq!(engine.said(), [] as [&str; 0]);
    }
}

#[test]
fn an_illegal_turn_leaves_the_search_as_it_is() {
    let mut engine = Engine::ready(&[]);
    for turn in ["Ee9n", "Ee2n Ee2n", "Ra1n Ra2n Ra3n Ra4n Ra5n"] {
        engine.say(&format!("{OPEN}\ngo\nmakemove {turn}\nisready"));
        let said = engine.until("readyok");
        let errors = said.iter().filter(|line| line.starts_with("log Error"));
        assert_eq!(errors.count(), 1, "{said:?}");
        assert!(!said.iter().any(|line| line.starts_with("bestmove")));
        engine.say("stop");
        assert_legal(&engine.best_move());
    }
}

#[test]
fn an_analysis_lasts_until_stop_and_reports_its_findings() {
    let mut engine = Engine::ready(&[]);
    engine.say("setoption name multipv value 3");
    engine.say(&format!("{OPEN}\ngo"));
    let mut said = Vec::new();
    for _ in 0..3 {
        said.extend(engine.until("info multipv 3 "));
    }
    // The search still runs.
    said.extend(engine.said());
    assert!(
        !said.iter().any(|line| line.starts_with("bestmove")),
        "{said:?}"
    );
    engine.say("stop");
    said.extend(engine.until("bestmove"));
    let turn = said.pop().unwrap();
    let turn = &turn["bestmove ".len()..];
    assert_legal(turn);
    let last = |start: &str| said.iter().rfind(|line| line.starts_with(start)).unwrap();
    let line = last("info pv ")["info pv ".len()..].split(" s ").next();
    assert_eq!(line, Some(turn), "what is told is what is played");
    let replies: Vec<Reply> = said.iter().map(|line| line.parse().unwrap()).collect();
    let mut nodes = Vec::new();
    let mut kinds = [false; 4];
    for reply in replies {
        match reply {
            Reply::Info(Info::Nodes(count)) => nodes.push(count),
            Reply::Info(Info::Score(score)) => {
                assert!(score.abs() < 300, "the sides are equal: {score}");
                kinds[0] = true;
            }
            Reply::Info(Info::Time(_)) => kinds[1] = true,
            Reply::Info(Info::Depth { goes_on, .. }) => kinds[2] |= goes_on,
            Reply::Info(Info::Variation(line)) => {
                kinds[3] = true;
                assert_line(&line);
            }
            Reply::Info(Info::Other { kind, .. }) => {
                assert!(["winchance", "multipv"].contains(&kind.as_str()), "{kind}");
            }
            Reply::Log { .. } => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(kinds, [true; 4]);
    assert!(nodes.len() >= 3 && nodes.is_sorted(), "{nodes:?}");
}

/// Checks that a variation can be played; each turn but the first follows its side's letter.
fn assert_line(line: &str) {
    let mut game = open_game();
    let mut turns: Vec<(Side, Vec<&str>)> = vec![(Side::Gold, Vec::new())];
    for word in line.split(' ') {
        match word {
            "g" => turns.push((Side::Gold, Vec::new())),
            "s" => turns.push((Side::Silver, Vec::new())),
            step => turns.last_mut().unwrap().1.push(step),
        }
    }
    for (side, words) in turns {
        assert_eq!(game.position().side(), side, "{line}");
        let turn = parse_turn(&words.join(" "), game.position()).unwrap();
        game.play(&turn).unwrap();
    }
}

#[test]
fn an_analysis_lasts_until_stop_also_without_more_to_find() {
    let mut engine = Engine::ready(&[]);
    engine.say(
        "setposition g [        R                       r                               ]\ngo",
    );
    engine.until("info pv Ra7n");
    let said = engine.said();
    assert!(
        !said.iter().any(|line| line.starts_with("bestmove")),
        "{said:?}"
    );
    engine.say("stop");
    assert_eq!(engine.best_move(), "Ra7n");
    // With a limit of evaluations the turn comes without `stop`.
    engine.say("setoption name evaluations value 10\ngo");
    assert_eq!(engine.best_move(), "Ra7n");
}

#[test]
fn used_time_is_accepted_during_a_search() {
    let mut engine = Engine::ready(&[]);
    engine.say("setoption name tcmove value 100000");
    engine.say(&format!("{OPEN}\ngo"));
    engine.until("info pv");
    engine.say("setoption name moveused value 99999");
    assert_legal(&engine.best_move());
    // The same for the clock itself.
    engine.say(&format!("setoption name moveused value 0\n{OPEN}\ngo"));
    engine.until("info pv");
    engine.say("setoption name tcmove value 1");
    assert_legal(&engine.best_move());
    assert_eq!(engine.said(), [] as [&str; 0]);
}

#[test]
fn a_changed_game_ends_the_search_without_a_turn() {
    let mut engine = Engine::ready(&[]);
    for change in ["newgame", OPEN, "makemove Ee2n Ee3n"] {
        engine.say(&format!("{OPEN}\ngo"));
        engine.until("info pv");
        engine.say(change);
        let said = engine.said();
        assert!(
            !said.iter().any(|line| line.starts_with("bestmove")),
            "{change}"
        );
        engine.say("stop");
        let said = engine.said();
        let nothing = "log Warning: stop: nothing is being searched";
        assert_eq!(said.last().map(String::as_str), Some(nothing), "{change}");
    }
}

#[test]
fn options_and_isready_are_handled_during_a_search_and_a_second_go_is_an_error() {
    let mut engine = Engine::ready(&[]);
    engine.say(&format!("{OPEN}\ngo\nsetoption name moveused value 1\ngo"));
    engine.say("setoption name network value material");
    let said = engine.said().join("\n");
    assert!(
        said.contains("log Error: go: a search is running"),
        "{said}"
    );
    assert!(
        said.contains("log Error: setoption network: not during a search"),
        "{said}"
    );
    engine.say("stop");
    assert_legal(&engine.best_move());
    assert_eq!(engine.said(), [] as [&str; 0]);
}

#[test]
fn pondering_sends_no_turn_and_the_next_turn_reuses_its_tree() {
    let mut engine = Engine::ready(&["--seed", "1"]);
    engine.say("setoption name evaluations value 200");
    // Pondering lasts until the opponent's turn.
    engine.say(&format!("{OPEN}\ngo ponder"));
    let line = engine.until("info pv").pop().unwrap();
    engine.until("info pv");
    let expected = line["info pv ".len()..].split(" s ").next().unwrap();
    engine.say(&format!("makemove {expected}\ngo"));
    let said = engine.until("bestmove");
    let turn = &said.last().unwrap()["bestmove ".len()..];
    let mut game = open_game();
    for text in [expected, turn] {
        let turn = parse_turn(text, game.position()).unwrap();
        game.play(&turn).unwrap();
    }
    // `stop` returns the expected turn.
    engine.say("go ponder\nstop");
    assert!(!engine.best_move().is_empty());
    // A proven turn is sent only after `stop`.
    engine.say("setposition g [        R                       r                               ]\ngo ponder");
    assert!(
        !engine
            .said()
            .iter()
            .any(|line| line.starts_with("bestmove"))
    );
    engine.say("stop");
    assert_eq!(engine.best_move(), "Ra7n");
    assert_eq!(engine.said(), [] as [&str; 0]);
}
