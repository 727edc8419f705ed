//! The paths of the page and of its API.

use super::error::{ApiError, ApiResult};
use super::extract::{Id, JsonBody, MAX_BYTES, QueryOf};
use super::games::{GamesIndex, GamesQuery};
use super::guard::{Guard, guarded};
use super::page;
use super::players::Players;
use super::policy::{PolicyAnswer, PolicyRequest};
use super::registry::WorkState;
use super::reviews::{self, Progress, ReviewRequest, Reviews};
use super::rules::{
    self, RecordAnswer, RecordRequest, SetupAnswer, SetupRequest, StateAnswer, StateRequest,
};
use super::run::{Disk, RunAnswer};
use super::search_messages::{Limits, SearchAnswer, SearchRequest};
use super::searches::Searches;
use super::seen::Seen;
use super::series::{Series, TrainLog};
use crate::worker::worker_pool;
use anyhow::Result;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use engine::run::RunDirectory;
use futures_util::stream::{Stream, StreamExt, unfold};
use serde::Serialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Streams of events at once: they leave connections for other requests.
const MAX_STREAMS: usize = 32;

/// Policies that are computed at once.
const MAX_POLICIES: usize = 2;

/// The longest wait for policies that are computed at the end.
const END_TIME: Duration = Duration::from_secs(10);

/// The time between two events of a search.
const EVENT_TIME: Duration = Duration::from_millis(250);

/// The time between two looks of a stream at the run's files.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// How long a look at the run's files is good.
const RUN_TIME: Duration = Duration::from_secs(1);

/// How long the sizes of the folders are good: a run has many thousands of files.
const DISK_TIME: Duration = Duration::from_secs(60);

/// What all requests share.
pub(super) struct Server {
    players: Arc<Players>,
    searches: Searches,
    reviews: Reviews,
    run: Option<ShownRun>,
    /// The policies that may be computed now.
    policies: Arc<Semaphore>,
    /// The streams of events that may still be opened.
    streams: Arc<Semaphore>,
}

/// The run that is shown.
struct ShownRun {
    directory: RunDirectory,
    games: GamesIndex,
    log: Mutex<TrainLog>,
    newest: Mutex<Option<(Instant, Arc<RunAnswer>)>>,
    disk: Mutex<Option<(Instant, Disk)>>,
}

impl Server {
    pub(super) fn new(run: Option<RunDirectory>, players: Players) -> Result<Self> {
        let players = Arc::new(players);
        let run = run.map(|directory| -> Result<ShownRun> {
            Ok(ShownRun {
                games: GamesIndex::open(&directory)?,
                log: Mutex::new(TrainLog::new(directory.train_log())),
                newest: Mutex::default(),
                disk: Mutex::default(),
                directory,
            })
        });
        Ok(Self {
            searches: Searches::new(Arc::clone(&players))?,
            reviews: Reviews::new(Arc::clone(&players), reviews::MAX_TIME),
            players,
            run: run.transpose()?,
            policies: Arc::new(Semaphore::new(MAX_POLICIES)),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        })
    }

