// A game against a player: setup, turns, clock, hints and the record at the end.

import { ApiError, chosen, get, post, think } from './api.js';
import { Board } from './board.js';
import { Clock } from './clock.js';
import { announce, button, capital, copy, field, h, number, percent, section, select, setOptions, store, stored } from './dom.js';
import {
  EMPTY, applySteps, boardsOf, indexOf, isEndByRules, labelSide, labelsFrom, otherSide, resultInWords, stepsOf, taggedRecord, turnInWords,
} from './notation.js';
import { searchArrows, limitsOf } from './search.js';
import { TurnMaker, stateInWords } from './turnmaker.js';

const SETUPS = {
  cats: ['RRRDDRRR', 'RHCEMCHR', 'Cats behind the traps'],
  dogs: ['RRRCCRRR', 'RHDEMDHR', 'Dogs behind the traps'],
  wings: ['RRCDDCRR', 'RHRMERHR', 'Rabbits behind the traps'],
};
const LEVELS = [['10', '10 evaluations'], ['100', '100 evaluations'], ['400', '400 evaluations'], ['1000', '1,000 evaluations'],
  ['5000', '5,000 evaluations'], ['20000', '20,000 evaluations'], ['s1', '1 second'], ['s5', '5 seconds'],
  ['s15', '15 seconds'], ['s60', '60 seconds']];
const SETUP_EVALUATIONS = 64;
const CLOCKS = [['', 'no clock'], ['5+5', '5 min + 5 s a turn'], ['10+10', '10 min + 10 s a turn'], ['20+30', '20 min + 30 s a turn']];

export function openPlay(about) {
  const view = new PlayView(about);
  view.begin();
  return {
    element: view.element,
    leave: () => view.leave(),
    retry: () => view.again?.(),
    key: (event) => view.key(event),
    route: () => true,
  };
}

class PlayView {
  constructor(about) {
    this.maker = new TurnMaker({
      onChange: (state) => this.stateChanged(state),
      onError: (words) => this.say(words, 'error'),
      onNote: (words) => this.note(words),
    });
    this.board = new Board('Board', this.input(this.maker.input));
    this.maker.board = this.board;
    this.clock = new Clock((side) => this.finish(otherSide(side), 'time'), () => this.keep());
    this.status = h('p', { class: 'status' });
    this.message = h('div', {});
    this.side = h('div', { class: 'word-side' });
    this.actions = h('div', { class: 'actions' });
    this.stop = new AbortController();
    this.element = h('div', {}, h('h1', {}, 'Play'), h('div', { class: 'with-board' },
      h('div', { class: 'board-side' }, this.clock.element, this.board.element, this.status, this.message, this.actions), this.side));
    this.players = about.players;
    // What the clock showed before each turn, and what a screen reader is yet to be told.
    this.times = [];
    this.told = '';
    this.makeControls();
  }

  makeControls() {
    this.sideChoice = select([['gold', 'Gold (begins)'], ['silver', 'Silver'], ['random', 'drawn by lot']], 'gold', () => this.showSetup());
    this.player = select(this.players, this.players[0], () => this.changeOpponent());
    this.level = select(LEVELS, '400');
    this.time = select(CLOCKS, '');
    this.endButton = button('End turn', () => this.endTurn(), { class: 'primary', 'aria-keyshortcuts': 'e' });
    this.undoButton = button('Undo step', () => this.maker.undo(), { 'aria-keyshortcuts': 'u' });
    this.resetButton = button('Undo all steps', () => this.maker.undoAll());
    this.hintButton = button('Hint', () => this.hint());
    this.backButton = button('Take back', () => this.takeBack());
    this.resignButton = button('Resign', () => this.finish(otherSide(this.own), 'resigned'));
    this.moves = h('ol', { class: 'moves', 'aria-label': 'Turns', tabindex: 0 });
  }

