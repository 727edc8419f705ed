// Analysis of a position or of a whole game.

import { ApiError, get, listen, post, remove } from './api.js';
import { Board } from './board.js';
import { ValueCurve } from './curve.js';
import { announce, button, capital, copy, field, h, markTurn, number, percent, section, select, store, stored } from './dom.js';
import { EMPTY, applySteps, stepsOf } from './notation.js';
import { Replay } from './replay.js';
import { SearchPanel, searchArrows } from './search.js';
import { TurnMaker, stateInWords } from './turnmaker.js';

const MARKS = { inaccuracy: ['?!', '--orange'], mistake: ['?', '--purple'], blunder: ['??', '--red'] };

export function openAnalysis(about) {
  const view = new AnalysisView(about);
  view.begin();
  return {
    element: view.element,
    leave: () => view.leave(),
    key: (event) => view.replay.key(event),
    route: () => true,
  };
}

class AnalysisView {
  constructor(about) {
    this.maker = new TurnMaker({
      onChange: (state) => this.stateChanged(state),
      onError: (words) => this.say(words, 'error'),
      onNote: (words) => this.note(words),
    });
    this.board = new Board('Board', this.maker.input);
    this.maker.board = this.board;
    this.replay = new Replay(this.board, (turn, step) => this.moved(turn, step));
    this.search = new SearchPanel(about.players, {
      game: () => this.gameTo(this.searched = this.replay.turn),
      onTurns: (turns) => {
        if (this.showsSearched && !this.replay.step) this.board.turnArrows(searchArrows(turns));
      },
      onPlay: (turn) => {
        if (this.showsSearched) this.playTurn(turn);
        else this.say(`This turn was found for ${this.labels[this.searched] ?? 'the end of the game'}: go there to play it.`);
      },
    });
    this.curve = new ValueCurve([{ label: 'Gold wins', color: '--blue', points: true }], (turn) => this.replay.go(turn));
    this.status = h('p', { class: 'status' });
    this.message = h('div', {});
    this.build(about);
  }

  build(about) {
    const label = 'Record or position';
    this.text = h('textarea', { rows: 4, spellcheck: 'false', placeholder: '1g Ra1 Rb1 …  or  g [rrr…]', 'aria-label': label });
    this.end = button('End turn', () => this.endTurn(), { disabled: true, class: 'primary' });
    this.undo = button('Undo step', () => this.maker.undo(), { disabled: true });
    this.review = new Review(about.players, this);
    const paste = section(label, this.text, h('div', { class: 'actions' },
      button('Load', () => this.load(this.text.value), { class: 'primary' }),
      button('Sampled setups', () => this.sampled()),
      button('Empty board', () => this.open({ game: { start: null, turns: [] }, boards: [EMPTY], labels: [], index: 0 }))));
    const actions = h('div', { class: 'actions' }, this.end, this.undo,
      button('Copy record', (event) => copy(this.state?.record ?? '', event.target)),
      button('Copy position', (event) => copy(this.state?.position ?? '', event.target)),
      button('Flip', () => this.board.flip(!this.board.isFlipped)));
    this.moves = h('ol', { class: 'moves short', 'aria-label': 'Turns' });
    this.element = h('div', {}, h('h1', {}, 'Analysis'), h('div', { class: 'with-board' },
      h('div', { class: 'board-side' }, this.board.element, this.status, this.message, this.replay.element, actions),
      h('div', { class: 'word-side' }, this.search.element, this.review.element, section('Turns', this.moves), paste)));
  }

  leave() {
    this.search.leave();
    this.review.leave();
    this.maker.serial += 1;
    this.curve.destroy();
  }

  say(words, kind = 'warning') {
    this.message.replaceChildren(words ? h('p', { class: `message ${kind}`, role: 'alert' }, words) : '');
  }

  note(words) {
    this.status.textContent = words;
    announce(words);
  }

  /** Makes a request, and shows its error. */
  async attempt(action) {
    try {
      this.say('');
      return await action();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.say(error.message, 'error');
      return null;
    }
  }

  begin() {
    const kept = stored('analysis');
    if (!kept?.game || kept.boards?.length !== kept.game.turns.length + 1) {
      this.sampled();
      return;
    }
    this.open(kept);
    if (kept.review?.review) this.review.comeBack(kept.review);
  }

  load(text) {
    return this.attempt(async () => {
      const loaded = await post('/record', { text });
      this.open({ ...loaded, index: loaded.game.turns.length });
    });
  }

  sampled() {
    return this.attempt(async () => {
      const [gold, silver] = await Promise.all(['gold', 'silver'].map((side) => get('/setup', { side })));
      const turns = [gold.turn, silver.turn];
      const boards = [EMPTY, applySteps(EMPTY, stepsOf(turns[0])), applySteps(EMPTY, turns.flatMap(stepsOf))];
      this.open({ game: { start: null, turns }, boards, labels: ['1g', '1s'], index: 2 });
    });
  }

