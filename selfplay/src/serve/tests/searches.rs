//! Searches, and the turns of a policy.

use super::*;
use crate::serve::searches::TREE_TIME;

#[test]
fn a_search_ends_and_is_resumed_in_its_tree() {
    let site = Site::without_run();
    let start = "g [r                                  Er                          R]";
    let request = json!({ "game": { "start": start }, "player": "material", "evaluations": 200 });
    let (status, answer) = site.post("/api/searches", &request);
    assert_eq!(status, 200, "{answer}");
    let ended = site.ended(&answer["search"]);
    assert_eq!(
        (&ended["state"], &ended["label"]),
        (&json!("done"), &json!("2g")),
        "{ended}"
    );
    let id = answer["search"].as_str().unwrap();
    let nodes = ended["report"]["nodes"].as_u64().unwrap();
    assert!(
        ended["report"]["turns"]
            .as_array()
            .unwrap()
            .iter()
            .any(|turn| turn["is_chosen"] == true)
    );
    let (status, _) = site.post(
        &format!("/api/searches/{id}/resume"),
        &json!({ "evaluations": 2_000 }),
    );
    assert_eq!(status, 200);
    let resumed = site.ended(&answer["search"]);
    assert!(
        resumed["report"]["nodes"].as_u64().unwrap() > nodes,
        "{resumed}"
    );
    let events = site.raw(
        format!(
            "GET /api/searches/{id}/events HTTP/1.1\r\nHost: {}\r\n\r\n",
            site.http.address()
        )
        .as_bytes(),
    );
    assert!(
        events.contains("text/event-stream") && events.contains("event: report"),
        "{events}"
    );
}

#[test]
fn each_turn_of_a_search_has_its_line() {
    let site = Site::without_run();
    let request = json!({ "game": { "start": FEW_PIECES }, "player": "material", "evaluations": 400, "lines": 3 });
    let (_, ended) = site.search(&request);
    let report = &ended["report"];
    let turns = report["turns"].as_array().unwrap();
    assert!((3..=4).contains(&turns.len()), "{report}");
    for turn in turns {
        assert_eq!(
            turn["line"][0],
            json!({ "label": "2g", "turn": turn["turn"] }),
            "{turn}"
        );
        assert!(turn["is_chosen"] == false || turn["line"] == report["line"]);
    }
    let second = turns.iter().find_map(|turn| turn["line"].get(1));
    assert_eq!(second.unwrap()["label"], "2s");
}

#[test]
fn a_resumed_search_counts_all_its_evaluations() {
    let site = Site::without_run();
    let request =
        json!({ "game": { "start": FEW_PIECES }, "player": "material", "evaluations": 200 });
    let (search, ended) = site.search(&request);
    let count = |answer: &Value| answer["report"]["evaluations"].as_u64().unwrap();
    let first = count(&ended);
    assert!((1..=200).contains(&first), "{ended}");
    for (limit, most) in [(100, first + 100), (300, first + 400)] {
        let before = count(&site.ended(&search));
        let request = json!({ "evaluations": limit });
        assert_eq!(site.resume("searches", &search, &request).0, 200);
        let after = count(&site.ended(&search));
        assert!(before < after && after <= most, "{before} {after} {most}");
    }
}

#[test]
fn few_trees_are_kept_and_not_for_long() {
    let site = Site::without_run();
    let limit = json!({ "evaluations": 50 });
    let request =
        json!({ "game": { "start": FEW_PIECES }, "player": "material", "evaluations": 50 });
    let searches: Vec<Value> = (0..3).map(|_| site.search(&request).0).collect();
    let answer = site.resume("searches", &searches[0], &limit);
    let (status, error) = error_of(&answer);
    assert!(
        status == 409 && error.ends_with("start a new search"),
        "{answer:?}"
    );
    // The report stays.
    assert!(site.ended(&searches[0])["report"]["nodes"].as_u64() > Some(0));
    for search in &searches[1..] {
        assert_eq!(site.resume("searches", search, &limit).0, 200);
        site.ended(search);
    }
    let late = Instant::now() + TREE_TIME;
    site.server.searches().drop_old_trees(late);
    assert_eq!(site.resume("searches", &searches[2], &limit).0, 409);
    assert_eq!(site.ended(&searches[2])["state"], "done");
}

