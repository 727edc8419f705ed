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

function heard(answered) {
  if (answered === !isLost) return;
  isLost = !answered;
  connection.dispatchEvent(new Event(isLost ? 'lost' : 'back'));
  if (isLost) retry(1);
}

async function retry(seconds) {
  await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
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
 * until the returned function is called. `onTrouble` gets true when a connection is lost and false when it is there again. A page that the
 * browser keeps for its “back” holds no connection: the browser has six for a server.
 */
export function listen(path, handlers, onTrouble = () => {}) {
  let source = null;
  let timer = null;
  let wait = 1;
  const open = () => {
    source = new EventSource(withQuery(`api${path}`, { token }));
    source.onopen = () => {
      wait = 1;
      onTrouble(false);
    };
    source.onerror = () => {
      source.close();
      onTrouble(true);
      timer = setTimeout(open, 1000 * wait);
      wait = Math.min(10, 2 * wait);
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data || 'null')));
    }
  };
  const close = () => {
    clearTimeout(timer);
    source.close();
  };
  const reopen = (event) => event.persisted && open();
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', reopen);
  open();
  return () => {
    window.removeEventListener('pagehide', close);
    window.removeEventListener('pageshow', reopen);
    close();
  };
}

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
