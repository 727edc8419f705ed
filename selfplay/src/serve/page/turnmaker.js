// Making a turn on the board, step by step. Each question about the rules goes to the server.

import { ApiError, post } from './api.js';
import { announce, capital } from './dom.js';
import { REASONS, areNeighbours, indexOf, parseStep, sideOf, stepInWords } from './notation.js';

export class TurnMaker {
  /** `onChange(state)` is called after each change, `onError(words)` with what went wrong, `onNote(words)` with what to do next. */
  constructor({ onChange, onError, onNote }) {
    this.onNote = onNote;
    this.onChange = onChange;
    this.onError = onError;
    this.game = null;
    this.state = null;
    this.serial = 0;
    this.isActive = false;
    // While a step is shown on the board and the server has not yet answered.
    this.isAdding = false;
    this.added = null;
    this.board = null;
  }

  /** What a `Board` needs as its `input`. */
  get input() {
    return {
      pick: (square) => this.pick(square),
      picked: (square) => this.findPushes(square),
      drop: (from, target) => this.drop(target),
    };
  }

  /** Begins a turn of `game`. Answers with its state, or null where another call came later. */
  async begin(game, isActive = true) {
    this.game = game;
    this.isActive = isActive;
    return this.ask([]);
  }

  stop() {
    this.serial += 1;
    this.isActive = false;
    this.isAdding = false;
    this.board.clear();
    this.board.mark([]);
  }

  async ask(steps) {
    const serial = (this.serial += 1);
    let state;
    try {
      state = await post('/state', { game: this.game, steps: steps.join(' ') });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (serial !== this.serial) return null;
      this.isAdding = false;
      if (this.state) this.show();
      this.onError(error.message);
      return null;
    }
    if (serial !== this.serial) return null;
    this.isAdding = false;
    this.state = state;
    this.show();
    return state;
  }

  show() {
    this.board.clear();
    this.board.set(this.state.board);
    this.board.mark(this.isActive ? this.hints() : []);
    this.onChange(this.state);
  }

  // While a push is open: what can complete it. After a step of one's own: what can be pulled.
  hints() {
    const { legal, pending } = this.state;
    if (pending === 'push') return legal.map(({ from }) => ({ square: from, kind: 'completes' }));
    return pulls(this.state).map(({ from }) => ({ square: from, kind: 'pulls' }));
  }

  pick(square) {
    if (!this.isActive || this.isAdding || !this.state || this.state.result) return null;
    const steps = this.state.legal.filter(({ from }) => from === square);
    const piece = this.state.board[indexOf(square)];
    if (!steps.length && (piece === ' ' || sideOf(piece) !== this.state.side)) return null;
    return steps.map((step) => ({ square: step.to, kind: 'step', steps: [step.step], words: words(step) }));
  }

  // Onto which neighbours of the other side the piece can push: the server says whether it can complete a push that begins there.
  async findPushes(square) {
    const { state, serial } = this;
    const piece = state.board[indexOf(square)];
    if (sideOf(piece) !== state.side || state.pending === 'push') return;
    const begins = state.legal.filter((step) => sideOf(step.piece) !== state.side && areNeighbours(step.from, square));
    const ways = (await Promise.all(begins.map((begin) => this.completed(begin, square)))).filter(Boolean);
    if (serial !== this.serial) return;
    const pushed = [...new Set(ways.map(({ over }) => over))];
    this.board.addTargets(square, pushed.map((over) => ({
      square: over, kind: 'push', ways: ways.filter((way) => way.over === over), words: 'can be pushed',
    })));
  }

  async completed(begin, square) {
    const steps = [...this.state.steps, begin.step];
    const after = await post('/state', { game: this.game, steps: steps.join(' ') }).catch(() => null);
    const end = after?.pending === 'push' && after.legal.find(({ from, to }) => from === square && to === begin.from);
    return end ? { over: begin.from, to: begin.to, steps: [begin.step, end.step] } : null;
  }

  drop(target) {
    const steps = target.steps ?? (target.ways.length === 1 ? target.ways[0].steps : null);
    if (steps) this.added = this.add(steps);
    else {
      const choices = target.ways.map(({ to, steps }) => ({ square: to, kind: 'choice', steps, words: `push it to ${to}` }));
      this.board.select(target.square, choices);
      this.onNote('Choose the square to which the piece is pushed.');
    }
  }

  async add(steps) {
    const { serial, state } = this;
    this.isAdding = true;
    // The turn must not end without the step.
    this.onChange({ ...state, can_end: false });
    await this.board.play(steps, true);
    if (serial === this.serial) await this.askAndTell([...state.steps, ...steps], `${steps.map(stepInWords).join('; ')}. `);
  }

  undo() {
    const { steps } = this.state;
    return this.askAndTell(this.isAdding ? steps : steps.slice(0, -1));
  }

  undoAll() {
    return this.askAndTell([]);
  }

  async askAndTell(steps, words = '') {
    const state = await this.ask(steps);
    if (state) announce(words + stateInWords(state));
  }
}

// The steps of the other side's pieces onto the square that was just left.
function pulls({ legal, pending, steps, side }) {
  const left = pending === 'pull' ? parseStep(steps[steps.length - 1])?.from : null;
  return legal.filter(({ to, piece }) => to === left && sideOf(piece) !== side);
}

export function stateInWords(state) {
  const { result, phase, label, side, steps, steps_left: left, pending } = state;
  if (result) return `${capital(result.winner)} has won: ${REASONS[result.reason] ?? result.reason}.`;
  if (phase === 'setup') return `${label}: ${capital(side)} sets up.`;
  if (pending === 'push') return `${label}: complete the push with a marked piece.`;
  const made = steps.length ? ` Made: ${steps.join(' ')}.` : '';
  const pull = pulls(state).length ? ' A marked piece can be pulled.' : '';
  return `${label}: ${capital(side)} to move, ${left} ${left === 1 ? 'step' : 'steps'} left.${made}${pull}`;
}

function words({ to, captures }) {
  return captures ? `step to ${to}, captures on ${captures.square}` : `step to ${to}`;
}
