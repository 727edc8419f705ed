// One game: the board, the value curve, and what the search thought.

import { ApiError, get, pageLink, post } from './api.js';
import { arrowsInWords, isSame, legend, playedArrows, policyArrows, policyInWords, targetArrows } from './arrows.js';
import { Board } from './board.js';
import { ValueCurve } from './curve.js';
import { button, capital, copy, facts, h, markTurn, number, percent, section, store, table } from './dom.js';
import { gameLink } from './games.js';
import { isEndByRules, isSetup, labelsFrom, resultInWords, stepsOf } from './notation.js';
import { Replay } from './replay.js';

const ORIGINS = {
  given: 'given, not chosen by a network',
  policy: 'drawn from the policy, without a search',
  search: 'chosen by a search',
};

// A turn that is passed over in this time needs no policy.
const REST_MS = 150;

export function openGame(about, { parts }) {
  const view = new GameView(about.players, parts[0], parts[1]);
  view.load(parts[2]);
  return {
    element: view.element,
    leave: () => view.leave(),
    retry: () => view.data ?? view.load(parts[2]),
    key: (event) => view.replay.key(event),
    route(target) {
      if (target.parts[0] !== view.source || target.parts[1] !== view.id) return false;
      view.jump(target.parts[2]);
      return true;
    },
  };
}

class GameView {
  /** `players` can be named in requests. */
  constructor(players, source, id) {
    this.players = players;
    // The policy's best turns by label, as far as they were requested.
    this.policies = new Map();
    this.source = source;
    this.id = id;
    this.board = new Board('Board');
    this.replay = new Replay(this.board, (turn, step) => this.moved(turn, step));
    this.curve = new ValueCurve([
      { label: 'search', color: '--blue', points: true },
      { label: 'network', color: '--orange', dash: [5, 3] },
    ], (turn) => this.replay.go(turn));
    this.head = h('div', { class: 'title' }, h('h1', {}, `Game ${id}`));
    this.message = h('div', {});
    this.thoughts = h('div', {});
    this.moves = h('ol', { class: 'moves', 'aria-label': 'Turns' });
    this.facts = h('div', {});
    this.analyzeButton = button('Analyze this position', () => this.analyze());
    const actions = h('div', { class: 'actions' }, this.analyzeButton,
      button('Copy as record', (event) => copy(this.data?.record ?? '', event.target)),
      button('Copy link', (event) => copy(pageLink(), event.target)),
      button('Flip', () => this.board.flip(!this.board.isFlipped)));
    this.element = h('div', {}, h('p', { class: 'back' }, h('a', { href: '#/games' }, '◀ All games')), this.head, this.message,
      h('div', { class: 'with-board' },
        h('div', { class: 'board-side' }, this.board.element, legend(), this.replay.element, this.curve.element, actions),
        h('div', { class: 'word-side' }, this.thoughts, section('Turns', h('p', { class: 'note' },
          '! marks a turn whose surprise is at least twice the mean of the game.'), this.moves), this.facts)));
  }

  leave() {
    this.hasLeft = true;
    this.curve.destroy();
  }

  async load(at) {
    try {
      this.data = await get(`/games/${encodeURIComponent(this.id)}`, { source: this.source });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.message.replaceChildren(h('p', { class: 'message error', role: 'alert' }, error.message));
      return;
    }
    if (!this.hasLeft) this.show(at);
  }

  show(at) {
    const { game, boards, first_label: first, turns } = this.data;
    this.labels = labelsFrom(first, game.turns.length + 1);
    this.info = new Map(turns.map((turn) => [turn.label, turn]));
    this.limit = surpriseLimit(turns);
    this.replay.load({ boards, turns: game.turns, labels: this.labels });
    const column = (key) => this.labels.map((label) => this.info.get(label)?.[key] ?? null);
    const dots = this.labels.map((label, x) => ({ x, y: this.valueOf(label), color: '--red' }))
      .filter(({ x, y }) => y !== null && this.isSurprising(this.labels[x]));
    this.curve.setData(this.labels, [column('gold_value'), column('network_gold_value')], dots);
    this.drawMoves();
    this.drawFacts();
    this.jump(at);
  }

