// The list of games, with filters and pages. The filters stand in the address.

import { ApiError, get, watchRun } from './api.js';
import { announce, button, capital, field, h, moment, number, select, setChildren, setOptions, table, tableRow } from './dom.js';
import { problems } from './run.js';

const LIMIT = 50;
const KEYS = ['source', 'network', 'ending', 'winner', 'start', 'min_turns', 'max_turns', 'min_surprise', 'sort', 'offset'];
const ENDINGS = ['goal', 'elimination', 'immobilization', 'unfinished', 'resigned', 'forfeited'];
const ANY = ['', 'any'];
const ORDERS = [['', 'newest first'], ['oldest', 'oldest first'], ['longest', 'longest first'], ['shortest', 'shortest first'],
  ['surprise', 'most surprising first']];
const COLUMNS = ['Game', 'Network', 'Winner', 'Ending', 'Turns', 'Start', 'Surprise', 'Written'];
const NUMERIC = ['Turns', 'Surprise'];

export const gameLink = (source, id, at) => `#/games/${encodeURIComponent(source)}/${encodeURIComponent(id)}${at ? `/${at}` : ''}`;

export function openGames(about, { query }) {
  const view = new GamesView(query);
  const ends = [
    watchRun((what) => what.includes('games') && view.load()),
    watchRun((what) => what.includes('run') && view.loadNames(), { pace: 5 }),
  ];
  return {
    element: view.element,
    leave() {
      ends.forEach((end) => end());
      view.abort.abort();
    },
    retry: () => view.load(),
    route(target) {
      if (target.parts.length) return false;
      view.show(target.query);
      return true;
    },
  };
}

class GamesView {
  constructor(query) {
    this.abort = new AbortController();
    this.names = { networks: [], matches: [] };
    this.serial = 0;
    this.controls = {};
    this.rows = new Map();
    this.shows = h('p', { class: 'links' });
    this.showsPanel = h('details', { class: 'panel', hidden: true },
      h('summary', {}, 'Games that the loop played without noise, by network'), this.shows);
    this.element = h('div', {}, h('h1', {}, 'Games'), this.makeForm(), this.showsPanel, this.makeList());
    this.show(query);
    this.loadNames();
  }

  /** The names of networks and matches, for the filters. */
  async loadNames() {
    try {
      const [run, shows] = await Promise.all([get('/run', {}, this.abort.signal), get('/show-games', {}, this.abort.signal)]);
      this.names = { networks: run.networks.map(({ name }) => name), matches: run.matches.map(({ name }) => name) };
      this.showFilters();
      this.drawShows(shows.games);
    } catch (error) {
      if (!(error instanceof ApiError) && error.name !== 'AbortError') throw error;
    }
  }

  show(query) {
    this.filters = Object.fromEntries(KEYS.map((key) => [key, query.get(key) ?? '']));
    this.showFilters();
    this.isAsked = true;
    this.load();
  }

  change(key, value) {
    const filters = { ...this.filters, offset: '', [key]: value };
    const known = Object.entries(filters).filter(([, one]) => one !== '');
    location.hash = known.length ? `#/games?${new URLSearchParams(known)}` : '#/games';
  }

  // The filters.

  makeForm() {
    const keep = (key, label, control) => field(label, this.controls[key] = control);
    const choice = (key, label, options) => keep(key, label, select(options, '', (value) => this.change(key, value)));
    const figure = (key, label, step) => keep(key, label, h('input', {
      type: 'number', min: 0, step, onchange: (event) => this.change(key, event.target.value),
    }));
    return h('form', { class: 'filters panel', 'aria-label': 'Filters', onsubmit: (event) => event.preventDefault() },
      choice('source', 'Source', []),
      choice('network', 'Network', []),
      choice('ending', 'Ending', [ANY, ...ENDINGS]),
      choice('winner', 'Winner', [ANY, ['gold', 'Gold'], ['silver', 'Silver'], ['none', 'none: unfinished']]),
      choice('start', 'Start', [ANY, ['empty', 'empty board'], 'fork', 'opening', 'position']),
      figure('min_turns', 'Turns from', 1),
      figure('max_turns', 'Turns to', 1),
      figure('min_surprise', 'Surprise from', 0.01),
      choice('sort', 'Order', ORDERS),
      button('Clear', () => { location.hash = '#/games'; }));
  }

  showFilters() {
    const { filters, names, controls } = this;
    const known = (list, value) => (value && !list.includes(value) ? [value, ...list] : list);
    const match = filters.source === 'show' ? '' : filters.source;
    setOptions(controls.source, [['', 'self-play'], ['show', 'without noise'], ...known(names.matches, match)]);
    setOptions(controls.network, [ANY, ...known(names.networks, filters.network)]);
    // What is being typed stays.
    for (const [key, control] of Object.entries(controls)) {
      if (filters[key] !== this.shownFilters?.[key]) control.value = filters[key];
    }
    this.shownFilters = filters;
  }

