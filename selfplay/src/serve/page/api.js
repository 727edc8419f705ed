// The server's API: requests, and events with retries.

const token = new URLSearchParams(location.search).get('token');

/** Tells `lost` when the server does not answer, and `back` when it does again. */
export const connection = new EventTarget();
let isLost = false;

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** The answer of `/about`. The object and its list of players stay the same ones when it is asked again. */
export const about = { run: null, players: [] };

/** Asks about the server. True where the players have changed. */
export async function askAbout() {
  const { players, ...rest } = await get('/about');
  const hasChanged = players.join() !== about.players.join();
  Object.assign(about, rest);
  about.players.splice(0, about.players.length, ...players);
  return hasChanged;
}

/** The address of what is shown, without the token: whoever gets the link needs a token from the server's owner. */
export function pageLink() {
  const url = new URL(location.href);
  url.searchParams.delete('token');
  return url.href;
}

/** Waits until the page is visible. */
async function visible() {
  while (document.hidden) await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
}

function heard(answered) {
  if (answered === !isLost) return;
  isLost = !answered;
  connection.dispatchEvent(new Event(isLost ? 'lost' : 'back'));
  if (isLost) retry(1);
}

async function retry(seconds) {
  await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  await visible();
  if (!isLost) return;
  await get('/about').catch(() => {});
  if (isLost) retry(Math.min(10, 2 * seconds));
}

async function call(method, path, body, signal) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response, text;
  try {
    response = await fetch(`api${path}`, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    text = await response.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    heard(false);
    throw new ApiError('The server does not answer. Check that “selfplay serve” is running.', 0);
  }
  heard(true);
  const answer = parsed(text);
  if (response.ok) return answer;
  throw new ApiError(answer?.error ?? `The server answered with status ${response.status}.`, response.status);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function withQuery(path, query) {
  const known = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  return known.length ? `${path}?${new URLSearchParams(known)}` : path;
}

export const get = (path, query = {}, signal) => call('GET', withQuery(path, query), undefined, signal);
export const post = (path, body, signal) => call('POST', path, body, signal);
export const remove = (path) => call('DELETE', path);

/**
 * Listens to server-sent events. `handlers` has a function for each name of event, and each gets the data. Lost connections are retried
 * until the returned function is called; a hidden page waits with that. `onTrouble` gets true when a connection is lost and false when it is
 * there again. A page that the browser keeps for its “back” holds no connection: the browser has six for a server.
 */
export function listen(path, handlers, onTrouble = () => {}) {
  let source = null;
  let timer = null;
  let wait = 1;
  let isOver = false;
  const open = () => {
    close();
    source = new EventSource(withQuery(`api${path}`, { token }));
    source.onopen = () => {
      wait = 1;
      onTrouble(false);
    };
    source.onerror = () => {
      source.close();
      onTrouble(true);
      timer = setTimeout(reopen, 1000 * wait);
      wait = Math.min(10, 2 * wait);
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data || 'null')));
    }
  };
  const reopen = async () => {
    await visible();
    if (!isOver) open();
  };
  const close = () => {
    clearTimeout(timer);
    source?.close();
  };
  const comeBack = (event) => event.persisted && open();
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', comeBack);
  open();
  return () => {
    isOver = true;
    window.removeEventListener('pagehide', close);
    window.removeEventListener('pageshow', comeBack);
    close();
  };
}

const PARTS = ['run', 'series', 'games'];
const watchers = new Set();
let endEvents = null;
let isRunLost = null;

/**
 * Calls `onChange(what)` when parts of the run have changed, at most once in `pace` seconds: `what` has names as in the API. One connection
 * serves all that watch. There is none while the page is hidden. When the page is visible again, or the connection is back, all parts count
 * as changed. `onTrouble` is that of `listen`. The returned function ends it.
 */
export function watchRun(onChange, { pace = 2, onTrouble = () => {} } = {}) {
  const wanted = new Set();
  let told = performance.now();
  let timer = null;
  const tell = () => {
    timer = null;
    if (document.hidden) return;
    told = performance.now();
    const what = [...wanted];
    wanted.clear();
    onChange(what);
  };
  const watcher = {
    onTrouble,
    changed(what) {
      what.forEach((part) => wanted.add(part));
      timer ??= setTimeout(tell, Math.max(0, told + 1000 * pace - performance.now()));
    },
  };
  watchers.add(watcher);
  if (isRunLost !== null) onTrouble(isRunLost);
  followRun();
  return () => {
    clearTimeout(timer);
    watchers.delete(watcher);
    followRun();
  };
}

function followRun() {
  if (watchers.size && !document.hidden) {
    endEvents ??= listen('/run/events', { changed: ({ what }) => changed(what) }, (isLost) => {
      if (isRunLost && !isLost) changed(PARTS);
      isRunLost = isLost;
      watchers.forEach(({ onTrouble }) => onTrouble(isLost));
    });
  } else {
    endEvents?.();
    endEvents = null;
    isRunLost = null;
  }
}

function changed(what) {
  watchers.forEach((watcher) => watcher.changed(what));
}

document.addEventListener('visibilitychange', () => {
  followRun();
  if (!document.hidden) changed(PARTS);
});

/**
 * Gives each state of a search to `onState`, until the search has ended or the returned function is called. A search that the server has
 * forgotten goes to `onFail`; `onTrouble` is called when the connection is lost.
 */
export function followSearch(search, onState, onFail, onTrouble = () => {}) {
  const close = listen(`/searches/${search}/events`, {
    report(state) {
      if (state.state !== 'running') close();
      onState(state);
    },
  }, async (isLost) => {
    if (!isLost) return;
    onTrouble();
    await get(`/searches/${search}`).catch((error) => {
      if (error.status !== 404) return;
      close();
      onFail(error);
    });
  });
  return close;
}

/**
 * Searches a position until the search ends, and answers with its last state. `onReport` gets each state on the way. An aborted search
 * rejects with an `AbortError`.
 */
export async function think(request, onReport, signal) {
  const { search } = await post('/searches', request);
  return new Promise((resolve, reject) => {
    const close = followSearch(search, (state) => {
      onReport(state);
      if (state.state === 'running') return;
      signal.removeEventListener('abort', abort);
      if (state.state === 'failed') reject(new ApiError(state.error ?? 'The search failed.', 500));
      else resolve(state);
    }, reject);
    const abort = () => {
      close();
      remove(`/searches/${search}`).catch(() => {});
      reject(new DOMException('The search was stopped.', 'AbortError'));
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

export const chosen = (state) => state.report?.turns.find((turn) => turn.is_chosen) ?? state.report?.turns[0] ?? null;
