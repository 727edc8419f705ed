// The pieces, drawn for this page: a head or a body as one shape on a plate. Gold's plates are round and light, Silver's are square and
// dark, so that no colour is needed to tell them apart.

import { svg } from './dom.js';
import { isGold } from './notation.js';

const round = (x, y, a, b = a) => `M${x - a} ${y}a${a} ${b} 0 1 0 ${2 * a} 0a${a} ${b} 0 1 0 ${-2 * a} 0Z`;
const eyes = (y, apart, size = 1.5) => round(24 - apart, y, size) + round(24 + apart, y, size);

// Paths in a box of 48: `shape` is the animal, `cut` lies upon it in the plate's colour.
const SHAPES = {
  e: {
    shape: round(14, 19, 7, 8) + round(34, 19, 7, 8) + round(24, 18, 8.5, 9)
      + 'M19 22C19 27 20.5 28 20.5 32C20.5 37 22 39.5 26 39.5C29.5 39.5 31 37.5 31 34.5L28 34.5C28 36 27 36.6 26 36.4C25 36.2 25 34 '
      + '25.5 31C26 28 29 27 29 22Z',
    cut: eyes(17, 3.8) + 'M17.4 25L15 30.5L18.8 27.5ZM30.6 25L33 30.5L29.2 27.5Z',
  },
  m: {
    shape: 'M8 16.5C8 13.5 11 12.6 13.2 11.8L14 9.5L16 11.5C17.6 12.5 17.2 14 17 16L16.6 21C16.8 23 18.4 23 18.8 21.4C19.6 16.5 21 14 '
      + '22.6 14C24.6 14 25.4 17 26.2 19C27 20.4 27.8 20.4 28.4 19C29.2 17 30 14 32 14C35 14 37 19 37.6 24L38.6 31.5L37 31.5L36.4 28'
      + 'L35.8 38L32.8 38L32.2 29.8C29 30.8 26 30.8 23 29.8L22.6 38L19.6 38L18.6 28.6C14.6 28 12.4 25.4 12.4 21L12.6 17.4L9.4 18.4Z',
    cut: round(13.4, 14.4, 1.1),
  },
  h: {
    shape: 'M16 39L36 39C38 27 35.6 19 31.6 15C29.2 12.4 26.6 11.4 24.4 11.2L22.6 7.4L20.2 11.6C16.6 13.2 14.8 15.6 13.8 18.6L9.8 26.2'
      + 'C9 28.4 10 30.4 12 30.6C13.2 30.8 14.6 30.4 15.6 29.2L19.8 27.2C22 27 23.4 26.2 24.2 24.6C24.2 29.8 17 31.6 16 39Z',
    cut: round(19, 18.4, 1.6) + 'M27.4 14.6C32 17.6 34.4 25 33.6 34L32 34C32.4 26 30.6 19.4 26.6 15.8Z',
  },
  d: {
    shape: 'M16.4 13C20 10.4 28 10.4 31.6 13C33.6 19 32.6 25 30.6 29C30.4 34.6 28 38 24 38C20 38 17.6 34.6 17.4 29C15.4 25 14.4 19 16.4 13Z'
      + 'M14.8 12.4C9.4 12 7.6 17.6 8.4 23C8.8 27.4 10.4 30 12.2 30C14.6 29.6 14.6 24 14.4 20C14.2 17 14.4 14.6 14.8 12.4Z'
      + 'M33.2 12.4C38.6 12 40.4 17.6 39.6 23C39.2 27.4 37.6 30 35.8 30C33.4 29.6 33.4 24 33.6 20C33.8 17 33.6 14.6 33.2 12.4Z',
    cut: eyes(20, 4) + round(24, 29.6, 3, 2.1) + 'M23.4 31.4L24.6 31.4L24.6 35L23.4 35Z',
  },
  c: {
    shape: 'M11.6 8.6L19.4 14.6C22.4 13.8 25.6 13.8 28.6 14.6L36.4 8.6L37.4 23.4C37.4 32.4 31.4 37.4 24 37.4'
      + 'C16.6 37.4 10.6 32.4 10.6 23.4Z',
    cut: round(18.6, 22, 1.5, 2.6) + round(29.4, 22, 1.5, 2.6) + 'M21.8 28L26.2 28L24 30.6Z'
      + 'M9 28L19 29.4L19 30.4L9 29.4ZM39 28L29 29.4L29 30.4L39 29.4ZM10 33.4L19.4 31.6L19.6 32.6L10.4 34.6ZM38 33.4L28.6 31.6L28.4 32.6'
      + 'L37.6 34.6Z',
  },
  r: {
    shape: round(24, 28.6, 9.4, 9) + 'M17.4 23.4C12.6 17 12.2 9 15.2 6.6C18.6 5.4 22.4 12 22.8 21ZM30.6 23.4C35.4 17 35.8 9 32.8 6.6'
      + 'C29.4 5.4 25.6 12 25.2 21Z',
    cut: eyes(26.6, 3.8) + 'M22.4 30.6L25.6 30.6L24 32.4Z'
      + 'M22.6 33.6L23.7 33.6L23.7 36.4L22.6 36.4ZM24.3 33.6L25.4 33.6L25.4 36.4L24.3 36.4Z',
  },
};

/** A piece in a box of 48, with its letter. */
export function pieceShape(piece) {
  const { shape, cut } = SHAPES[piece.toLowerCase()];
  const plate = isGold(piece)
    ? svg('circle', { class: 'plate', cx: 24, cy: 24, r: 22 })
    : svg('rect', { class: 'plate', x: 3, y: 3, width: 42, height: 42, rx: 9 });
  return svg('g', { class: isGold(piece) ? 'piece gold' : 'piece silver' },
    plate,
    svg('path', { class: 'ink', d: shape }),
    svg('path', { class: 'cut', d: cut }),
    svg('circle', { class: 'badge', cx: 40, cy: 40, r: 6.4 }),
    svg('text', { class: 'letter', x: 40, y: 43.2, 'text-anchor': 'middle' }, piece));
}