  valueOf(label) {
    const turn = this.info.get(label);
    return turn?.gold_value ?? turn?.network_gold_value ?? null;
  }

  isSurprising(label) {
    return (this.info.get(label)?.surprise ?? 0) >= this.limit;
  }

  // `12s`, or `12s.2` before its third step; a number alone means Gold's turn.
  jump(at) {
    if (!this.data) return;
    const [, label = null, step = '0'] = /^(\d+[gs]?)(?:\.(\d))?$/.exec(at ?? '') ?? [];
    const index = label === null ? 0 : this.labels.indexOf(/\d$/.test(label) ? `${label}g` : label);
    const missing = index < 0 ? h('p', { class: 'message warning' }, `The game has no turn ${label}.`) : '';
    this.message.replaceChildren(missing);
    this.replay.go(Math.max(0, index), Number(step));
  }

  moved(turn, step) {
    const label = this.labels[turn];
    history.replaceState(null, '', gameLink(this.source, this.id, step ? `${label}.${step}` : label));
    this.curve.show(turn);
    this.drawThoughts(this.info.get(label), step);
    markTurn(this.moves, turn);
    this.analyzeButton.textContent = this.isOver ? 'Analyze the game' : 'Analyze this position';
  }

  /** Whether no turn can follow the shown position. */
  get isOver() {
    return this.replay.turn === this.replay.turns.length && isEndByRules(this.data.ending);
  }

  // The arrows of a turn come when the turn before it has been shown.
  async drawArrows(arrows) {
    const { turn, step } = this.replay;
    this.board.arrows([]);
    await this.replay.playing;
    if (turn === this.replay.turn && step === this.replay.step) this.board.arrows(arrows);
  }

  /** Shows a turn's arrows, and says in `place` what they are: before the turn the policy's best turns, within it the target. */
  async showArrows(turn, step, place) {
    const played = playedArrows(turn, step);
    const showTarget = () => {
      const arrows = [...played, ...targetArrows(turn, step, played)];
      this.drawArrows(arrows);
      place.replaceChildren(arrowsInWords(arrows, step));
    };
    if (step || !this.players.includes(turn.network)) {
      showTarget();
      return;
    }
    this.drawArrows(played);
    const best = await this.policyOf(turn.label);
    if (!place.isConnected) return;
    if (!best) {
      showTarget();
      return;
    }
    const show = (turns) => this.drawArrows([...(turns === best ? played : []), ...policyArrows(turns)]);
    show(best);
    place.replaceChildren(policyInWords(best, turn.turn, show));
  }

  /** The best turns by the policy of the network that chose a turn; null where none are found, or another turn is shown meanwhile. */
  async policyOf(label) {
    const { turn: index } = this.replay;
    if (!this.policies.has(label)) {
      await pause(REST_MS);
      if (this.hasLeft || this.replay.turn !== index) return null;
      const { start, turns } = this.data.game;
      const request = { game: { start, turns: turns.slice(0, index) }, player: this.info.get(label).network };
      this.policies.set(label, post('/policy', request));
    }
    try {
      return (await this.policies.get(label)).turns;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.policies.delete(label);
      return null;
    }
  }

