// The board: squares, pieces, arrows, animation, and input by mouse, touch and keyboard.

import { announce, h, svg } from './dom.js';
import { EMPTY, FILES, SQUARES, TRAPS, applyStep, indexOf, parseStep, pieceName, stepInWords } from './notation.js';
import { pieceShape } from './pieces.js';

const MARGIN = 34;
const STEP_MS = 170;
const calm = matchMedia('(prefers-reduced-motion: reduce)');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// An arrow to the right from 0, with its number upright.
function arrowShape({ length, share, kind, number, turn = 0 }) {
  const half = 4 + 7 * Math.sqrt(Math.min(1, Math.max(0, share)));
  const head = 14 + 1.6 * half;
  const wide = half + 8;
  const d = `M12 ${-half}H${length - head}V${-wide}L${length} 0L${length - head} ${wide}V${half}H12Z`;
  const badge = number && svg('g', { transform: `translate(36 0) rotate(${-turn})` },
    svg('circle', { r: 14 }), svg('text', { y: 7, 'text-anchor': 'middle' }, String(number)));
  return svg('g', { class: `arrow ${kind}` }, svg('path', { d }), badge);
}

/** An arrow of this kind for a legend. */
export function arrowIcon(kind, number = null, share = 0.5) {
  return svg('svg', { viewBox: '0 -24 96 48', class: 'arrow-icon', 'aria-hidden': 'true' },
    arrowShape({ length: 92, share, kind, number }));
}

export class Board {
  /**
   * `label` names it for screen readers. `input` is null for a board to look at. Otherwise it has `pick(square)`, which answers with the
   * targets `[{square, kind, words}]` of what stands there, or with null; and `drop(from, target)`.
   */
  constructor(label, input = null) {
    this.input = input;
    this.board = EMPTY;
    this.isFlipped = false;
    this.pieces = new Map();
    this.selected = null;
    this.targets = [];
    this.cursor = 'd2';
    this.turn = 0;
    this.layers = Object.fromEntries(['squares', 'marks', 'pieces', 'arrows', 'cursor'].map((name) => [name, svg('g', { class: name })]));
    this.svg = svg('svg', { viewBox: `${-MARGIN} 0 ${800 + MARGIN} ${800 + MARGIN}`, 'aria-hidden': 'true' }, Object.values(this.layers));
    this.words = h('table', { 'aria-label': `${label} as a table` });
    const role = input ? { role: 'application', tabindex: 0, 'aria-roledescription': 'board' } : { role: 'img' };
    this.surface = h('div', { class: input ? 'surface active' : 'surface', 'aria-label': label, ...role }, this.svg);
    this.element = h('div', { class: 'board' }, this.surface, h('div', { class: 'unseen' }, this.words));
    this.drawSquares();
    if (input) this.listen(label);
  }

  listen(label) {
    this.surface.setAttribute('aria-label', `${label}. Arrow keys move the cursor, Enter selects, Escape cancels.`);
    this.svg.addEventListener('pointerdown', (event) => this.press(event));
    this.svg.addEventListener('pointermove', (event) => this.drag(event));
    this.svg.addEventListener('pointerup', (event) => this.release(event));
    this.svg.addEventListener('pointercancel', () => this.endDrag());
    this.surface.addEventListener('keydown', (event) => this.key(event));
    this.surface.addEventListener('focus', () => this.surface.matches(':focus-visible') && this.drawCursor());
    this.surface.addEventListener('blur', () => this.layers.cursor.replaceChildren());
  }

  focus() {
    this.surface.focus({ preventScroll: true });
  }

  // Places.

  place(square) {
    const file = FILES.indexOf(square[0]);
    const row = 8 - Number(square[1]);
    return this.isFlipped ? [100 * (7 - file), 100 * (7 - row)] : [100 * file, 100 * row];
  }

  centre(square) {
    const [x, y] = this.place(square);
    return [x + 50, y + 50];
  }

  squareAt(event) {
    const matrix = this.svg.getScreenCTM();
    if (!matrix) return null;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const column = Math.floor(point.x / 100);
    const row = Math.floor(point.y / 100);
    if (column < 0 || column > 7 || row < 0 || row > 7) return null;
    return SQUARES[this.isFlipped ? 63 - (8 * row + column) : 8 * row + column];
  }

  flip(isFlipped) {
    this.isFlipped = isFlipped;
    this.drawSquares();
    this.set(this.board);
    this.drawMarks();
    this.arrows(this.shownArrows ?? []);
  }

  // Drawing.