    /// Ends all evaluations once no request comes any more. A request that hangs may keep the server alive, so that it is not dropped,
    /// and libtorch crashes if the program ends meanwhile ([`Threads`](super::threads::Threads)).
    pub(super) fn end(&self) {
        self.policies.close();
        self.searches.registry.end();
        self.reviews.registry.end();
        let begun = Instant::now();
        // A disk may never give a network's file.
        while self.policies.available_permits() < MAX_POLICIES && begun.elapsed() < END_TIME {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The searches, for tests.
    #[cfg(test)]
    pub(super) fn searches(&self) -> &Searches {
        &self.searches
    }

    /// The index of the run's games, for tests.
    #[cfg(test)]
    pub(super) fn games(&self) -> Option<&GamesIndex> {
        self.run.as_ref().map(|run| &run.games)
    }

    fn run(&self) -> ApiResult<&ShownRun> {
        self.run.as_ref().ok_or_else(|| {
            ApiError::missing("no run is shown: start `selfplay serve --run DIR` to see one")
        })
    }
}

impl ShownRun {
    /// # Errors
    /// The run is gone.
    fn check(&self) -> ApiResult<()> {
        if self.directory.config().exists() {
            Ok(())
        } else {
            Err(ApiError::missing(format!(
                "the run {} is gone: its config.toml is missing",
                self.directory.root().display()
            )))
        }
    }

    fn answer(&self) -> ApiResult<Arc<RunAnswer>> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, answer)) = &*newest
            && at.elapsed() < RUN_TIME
        {
            return Ok(Arc::clone(answer));
        }
        self.check()?;
        let mut answer = RunAnswer::of(&self.directory, &self.games, self.disk());
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = log.read_on() {
            answer.problems.add(error.to_string());
        }
        answer.add_log(&self.directory, &log);
        let answer = Arc::new(answer);
        *newest = Some((Instant::now(), Arc::clone(&answer)));
        Ok(answer)
    }

    fn disk(&self) -> Disk {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        match &*disk {
            Some((at, disk)) if at.elapsed() < DISK_TIME => disk.clone(),
            _ => {
                // Their age begins when they are known: this takes long where folders are large.
                let sizes = Disk::of(&self.directory);
                disk.insert((Instant::now(), sizes)).1.clone()
            }
        }
    }

    fn series(&self) -> ApiResult<SeriesAnswer> {
        self.check()?;
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.read_on().map_err(ApiError::failed)?;
        Ok(SeriesAnswer {
            series: log.series(),
            generations: serde_json::to_value(self.games.generations())
                .map_err(ApiError::failed)?,
        })
    }
}

#[derive(Serialize)]
struct SeriesAnswer {
    #[serde(flatten)]
    series: Series,
    generations: Value,
}

type Shared = State<Arc<Server>>;

/// All paths, behind the guard.
pub(super) fn router(server: Arc<Server>, guard: Arc<Guard>) -> Router {
    let api = Router::new()
        .route("/about", get(about))
        .route("/state", post(state))
        .route("/record", post(record))
        .route("/setup", get(setup))
        .route("/policy", post(policy))
        .route("/searches", post(start_search))
        .route("/searches/{id}", get(search).delete(stop_search))
        .route("/searches/{id}/events", get(search_events))
        .route("/searches/{id}/resume", post(resume_search))
        .route("/reviews", post(start_review))
        .route("/reviews/{id}", get(review).delete(stop_review))
        .route("/reviews/{id}/events", get(review_events))
        .route("/reviews/{id}/resume", post(resume_review))
        .route("/run", get(run))
        .route("/run/series", get(series))
        .route("/run/events", get(run_events))
        .route("/games", get(games))
        .route("/games/{id}", get(game))
        .route("/show-games", get(show_games))
        .fallback(|| async { ApiError::missing("there is no such path: API.md lists the paths") })
        .method_not_allowed_fallback(|| async {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path takes another method: API.md lists it",
            )
        });
    Router::new()
        .nest("/api", api)
        .fallback(get(file))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .layer(from_fn_with_state(guard, guarded))
        .with_state(server)
}

type Answer<T> = ApiResult<Json<T>>;

/// Does what waits for the disk or takes long on another thread than the server's.
async fn blocking<T: Send + 'static>(
    server: Arc<Server>,
    work: impl FnOnce(&Server) -> ApiResult<T> + Send + 'static,
) -> Answer<T> {
    let done = tokio::task::spawn_blocking(move || work(&server)).await;
    let done = done.unwrap_or_else(|_| {
        Err(ApiError::failed(
            "the answer panicked: please report the request",
        ))
    });
    done.map(Json)
}

