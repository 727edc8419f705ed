// Boards, steps and turns as text. What is legal is the server's to say: here steps are only read and carried out.

export const FILES = 'abcdefgh';
export const EMPTY = ' '.repeat(64);
const NAMES = { r: 'rabbit', c: 'cat', d: 'dog', h: 'horse', m: 'camel', e: 'elephant' };
const WAYS = { n: [0, 1], s: [0, -1], e: [1, 0], w: [-1, 0] };
const WORDS = { n: 'north', s: 'south', e: 'east', w: 'west' };

export const SQUARES = [8, 7, 6, 5, 4, 3, 2, 1].flatMap((rank) => [...FILES].map((file) => file + rank));
export const TRAPS = ['c3', 'f3', 'c6', 'f6'];
export const indexOf = (square) => 8 * (8 - Number(square[1])) + FILES.indexOf(square[0]);
export const isGold = (piece) => piece === piece.toUpperCase();
export const sideOf = (piece) => (isGold(piece) ? 'gold' : 'silver');
export const pieceName = (piece) => `${sideName(sideOf(piece))} ${NAMES[piece.toLowerCase()]}`;
export const otherSide = (side) => (side === 'gold' ? 'silver' : 'gold');
export const labelSide = (label) => (label.endsWith('s') ? 'silver' : 'gold');

export function neighbour(square, way) {
  const file = FILES.indexOf(square[0]) + WAYS[way][0];
  const rank = Number(square[1]) + WAYS[way][1];
  return file >= 0 && file < 8 && rank >= 1 && rank <= 8 ? FILES[file] + rank : null;
}

export const areNeighbours = (a, b) => Object.keys(WAYS).some((way) => neighbour(a, way) === b);

/** `Ra2n rc3x` or `Ra1`; null where the text is neither. */
export function parseStep(text) {
  const match = /^([RCDHMErcdhme])([a-h][1-8])([nsew])?(?: ([RCDHMErcdhme])([a-h][1-8])x)?$/.exec(text);
  if (!match) return null;
  const [, piece, from, way, taken, trap] = match;
  const to = way ? neighbour(from, way) : from;
  return to && { text, piece, from, to, way, captures: taken ? { piece: taken, square: trap } : null };
}

/** The steps of a turn, each with its captures. */
export function stepsOf(turn) {
  const steps = [];
  for (const word of turn.split(/\s+/).filter(Boolean)) {
    if (word.endsWith('x') && steps.length) steps[steps.length - 1] += ` ${word}`;
    else steps.push(word);
  }
  return steps;
}

export const isSetup = (turn) => stepsOf(turn).some((step) => parseStep(step)?.way === undefined);

export function applyStep(board, text) {
  const step = parseStep(text);
  if (!step) return board;
  const squares = [...board];
  squares[indexOf(step.from)] = ' ';
  squares[indexOf(step.to)] = step.piece;
  if (step.captures) squares[indexOf(step.captures.square)] = ' ';
  return squares.join('');
}

export const applySteps = (board, steps) => steps.reduce(applyStep, board);

export function nextLabel(label) {
  const number = parseInt(label, 10);
  return label.endsWith('g') ? `${number}s` : `${number + 1}g`;
}

/** The labels of so many turns. */
export function labelsFrom(first, count) {
  const labels = [];
  for (let label = first; labels.length < count; label = nextLabel(label)) labels.push(label);
  return labels;
}

/** The boards of a game from the empty board: one before each turn, and one behind the last. */
export function boardsOf(turns) {
  const boards = [EMPTY];
  for (const turn of turns) boards.push(applySteps(boards[boards.length - 1], stepsOf(turn)));
  return boards;
}

export function stepInWords(text) {
  const step = parseStep(text);
  if (!step) return text;
  const moved = step.way ? `${pieceName(step.piece)} ${step.from} ${WORDS[step.way]}` : `${pieceName(step.piece)} on ${step.from}`;
  return step.captures ? `${moved}, ${pieceName(step.captures.piece)} captured on ${step.captures.square}` : moved;
}

export const turnInWords = (turn) => stepsOf(turn).map(stepInWords).join('; ');

export const REASONS = {
  goal: 'a rabbit reached the goal',
  elimination: 'all rabbits were captured',
  immobilization: 'no step was possible',
  unfinished: 'the game was not finished',
  resigned: 'resignation',
  forfeited: 'forfeit',
  time: 'the time ran out',
};

const sideName = (side) => (side === 'gold' ? 'Gold' : 'Silver');

export function resultInWords(winner, reason) {
  const why = REASONS[reason] ?? reason ?? 'no reason is known';
  return winner ? `${sideName(winner)} won: ${why}.` : `No winner: ${why}.`;
}

/** Whether the position itself ends the game. */
export const isEndByRules = (reason) => ['goal', 'elimination', 'immobilization'].includes(reason);

/**
 * A record with tags of the players and the result, as matches write it. `label` is that of the turn that is due. A loss by resignation or
 * time also stands at the end as a remark: `# 22g resigns`. As a turn, the server would refuse it.
 */
export function taggedRecord(record, { gold, silver }, over, label) {
  const players = `Gold: ${gold}\nSilver: ${silver}\n`;
  if (!over) return `${players}\n${record}`;
  const { winner, reason } = over;
  const result = `${players}Result: ${sideName(winner)} wins by`;
  if (isEndByRules(reason)) return `${result} ${reason}\n\n${record}`;
  const loser = otherSide(winner);
  const last = labelSide(label) === loser ? label : nextLabel(label);
  const [by, remark] = reason === 'time' ? ['time', 'lost'] : ['resignation', 'resigns'];
  return `${result} ${by} of ${sideName(loser)}\n\n${record}# ${last} ${remark}\n`;
}