#[test]
fn a_running_search_is_not_resumed() {
    let site = Site::without_run();
    let (_, answer) = site.post("/api/searches", &site.endless());
    let refused = site.resume("searches", &answer["search"], &json!({}));
    let (status, error) = error_of(&refused);
    assert!(
        status == 409 && error.contains("still running"),
        "{refused:?}"
    );
}

#[test]
fn searches_are_bounded_and_stopped() {
    let site = Site::without_run();
    let start = FEW_PIECES;
    let endless = json!({ "game": { "start": start }, "player": "material" });
    let searches: Vec<Value> = (0..4)
        .map(|_| {
            let (status, answer) = site.post("/api/searches", &endless);
            assert_eq!(status, 200, "{answer}");
            answer["search"].clone()
        })
        .collect();
    assert_eq!(site.post("/api/searches", &endless).0, 429);
    for search in &searches {
        let path = format!("/api/searches/{}", search.as_str().unwrap());
        assert_eq!(site.ask("DELETE", &path, "", "").0, 200);
        assert_eq!(site.ended(search)["state"], "stopped");
    }
    assert_eq!(
        site.post(
            "/api/searches",
            &json!({ "game": { "start": GOAL_IN_ONE, "turns": ["Ra7n"] }, "player": "material" })
        )
        .0,
        400
    );
    assert_eq!(
        site.post(
            "/api/searches",
            &json!({ "game": {}, "player": "../../etc/passwd" })
        )
        .0,
        404
    );
    assert_eq!(site.get("/api/searches/99").0, 404);
}

#[test]
fn the_likeliest_turns_of_a_policy_are_found() {
    let site = Site::without_run();
    let policy = |game: &Value, turns: u32| {
        let request = json!({ "game": game, "player": "tusker", "turns": turns });
        let (status, answer) = site.post("/api/policy", &request);
        assert_eq!(status, 200, "{answer}");
        answer["turns"].as_array().unwrap().clone()
    };
    let game = site.begun_game();
    let best = policy(&game, 16);
    assert_eq!(best.len(), 16);
    let priors: Vec<f64> = best
        .iter()
        .map(|turn| turn["prior"].as_f64().unwrap())
        .collect();
    assert!(priors.is_sorted_by(|one, other| one >= other), "{priors:?}");
    assert!(
        priors[15] > 0.0 && priors.iter().sum::<f64>() < 1.0,
        "{priors:?}"
    );
    assert_eq!(policy(&game, 3), best[..3]);
    // A search, which also minds values, finds some of them with about the same probability: it follows other orders of the steps.
    let request = json!({ "game": game, "player": "tusker", "evaluations": 100, "lines": 100 });
    let (_, searched) = site.search(&request);
    let found = searched["report"]["turns"].as_array().unwrap();
    let mut common = 0;
    for (turn, prior) in best.iter().zip(priors) {
        let found = found.iter().find(|found| found["turn"] == turn["turn"]);
        if let Some(found) = found.map(|found| found["prior"].as_f64().unwrap()) {
            assert!((found / prior - 1.0).abs() < 0.5, "{turn}: {found}");
            common += 1;
        }
    }
    assert!(common > 2, "{common}: {best:?}");
    // A turn that wins at once is one like the others.
    let rabbit = json!({ "start": GOAL_IN_ONE });
    assert!(policy(&rabbit, 16).len() > 1);
    let over = json!({ "start": GOAL_IN_ONE, "turns": ["Ra7n"] });
    for (game, player, turns, status) in [
        (&over, "tusker", 3, 400),
        (&game, "tusker", 0, 400),
        (&game, "tusker", 17, 400),
        (&game, "../tusker", 3, 404),
    ] {
        let request = json!({ "game": game, "player": player, "turns": turns });
        assert_eq!(site.post("/api/policy", &request).0, status, "{request}");
    }
}