  drawThoughts(turn, step) {
    const row = turn?.rows.find((one) => one.step === step) ?? null;
    const arrows = h('div', {});
    if (turn && !isSetup(turn.turn)) this.showArrows(turn, step, arrows);
    else this.drawArrows([]);
    if (!turn) {
      const isEnd = this.replay.turn >= this.replay.turns.length;
      this.thoughts.replaceChildren(section(isEnd ? 'End of the game' : 'Turn',
        h('p', {}, isEnd ? resultInWords(this.data.winner, this.data.ending) : 'Nothing is stored about this turn.')));
      return;
    }
    const words = 'A surprising turn: the search disagreed with the policy.';
    const surprise = this.isSurprising(turn.label) ? h('p', { class: 'message warning' }, words) : '';
    this.thoughts.replaceChildren(section(`Turn ${turn.label}${step ? `, step ${step + 1}` : ''}`,
      h('p', { class: 'turn-text' }, turn.turn), surprise,
      facts([
        ['Origin', ORIGINS[turn.origin] ?? turn.origin],
        ['Network', turn.network],
        ['Gold wins, by the search', known(turn.gold_value, percent, 1)],
        ['Gold wins, by the network', known(turn.network_gold_value, percent, 1)],
        ['Visits', known(turn.visits, number)],
        ['Evaluations', known(turn.evaluations, number)],
        ['Surprise', known(turn.surprise, number, 2)],
      ]),
      arrows, rowsInWords(turn), row ? policyTable(row, stepsOf(turn.turn)[step]) : ''));
  }

  drawMoves() {
    const turns = this.data.game.turns;
    const items = turns.map((turn, index) => {
      const label = this.labels[index];
      const mark = this.isSurprising(label) ? h('em', { title: 'surprising' }, '!') : '';
      return h('li', {}, h('button', { type: 'button', class: 'move', onclick: () => this.replay.go(index) },
        h('b', {}, label), h('span', {}, turn), mark, h('i', {}, percent(this.valueOf(label)))));
    });
    const end = button(resultInWords(this.data.winner, this.data.ending), () => this.replay.go(turns.length), { class: 'move' });
    this.moves.replaceChildren(...items, h('li', {}, end));
  }

  drawFacts() {
    const { networks, winner, ending, seed, game } = this.data;
    this.facts.replaceChildren(section('Game', facts([
      ['Source', this.source === 'selfplay' ? 'self-play' : this.source],
      ['Networks', networks.join(', ')],
      ['Winner', winner ? capital(winner) : 'none'],
      ['Ending', ending],
      ['Length', `${game.turns.length} turns`],
      ['Seed', known(seed, String)],
      ['Start', game.start ? 'a given position' : 'the empty board'],
    ])));
  }

  analyze() {
    if (!this.data) return;
    const index = this.replay.turn - (this.isOver ? 1 : 0);
    store('analysis', { game: this.data.game, boards: this.data.boards, labels: this.labels.slice(0, -1), index });
    location.hash = '#/analysis';
  }
}

function surpriseLimit(turns) {
  const known = turns.map(({ surprise }) => surprise).filter((surprise) => surprise !== null);
  const mean = known.reduce((sum, one) => sum + one, 0) / (known.length || 1);
  return mean > 0 ? 2 * mean : Infinity;
}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const known = (value, format, ...more) => (value === null ? null : format(value, ...more));

function rowsInWords(turn) {
  if (!turn.rows.length) return h('p', { class: 'note' }, 'No row of this turn is trained on.');
  const best = ([first]) => (first ? `${first.action} (${percent(first.share)})` : '–');
  const rows = turn.rows.map(({ step, visits, weight, surprise, policy }) => [String(step + 1), number(visits), number(weight, 2),
    number(surprise, 2), best(policy)]);
  return table(['Step', 'Visits', 'Weight', 'Surprise', 'Target’s best'], rows,
    { numeric: ['Visits', 'Weight', 'Surprise'], caption: 'Rows to train on' });
}

function policyTable({ policy, step }, played) {
  const rows = policy.map(({ action, share }) => h('li', { class: isSame(action, played) ? 'played' : null },
    h('span', {}, action), h('meter', { min: 0, max: 1, value: share, 'aria-label': `share of ${action}` }),
    h('i', {}, percent(share, 1))));
  return h('div', {}, h('h3', {}, `What the target became at step ${step + 1}`), h('ol', { class: 'policy' }, rows),
    h('p', { class: 'note' }, 'The played step is in bold.'));
}
