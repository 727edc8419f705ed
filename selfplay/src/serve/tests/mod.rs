//! The API over HTTP, with a run in a temporary folder.

mod reviews;
mod searches;

use super::*;
use engine::config::Config;
use engine::record::{EvaluatorId, GameId, Header, ShardName, ShardWriter, samples};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const GOAL_IN_ONE: &str = "g [       rR                                                       ]";

const FEW_PIECES: &str = "g [r                                  Er                          R]";

/// A server of a run.
struct Site {
    folder: tempfile::TempDir,
    server: Arc<Server>,
    http: HttpServer,
}

/// A status and a body.
type Answer = (u16, Value);

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path().join("run"));
        std::fs::create_dir_all(run.shards()).unwrap();
        std::fs::create_dir_all(run.logs()).unwrap();
        std::fs::write(run.config(), Config::default().to_toml()).unwrap();
        std::fs::write(
            run.logs().join("train.jsonl"),
            "{\"kind\":\"train\",\"step\":20,\"policy_loss\":2.5}\n",
        )
        .unwrap();
        write_shard(&run, 3);
        Self::of(folder, Some(run))
    }

    fn without_run() -> Self {
        Self::of(tempfile::tempdir().unwrap(), None)
    }

    fn of(folder: tempfile::TempDir, run: Option<RunDirectory>) -> Self {
        let players = players_of(run.clone());
        let server = Arc::new(Server::new(run, players).unwrap());
        if let Some(games) = server.games() {
            assert!(games.wait_complete(Duration::from_secs(60)));
        }
        let http = HttpServer::start("page", "127.0.0.1:0", LIMITS, |address| {
            router::router(Arc::clone(&server), Arc::new(Guard::new(address)))
        })
        .unwrap();
        Self {
            folder,
            server,
            http,
        }
    }

    /// What the server answers to the bytes of a request.
    fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.http.address()).unwrap();
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let host = self.http.address();
        let length = body.len();
        let answer = self.raw(
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{body}").as_bytes(),
        );
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (
            status.unwrap_or(0),
            serde_json::from_str(body).unwrap_or(Value::Null),
        )
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(
            "POST",
            path,
            "Content-Type: application/json\r\n",
            &body.to_string(),
        )
    }

    /// Waits until a search has ended.
    fn ended(&self, search: &Value) -> Value {
        self.ended_at("searches", search)
    }

    fn ended_at(&self, kind: &str, id: &Value) -> Value {
        self.wait(&format!("/api/{kind}/{}", id.as_str().unwrap()), |answer| {
            answer["state"] != "running"
        })
    }

    /// Waits until an answer is as it must be.
    fn wait(&self, path: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let (status, answer) = self.get(path);
            assert_eq!(status, 200, "{answer}");
            if is_right(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts a search, and returns its number and its end.
    fn search(&self, request: &Value) -> (Value, Value) {
        let (status, answer) = self.post("/api/searches", request);
        assert_eq!(status, 200, "{answer}");
        let ended = self.ended(&answer["search"]);
        (answer["search"].clone(), ended)
    }

    /// A game whose two setups are made.
    fn begun_game(&self) -> Value {
        let setup = |side: &str| self.get(&format!("/api/setup?side={side}")).1["turn"].clone();
        json!({ "turns": [setup("gold"), setup("silver")] })
    }

    /// A search without a limit.
    fn endless(&self) -> Value {
        json!({ "game": self.begun_game(), "player": "tusker" })
    }

    fn resume(&self, kind: &str, id: &Value, body: &Value) -> Answer {
        self.post(
            &format!("/api/{kind}/{}/resume", id.as_str().unwrap()),
            body,
        )
    }

    /// The events of a stream that ends: their names and data.
    fn events(&self, path: &str) -> Vec<(String, Value)> {
        let host = self.http.address();
        let text = self.raw(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        let lines = text.lines().collect::<Vec<_>>();
        let event = |pair: &[&str]| {
            let name = pair[0].strip_prefix("event: ")?;
            let data = pair[1].strip_prefix("data: ")?;
            Some((name.to_owned(), serde_json::from_str(data).ok()?))
        };
        lines.windows(2).filter_map(event).collect()
    }
}

/// The error of a refused request.
fn error_of((status, answer): &Answer) -> (u16, &str) {
    (*status, answer["error"].as_str().unwrap_or_default())
}

fn players_of(run: Option<RunDirectory>) -> Players {
    let devices =
        crate::worker::devices::Devices::of(vec![network::Device::Cpu], network::Precision::Fp32);
    Players::new(run, devices, 1, Config::default().matches.search)
}

fn write_shard(run: &RunDirectory, games: u64) {
    let header = Header {
        encoding_version: engine::encoding::ENCODING_VERSION,
        program_version: "0.1.0".into(),
        evaluator: EvaluatorId {
            name: "uniform".into(),
            identity: "uniform".into(),
        },
        config_digest: engine::record::digest(b""),
        generator: 0,
    };
    let name = ShardName {
        generator: 0,
        sequence: 0,
    };
    let mut writer = ShardWriter::create(&run.shards(), name, &header).unwrap();
    for counter in 0..games {
        let id = GameId {
            generator: 0,
            counter,
        };
        writer.push(&samples::random_game(id, 7, 30)).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_run_is_shown_with_its_games() {
    let site = Site::new();
    let (status, about) = site.get("/api/about");
    assert_eq!(status, 200);
    assert_eq!(about["players"], json!(["tusker", "material"]));
    let (_, run) = site.get("/api/run");
    assert_eq!(
        (&run["name"], &run["trainer"]["step"]),
        (&json!("run"), &json!(20))
    );
    assert_eq!(run["problems"], json!([]));
    let (_, series) = site.get("/api/run/series");
    assert_eq!(series["train"]["policy_loss"], json!([2.5]));
    let (_, games) = site.get("/api/games?limit=2&sort=oldest");
    assert_eq!(
        (&games["total"], games["games"].as_array().unwrap().len()),
        (&json!(3), 2)
    );
    let id = games["games"][0]["game"].as_str().unwrap();
    let (status, game) = site.get(&format!("/api/games/{id}"));
    assert_eq!(status, 200, "{game}");
    let turns = game["turns"].as_array().unwrap().len();
    assert_eq!(game["boards"].as_array().unwrap().len(), turns + 1);
    let (status, record) = site.post("/api/record", &json!({ "text": game["record"] }));
    assert_eq!(
        (status, &record["game"], &record["boards"]),
        (200, &game["game"], &game["boards"])
    );
    assert_eq!(site.get("/api/games/9-9").0, 404);
    assert_eq!(site.get("/api/show-games").1, json!({ "games": [] }));
    assert_eq!(site.get("/api/games/nonsense").0, 400);
}

#[test]
fn a_run_that_is_deleted_is_told_in_words() {
    let site = Site::new();
    std::fs::remove_dir_all(site.folder.path().join("run")).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    for path in ["/api/run", "/api/run/series", "/api/games"] {
        let (status, answer) = site.get(path);
        assert_eq!(status, 404, "{path}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains("is gone"), "{path}: {error}");
    }
    assert_eq!(site.get("/api/about").0, 200);
}

#[test]
fn without_a_run_there_are_play_and_analysis() {
    let site = Site::without_run();
    assert_eq!(site.get("/api/about").1["run"], Value::Null);
    for path in [
        "/api/run",
        "/api/run/series",
        "/api/run/events",
        "/api/games",
        "/api/games/0-0",
        "/api/show-games",
    ] {
        let (status, answer) = site.get(path);
        assert_eq!(status, 404, "{path}");
        assert!(
            answer["error"].as_str().unwrap().contains("--run"),
            "{answer}"
        );
    }
    let (status, state) = site.post("/api/state", &json!({ "game": {} }));
    assert_eq!((status, &state["phase"]), (200, &json!("setup")));
}

#[test]
fn streams_of_events_leave_connections_for_other_requests() {
    let site = Site::without_run();
    let (_, answer) = site.post("/api/searches", &site.endless());
    let path = format!(
        "/api/searches/{}/events",
        answer["search"].as_str().unwrap()
    );
    let open = || {
        let host = site.http.address();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        (head == *b"HTTP/1.1 200").then_some(stream)
    };
    let mut streams: Vec<TcpStream> = (0..32).map(|_| open().unwrap()).collect();
    let refused = site.get(&path);
    let (status, error) = error_of(&refused);
    assert!(status == 429 && error.contains("32 streams"), "{refused:?}");
    assert_eq!(site.get("/api/about").0, 200);
    streams.pop();
    let begun = Instant::now();
    while open().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn each_error_is_json_that_names_its_place() {
    let site = Site::new();
    let json = "Content-Type: application/json\r\n";
    for (method, path, headers, body, status, words) in [
        ("GET", "/api/games/%ff", "", "", 400, "UTF-8"),
        ("GET", "/api/searches/%ff", "", "", 400, "UTF-8"),
        (
            "GET",
            "/api/games?min_turns=many",
            "",
            "",
            400,
            "the query: min_turns: ",
        ),
        (
            "GET",
            "/api/games?minturns=3",
            "",
            "",
            400,
            "the query: minturns: unknown field `minturns`, expected one of `network`",
        ),
        (
            "GET",
            "/api/setup?side=red",
            "",
            "",
            400,
            "the query: side: unknown variant `red`, expected `gold` or `silver`",
        ),
        (
            "GET",
            "/api/setup",
            "",
            "",
            400,
            "the query: missing field `side`",
        ),
        ("GET", "/api/nothing", "", "", 404, "API.md"),
        ("DELETE", "/api/about", "", "", 405, "API.md"),
        (
            "POST",
            "/api/state",
            "",
            "{}",
            415,
            "Content-Type: application/json",
        ),
        (
            "POST",
            "/api/state",
            json,
            r#"{"game": {"start": {}}}"#,
            400,
            "the body: `game.start`: invalid type: map, expected a string",
        ),
        (
            "POST",
            "/api/state",
            json,
            "{",
            400,
            "the body is no JSON: line 1, column 1",
        ),
    ] {
        let answer = site.ask(method, path, headers, body);
        let (given, error) = error_of(&answer);
        assert!(
            given == status && error.contains(words),
            "{path} {answer:?}"
        );
    }
    let large = site.post("/api/record", &json!({ "text": "a".repeat(300 << 10) }));
    assert_eq!(
        error_of(&large),
        (413, "the body is larger than 256 KiB, the most")
    );
}

#[test]
fn the_printed_address_can_be_opened() {
    let url = |address: &str| page_url(address.parse().unwrap(), Some("1f"));
    assert_eq!(url("0.0.0.0:8420"), "http://127.0.0.1:8420/?token=1f");
    assert_eq!(url("[::]:8420"), "http://[::1]:8420/?token=1f");
    assert_eq!(url("192.0.2.7:8420"), "http://192.0.2.7:8420/?token=1f");
}

#[test]
fn other_sites_are_refused() {
    let site = Site::without_run();
    let host = site.http.address();
    let status = |headers: &str| {
        let answer = site.raw(format!("GET /api/about HTTP/1.1\r\n{headers}\r\n").as_bytes());
        answer
            .split(' ')
            .nth(1)
            .map(str::to_owned)
            .unwrap_or_default()
    };
    assert_eq!(status(&format!("Host: {host}\r\n")), "200");
    assert_eq!(
        status(&format!("Host: localhost:{}\r\n", host.port())),
        "200"
    );
    assert_eq!(
        status(&format!("Host: {host}\r\nOrigin: http://{host}\r\n")),
        "200"
    );
    for headers in [
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{}\r\n", host.port()),
        format!("Host: {host}\r\nOrigin: http://evil.example\r\n"),
        format!("Host: {host}\r\nOrigin: null\r\n"),
        String::new(),
    ] {
        assert_eq!(status(&headers), "403", "{headers}");
    }
    let page = site.raw(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    assert!(
        page.contains("content-security-policy: default-src 'self'"),
        "{page}"
    );
}

#[test]
fn no_request_stops_the_server() {
    use crate::mutation::{Mutations, cases};
    let site = Site::new();
    let game = json!({ "start": FEW_PIECES, "turns": ["Rh1n"] });
    let post = |path: &str, body: Value| {
        let body = body.to_string();
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            site.http.address(),
            body.len()
        )
    };
    let get = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
            site.http.address()
        )
    };
    let requests = [
        post("/api/state", json!({ "game": game, "steps": "" })),
        post("/api/record", json!({ "text": "1g Ra1" })),
        post(
            "/api/policy",
            json!({ "game": game, "player": "material", "turns": 2 }),
        ),
        post(
            "/api/searches",
            json!({ "game": game, "player": "material", "evaluations": 1 }),
        ),
        post(
            "/api/reviews",
            json!({ "game": game, "player": "material", "evaluations": 1 }),
        ),
        post("/api/searches/1/resume", json!({ "evaluations": 1 })),
        get("/api/games?limit=5&winner=gold&sort=surprise&min_turns=3&offset=1"),
        get("/api/games/0-1?source=selfplay"),
        get("/api/run"),
        get("/api/setup?side=gold"),
        get("/"),
        get("/api/searches/1"),
    ];
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    let mut mutations = Mutations::new(&requests, 32);
    for _ in 0..cases(1_000) {
        let mut stream = TcpStream::connect(site.http.address()).unwrap();
        let _ = stream.write_all(&mutations.next());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
        assert!(
            !answer.starts_with(b"HTTP/1.1 500"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert_eq!(site.get("/api/about").0, 200);
    assert!(!site.http.has_ended());
}
