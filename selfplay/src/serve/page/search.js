// The live search of a position: controls, and the best turns with their lines.

import { ApiError, chosen, followSearch, post, remove } from './api.js';
import { compact, share } from './charts.js';
import { announce, button, capital, field, h, number, percent, select } from './dom.js';
import { stepsOf } from './notation.js';

const LIMITS = [['', 'until stopped'], ['100', '100 evaluations'], ['1000', '1,000 evaluations'], ['10000', '10,000 evaluations'],
  ['100000', '100,000 evaluations'], ['s5', '5 seconds'], ['s30', '30 seconds']];

/** Limits as the API takes them, from the value of a select: `1000`, `s5` or nothing. */
export function limitsOf(value) {
  if (!value) return { evaluations: null, seconds: null };
  return value.startsWith('s') ? { evaluations: null, seconds: Number(value.slice(1)) } : { evaluations: Number(value), seconds: null };
}

export class SearchPanel {
  /** `game()` is the game up to the shown position, `onTurns(turns)` shows arrows, `onPlay(turn)` plays a turn. */
  constructor(players, { game, onTurns, onPlay }) {
    this.game = game;
    this.onTurns = onTurns;
    this.onPlay = onPlay;
    this.player = select(players, players[0], () => this.restart());
    this.limit = select(LIMITS, '');
    this.startButton = button('Search', () => this.start(), { class: 'primary' });
    this.stopButton = button('Stop', () => this.stop(), { disabled: true });
    this.resumeButton = button('Resume', () => this.resume(), { disabled: true });
    this.status = h('p', { class: 'note' }, 'No search yet.');
    this.result = h('div', { class: 'long' });
    this.element = h('section', { class: 'panel' }, h('h2', {}, 'Search'),
      h('div', { class: 'controls' }, field('Player', this.player), field('Limit', this.limit), this.startButton, this.stopButton,
        this.resumeButton),
      this.status, this.result);
    this.serial = 0;
    this.isOver = false;
    this.clearResult();
  }

  get isRunning() {
    return this.state === 'running';
  }

  setState(state) {
    this.state = state;
    this.stopButton.disabled = state !== 'running';
    this.startButton.disabled = state === 'running' || this.isOver;
    this.resumeButton.disabled = this.isOver || !(this.search && (state === 'stopped' || state === 'done'));
  }

  /** Where the game is over, there is nothing to search. */
  setOver(isOver) {
    this.isOver = isOver;
    if (isOver) {
      this.leave();
      this.clearResult();
      this.status.textContent = 'The game is over: there is nothing to search.';
      this.onTurns([]);
    } else this.setState(this.state);
  }

  async start() {
    const serial = this.leave();
    this.setState('running');
    this.status.textContent = 'The search begins.';
    this.clearResult();
    const request = { game: this.game(), player: this.player.value, ...limitsOf(this.limit.value), lines: 8 };
    try {
      const { search } = await post('/searches', request);
      if (serial !== this.serial) {
        remove(`/searches/${search}`).catch(() => {});
        return;
      }
      this.search = search;
      this.follow(serial);
    } catch (error) {
      this.fail(error, serial);
    }
  }

  follow(serial) {
    this.close?.();
    const isCurrent = () => serial === this.serial;
    this.close = followSearch(this.search, (state) => isCurrent() && this.show(state), (error) => this.fail(error, serial), () => {
      if (isCurrent()) this.status.textContent = 'The connection to the search is lost: trying again.';
    });
  }

  async stop() {
    const { search, serial } = this;
    this.stopButton.disabled = true;
    await remove(`/searches/${search}`).catch((error) => this.fail(error, serial));
  }

  async resume() {
    const serial = this.serial;
    this.setState('running');
    try {
      await post(`/searches/${this.search}/resume`, limitsOf(this.limit.value));
      if (serial === this.serial) this.follow(serial);
    } catch (error) {
      this.fail(error, serial);
    }
  }

  fail(error, serial) {
    if (!(error instanceof ApiError)) throw error;
    if (serial !== this.serial) return;
    this.close?.();
    this.search = null;
    this.setState('failed');
    this.status.textContent = error.message;
  }

  /** Ends the search, for another position or another view. */
  leave() {
    this.serial += 1;
    this.close?.();
    if (this.search && this.isRunning) remove(`/searches/${this.search}`).catch(() => {});
    this.search = null;
    this.best = null;
    this.setState('idle');
    return this.serial;
  }

