//! The games of matches.

use super::*;
use engine::files::ChecksumForm;
use serde_json::json;

const SETUPS: &str = "1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2\n\
    1s ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7\n";

/// A record as a match writes it.
fn record(number: u64, result: &str, turns: &str) -> String {
    format!(
        "Gold: 00002 (b)\nSilver: material (a)\nResult: {result}\nGame: {number}\nSeed: 4\nOpening: {number}, random setups\n\n{turns}"
    )
}

/// Writes a game's record, and gives its line of the results.
fn keep(run: &TestRun, number: u64, reason: &str, record: &str) -> String {
    run.write_file(&format!("pit/m/games/{number:06}.txt"), record);
    let hash = &blake3::hash(record.as_bytes()).to_hex()[..16];
    let turns = record.lines().skip(7).filter(|line| !line.starts_with('#'));
    let usage = json!({"turns": 1, "evaluations": 2, "time": 0.5});
    let line = json!({
        "game": number, "result": "win", "reason": reason, "turns": turns.count(), "usage": [usage, usage], "moves": "0", "record": hash,
    });
    ChecksumForm::Json.sign(&line.to_string())
}

#[test]
fn the_games_of_a_match_are_a_source() {
    let run = TestRun::new();
    // A search that sees a goal needs no evaluation.
    let searched = "# value 0.6250, 0 evaluations";
    let sampled = "# value 0.5000, 3 evaluations without a search";
    let turns = format!("{SETUPS}2g Ee2n Ee3n\n{searched}\n2s ee7s\n{sampled}\n");
    let unfinished = record(0, "unfinished after 4 turns", &turns);
    let forfeited = record(1, "Silver wins by illegal turn of Gold", SETUPS);
    let position =
        "g [r                                  Er                          R]\n2g Ed4n\n";
    let resigned = record(2, "Gold wins by resignation of Silver", position);
    let lines = [
        keep(&run, 0, "turn_limit", &unfinished),
        keep(&run, 1, "illegal_turn", &forfeited),
        "torn\n".to_owned(),
        keep(&run, 2, "resignation", &resigned),
        keep(&run, 3, "goal", "soon changed"),
    ];
    run.write_file("pit/m/games/000003.txt", "changed");
    run.write_file("pit/m/results.jsonl", &(lines.concat() + "{\"game\":9"));
    run.write_file("pit/summary.json", "{}");
    run.write_file("pit/empty/match.toml", "");
    let index = run.index();
    let all = page(&index, "source=m&sort=oldest");
    assert_eq!(games(&all), ["0-0", "0-1", "0-2"]);
    let row = |game: usize| {
        let row = &all["games"][game];
        let fields = ["winner", "ending", "turns", "start", "networks", "surprise"];
        json!(fields.map(|field| row[field].clone()))
    };
    let networks = ["00002", "material"];
    assert_eq!(
        row(0),
        json!([null, "unfinished", 4, "opening", networks, null])
    );
    assert_eq!(
        row(1),
        json!(["silver", "forfeited", 2, "opening", networks, null])
    );
    assert_eq!(
        (&row(2)[0], &row(2)[1]),
        (&json!("gold"), &json!("resigned"))
    );
    assert_eq!(row(2)[3], "position");
    let problems = problems(&all);
    assert!(problems[0].starts_with("pit/m/results.jsonl: line 3 is damaged"));
    assert!(problems[1].starts_with("pit/m/games/000003.txt: it is not the record"));
    assert_eq!(problems.len(), 2);
    assert_eq!(
        games(&page(&index, "source=m&network=material&winner=gold")),
        ["0-2"]
    );
    assert_eq!(page(&index, "")["total"], 0);

    let detail = serde_json::to_value(index.detail(id(0), "m").unwrap()).unwrap();
    assert_eq!(detail["networks"], json!(networks));
    assert_eq!(
        (&detail["seed"], &detail["source"]),
        (&json!(4), &json!("m"))
    );
    assert_eq!(detail["turns"][0]["origin"], "given");
    let searched = &detail["turns"][2];
    let fields = [
        "label",
        "turn",
        "origin",
        "network",
        "gold_value",
        "evaluations",
        "visits",
    ];
    let expected = json!(["2g", "Ee2n Ee3n", "search", "00002", 0.625, 0, null]);
    assert_eq!(json!(fields.map(|field| searched[field].clone())), expected);
    assert_eq!(detail["turns"][1]["network"], json!(null));
    let sampled = &detail["turns"][3];
    assert_eq!(
        (&sampled["origin"], &sampled["network"]),
        (&json!("policy"), &json!("material"))
    );
    assert_eq!(detail["boards"].as_array().unwrap().len(), 5);
    let detail = serde_json::to_value(index.detail(id(2), "m").unwrap()).unwrap();
    assert_eq!(detail["game"]["start"], position.lines().next().unwrap());
    assert_eq!(
        (&detail["first_label"], &detail["ending"]),
        (&json!("2g"), &json!("resigned"))
    );
    std::fs::remove_file(run.path("pit/m/games/000001.txt")).unwrap();
    assert!(index.detail(id(1), "m").unwrap_err().is_missing());
}

#[test]
fn a_match_that_is_played_is_followed() {
    let run = TestRun::new();
    let first = record(0, "unfinished after 2 turns", SETUPS);
    let mut lines = keep(&run, 0, "turn_limit", &first);
    run.write_file("pit/m/results.jsonl", &lines);
    let index = run.index();
    assert_eq!(games(&page(&index, "source=m")), ["0-0"]);
    // What is known is not read again.
    run.write_file("pit/m/games/000000.txt", "gone");
    lines += &keep(&run, 1, "turn_limit", &record(1, "unfinished", SETUPS));
    run.write_file("pit/m/results.jsonl", &lines);
    assert!(index.wait_complete(PATIENCE));
    assert_eq!(games(&page(&index, "source=m&sort=oldest")), ["0-0", "0-1"]);
    std::fs::remove_dir_all(run.path("pit/m")).unwrap();
    assert!(index.wait_complete(PATIENCE));
    assert_eq!(page(&index, "source=m")["total"], 0);
}