  open({ game, boards, labels, index }) {
    this.game = game;
    this.boards = boards;
    this.labels = labels;
    this.searched = null;
    this.review.clear();
    this.reload(index);
  }

  reload(index) {
    this.replay.load({ boards: this.boards, turns: this.game.turns, labels: this.labels });
    this.drawMoves();
    this.replay.go(index);
  }

  /** Whether the search is of the turn that is shown. */
  get showsSearched() {
    return this.searched === this.replay.turn;
  }

  gameTo(turn) {
    return { start: this.game.start, turns: this.game.turns.slice(0, turn) };
  }

  /** Keeps the game for a page that is loaded again. */
  keep() {
    const { game, boards, labels } = this;
    store('analysis', { game, boards, labels, index: this.replay.turn, review: this.review.kept });
  }

  // The shown position changed. At the beginning of a turn, steps can be made on the board.
  moved(turn, step) {
    this.curve.show(turn);
    this.board.arrows([]);
    this.keep();
    markTurn(this.moves, turn);
    this.maker.stop();
    this.end.disabled = true;
    this.undo.disabled = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(turn, step), 120);
  }

  // A key held down passes many positions: only the last one is requested.
  async settle(turn, step) {
    if (step) {
      this.status.textContent = `Within turn ${this.replay.label}, before step ${step + 1}.`;
      return;
    }
    await this.replay.playing;
    if (this.replay.turn !== turn || this.replay.step !== step) return;
    const state = await this.maker.begin(this.gameTo(turn));
    if (this.replay.turn !== turn || this.replay.step !== step) return;
    this.search.setOver(Boolean(state?.result));
    if (state?.result) {
      this.searched = null;
      return;
    }
    if (this.searched === turn) this.search.showArrows();
    else this.search.restart();
    this.searched = turn;
  }

  stateChanged(state) {
    this.state = state;
    this.say('');
    this.end.disabled = !state.can_end;
    this.undo.disabled = !state.steps.length;
    this.status.textContent = stateInWords(state);
  }

  async endTurn() {
    if (this.state?.can_end) this.playTurn(this.state.turn);
  }

  playTurn(turn) {
    return this.attempt(async () => {
      const at = this.replay.turn;
      const turns = [...this.game.turns.slice(0, at), turn];
      const after = await post('/state', { game: { start: this.game.start, turns } });
      if (at !== this.replay.turn) return;
      const isSame = this.game.turns[at] === turn;
      const label = this.state?.label ?? this.replay.label;
      if (!isSame) {
        this.review.clear();
        this.game = { start: this.game.start, turns };
        this.boards = [...this.boards.slice(0, at + 1), after.board];
        this.labels = [...this.labels.slice(0, at), label];
      }
      this.reload(at + 1);
    });
  }

  drawMoves() {
    const { turns } = this.game;
    const items = turns.map((turn, index) => {
      const mark = MARKS[this.review.marks[index]];
      return h('li', {}, h('button', { type: 'button', class: 'move', onclick: () => this.replay.go(index) },
        h('b', {}, this.labels[index]), h('span', {}, turn), mark ? h('em', { title: this.review.marks[index] }, mark[0]) : ''));
    });
    const end = h('li', {}, button('after the last turn', () => this.replay.go(turns.length), { class: 'move' }));
    this.moves.replaceChildren(...items, end);
  }
}

// The analysis of a whole game, turn by turn.
class Review {
  constructor(players, view) {
    this.view = view;
    this.marks = [];
    this.turns = [];
    this.player = select(players, players[0]);
    this.evaluations = select([['100', '100'], ['300', '300'], ['1000', '1,000'], ['3000', '3,000']], '300');
    this.startButton = button('Analyze the game', () => this.start());
    this.stopButton = button('Stop', () => (this.state === 'stopped' ? this.resume() : this.stop()));
    this.status = h('p', { class: 'note' });
    this.list = h('ol', { class: 'faults' });
    this.curveHolder = h('div', { hidden: true }, view.curve.element);
    this.element = section('Whole game',
      h('div', { class: 'controls' }, field('Player', this.player), field('Evaluations a turn', this.evaluations), this.startButton,
        this.stopButton),
      this.status, this.curveHolder, this.list);
    this.clear();
  }

  clear() {
    this.leave();
    this.review = null;
    this.setState('idle');
    this.marks = [];
    this.turns = [];
    this.list.replaceChildren();
    this.curveHolder.hidden = true;
    this.status.textContent = 'Each turn is compared with the best that the search finds.';
  }