  leave() {
    this.keep();
    this.stop.abort();
    this.clock.stop();
    this.maker.serial += 1;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select')) return;
    if (event.key === 'e' && this.endButton.isConnected) this.endTurn();
    if (event.key === 'u' && !this.undoButton.disabled && this.undoButton.isConnected) this.maker.undo();
  }

  say(words, kind = 'warning') {
    this.message.replaceChildren(words ? h('p', { class: `message ${kind}`, role: 'alert' }, words) : '');
  }

  note(words) {
    this.status.textContent = words;
    announce(words);
  }

  async attempt(action, retry) {
    // What to do when the connection is back.
    this.again = null;
    const { stop } = this;
    try {
      this.say('');
      await action();
    } catch (error) {
      if (error.name === 'AbortError' || stop.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      this.again = retry;
      // The opponent's time must not run out without its search.
      if (retry) this.clock.stop();
      this.message.replaceChildren(h('div', { class: 'message error', role: 'alert' }, h('p', {}, error.message),
        retry ? button('Try again', retry) : null));
    }
  }

  begin() {
    const kept = stored('play');
    if (!kept?.game) {
      this.showSetup();
      return;
    }
    Object.assign(this, kept);
    this.clock.restore(kept.clockState);
    this.board.flip(this.own === 'silver');
    this.showGame();
    this.advance();
  }

  keep() {
    const { game, own, opponent, limit, over, times } = this;
    store('play', game ? { game, own, opponent, limit, over, times, clockState: this.clock.state } : null);
  }

  // The setup.

  input(making) {
    return {
      pick: (square) => (this.settingUp ? this.pickInSetup(square) : making.pick(square)),
      picked: (square) => this.settingUp || making.picked(square),
      drop: (from, target) => (this.settingUp ? this.swap(from, target.square) : making.drop(from, target)),
    };
  }

  showSetup() {
    const choice = this.sideChoice.value;
    this.game = null;
    this.settingUp = true;
    this.own = choice === 'random' ? ['gold', 'silver'][Math.floor(2 * Math.random())] : choice;
    this.maker.isActive = false;
    // While a game is shown, the run may have new networks.
    setOptions(this.player, this.players, this.player.value);
    this.clock.set(null);
    this.board.flip(this.own === 'silver');
    this.board.arrows([]);
    this.board.showLast([]);
    this.goldSetup = null;
    this.arrange('cats');
    if (this.own === 'silver') this.showGold();
    const known = Object.entries(SETUPS).map(([key, [, , name]]) => button(name, () => this.arrange(key)));
    this.actions.replaceChildren(...known, button('Known', () => this.sample()), button('By the network', () => this.thinkSetup()),
      button('Mirror', () => this.mirror()));
    this.status.textContent = `Arrange ${capital(this.own)}’s pieces: drag a piece onto another, or select both, to swap them.`;
    this.side.replaceChildren(section('New game',
      h('div', { class: 'form' }, field('Your side', this.sideChoice), field('Opponent', this.player),
        field('Level, for each turn', this.level), field('Clock', this.time)),
      h('div', { class: 'actions' }, button('Begin', () => this.start(), { class: 'primary' }))),
    section('How to move',
      h('ul', {}, ['Drag a piece, or click it and then a marked square.',
        'To push: drag the other side’s piece, then complete the push with a marked piece. Or drag your piece onto the piece to push.',
        'To pull: make your step, then drag the other side’s marked piece onto the square that you left.',
        'Keyboard: Tab to the board, arrow keys, Enter, Escape. E ends the turn, U takes back a step.'].map((text) => h('li', {}, text)))));
    this.keep();
  }

  arrange(key) {
    const [back, front] = SETUPS[key];
    const rows = [back, front].map((row) => (this.own === 'gold' ? row : row.toLowerCase()));
    const empty = ' '.repeat(48);
    this.board.clear();
    this.showOwn(this.own === 'gold' ? empty + rows[1] + rows[0] : rows[0] + rows[1] + empty);
  }

  /** Gold sets up first, and Silver sees it. */
  showGold() {
    return this.attempt(async () => {
      const player = this.player.value;
      const turn = await this.setupOf(player, []);
      if (!this.settingUp || this.own !== 'silver' || this.player.value !== player) return;
      this.goldSetup = turn;
      this.showOwn(this.board.board);
    });
  }

  /** Shows the own pieces of a board, and Gold's setup where it is there. */
  showOwn(board) {
    const gold = this.goldSetup ? applySteps(EMPTY, stepsOf(this.goldSetup)).slice(48) : ' '.repeat(16);
    this.board.set(this.own === 'gold' ? board : board.slice(0, 48) + gold);
  }

  sample() {
    return this.attempt(async () => {
      const { turn } = await get('/setup', { side: this.own }, this.stop.signal);
      if (this.settingUp) this.showOwn(applySteps(EMPTY, stepsOf(turn)));
    });
  }

  /** The setup that the opponent's network would play; `material` knows nothing of setups. */
  thinkSetup() {
    const player = this.player.value === 'material' ? 'tusker' : this.player.value;
    return this.attempt(async () => {
      if (this.own === 'silver' && !this.goldSetup) await this.showGold();
      const turn = await this.setupOf(player, this.own === 'gold' ? [] : [this.goldSetup]);
      if (this.settingUp) this.showOwn(applySteps(EMPTY, stepsOf(turn)));
    });
  }

  /** A player's setup after those of `turns`. */
  async setupOf(player, turns) {
    if (player === 'material') {
      return (await get('/setup', { side: turns.length ? 'silver' : 'gold' }, this.stop.signal)).turn;
    }
    const request = { game: { start: null, turns }, player, evaluations: SETUP_EVALUATIONS, lines: 1 };
    const state = await think(request, () => {}, this.stop.signal);
    return chosen(state).turn;
  }

  mirror() {
    const rows = this.board.board.match(/.{8}/g).map((row) => [...row].reverse().join(''));
    this.showOwn(rows.join(''));
  }

  pickInSetup(square) {
    if (!this.setupSquares().includes(square)) return null;
    return this.setupSquares().filter((one) => one !== square).map((one) => ({ square: one, kind: 'swap', words: 'swap' }));
  }

  setupSquares() {
    return (this.own === 'gold' ? ['1', '2'] : ['7', '8']).flatMap((rank) => [...'abcdefgh'].map((file) => file + rank));
  }

  swap(a, b) {
    const squares = [...this.board.board];
    [squares[indexOf(a)], squares[indexOf(b)]] = [squares[indexOf(b)], squares[indexOf(a)]];
    this.board.set(squares.join(''));
    announce(`Swapped ${a} and ${b}.`);
  }

  /** Silver's player sees a setup of the opponent that is chosen. */
  changeOpponent() {
    if (!this.settingUp || this.own !== 'silver') return;
    this.goldSetup = null;
    this.showGold();
  }

  setupTurn() {
    return this.setupSquares().map((square) => this.board.board[indexOf(square)] + square).join(' ');
  }

  // The game.

  start() {
    const setup = this.setupTurn();
    return this.attempt(async () => {
      if (this.own === 'silver' && !this.goldSetup) await this.showGold();
      const turns = this.own === 'gold' ? [setup, await this.setupOf(this.player.value, [setup])] : [this.goldSetup, setup];
      this.settingUp = false;
      this.game = { start: null, turns };
      this.opponent = this.player.value;
      this.limit = this.level.value;
      this.over = null;
      this.told = '';
      this.times = [];
      this.clock.set(this.time.value);
      this.showGame();
      await this.advance();
    });
  }

  showGame() {
    this.settingUp = false;
    this.actions.replaceChildren(this.endButton, this.undoButton, this.resetButton, this.hintButton, this.backButton, this.resignButton);
    this.thoughts = h('p', { class: 'note' });
    this.finished = h('div', {});
    this.analyzeButton = button('Analyze', () => this.analyze());
    const words = `You are ${capital(this.own)}. ${this.opponent} plays ${capital(otherSide(this.own))} with ${this.levelName}.`;
    this.side.replaceChildren(this.finished, section('Game', h('p', {}, words),
      this.thoughts, this.moves, h('div', { class: 'actions' }, button('Copy record', (event) => copy(this.fullRecord(), event.target)),
        this.analyzeButton, button('New game', () => this.newGame()))));
  }

  get levelName() {
    return LEVELS.find(([key]) => key === this.limit)?.[1] ?? this.limit;
  }

  /** The record with players and result. */
  fullRecord() {
    const players = { [this.own]: 'a human', [otherSide(this.own)]: `${this.opponent}, ${this.levelName}` };
    return taggedRecord(this.record ?? '', players, this.over, labelsFrom('1g', this.game.turns.length + 1).pop());
  }

  newGame() {
    this.cancel();
    this.showSetup();
  }

  cancel() {
    this.stop.abort();
    this.stop = new AbortController();
    this.clock.stop();
  }

  /** Resumes from the game as it stands: the result, the opponent's turn, or one's own. */
  advance() {
    return this.attempt(async () => {
      const { game } = this;
      this.keep();
      this.drawMoves();
      this.board.showLast(this.last ?? []);
      const state = await this.maker.begin(game, false);
      if (game !== this.game) return;
      if (!state) {
        this.again = () => this.advance();
        return;
      }
      this.board.arrows([]);
      this.record = state.record;
      if (this.clock.state) this.times[game.turns.length] ??= { ...this.clock.state.seconds };
      if (state.result) this.finish(state.result.winner, state.result.reason);
      else if (this.over) this.showOver();
      else if (state.side === this.own) this.ownTurn(state);
      else await this.reply(state.side);
    }, () => this.advance());
  }

  ownTurn(state) {
    this.maker.isActive = true;
    this.maker.show();
    this.clock.start(state.side);
    // The button that had the focus may be disabled or gone.
    if (document.activeElement === document.body) this.board.focus();
    announce(`${this.told}Your turn, ${state.label}.`);
    this.told = '';
  }

  async reply(side) {
    this.setButtons(null);
    this.clock.start(side);
    this.status.textContent = `${this.opponent} thinks.`;
    const { game } = this;
    const request = { game, player: this.opponent, ...this.opponentLimits(side), lines: 5 };
    const state = await think(request, ({ report }) => {
      if (report) this.status.textContent = `${this.opponent} thinks: ${number(report.evaluations)} evaluations.`;
    }, this.stop.signal);
    const best = chosen(state);
    if (!best) throw new ApiError('The search ended without a turn.', 500);
    this.thoughts.textContent = `${this.opponent} thinks that Gold wins with ${percent(state.report.gold_value)}.`;
    if (this.game === game) await this.played(best.turn);
  }

  // With a clock, the opponent keeps some of its time.
  opponentLimits(side) {
    const limits = limitsOf(this.limit);
    const left = this.clock.left(side);
    if (left === null) return limits;
    return { ...limits, seconds: Math.max(0.1, Math.min(limits.seconds ?? Infinity, left / 10 + this.clock.increment / 2)) };
  }

  async played(turn) {
    const label = this.maker.state.label;
    this.clock.ended(labelSide(label));
    const steps = stepsOf(turn);
    this.game = { start: null, turns: [...this.game.turns, turn] };
    const { game } = this;
    await this.board.play(steps, true);
    if (game !== this.game) return;
    this.told = `${label}: ${turnInWords(turn)}. `;
    this.last = steps;
    await this.advance();
  }

  async endTurn() {
    // The last step may still be in flight.
    await this.maker.added;
    const { state } = this.maker;
    if (!this.maker.isActive || this.maker.isAdding || !state?.can_end) return;
    this.maker.stop();
    this.last = [];
    this.clock.ended(this.own);
    this.cancelHint();
    this.game = { start: null, turns: [...this.game.turns, state.turn] };
    this.advance();
  }

  stateChanged(state) {
    if (!this.game) return;
    if (this.over) return;
    this.say('');
    if (state.steps.length) {
      this.cancelHint();
      this.board.arrows([]);
    }
    this.status.textContent = stateInWords(state);
    this.setButtons(this.maker.isActive ? state : null);
  }

  setButtons(state) {
    const has = Boolean(state && (state.steps.length || this.maker.isAdding));
    this.endButton.disabled = !state?.can_end;
    this.undoButton.disabled = !has;
    this.resetButton.disabled = !has;
    this.hintButton.disabled = !state || has;
    this.backButton.disabled = this.lastOwn() < 2;
    this.resignButton.disabled = Boolean(this.over);
  }

  // Takes back the last turn of one's own, and the reply to it. The clock shows again what it did before that turn.
  takeBack() {
    const count = this.lastOwn();
    if (count < 2) return;
    this.cancel();
    this.over = null;
    this.finished.replaceChildren();
    this.last = [];
    this.told = '';
    this.game = { start: null, turns: this.game.turns.slice(0, count) };
    const seconds = this.times[count];
    if (seconds) this.clock.restore({ ...this.clock.state, seconds: { ...seconds } });
    this.times.length = Math.min(this.times.length, count + 1);
    this.advance();
  }

  lastOwn() {
    const last = (this.game?.turns.length ?? 0) - 1;
    return last % 2 === (this.own === 'gold' ? 0 : 1) ? last : last - 1;
  }

  cancelHint() {
    this.hinting?.abort();
    this.hinting = null;
  }

  hint() {
    this.cancelHint();
    const hinting = new AbortController();
    this.hinting = hinting;
    this.stop.signal.addEventListener('abort', () => hinting.abort(), { once: true });
    this.hintButton.disabled = true;
    return this.attempt(async () => {
      const request = { game: this.game, player: this.opponent, evaluations: 1000, seconds: null, lines: 1 };
      const state = await think(request, () => {}, hinting.signal);
      const best = chosen(state);
      if (hinting.signal.aborted || !best) return;
      this.board.turnArrows(searchArrows([best]));
      this.say(`Hint: ${best.turn} (${percent(best.gold_value)} for Gold).`, 'info');
    }).finally(() => { if (this.maker.isActive) this.setButtons(this.maker.state); });
  }

  // The end.

  finish(winner, reason) {
    this.cancel();
    this.over = { winner, reason };
    this.showOver();
    this.keep();
  }

  showOver() {
    const { winner, reason } = this.over;
    this.maker.stop();
    this.setButtons(null);
    // Steps of a turn that was not ended do not count.
    this.board.set(boardsOf(this.game.turns).pop());
    this.board.arrows([]);
    this.say('');
    this.analyzeButton.textContent = isEndByRules(reason) ? 'Analyze the game' : 'Analyze';
    const words = resultInWords(winner, reason);
    this.status.textContent = words;
    announce(`${this.told}${words}`);
    const record = h('pre', { tabindex: 0 }, this.fullRecord());
    this.finished.replaceChildren(section(winner === this.own ? 'You won' : 'You lost', h('p', {}, words),
      h('details', {}, h('summary', {}, 'Record'), record)));
  }

  drawMoves() {
    const { turns } = this.game;
    const labels = labelsFrom('1g', turns.length);
    this.moves.replaceChildren(...turns.map((turn, index) => h('li', {}, h('p', { class: 'move' }, h('b', {}, labels[index]),
      h('span', {}, turn)))));
    this.moves.scrollTop = this.moves.scrollHeight;
  }

  analyze() {
    const { turns } = this.game;
    const index = turns.length - (this.over && isEndByRules(this.over.reason) ? 1 : 0);
    store('analysis', { game: this.game, boards: boardsOf(turns), labels: labelsFrom('1g', turns.length), index });
    location.hash = '#/analysis';
  }
}
