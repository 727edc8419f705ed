// What the arrows of a game's turn show: the turn that was played, the policy's best turns, and the target's largest shares.

import { arrowIcon } from './board.js';
import { h, percent } from './dom.js';
import { stepsOf } from './notation.js';

// The most arrows for steps of the target that were not played, and the least share of theirs.
const MOST_OTHERS = 6;
const LEAST_SHARE = 0.02;

// Captures may stand in one text and not in the other.
export const isSame = (action, played) => Boolean(played) && action.split(' ')[0] === played.split(' ')[0];

/** The arrows of the played turn: all its steps, or one. */
export function playedArrows(turn, from = 0) {
  const shares = new Map(turn.rows.map((row) => [row.step, row.policy]));
  const arrows = stepsOf(turn.turn).map((step, index) => ({
    step, number: index + 1, kind: 'played', share: shares.get(index)?.find(({ action }) => isSame(action, step))?.share ?? null,
  }));
  return from ? arrows.filter(({ number }) => number === from + 1) : arrows;
}

/** The largest shares of other steps in the target. Those of a later step assume that the steps before it were played. */
export function targetArrows(turn, from, played) {
  // A step that the turn makes at another place is no alternative to the turn, nor is the end of the turn where it has ended.
  const count = stepsOf(turn.turn).length;
  const isPlayed = (action, at) => (action === 'end' ? at >= count : played.some(({ step }) => isSame(action, step)));
  const others = turn.rows.filter((row) => !from || row.step === from).flatMap((row) => row.policy
    .filter(({ action, share }) => share >= LEAST_SHARE && !isPlayed(action, row.step))
    .map(({ action, share }) => ({ step: action, number: row.step + 1, kind: 'other', share })));
  others.sort((a, b) => b.share - a.share);
  // The largest share of a step counts.
  const isFirst = ({ step }, index) => others.findIndex((one) => isSame(one.step, step)) === index;
  return others.filter(isFirst).slice(0, MOST_OTHERS);
}

/** The steps of the policy's best turns, each with the probability of the turns that have it. */
export function policyArrows(best) {
  const arrows = new Map();
  for (const { turn, prior } of best) {
    stepsOf(turn).forEach((step, index) => {
      const [key] = step.split(' ');
      const arrow = arrows.get(key) ?? { step, number: index + 1, kind: 'policy', share: 0 };
      arrows.set(key, { ...arrow, share: arrow.share + prior });
    });
  }
  return [...arrows.values()];
}

export function legend() {
  const entry = (kind, words) => h('span', {}, arrowIcon(kind), ` ${words}`);
  return h('p', { class: 'note legend' }, entry('played', 'played turn'), entry('policy', 'the policy’s best turns'),
    entry('other', 'largest other shares of the target'), h('span', {}, 'wide: large share; number: step of the turn'));
}

/** The policy's best turns, and which of them was played. */
export function policyInWords(best, played, onShow) {
  const steps = (turn) => stepsOf(turn).sort().join();
  const items = best.map((one) => h('li', { class: steps(one.turn) === steps(played) ? 'played' : null },
    h('button', { type: 'button', class: 'link', title: 'Show this turn alone', onclick: () => onShow([one]) }, one.turn),
    h('meter', { min: 0, max: 1, value: one.prior, 'aria-label': 'probability of the turn' }), h('i', {}, percent(one.prior, 1))));
  return h('div', {}, h('h3', {}, 'The policy’s best turns'), h('ol', { class: 'policy wide' }, items),
    h('p', { class: 'note' }, 'Whole turns by the network’s policy alone, without a search. The played one is in bold.'));
}

/** The arrows of the played turn and of the target. */
export function arrowsInWords(arrows, step) {
  if (!arrows.length) return '';
  const items = arrows.map(({ step: action, number: at, kind, share }) => h('li', {}, arrowIcon(kind, at, share ?? 0),
    h('span', {}, `${kind === 'played' ? 'played' : 'other'}, step ${at}: `, h('b', {}, action === 'end' ? 'end of the turn' : action)),
    h('i', {}, share === null ? '–' : percent(share, 1))));
  const words = step ? 'The next step, and the largest shares of other steps.'
    : 'The whole turn, and the largest shares of steps that are not in it. Shares at a later step follow the steps played before it.';
  return h('div', {}, h('h3', {}, 'Arrows on the board'), h('ol', { class: 'arrow-list' }, items), h('p', { class: 'note' }, words));
}