  leave() {
    this.close?.();
    cancelAnimationFrame(this.later);
    this.later = null;
    if (this.state === 'running' && this.review) remove(`/reviews/${this.review}`).catch(() => {});
  }

  /** `idle`, `running` or `stopped`: one that is stopped can be resumed. */
  setState(state) {
    this.state = state;
    this.startButton.disabled = state === 'running';
    this.stopButton.disabled = state === 'idle';
    this.stopButton.textContent = state === 'stopped' ? 'Resume' : 'Stop';
  }

  start() {
    this.clear();
    const { game } = this.view;
    this.setState('running');
    return this.view.attempt(async () => {
      const request = { game, player: this.player.value, evaluations: Number(this.evaluations.value) };
      const { review } = await post('/reviews', request);
      if (game !== this.view.game) {
        remove(`/reviews/${review}`).catch(() => {});
        return;
      }
      this.asked = { player: request.player, evaluations: request.evaluations };
      this.reopen(review);
    }).finally(() => this.review || this.setState('idle'));
  }

  /** The analysis that a page that is loaded again shows. */
  get kept() {
    return this.review && { review: this.review, ...this.asked };
  }

  comeBack({ review, player, evaluations }) {
    this.asked = { player, evaluations };
    this.player.value = player;
    this.evaluations.value = String(evaluations);
    this.reopen(review);
  }

  /** Follows an analysis that the server has. All turns come, the finished ones too. */
  reopen(review) {
    this.review = review;
    this.view.keep();
    this.setState('running');
    this.close = listen(`/reviews/${review}/events`, {
      turn: (turn) => this.add(turn),
      done: ({ state, error }) => this.finish(state, error),
    }, async (isLost) => {
      if (!isLost) return;
      this.status.textContent = 'The connection to the analysis is lost: trying again.';
      await get(`/reviews/${review}`).catch((error) => {
        if (error.status === 404 && review === this.review) this.forget();
      });
    });
  }

  /** The server has been started again. */
  forget() {
    this.close?.();
    this.review = null;
    this.setState('idle');
    this.status.textContent = 'The server no longer has this analysis: start it again.';
    this.view.keep();
  }

  // The last event says that it has stopped.
  async stop() {
    const { review } = this;
    this.stopButton.disabled = true;
    const stopped = await this.view.attempt(() => remove(`/reviews/${review}`));
    if (!stopped && review === this.review) this.setState(this.state);
  }

  async resume() {
    const { review } = this;
    this.setState('running');
    const resumed = await this.view.attempt(() => post(`/reviews/${review}/resume`));
    if (review !== this.review) return;
    if (resumed) this.reopen(review);
    else this.setState('stopped');
  }

  finish(state, error) {
    this.close?.();
    this.setState(state === 'done' ? 'idle' : 'stopped');
    const word = state === 'done' ? 'Done' : `${capital(state)}${error ? `: ${error}. So far` : ''}`;
    const count = (mark) => this.marks.filter((one) => one === mark).length;
    const words = [['blunder', 'blunders'], ['mistake', 'mistakes'], ['inaccuracy', 'inaccuracies']]
      .map(([one, many]) => `${count(one)} ${count(one) === 1 ? one : many}`).join(', ');
    const turns = this.turns.filter(Boolean).length;
    this.status.textContent = `${word}: ${turns === 1 ? '1 turn' : `${number(turns)} turns`}, ${words}.`;
    announce(this.status.textContent);
    this.view.drawMoves();
  }

  add(turn) {
    this.turns[turn.index] = turn;
    this.marks[turn.index] = turn.mark;
    this.status.textContent = `Analyzed ${turn.index + 1} of ${this.view.game.turns.length} turns.`;
    this.later ??= requestAnimationFrame(() => {
      this.later = null;
      this.draw();
    });
  }

  draw() {
    const { view, turns } = this;
    const { labels } = view.replay;
    const values = labels.map((_, index) => turns[index]?.gold_value_before ?? turns[index - 1]?.gold_value_after ?? null);
    const faults = turns.filter((turn) => turn?.mark);
    const dots = faults.map((turn) => ({ x: turn.index, y: values[turn.index], color: MARKS[turn.mark]?.[1] ?? '--red' }));
    this.curveHolder.hidden = false;
    view.curve.setData(labels, [values], dots);
    this.list.replaceChildren(...faults.map((turn) => this.fault(turn)));
  }

  fault({ index, label, mark, loss, best, turn }) {
    return h('li', {}, h('button', { type: 'button', class: 'move', onclick: () => this.view.replay.go(index) },
      h('b', {}, label), h('span', {}, turn), h('em', {}, MARKS[mark]?.[0] ?? mark)),
    h('p', { class: 'note' }, `${capital(mark)}: it lost ${percent(loss)} of win probability. Better: ${best}`));
  }
}