  drawSquares() {
    const squares = SQUARES.map((square) => {
      const [x, y] = this.place(square);
      const dark = (FILES.indexOf(square[0]) + Number(square[1])) % 2 === 1;
      return svg('rect', { class: dark ? 'square dark' : 'square', x, y, width: 100, height: 100 });
    });
    const traps = TRAPS.map((square) => {
      const [x, y] = this.place(square);
      return svg('path', { class: 'trap', d: `M${x + 12} ${y + 12}l76 76m0 -76l-76 76M${x + 12} ${y + 12}h76v76h-76z` });
    });
    const names = [...FILES].flatMap((file, at) => {
      const [x, y] = [this.place(`${file}1`)[0] + 50, this.place(`a${at + 1}`)[1] + 58];
      return [svg('text', { class: 'coordinate', x, y: 826, 'text-anchor': 'middle' }, file),
        svg('text', { class: 'coordinate', x: -18, y, 'text-anchor': 'middle' }, String(at + 1))];
    });
    this.layers.squares.replaceChildren(...squares, ...traps, ...names);
  }

  /** Shows a board at once. */
  set(board) {
    this.turn += 1;
    this.show(board);
  }

  show(board) {
    this.board = board;
    for (const square of SQUARES) {
      const piece = board[indexOf(square)];
      const there = this.pieces.get(square);
      if (there && there.piece !== piece) {
        there.element.remove();
        this.pieces.delete(square);
      }
      if (piece !== ' ' && !this.pieces.has(square)) this.pieces.set(square, this.newPiece(piece));
    }
    for (const [square, { element }] of this.pieces) this.moveElement(element, square);
    this.describe();
  }

  newPiece(piece) {
    const element = svg('g', { class: 'standing' }, svg('g', { transform: 'translate(4 4) scale(1.917)' }, pieceShape(piece)));
    this.layers.pieces.append(element);
    return { piece, element };
  }

  moveElement(element, square, dx = 0, dy = 0) {
    const [x, y] = this.place(square);
    element.style.transform = `translate(${x + dx}px, ${y + dy}px)`;
  }

  describe() {
    const rows = [8, 7, 6, 5, 4, 3, 2, 1].map((rank) => {
      const cells = [...FILES].map((file) => h('td', {}, this.name(file + rank)));
      return h('tr', {}, h('th', { scope: 'row' }, String(rank)), cells);
    });
    this.words.replaceChildren(h('tr', {}, h('td'), [...FILES].map((file) => h('th', { scope: 'col' }, file))), ...rows);
  }

  name(square) {
    const piece = this.board[indexOf(square)];
    return piece === ' ' ? (TRAPS.includes(square) ? 'trap' : 'empty') : pieceName(piece);
  }

  /** Shows the steps one after another, and says them unless `isTold`. False where something else was shown meanwhile. */
  async play(steps, isTold = false) {
    const turn = (this.turn += 1);
    if (!isTold) announce(steps.map(stepInWords).join('; '));
    for (const text of steps) {
      this.slide(text);
      if (!calm.matches && !document.hidden) await pause(STEP_MS + 60);
      if (turn !== this.turn) return false;
    }
    return true;
  }

  slide(text) {
    const step = parseStep(text);
    const mover = step && this.pieces.get(step.from);
    const next = applyStep(this.board, text);
    if (mover && step.from !== step.to) {
      this.pieces.delete(step.from);
      this.pieces.get(step.to)?.element.remove();
      this.pieces.set(step.to, mover);
    }
    const trap = step?.captures?.square;
    const taken = trap && this.pieces.get(trap);
    if (taken) {
      this.pieces.delete(trap);
      this.moveElement(taken.element, trap);
      taken.element.classList.add('taken');
      setTimeout(() => taken.element.remove(), calm.matches ? 0 : 2 * STEP_MS);
    }
    this.show(next);
  }

  /** Arrows `{step, share, kind, number}`: the larger the share, the wider. The number is optional. Placements have no arrow. */
  arrows(list) {
    this.shownArrows = list;
    // Of two arrows between the same squares, the later one stands aside.
    const taken = new Set();
    const shapes = list.map((arrow) => {
      const { from, to, way } = parseStep(arrow.step) ?? {};
      if (!way) return null;
      const squares = [from, to].sort().join();
      const aside = taken.has(squares) ? 18 : 0;
      taken.add(squares);
      return this.arrow(from, to, aside, arrow);
    });
    this.layers.arrows.replaceChildren(...shapes.filter(Boolean).reverse());
  }

  /** Arrows for the steps of turns, numbered in their order. */
  turnArrows(turns) {
    this.arrows(turns.flatMap(({ steps, share, kind }) => steps.map((step, index) => ({
      step, share, kind, number: steps.length > 1 ? index + 1 : null,
    }))));
  }

  arrow(from, to, aside, { share, kind, number }) {
    const [x1, y1] = this.centre(from);
    const [x2, y2] = this.centre(to);
    const turn = (180 / Math.PI) * Math.atan2(y2 - y1, x2 - x1);
    return svg('g', { transform: `translate(${x1} ${y1}) rotate(${turn}) translate(0 ${aside})` },
      arrowShape({ length: 108, share, kind, number, turn }));
  }