async fn file(uri: axum::http::Uri) -> Response {
    match page::find(uri.path()) {
        Some(file) => ([(header::CONTENT_TYPE, file.kind)], file.contents).into_response(),
        None => (StatusCode::NOT_FOUND, "There is no such page\n").into_response(),
    }
}

async fn about(State(server): Shared) -> Answer<Value> {
    blocking(server, |server| {
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "run": server.run.as_ref().map(|run| run.directory.root().display().to_string()),
            "players": server.players.names(),
            "cores": worker_pool::cores(),
        }))
    })
    .await
}

async fn state(
    State(server): Shared,
    JsonBody(request): JsonBody<StateRequest>,
) -> Answer<StateAnswer> {
    blocking(server, move |_| rules::state(&request)).await
}

async fn record(
    State(server): Shared,
    JsonBody(request): JsonBody<RecordRequest>,
) -> Answer<RecordAnswer> {
    blocking(server, move |_| rules::record(&request)).await
}

async fn setup(QueryOf(request): QueryOf<SetupRequest>) -> Answer<SetupAnswer> {
    rules::setup(&request).map(Json)
}

async fn policy(
    State(server): Shared,
    JsonBody(request): JsonBody<PolicyRequest>,
) -> Answer<PolicyAnswer> {
    let place = Arc::clone(&server.policies).acquire_owned().await;
    let place = place.map_err(|_| ApiError::failed("the server ends"))?;
    blocking(server, move |server| {
        // Held until the work is done, even if the client has gone.
        let _held = place;
        request.answer(&server.players)
    })
    .await
}

async fn start_search(
    State(server): Shared,
    JsonBody(request): JsonBody<SearchRequest>,
) -> Answer<Value> {
    let start = move |server: &Server| Ok(json!({ "search": server.searches.start(&request)? }));
    blocking(server, start).await
}

async fn search(State(server): Shared, Id(id): Id) -> Answer<SearchAnswer> {
    let answer = server.searches.watch(&id)?;
    let answer = answer.borrow().clone();
    Ok(Json(answer))
}

async fn stop_search(State(server): Shared, Id(id): Id) -> Answer<Value> {
    server.searches.registry.stop(&id)?;
    Ok(Json(json!({})))
}

async fn resume_search(
    State(server): Shared,
    Id(id): Id,
    JsonBody(limits): JsonBody<Limits>,
) -> Answer<Value> {
    let resume = move |server: &Server| server.searches.resume(&id, limits);
    blocking(server, move |server| resume(server).map(|()| json!({}))).await
}

async fn search_events(State(server): Shared, Id(id): Id) -> ApiResult<impl IntoResponse> {
    let answers = server.searches.watch(&id)?;
    let has_ended = |answer: &SearchAnswer| answer.state != WorkState::Running;
    events(
        &server,
        unfold(Some((answers, true)), move |state| async move {
            let (mut answers, is_first) = state?;
            if !is_first {
                tokio::time::sleep(EVENT_TIME).await;
                // Without a sender the search is gone.
                answers.changed().await.ok()?;
            }
            let answer = answers.borrow_and_update().clone();
            let event = event("report", &answer);
            Some((event, (!has_ended(&answer)).then_some((answers, false))))
        }),
    )
}

async fn start_review(
    State(server): Shared,
    JsonBody(request): JsonBody<ReviewRequest>,
) -> Answer<Value> {
    let start = move |server: &Server| Ok(json!({ "review": server.reviews.start(&request)? }));
    blocking(server, start).await
}

async fn stop_review(State(server): Shared, Id(id): Id) -> Answer<Value> {
    server.reviews.registry.stop(&id)?;
    Ok(Json(json!({})))
}

async fn review(State(server): Shared, Id(id): Id) -> Answer<Progress> {
    let progress = server.reviews.watch(&id)?;
    let progress = progress.borrow().clone();
    Ok(Json(progress))
}

async fn resume_review(State(server): Shared, Id(id): Id) -> Answer<Value> {
    let resume = move |server: &Server| server.reviews.resume(&id);
    blocking(server, move |server| resume(server).map(|()| json!({}))).await
}

