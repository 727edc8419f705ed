//! Whole-game analysis.

use super::*;
use crate::serve::registry::WorkState;
use crate::serve::reviews::Reviews;

#[test]
fn a_whole_game_is_analysed() {
    let site = Site::without_run();
    let game = json!({ "start": GOAL_IN_ONE, "turns": ["Ra7e", "rh8w"] });
    let (status, answer) = site.post(
        "/api/reviews",
        &json!({ "game": game, "player": "material", "evaluations": 50 }),
    );
    assert_eq!(status, 200, "{answer}");
    let id = answer["review"].as_str().unwrap();
    let events = site.events(&format!("/api/reviews/{id}/events"));
    let names: Vec<&str> = events.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["turn", "turn", "done"], "{events:?}");
    let turns = [&events[0].1, &events[1].1];
    assert_eq!(
        (&turns[0]["label"], &turns[0]["turn"], &turns[1]["label"]),
        (&json!("2g"), &json!("Ra7e"), &json!("2s"))
    );
    assert_eq!(events[2].1, json!({ "state": "done", "error": null }));
    let again = site.resume("reviews", &answer["review"], &json!({}));
    let (status, error) = error_of(&again);
    assert!(status == 409 && error.contains("complete"), "{again:?}");
}

#[test]
fn an_analysis_is_stopped_and_resumed() {
    let site = Site::without_run();
    // The first turn takes no search, and the second one half a minute.
    let request = json!({ "game": site.begun_game(), "player": "tusker", "evaluations": 100_000 });
    let (status, answer) = site.post("/api/reviews", &request);
    assert_eq!(status, 200, "{answer}");
    let id = &answer["review"];
    let path = format!("/api/reviews/{}", id.as_str().unwrap());
    for _ in 0..2 {
        site.wait(&path, |answer| answer["turns"][0]["index"] == 0);
        let running = site.resume("reviews", id, &json!({}));
        let (status, error) = error_of(&running);
        assert!(
            status == 409 && error.contains("still running"),
            "{running:?}"
        );
        assert_eq!(site.ask("DELETE", &path, "", "").0, 200);
        let stopped = site.ended_at("reviews", id);
        assert_eq!(stopped["state"], "stopped", "{stopped}");
        // The finished turn comes again, and once.
        let events = site.events(&format!("{path}/events"));
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(events[0].1["index"], 0);
        assert_eq!(events[1].1, json!({ "state": "stopped", "error": null }));
        assert_eq!(site.resume("reviews", id, &json!({})).0, 200);
    }
    assert_eq!(site.ask("DELETE", &path, "", "").0, 200);
    site.ended_at("reviews", id);
    assert_eq!(site.post("/api/reviews/99/resume", &json!({})).0, 404);
}

#[test]
fn an_analysis_that_fails_says_why() {
    let site = Site::new();
    let networks = RunDirectory::new(site.folder.path().join("run")).networks();
    std::fs::create_dir_all(&networks).unwrap();
    std::fs::write(networks.join("00001.safetensors"), "no network").unwrap();
    let request = |player: &str, turn: &str| json!({ "game": { "start": GOAL_IN_ONE, "turns": [turn] }, "player": player, "evaluations": 9 });
    let (status, answer) = site.post("/api/reviews", &request("00001", "Ra7e"));
    assert_eq!(status, 200, "{answer}");
    let path = format!("/api/reviews/{}/events", answer["review"].as_str().unwrap());
    let events = site.events(&path);
    let done = &events[0].1;
    assert!(
        done["state"] == "failed"
            && done["error"]
                .as_str()
                .unwrap()
                .contains("00001.safetensors"),
        "{events:?}"
    );
    let illegal = site.post("/api/reviews", &request("material", "Ra7s Ra6s"));
    let (status, error) = error_of(&illegal);
    assert!(
        status == 400 && error.starts_with("turn 2g: "),
        "{illegal:?}"
    );
    let missing = site.post("/api/reviews", &request("00007", "Ra7e"));
    assert_eq!(error_of(&missing).0, 404, "{missing:?}");
}

#[test]
fn an_analysis_ends_at_its_limit_of_time() {
    let players = Arc::new(players_of(None));
    let reviews = Reviews::new(players, Duration::from_millis(1));
    let game = json!({ "start": FEW_PIECES, "turns": ["Rh1n"] });
    let request = json!({ "game": game, "player": "material", "evaluations": 100_000 });
    let id = reviews.start(&serde_json::from_value(request).unwrap());
    let id = id.unwrap();
    let progress = reviews.watch(&id).unwrap();
    for _ in 0..2 {
        let begun = Instant::now();
        while progress.borrow().state == WorkState::Running {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended = progress.borrow().clone();
        assert_eq!((ended.state, ended.turns.len()), (WorkState::Stopped, 0));
        assert!(ended.error.unwrap().contains("resume the analysis"));
        reviews.resume(&id).unwrap();
    }
}

#[test]
fn analyses_are_bounded_and_stopped() {
    let site = Site::without_run();
    let setup = |side: &str| site.get(&format!("/api/setup?side={side}")).1["turn"].clone();
    let review = |player: &str, evaluations: u32, turns: &[Value]| {
        let request =
            json!({ "game": { "turns": turns }, "player": player, "evaluations": evaluations });
        site.post("/api/reviews", &request)
    };
    // Half a minute of a network, or more.
    let (status, long) = review("tusker", 100_000, &[setup("gold"), setup("silver")]);
    assert_eq!(status, 200, "{long}");
    for _ in 0..10 {
        let (status, short) = review("material", 1, &[]);
        assert_eq!(status, 200, "{short}");
        let id = short["review"].as_str().unwrap();
        let path = format!(
            "GET /api/reviews/{id}/events HTTP/1.1\r\nHost: {}\r\n\r\n",
            site.http.address()
        );
        assert!(site.raw(path.as_bytes()).contains("event: done"));
    }
    // The one that runs is still there.
    let path = format!("/api/reviews/{}", long["review"].as_str().unwrap());
    assert_eq!(site.ask("DELETE", &path, "", "").0, 200);
    assert_eq!(site.ask("DELETE", "/api/reviews/99", "", "").0, 404);
}
