//! Filters, orders, pages, and the numbers of each network.

use super::*;
use arimaa::rules::{Outcome, Reason, Side};
use engine::record::{Ending, Start};
use serde_json::json;

/// A run of six games in two shards.
fn six_games() -> TestRun {
    let run = TestRun::new();
    let won = |mut game: GameRecord, winner, reason| {
        game.ending = Ending::Won(Outcome { winner, reason });
        game
    };
    let mut forked = game(2, 6, "00001");
    forked.start = Start::Fork { game: id(0) };
    let mut resigned = surprising(game(3, 8, "00001"), 0.5);
    resigned.ending = Ending::Resigned {
        winner: Side::Silver,
    };
    let first = [
        surprising(game(0, 4, "uniform"), 0.25),
        won(game(1, 9, "00000"), Side::Gold, Reason::Goal),
        forked,
    ];
    let second = [
        resigned,
        won(
            with_another(game(4, 5, "00001"), "00002"),
            Side::Silver,
            Reason::Immobilization,
        ),
        won(game(5, 7, "00002"), Side::Gold, Reason::Elimination),
    ];
    run.write("shards", 0, &first);
    // File systems may count time in steps of some milliseconds.
    std::thread::sleep(Duration::from_millis(30));
    run.write("shards", 1, &second);
    run
}

#[test]
fn filters_and_orders_are_those_that_are_asked_for() {
    let run = six_games();
    let index = run.index();
    let cases: &[(&str, &[u64])] = &[
        ("", &[5, 4, 3, 2, 1, 0]),
        ("sort=oldest", &[0, 1, 2, 3, 4, 5]),
        ("sort=longest", &[1, 3, 5, 2, 4, 0]),
        ("sort=shortest", &[0, 4, 2, 5, 3, 1]),
        ("sort=surprise", &[3, 0, 5, 4, 2, 1]),
        ("sort=surprise&offset=1&limit=3", &[0, 5, 4]),
        ("offset=2&limit=2", &[3, 2]),
        ("sort=oldest&offset=5", &[5]),
        ("offset=6", &[]),
        ("sort=longest&offset=600", &[]),
        ("limit=0", &[]),
        ("network=00001", &[4, 3, 2]),
        ("network=00002", &[5, 4]),
        ("network=1", &[]),
        ("winner=gold", &[5, 1]),
        ("winner=silver", &[4, 3]),
        ("winner=none", &[2, 0]),
        ("ending=goal", &[1]),
        ("ending=elimination", &[5]),
        ("ending=immobilization", &[4]),
        ("ending=unfinished", &[2, 0]),
        ("ending=resigned", &[3]),
        ("ending=forfeited", &[]),
        ("min_turns=6&max_turns=8", &[5, 3, 2]),
        ("start=fork", &[2]),
        ("start=opening", &[]),
        ("min_surprise=0.25", &[3, 0]),
        ("min_surprise=0.3&winner=gold", &[]),
        ("source=none", &[]),
        ("source=show", &[]),
    ];
    for (query, expected) in cases {
        let page = page(&index, query);
        let expected: Vec<String> = expected.iter().map(|game| format!("0-{game}")).collect();
        assert_eq!(games(&page), expected, "{query}");
        let total = if query.starts_with("source=") { 0 } else { 6 };
        assert_eq!(page["total"], total, "{query}");
    }
    assert_eq!(page(&index, "offset=2&limit=2")["matching"], 6);
    assert_eq!(page(&index, "winner=gold&limit=1")["matching"], 2);
}

#[test]
fn a_page_has_the_form_of_the_documents() {
    let run = six_games();
    let page = page(&run.index(), "limit=1&network=00001");
    let time = page["games"][0]["time"].as_f64().unwrap();
    let shard = std::fs::metadata(run.path("shards/000-000001.shard")).unwrap();
    let modified = shard.modified().unwrap();
    let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!((time - modified.as_secs_f64()).abs() < 1e-3);
    let expected = json!({
        "total": 6, "matching": 3, "is_complete": true, "indexed_share": 1.0,
        "games": [{
            "game": "0-4", "source": "selfplay", "networks": ["00001", "00002"], "winner": "silver", "ending": "immobilization",
            "turns": 5, "start": "empty", "surprise": 0.0, "time": time,
        }],
        "problems": [],
    });
    assert_eq!(page, expected);
}

#[test]
fn a_query_that_is_none_is_refused_with_its_reason() {
    for (text, reason) in [
        ("sortt=newest", "unknown field `sortt`"),
        ("limit=201", "limit is 201, and a page has at most 200"),
        ("limit=-1", "limit: invalid digit"),
        ("offset=many", "offset: invalid digit"),
        ("winner=Gold", "unknown variant `Gold`"),
        ("ending=", "unknown variant"),
        ("min_turns=1&min_turns=2", "duplicate field"),
    ] {
        let message = query(text).unwrap_err();
        assert!(message.contains(reason), "{text}: {message}");
    }
    assert_eq!(
        query("limit=50&sort=newest").unwrap(),
        GamesQuery::default()
    );
    let of_json: GamesQuery = serde_json::from_value(json!({"min_turns": 3})).unwrap();
    assert_eq!(of_json, query("min_turns=3").unwrap());
}

#[test]
fn generations_count_the_games_of_each_network() {
    let run = six_games();
    let columns = serde_json::to_value(run.index().generations()).unwrap();
    let expected = json!({
        "network": ["uniform", "00000", "00001", "00002"],
        "generation": [null, 0, 1, 2],
        "games": [1, 1, 3, 2],
        "mean_game_turns": [4.0, 9.0, 19.0 / 3.0, 6.0],
        "unfinished_share": [1.0, 0.0, 1.0 / 3.0, 0.0],
        "gold_share": [null, 1.0, 0.0, 0.5],
        "goal_share": [0.0, 1.0, 0.0, 0.0],
        "elimination_share": [0.0, 0.0, 0.0, 0.5],
        "immobilization_share": [0.0, 0.0, 1.0 / 3.0, 0.5],
    });
    assert_eq!(columns, expected);
    let empty = serde_json::to_value(TestRun::new().index().generations()).unwrap();
    assert_eq!(empty["games"], json!([]));
}

#[test]
fn the_newest_game_of_each_network_is_shown() {
    let run = TestRun::new();
    assert_eq!(
        serde_json::to_value(run.index().show_games()).unwrap(),
        json!({"games": []})
    );
    run.write("show", 0, &[game(0, 4, "00001"), game(1, 4, "00000")]);
    std::thread::sleep(Duration::from_millis(30));
    run.write("show", 1, &[game(2, 4, "00001"), game(3, 4, "00010")]);
    let index = run.index();
    let shown = serde_json::to_value(index.show_games()).unwrap();
    let game = |network, game| json!({"network": network, "game": game, "source": "show"});
    let expected = [
        game("00000", "0-1"),
        game("00001", "0-2"),
        game("00010", "0-3"),
    ];
    assert_eq!(shown, json!({"games": expected}));
    assert_eq!(page(&index, "source=show")["total"], 4);
    assert_eq!(page(&index, "")["total"], 0);
    index.detail(id(3), "show").unwrap();
}
