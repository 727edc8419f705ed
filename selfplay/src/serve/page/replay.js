// Stepping through a game: buttons, keys and animation.

import { announce, button, h } from './dom.js';
import { applySteps, isSetup, nextLabel, stepsOf } from './notation.js';

// What has keys of its own.
const TAKES_KEYS = 'input, textarea, select, .surface.active, .chart.keys, .scroll, pre';

export class Replay {
  /** `onMove(turn, step)` is called whenever another position is shown: before step `step` of turn `turn`, both from 0. */
  constructor(board, onMove) {
    this.board = board;
    this.onMove = onMove;
    this.boards = [];
    this.turns = [];
    this.turn = 0;
    this.step = 0;
    const control = (text, label, act) => button(text, act, { 'aria-label': label, title: label });
    this.element = h('div', { class: 'replay', role: 'group', 'aria-label': 'Moving through the game' },
      control('|◀', 'To the beginning', () => this.go(0)),
      control('◀', 'A turn back (left arrow)', () => this.back()),
      control('◂ step', 'A step back (up arrow)', () => this.stepBack()),
      control('step ▸', 'A step on (down arrow)', () => this.stepOn()),
      control('▶', 'A turn on (right arrow)', () => this.on()),
      control('▶|', 'To the end', () => this.go(this.turns.length)));
  }

  load({ boards, turns, labels }) {
    this.boards = boards;
    this.turns = turns.map((turn) => (isSetup(turn) ? [turn] : stepsOf(turn)));
    this.setups = turns.map(isSetup);
    this.labels = [...labels.slice(0, turns.length)];
    this.labels.push(turns.length ? nextLabel(this.labels[turns.length - 1]) : labels[0] ?? '1g');
  }

  get label() {
    return this.labels[this.turn];
  }

  /** Shows the position before a step of a turn. */
  go(turn, step = 0) {
    this.turn = Math.min(Math.max(0, turn), this.turns.length);
    this.step = Math.min(Math.max(0, step), Math.max(0, (this.turns[this.turn]?.length ?? 1) - 1));
    this.playing = null;
    this.board.set(this.boardAt());
    this.onMove(this.turn, this.step);
  }

  boardAt() {
    return applySteps(this.boards[this.turn], this.turns[this.turn]?.slice(0, this.step) ?? []);
  }

  async on() {
    if (this.turn >= this.turns.length) return;
    await this.playTo(this.turn + 1, 0, this.turns[this.turn].slice(this.step));
  }

  async stepOn() {
    if (this.turn >= this.turns.length) return;
    const steps = this.turns[this.turn];
    const isLast = this.step + 1 >= steps.length;
    await this.playTo(isLast ? this.turn + 1 : this.turn, isLast ? 0 : this.step + 1, steps.slice(this.step, this.step + 1));
  }

  async playTo(turn, step, steps) {
    const from = this.boardAt();
    const wasSetup = this.setups[this.turn];
    this.board.set(from);
    this.turn = turn;
    this.step = step;
    this.playing = wasSetup ? null : this.board.play(steps);
    this.onMove(turn, step);
    if (wasSetup) announce(`Setup, now ${this.label}`);
    else if (!(await this.playing)) return;
    if (this.turn === turn && this.step === step) this.board.set(this.boardAt());
  }

  back() {
    this.go(this.step ? this.turn : this.turn - 1);
    announce(`Before turn ${this.label}`);
  }

  stepBack() {
    if (this.step) this.go(this.turn, this.step - 1);
    else if (this.turn) this.go(this.turn - 1, this.turns[this.turn - 1].length - 1);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(TAKES_KEYS)) return;
    const act = {
      ArrowLeft: () => (event.shiftKey ? this.stepBack() : this.back()),
      ArrowRight: () => (event.shiftKey ? this.stepOn() : this.on()),
      ArrowUp: () => this.stepBack(),
      ArrowDown: () => this.stepOn(),
      Home: () => this.go(0),
      End: () => this.go(this.turns.length),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