  drawShows(games) {
    this.links ??= new Map();
    const link = ({ network, game, source }) => {
      const href = gameLink(source, game);
      if (!this.links.has(href)) this.links.set(href, h('a', { href }, network));
      return this.links.get(href);
    };
    setChildren(this.shows, games.map(link));
    this.showsPanel.hidden = !games.length;
  }

  // The list.

  makeList() {
    this.message = h('div', {});
    this.words = h('p', { class: 'note' });
    this.offer = button('', () => this.takeOffer(), { hidden: true });
    this.table = table(COLUMNS, [], { numeric: NUMERIC, caption: 'Games' });
    this.body = this.table.querySelector('tbody');
    this.none = h('p', { hidden: true }, 'No game fits these filters.');
    const move = (pages) => {
      const offset = Math.max(0, Number(this.filters.offset) + pages * LIMIT);
      this.change('offset', offset ? String(offset) : '');
    };
    this.previous = button('◀ Previous', () => move(-1));
    this.range = h('span', {});
    this.next = button('Next ▶', () => move(1));
    this.pages = h('div', { class: 'pages', role: 'group', 'aria-label': 'Pages' }, this.previous, this.range, this.next);
    this.panel = h('section', { class: 'panel', hidden: true }, this.words, this.offer, this.table, this.none, this.pages);
    return h('div', { class: 'long' }, this.message, this.panel);
  }

  /** Loads the list. Where the run has changed while the reader is at work in the list, the new list is offered. */
  async load() {
    const serial = (this.serial += 1);
    try {
      const answer = await get('/games', { ...this.filters, limit: LIMIT }, this.abort.signal);
      if (serial !== this.serial) return;
      this.drawState(answer);
      if (this.isAsked || !this.isInUse()) this.drawList(answer);
      else this.offerList(answer);
    } catch (error) {
      if (error.name === 'AbortError' || serial !== this.serial) return;
      if (!(error instanceof ApiError)) throw error;
      this.message.replaceChildren(h('p', { class: 'message error', role: 'alert' }, error.message));
      this.panel.hidden ||= this.isAsked;
    }
  }

  isInUse() {
    const isBelowTop = this.table.getBoundingClientRect().top < 0;
    return isBelowTop || Number(this.filters.offset) > 0 || this.table.contains(document.activeElement);
  }

  drawState({ total, matching, is_complete: isComplete, indexed_share: indexed, problems: faults }) {
    const reading = isComplete ? '' : ` The index is being made: ${number(100 * indexed)} % of the games are in it.`;
    const words = `${number(matching)} of ${number(total)} games.${reading}`;
    if (this.isAsked) announce(words);
    this.words.textContent = words;
    this.message.replaceChildren(problems(faults));
    const offset = Number(this.filters.offset);
    this.range.textContent = `${number(Math.min(offset + 1, matching))} to ${number(Math.min(offset + LIMIT, matching))}`;
    this.previous.disabled = offset === 0;
    this.next.disabled = offset + LIMIT >= matching;
    this.pages.hidden = matching <= LIMIT && !offset;
    this.panel.hidden = false;
  }

  drawList({ matching, games }) {
    const rows = new Map();
    const elements = games.map((game) => {
      const key = keyOf(game);
      const row = this.rows.get(key) ?? newRow(game);
      this.rows.delete(key);
      rows.set(key, row);
      return row;
    });
    this.rows = rows;
    this.shown = games.map(keyOf).join('\n');
    this.matching = matching;
    setChildren(this.body, elements);
    this.table.hidden = !games.length;
    this.none.hidden = games.length > 0;
    this.offered = null;
    this.offer.hidden = true;
    this.isAsked = false;
  }

  offerList(answer) {
    const isSame = answer.games.map(keyOf).join('\n') === this.shown;
    const more = answer.matching - this.matching;
    this.offered = answer;
    this.offer.textContent = more > 0 ? `Show ${number(more)} new ${more === 1 ? 'game' : 'games'}` : 'Show the changed list';
    if (this.offer.hidden && !isSame) announce('There are new games. A button above the list shows them.');
    this.offer.hidden = isSame;
  }

  takeOffer() {
    this.drawList(this.offered);
    this.table.focus({ preventScroll: true });
  }
}

// Copied shards have the same names of games.
const keyOf = ({ source, game, time }) => `${source} ${game} ${time}`;

function newRow(game) {
  return tableRow([
    h('a', { href: gameLink(game.source, game.game) }, game.game),
    game.networks.join(', '),
    game.winner ? capital(game.winner) : 'none',
    game.ending,
    number(game.turns),
    game.start,
    number(game.surprise, 2),
    moment(game.time),
  ], COLUMNS.map((name) => (NUMERIC.includes(name) ? 'number' : null)));
}