  /** Another position is shown: a running search continues there. */
  restart() {
    if (this.isRunning) {
      this.start();
      return;
    }
    this.leave();
    this.clearResult();
    this.status.textContent = 'No search of this position yet.';
    this.onTurns([]);
  }

  showArrows() {
    this.onTurns(this.best ? [this.best] : []);
  }

  show(state) {
    this.setState(state.state);
    this.status.textContent = inWords(state);
    if (state.state !== 'running') announce(this.status.textContent);
    if (!state.report) return;
    this.best = chosen(state);
    this.showArrows();
    this.balance.replaceChildren(balance(state.report.gold_value));
    this.drawTurns(state.report);
    this.frame.hidden = false;
  }

  // The rows of a turn stay the same elements, so that a click or the focus on one is not lost.
  drawTurns({ turns }) {
    const total = turns.reduce((sum, turn) => sum + turn.visits, 0) || 1;
    const rows = turns.map((turn) => {
      const row = this.rows.get(turn.turn) ?? this.newRow(turn.turn);
      row.update(turn, total);
      return row.element;
    });
    // The head is the first child.
    rows.forEach((row, index) => {
      if (this.table.children[index + 1] !== row) this.table.insertBefore(row, this.table.children[index + 1] ?? null);
    });
    while (this.table.children.length > rows.length + 1) this.table.lastChild.remove();
  }

  newRow(turn) {
    const [value, visits, prior] = [h('td', { class: 'number' }), h('span'), h('td', { class: 'number' })];
    const meter = h('meter', { min: 0, max: 1, 'aria-hidden': 'true' });
    const play = button(turn, () => this.onPlay(turn), { class: 'link', title: 'Play this turn' });
    const first = h('tr', {}, h('td', {}, play), value, h('td', { class: 'number' }, meter, visits), prior);
    const line = h('summary', { title: 'The turns that are expected behind it' });
    const second = h('tr', {}, h('td', { class: 'line', colspan: 4 }, h('details', {}, line)));
    const element = h('tbody', {}, first, second);
    let shown = '';
    const update = (now, total) => {
      first.classList.toggle('played', now.is_chosen);
      second.hidden = now.line.length < 2;
      const words = JSON.stringify(now.line);
      if (words !== shown) line.replaceChildren(...lineInWords(now.line));
      shown = words;
      value.textContent = now.proven ? provenInWords(now.proven) : percent(now.gold_value, 1);
      meter.value = now.visits / total;
      visits.textContent = number(now.visits);
      prior.textContent = share(now.prior);
    };
    this.rows.set(turn, { element, update });
    return this.rows.get(turn);
  }

  clearResult() {
    this.rows = new Map();
    this.balance = h('div', {});
    const head = ['Turn', 'Gold wins', 'Visits', 'Prior'].map((name, at) => h('th', { scope: 'col', class: at ? 'number' : null }, name));
    this.table = h('table', { class: 'turns' }, h('thead', {}, h('tr', {}, head)));
    this.frame = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Best turns', hidden: true }, this.table);
    this.result.replaceChildren(this.balance, this.frame);
  }
}

function inWords({ state, error, report, player }) {
  if (state === 'failed') return `The search failed: ${error ?? 'no reason is known'}`;
  const states = { running: 'Searching', done: 'Done', stopped: 'Stopped' };
  if (!report) return `${states[state]}.`;
  const parts = [`${number(report.evaluations)} evaluations`, `${compact(report.evaluations_per_second)}/s`,
    `${number(report.nodes)} nodes`, `the network alone: Gold ${percent(report.own_gold_value, 1)}`];
  if (report.proven) parts.push(`proven: ${provenInWords(report.proven)}`);
  return `${states[state]} with ${player}: ${parts.join(', ')}.`;
}

function balance(value) {
  return h('div', { class: 'balance', role: 'img', 'aria-label': `Gold wins ${percent(value, 1)}` },
    h('div', { style: `width: ${100 * value}%` }), h('span', {}, `Gold ${percent(value, 1)}`),
    h('span', {}, `Silver ${percent(1 - value, 1)}`));
}

function provenInWords({ winner, turns }) {
  return `${capital(winner)} wins${turns ? ` in ${turns}` : ''}`;
}

/** The turns of a line behind its first one. */
function lineInWords(line) {
  return line.slice(1).map(({ label, turn }) => h('span', {}, h('b', {}, label), ` ${turn} `));
}

/** Arrows for turns of a search. */
export const searchArrows = (turns) => turns.map(({ turn }) => ({ steps: stepsOf(turn), share: 0.5, kind: 'best' }));
