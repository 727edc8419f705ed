// A clock for both sides: minutes for the game, and seconds added after each turn.

import { capital, h } from './dom.js';

const SIDES = ['gold', 'silver'];

export class Clock {
  /** `onFlag(side)` is called when a side's time has run out, `onTick` once a second. */
  constructor(onFlag, onTick) {
    this.onFlag = onFlag;
    this.onTick = onTick;
    this.faces = Object.fromEntries(SIDES.map((side) => [side, h('span', { class: `clock ${side}`, role: 'timer' })]));
    this.element = h('div', { class: 'clocks', hidden: true }, this.faces.gold, this.faces.silver);
    this.set(null);
  }

  /** `10+5`, or nothing for no clock. */
  set(text) {
    const [minutes, increment] = (text || '0+0').split('+').map(Number);
    this.restore(text ? { seconds: { gold: 60 * minutes, silver: 60 * minutes }, increment } : null);
  }

  get state() {
    return this.seconds && { seconds: this.seconds, increment: this.increment };
  }

  restore(state) {
    this.stop();
    this.seconds = state?.seconds ?? null;
    this.increment = state?.increment ?? 0;
    this.element.hidden = !state;
    this.draw();
  }

  left(side) {
    return this.seconds && this.seconds[side];
  }

  start(side) {
    this.stop();
    if (!this.seconds) return;
    this.side = side;
    this.last = performance.now();
    this.timer = setInterval(() => this.tick(), 250);
    this.draw();
  }

  tick() {
    const now = performance.now();
    const before = this.seconds[this.side];
    this.seconds[this.side] = Math.max(0, before - (now - this.last) / 1000);
    this.last = now;
    this.draw();
    if (Math.floor(before) !== Math.floor(this.seconds[this.side])) this.onTick();
    if (this.seconds[this.side] > 0) return;
    const { side } = this;
    this.stop();
    this.onFlag(side);
  }

  /** A side has ended its turn. */
  ended(side) {
    if (!this.seconds || this.side !== side) return;
    this.stop();
    this.seconds[side] += this.increment;
    this.draw();
  }

  stop() {
    clearInterval(this.timer);
    this.side = null;
    this.draw();
  }

  draw() {
    for (const side of SIDES) {
      const seconds = Math.ceil(this.seconds?.[side] ?? 0);
      this.faces[side].textContent = `${capital(side)} ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
      this.faces[side].classList.toggle('running', this.side === side);
    }
  }
}
