// One game: the board, the value curve, and what the search thought.

import { ApiError, get, pageLink } from './api.js';
import { Board, arrowIcon } from './board.js';
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

// The most arrows for steps that were not played, and the least share of theirs.
const MOST_OTHERS = 6;
const LEAST_SHARE = 0.02;

export function openGame(about, { parts }) {
  const view = new GameView(parts[0], parts[1]);
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
  constructor(source, id) {
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

  drawThoughts(turn, step) {
    const row = turn?.rows.find((one) => one.step === step) ?? null;
    const arrows = turn && !isSetup(turn.turn) ? arrowsOf(turn, step) : [];
    this.drawArrows(arrows);
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
      arrowsInWords(arrows, step), rowsInWords(turn), row ? policyTable(row, stepsOf(turn.turn)[step]) : ''));
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

const known = (value, format, ...more) => (value === null ? null : format(value, ...more));

// Captures may stand in one text and not in the other.
const isSame = (action, played) => Boolean(played) && action.split(' ')[0] === played.split(' ')[0];

/**
 * The arrows of a turn: at its beginning all its steps, and within it the next one. Beside them the largest shares of other steps. Those of
 * a later step assume that the steps before it were played.
 */
function arrowsOf(turn, from) {
  const steps = stepsOf(turn.turn);
  const isShown = (step) => (from ? step === from : true);
  const shares = new Map(turn.rows.map((row) => [row.step, row.policy]));
  const played = steps.map((step, index) => ({
    step, number: index + 1, kind: 'played', share: shares.get(index)?.find(({ action }) => isSame(action, step))?.share ?? null,
  })).filter(({ number: at }) => isShown(at - 1));
  // A step that the turn makes at another place is no alternative to the turn, nor is the end of the turn where it has ended.
  const isPlayed = (action, at) => (action === 'end' ? at >= steps.length : played.some(({ step }) => isSame(action, step)));
  const others = turn.rows.filter((row) => isShown(row.step)).flatMap((row) => row.policy
    .filter(({ action, share }) => share >= LEAST_SHARE && !isPlayed(action, row.step))
    .map(({ action, share }) => ({ step: action, number: row.step + 1, kind: 'other', share })));
  others.sort((a, b) => b.share - a.share);
  // The largest share of a step counts.
  const isFirst = ({ step }, index) => others.findIndex((one) => isSame(one.step, step)) === index;
  return [...played, ...others.filter(isFirst).slice(0, MOST_OTHERS)];
}

function legend() {
  const entry = (kind, words) => h('span', {}, arrowIcon(kind), ` ${words}`);
  return h('p', { class: 'note legend' }, entry('played', 'played turn'), entry('other', 'largest other shares of the target'),
    h('span', {}, 'wide: large share; number: step of the turn'));
}

function arrowsInWords(arrows, step) {
  if (!arrows.length) return '';
  const items = arrows.map(({ step: action, number: at, kind, share }) => h('li', {}, arrowIcon(kind, at, share ?? 0),
    h('span', {}, `${kind === 'played' ? 'played' : 'other'}, step ${at}: `, h('b', {}, action === 'end' ? 'end of the turn' : action)),
    h('i', {}, known(share, percent, 1) ?? '–')));
  const words = step ? 'The next step, and the largest shares of other steps.'
    : 'The whole turn, and the largest shares of steps that are not in it. Shares at a later step follow the steps played before it.';
  return h('div', {}, h('h3', {}, 'Arrows on the board'), h('ol', { class: 'arrow-list' }, items), h('p', { class: 'note' }, words));
}

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
