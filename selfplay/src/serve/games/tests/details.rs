//! Single games, against what a replay says of them.

use super::*;
use arimaa::notation::{format_board, format_turn, parse_position, parse_record};
use arimaa::rules::{Game, Phase};
use engine::record::{POLICY_TOTAL, Start, import, replay};
use serde_json::json;

fn detail(index: &GamesIndex, game: GameId) -> Value {
    serde_json::to_value(index.detail(game, "selfplay").unwrap()).unwrap()
}

#[test]
fn a_game_is_told_as_it_is_replayed() {
    let run = TestRun::new();
    let record = with_another(surprising(game(3, 12, "00004"), 0.5), "00005");
    run.write("shards", 0, &[game(0, 3, "x"), record.clone()]);
    let detail = detail(&run.index(), record.id);
    let turns = replay(&record).unwrap();
    let played: Game = record.to_game().unwrap();
    assert_eq!(
        parse_record(detail["record"].as_str().unwrap()).unwrap(),
        played
    );
    assert_eq!(detail["id"], "0-3");
    assert_eq!(detail["networks"], json!(["00004", "00005"]));
    assert_eq!(
        (&detail["seed"], &detail["winner"]),
        (&json!(7), &json!(null))
    );
    assert_eq!(
        (&detail["ending"], &detail["first_label"]),
        (&json!("unfinished"), &json!("1g"))
    );
    assert_eq!(detail["game"]["start"], json!(null));
    let boards = detail["boards"].as_array().unwrap();
    assert_eq!(boards.len(), turns.len() + 1);
    assert_eq!(boards[0], " ".repeat(64));
    for (index, turn) in turns.iter().enumerate() {
        let told = &detail["turns"][index];
        let text = format_turn(&turn.turn, &turn.position);
        assert_eq!(
            (&told["turn"], &detail["game"]["turns"][index]),
            (&json!(text), &json!(text))
        );
        assert_eq!(told["label"], record.turn_number(index).to_string());
        let board = format_board(turn.position.board());
        assert_eq!(format!("[{}]", boards[index].as_str().unwrap()), board);
        let search = turn.origin.search().unwrap();
        assert_eq!(told["origin"], "search");
        assert_eq!(told["gold_value"].as_f64().unwrap() as f32, search.value);
        assert_eq!(
            (&told["visits"], &told["evaluations"]),
            (&json!(1), &json!(1))
        );
        let is_last = index + 1 == turns.len();
        assert_eq!(told["network"], if is_last { "00005" } else { "00004" });
        assert_eq!(told["rows"].as_array().unwrap().len(), turn.rows.len());
        assert_eq!(told["surprise"], 0.5);
        for (row, told) in turn.rows.iter().zip(told["rows"].as_array().unwrap()) {
            let policy = told["policy"].as_array().unwrap();
            assert_eq!(policy.len(), row.policy.len().min(10));
            let greatest = *row.policy.iter().max().unwrap();
            let greatest = f64::from(greatest) / f64::from(POLICY_TOTAL);
            assert_eq!(policy[0]["share"].as_f64().unwrap(), greatest);
            assert_eq!(told["step"], row.state.steps_used());
        }
        if turn.position.phase() == Phase::Setup {
            let action = told["rows"][0]["policy"][0]["action"].as_str().unwrap();
            assert_eq!(action.len(), 3, "{action}");
        }
    }
    let last = format!("[{}]", boards[turns.len()].as_str().unwrap());
    assert_eq!(last, format_board(played.position().board()));
}

#[test]
fn a_game_from_a_position_names_captures_and_ends() {
    let run = TestRun::new();
    // Gold's horse leaves the trap's side, and the rabbit beside it is lost.
    let position = format!("g [r{:41}RH{:19}R]", "", "");
    let position = parse_position(&position).unwrap();
    let mut played = Game::from_position(position);
    let turn = arimaa::notation::parse_turn("Hd3e", &position).unwrap();
    played.play(&turn).unwrap();
    let record = import(&played, None, id(0)).unwrap();
    assert!(matches!(record.start, Start::Position(_)));
    run.write("shards", 0, std::slice::from_ref(&record));
    let index = run.index();
    assert_eq!(games(&page(&index, "start=position")), ["0-0"]);
    let detail = detail(&index, record.id);
    assert_eq!(
        detail["game"]["start"],
        arimaa::notation::format_position(&position)
    );
    assert_eq!(detail["first_label"], "2g");
    let told = &detail["turns"][0];
    assert_eq!(
        (&told["turn"], &told["origin"]),
        (&json!("Hd3e Rc3x"), &json!("given"))
    );
    assert_eq!(
        (&told["network"], &told["gold_value"]),
        (&json!(null), &json!(null))
    );
    let rows = told["rows"].as_array().unwrap();
    let first = json!([{"action": "Hd3e Rc3x", "share": 1.0}]);
    assert_eq!(rows[0]["policy"], first);
    assert_eq!(rows[1]["policy"][0]["action"], "end");
}

#[test]
fn a_game_against_the_rules_is_indexed_and_named_when_it_is_asked_for() {
    let run = TestRun::new();
    let mut record = game(0, 4, "00000");
    record.turns[2].actions = vec![u16::MAX];
    run.write("shards", 0, &[record]);
    let index = run.index();
    assert_eq!(page(&index, "")["total"], 1);
    let error = index.detail(id(0), "selfplay").unwrap_err();
    let message = error.message();
    assert!(!error.is_missing());
    assert!(
        message.starts_with("shards/000-000000.shard: byte "),
        "{message}"
    );
    assert!(message.contains("turn 2g: action 1: "), "{message}");
}
