// The list of games, with filters and pages. The filters stand in the address.

import { ApiError, get } from './api.js';
import { announce, button, capital, field, h, moment, number, select, table } from './dom.js';
import { problems } from './run.js';

const LIMIT = 50;
const KEYS = ['source', 'network', 'ending', 'winner', 'start', 'min_turns', 'max_turns', 'min_surprise', 'sort', 'offset'];
const ENDINGS = ['goal', 'elimination', 'immobilization', 'unfinished', 'resigned', 'forfeited'];

const ORDERS = [['', 'newest first'], ['oldest', 'oldest first'], ['longest', 'longest first'], ['shortest', 'shortest first'],
  ['surprise', 'most surprising first']];

export const gameLink = (source, id, at) => `#/games/${encodeURIComponent(source)}/${encodeURIComponent(id)}${at ? `/${at}` : ''}`;

export function openGames(about, { query }) {
  const view = new GamesView(query);
  return {
    element: view.element,
    leave: () => view.abort.abort(),
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
    this.form = h('div', {});
    this.list = h('div', { class: 'long' });
    this.shows = h('div', {});
    this.element = h('div', {}, h('h1', {}, 'Games'), this.form, this.shows, this.list);
    this.names = { networks: [], matches: [] };
    this.show(query);
    this.loadNames();
  }

  async loadNames() {
    try {
      const [run, shows] = await Promise.all([get('/run', {}, this.abort.signal), get('/show-games', {}, this.abort.signal)]);
      this.names = { networks: run.networks.map(({ name }) => name), matches: run.matches.map(({ name }) => name) };
      this.drawForm();
      this.drawShows(shows.games);
    } catch (error) {
      if (!(error instanceof ApiError) && error.name !== 'AbortError') throw error;
    }
  }

  show(query) {
    this.filters = Object.fromEntries(KEYS.map((key) => [key, query.get(key) ?? '']));
    this.drawForm();
    this.load();
  }

  change(key, value) {
    const filters = { ...this.filters, offset: '', [key]: value };
    const known = Object.entries(filters).filter(([, one]) => one !== '');
    location.hash = known.length ? `#/games?${new URLSearchParams(known)}` : '#/games';
  }

  drawForm() {
    const { filters, names } = this;
    const choice = (key, label, options) => field(label, this.keep(key, select(options, filters[key], (value) => this.change(key, value))));
    const figure = (key, label, step) => field(label, this.keep(key, h('input', {
      type: 'number', min: 0, step, value: filters[key], onchange: (event) => this.change(key, event.target.value),
    })));
    const any = ['', 'any'];
    const known = (list, value) => (value && !list.includes(value) ? [value, ...list] : list);
    const focused = document.activeElement?.dataset?.key;
    this.form.replaceChildren(h('form', { class: 'filters panel', onsubmit: (event) => event.preventDefault() },
      choice('source', 'Source', [['', 'self-play'], ['show', 'without noise'], ...known(names.matches, filters.source === 'show' ? '' : filters.source)]),
      choice('network', 'Network', [any, ...known(names.networks, filters.network)]),
      choice('ending', 'Ending', [any, ...ENDINGS]),
      choice('winner', 'Winner', [any, ['gold', 'Gold'], ['silver', 'Silver'], ['none', 'none: unfinished']]),
      choice('start', 'Start', [any, ['empty', 'empty board'], 'fork', 'opening', 'position']),
      figure('min_turns', 'Turns from', 1),
      figure('max_turns', 'Turns to', 1),
      figure('min_surprise', 'Surprise from', 0.01),
      choice('sort', 'Order', ORDERS),
      button('Clear', () => { location.hash = '#/games'; })));
    if (focused) this.form.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  keep(key, control) {
    control.dataset.key = key;
    return control;
  }

  drawShows(games) {
    if (!games.length) return;
    const links = games.map(({ network, game, source }) => h('a', { href: gameLink(source, game) }, network));
    this.shows.replaceChildren(h('details', { class: 'panel' }, h('summary', {}, 'Games that the loop played without noise, by network'),
      h('p', { class: 'links' }, links)));
  }

  async load() {
    const serial = (this.serial = (this.serial ?? 0) + 1);
    try {
      const answer = await get('/games', { ...this.filters, limit: LIMIT }, this.abort.signal);
      if (serial === this.serial) this.drawList(answer);
    } catch (error) {
      if (error.name === 'AbortError') return;
      if (!(error instanceof ApiError)) throw error;
      this.list.replaceChildren(h('p', { class: 'message error' }, error.message));
    }
  }

  drawList({ total, matching, is_complete: isComplete, indexed_share: indexed, games, problems: faults }) {
    const offset = Number(this.filters.offset || 0);
    const reading = isComplete ? '' : ` The index is being made: ${number(100 * indexed)} % of the games are in it.`;
    const words = `${number(matching)} of ${number(total)} games.${reading}`;
    const rows = games.map((game) => [
      h('a', { href: gameLink(game.source, game.game) }, game.game),
      game.networks.join(', '),
      game.winner ? capital(game.winner) : 'none',
      game.ending,
      number(game.turns),
      game.start,
      number(game.surprise, 2),
      moment(game.time),
    ]);
    const columns = ['Game', 'Network', 'Winner', 'Ending', 'Turns', 'Start', 'Surprise', 'Written'];
    announce(words);
    this.list.replaceChildren(problems(faults), h('section', { class: 'panel' }, h('p', { class: 'note' }, words),
      games.length ? table(columns, rows, { numeric: ['Turns', 'Surprise'], caption: 'Games' }) : h('p', {}, 'No game fits these filters.'),
      this.pages(offset, matching)));
  }

  pages(offset, matching) {
    if (matching <= LIMIT && !offset) return null;
    const move = (to) => this.change('offset', to ? String(to) : '');
    return h('div', { class: 'pages', role: 'group', 'aria-label': 'Pages' },
      button('◀ Previous', () => move(Math.max(0, offset - LIMIT)), { disabled: offset === 0 }),
      h('span', {}, `${number(Math.min(offset + 1, matching))} to ${number(Math.min(offset + LIMIT, matching))}`),
      button('Next ▶', () => move(offset + LIMIT), { disabled: offset + LIMIT >= matching }));
  }
}