  /** Marks squares, such as `{square: 'a2', kind: 'hint'}`. */
  mark(list) {
    this.shownMarks = list;
    this.drawMarks();
  }

  /** Tints the squares that the steps touched. */
  showLast(steps) {
    const squares = new Set(steps.map(parseStep).filter(Boolean).flatMap(({ from, to }) => [from, to]));
    this.last = [...squares].map((square) => ({ square, kind: 'last' }));
    this.drawMarks();
  }

  drawMarks() {
    const marks = [...(this.last ?? []), ...(this.shownMarks ?? []), ...this.targets];
    if (this.selected) marks.push({ square: this.selected, kind: 'selected' });
    this.layers.marks.replaceChildren(...marks.map(({ square, kind }) => {
      const [x, y] = this.place(square);
      if (kind === 'step') return svg('circle', { class: 'mark step', cx: x + 50, cy: y + 50, r: 15 });
      return svg('rect', { class: `mark ${kind}`, x: x + 4, y: y + 4, width: 92, height: 92, rx: 10 });
    }));
  }

  drawCursor() {
    const [x, y] = this.place(this.cursor);
    this.layers.cursor.replaceChildren(svg('rect', { x: x + 3, y: y + 3, width: 94, height: 94, rx: 8 }));
  }

  // Input.

  select(square, targets) {
    this.selected = square;
    this.targets = targets;
    this.drawMarks();
  }

  /** Adds targets that were found later. */
  addTargets(square, targets) {
    if (this.selected === square) this.select(square, [...this.targets, ...targets]);
  }

  clear() {
    this.select(null, []);
  }

  /** A click or Enter on a square. True where something is selected afterwards. */
  choose(square) {
    const target = this.selected && this.targets.find((one) => one.square === square);
    if (target) {
      const from = this.selected;
      this.clear();
      this.input.drop(from, target);
      return false;
    }
    const again = this.selected === square;
    const targets = again ? null : this.input.pick(square);
    if (targets) this.select(square, targets);
    else this.clear();
    if (targets) this.input.picked?.(square);
    return Boolean(targets);
  }

  press(event) {
    const square = this.squareAt(event);
    if (!square || event.button !== 0) return;
    event.preventDefault();
    this.focus();
    this.cursor = square;
    this.layers.cursor.replaceChildren();
    const wasSelected = this.selected === square;
    if (!wasSelected && !this.choose(square)) return;
    this.svg.setPointerCapture(event.pointerId);
    this.dragging = { square, x: event.clientX, y: event.clientY, wasSelected, hasMoved: false };
  }

  drag(event) {
    const drag = this.dragging;
    const piece = drag && this.pieces.get(drag.square);
    if (!piece) return;
    const scale = 1 / this.svg.getScreenCTM().a;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.hasMoved && Math.hypot(dx, dy) < 6) return;
    drag.hasMoved = true;
    piece.element.classList.add('dragged');
    this.layers.pieces.append(piece.element);
    this.moveElement(piece.element, drag.square, dx * scale, dy * scale);
  }

  release(event) {
    const drag = this.dragging;
    if (!drag) return;
    const square = this.squareAt(event);
    this.endDrag();
    if (drag.hasMoved && square && square !== drag.square && this.targets.some((one) => one.square === square)) this.choose(square);
    else if (!drag.hasMoved && drag.wasSelected) this.clear();
  }

  endDrag() {
    const drag = this.dragging;
    this.dragging = null;
    const piece = drag && this.pieces.get(drag.square);
    if (!piece) return;
    piece.element.classList.remove('dragged');
    this.moveElement(piece.element, drag.square);
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) this.moveCursor(...moves[event.key]);
    else if (event.key === 'Enter' || event.key === ' ') this.chooseByKey();
    else if (event.key === 'Escape') this.cancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  moveCursor(dx, dy) {
    const sign = this.isFlipped ? -1 : 1;
    const within = (value) => Math.min(7, Math.max(0, value));
    const file = within(FILES.indexOf(this.cursor[0]) + sign * dx);
    const rank = within(Number(this.cursor[1]) - 1 + sign * dy);
    this.cursor = FILES[file] + (rank + 1);
    this.drawCursor();
    const target = this.targets.find((one) => one.square === this.cursor);
    announce(`${this.cursor}, ${this.name(this.cursor)}${target ? `, ${target.words ?? 'possible'}` : ''}`);
  }

  chooseByKey() {
    const hadTarget = this.targets.some((one) => one.square === this.cursor);
    const isSelected = this.choose(this.cursor);
    const squares = this.targets.map((one) => one.square).join(', ');
    if (isSelected) announce(`Selected ${this.name(this.cursor)}. Possible: ${squares || 'nothing'}`);
    else if (!hadTarget) announce('Nothing to select here.');
  }

  cancel() {
    this.endDrag();
    this.clear();
    announce('Cancelled.');
  }
}
