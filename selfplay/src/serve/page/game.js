// One game: the board, the value curve, and what the search thought.

import { ApiError, get } from './api.js';
import { Board } from './board.js';
import { ValueCurve } from './curve.js';
import { button, capital, copy, facts, h, number, percent, section, store, table } from './dom.js';
import { gameLink } from './games.js';
import { nextLabel, resultInWords, stepsOf } from './notation.js';
import { Replay } from './replay.js';

const ORIGINS = {
  given: 'given, not chosen by a network',
  policy: 'drawn from the policy, without a search',
  search: 'chosen by a search',
};

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
    const actions = h('div', { class: 'actions' },
      button('Analyze this position', () => this.analyze()),
      button('Copy as record', (event) => copy(this.data?.record ?? '', event.target)),
      button('Copy link', (event) => copy(location.href, event.target)),
      button('Flip', () => this.board.flip(!this.board.isFlipped)));
    this.element = h('div', {}, h('p', { class: 'back' }, h('a', { href: '#/games' }, '◀ All games')), this.head, this.message,
      h('div', { class: 'with-board' },
        h('div', { class: 'board-side' }, this.board.element, this.replay.element, this.curve.element, actions),
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
    this.labels = [];
    for (let label = first; this.labels.length <= game.turns.length; label = nextLabel(label)) this.labels.push(label);
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
    const current = this.moves.querySelector('[aria-current]');
    current?.removeAttribute('aria-current');
    const control = this.moves.querySelectorAll('button')[turn];
    control?.setAttribute('aria-current', 'true');
    if (control) scrollWithin(this.moves, control);
  }

  drawThoughts(turn, step) {
    const row = turn?.rows.find((one) => one.step === step) ?? null;
    const played = turn ? stepsOf(turn.turn)[step] : null;
    this.board.turnArrows((row?.policy ?? []).slice(0, 6).map(({ action, share }) => ({
      steps: [action], share, kind: isSame(action, played) ? 'played' : 'other',
    })));
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
        ['Gold wins, by the search', turn.gold_value === null ? null : percent(turn.gold_value, 1)],
        ['Gold wins, by the network', turn.network_gold_value === null ? null : percent(turn.network_gold_value, 1)],
        ['Visits', turn.visits === null ? null : number(turn.visits)],
        ['Evaluations', turn.evaluations === null ? null : number(turn.evaluations)],
        ['Surprise', turn.surprise === null ? null : number(turn.surprise, 2)],
      ]),
      rowsInWords(turn), row ? policyTable(row, played) : ''));
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
      ['Seed', seed === null ? null : String(seed)],
      ['Start', game.start ? 'a given position' : 'the empty board'],
    ])));
  }

  analyze() {
    if (!this.data) return;
    store('analysis', { game: this.data.game, boards: this.data.boards, labels: this.labels.slice(0, -1), index: this.replay.turn });
    location.hash = '#/analysis';
  }
}

function surpriseLimit(turns) {
  const known = turns.map(({ surprise }) => surprise).filter((surprise) => surprise !== null);
  const mean = known.reduce((sum, one) => sum + one, 0) / (known.length || 1);
  return mean > 0 ? 2 * mean : Infinity;
}

// Moves the list alone: `scrollIntoView` would move the page too.
function scrollWithin(list, item) {
  const [top, bottom] = [item.offsetTop, item.offsetTop + item.offsetHeight];
  if (top < list.scrollTop) list.scrollTop = top - 8;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight + 8;
}

// Captures may stand in one text and not in the other.
const isSame = (action, played) => Boolean(played) && action.split(' ')[0] === played.split(' ')[0];

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
    h('p', { class: 'note' }, 'The played step is in bold. The arrows on the board show the six largest shares.'));
}