async fn review_events(State(server): Shared, Id(id): Id) -> ApiResult<impl IntoResponse> {
    let progress = server.reviews.watch(&id)?;
    events(
        &server,
        unfold(Some((progress, 0)), |state| async move {
            let (mut progress, told) = state?;
            loop {
                let next = next_of_review(&progress.borrow_and_update(), told);
                match next {
                    Some((event, true)) => return Some((event, None)),
                    Some((event, false)) => break Some((event, Some((progress, told + 1)))),
                    None => {}
                }
                progress.changed().await.ok()?;
            }
        }),
    )
}

/// The next event of an analysis of which so many turns are told, and whether it is the last.
fn next_of_review(progress: &Progress, told: usize) -> Option<(Result<Event, Infallible>, bool)> {
    if let Some(turn) = progress.turns.get(told) {
        return Some((event("turn", turn), false));
    }
    let done = json!({ "state": progress.state, "error": progress.error });
    (progress.state != WorkState::Running).then(|| (event("done", &done), true))
}

async fn run(State(server): Shared) -> ApiResult<Response> {
    let Json(answer) = blocking(server, |server| server.run()?.answer()).await?;
    Ok(Json(&*answer).into_response())
}

async fn series(State(server): Shared) -> Answer<SeriesAnswer> {
    blocking(server, |server| server.run()?.series()).await
}

async fn run_events(State(server): Shared) -> ApiResult<impl IntoResponse> {
    server.run()?;
    let begin = (Arc::clone(&server), Seen::default());
    events(
        &server,
        unfold(begin, |(server, before)| async move {
            loop {
                tokio::time::sleep(LOOK_TIME).await;
                let now = blocking(Arc::clone(&server), |server| {
                    let run = server.run()?;
                    Ok(Seen::of(&run.directory, &run.games))
                });
                let Json(now) = now.await.ok()?;
                let what = now.changed_since(&before);
                if !what.is_empty() {
                    let event = event("changed", &json!({ "what": what }));
                    break Some((event, (server, now)));
                }
            }
        }),
    )
}

async fn games(
    State(server): Shared,
    QueryOf(query): QueryOf<GamesQuery>,
) -> ApiResult<impl IntoResponse> {
    blocking(server, move |server| {
        let run = server.run()?;
        run.check()?;
        Ok(run.games.page(&query))
    })
    .await
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceQuery {
    #[serde(default = "selfplay")]
    source: String,
}

fn selfplay() -> String {
    "selfplay".into()
}

async fn game(
    State(server): Shared,
    Id(id): Id,
    QueryOf(query): QueryOf<SourceQuery>,
) -> ApiResult<impl IntoResponse> {
    let id = id.parse().map_err(|error: String| ApiError::wrong(error))?;
    blocking(server, move |server| {
        server.run()?.games.detail(id, &query.source)
    })
    .await
}

async fn show_games(State(server): Shared) -> ApiResult<impl IntoResponse> {
    blocking(server, |server| Ok(server.run()?.games.show_games())).await
}

fn event(name: &str, data: &impl Serialize) -> Result<Event, Infallible> {
    let event = Event::default().event(name);
    let text = serde_json::to_string(data).unwrap_or_else(|_| "{}".into());
    Ok(event.data(text))
}

fn events(
    server: &Server,
    stream: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> ApiResult<Response> {
    let place = Arc::clone(&server.streams).try_acquire_owned();
    let place = place.map_err(|_| {
        ApiError::busy(format!(
            "{MAX_STREAMS} streams of events are open, the most at once: close a page of this server"
        ))
    })?;
    // The stream holds its place until it is dropped.
    let stream = stream.inspect(move |_| {
        let _held = &place;
    });
    let stream = Sse::new(stream).keep_alive(KeepAlive::default());
    Ok(stream.into_response())
}
