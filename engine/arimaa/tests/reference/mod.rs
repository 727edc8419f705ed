//! The rules of Arimaa once more, slow and plain: letters on 64 squares, one rule a function, no bitboards, no keys.
//!
//! It shares no code with the engine. Squares are numbered a1, b1, … h8; a blank is an empty square.

use arrayvec::ArrayVec;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The letters on the squares from a1 to h8, in ASCII.
pub(crate) type Letters = [u8; 64];

const EMPTY: u8 = b' ';
/// c3, f3, c6 and f6.
const TRAPS: [usize; 4] = [18, 21, 42, 45];

/// `g` or `s`.
pub(crate) type Side = char;

pub(crate) fn other(side: Side) -> Side {
    if side == 'g' { 's' } else { 'g' }
}

fn name(square: usize) -> String {
    format!(
        "{}{}",
        ["a", "b", "c", "d", "e", "f", "g", "h"][square % 8],
        square / 8 + 1
    )
}

fn owner(piece: u8) -> Side {
    if piece.is_ascii_uppercase() { 'g' } else { 's' }
}

fn strength(piece: u8) -> usize {
    let letter = piece.to_ascii_lowercase();
    b"rcdhme".iter().position(|&kind| kind == letter).unwrap()
}

fn is_rabbit(piece: u8) -> bool {
    piece == b'R' || piece == b'r'
}

/// The squares beside a square, with the direction of the step to each.
fn beside(square: usize) -> ArrayVec<(usize, char), 4> {
    let (file, rank) = (square as i32 % 8, square as i32 / 8);
    [(0, 1, 'n'), (1, 0, 'e'), (0, -1, 's'), (-1, 0, 'w')]
        .into_iter()
        .map(|(east, north, direction)| (file + east, rank + north, direction))
        .filter(|(file, rank, _)| (0..8).contains(file) && (0..8).contains(rank))
        .map(|(file, rank, direction)| ((rank * 8 + file) as usize, direction))
        .collect()
}

fn has_friend_beside(letters: &Letters, square: usize) -> bool {
    beside(square)
        .iter()
        .any(|&(next, _)| letters[next] != EMPTY && owner(letters[next]) == owner(letters[square]))
}

/// Frozen: next to a stronger enemy piece and next to no friendly piece.
fn is_frozen(letters: &Letters, square: usize) -> bool {
    let piece = letters[square];
    let stronger_enemy = beside(square).iter().any(|&(next, _)| {
        letters[next] != EMPTY
            && owner(letters[next]) != owner(piece)
            && strength(letters[next]) > strength(piece)
    });
    stronger_enemy && !has_friend_beside(letters, square)
}

/// What a turn's last step has opened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Open {
    Nothing,
    /// A piece was pushed off a square, which must be filled.
    Push {
        square: usize,
        pushed: u8,
    },
    /// An own piece left a square, into which it may pull.
    Pull {
        square: usize,
        puller: u8,
    },
}

/// A turn so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Turn {
    pub(crate) letters: Letters,
    start: Letters,
    side: Side,
    used: usize,
    open: Open,
}

/// The positions at the ends of the turns so far.
pub(crate) type Past = Vec<(Letters, Side)>;

fn has_stood_twice(past: &Past, letters: &Letters, side: Side) -> bool {
    past.iter()
        .filter(|(l, s)| l == letters && *s == side)
        .count()
        >= 2
}

impl Turn {
    pub(crate) fn new(letters: Letters, side: Side) -> Self {
        Self {
            letters,
            start: letters,
            side,
            used: 0,
            open: Open::Nothing,
        }
    }

    /// Every step that a piece could make now, whether or not a legal turn continues with it.
    fn possible_steps(&self) -> Vec<(usize, usize, char)> {
        let mut steps = Vec::new();
        if self.used == 4 {
            return steps;
        }
        for from in 0..64 {
            if self.letters[from] == EMPTY {
                continue;
            }
            for (to, direction) in beside(from) {
                if self.letters[to] == EMPTY && self.is_possible(from, to, direction) {
                    steps.push((from, to, direction));
                }
            }
        }
        steps
    }

    /// Whether a piece may step to an empty square beside it.
    fn is_possible(&self, from: usize, to: usize, direction: char) -> bool {
        let piece = self.letters[from];
        let own = owner(piece) == self.side;
        if let Open::Push { square, pushed } = self.open {
            return own
                && to == square
                && strength(piece) > strength(pushed)
                && !is_frozen(&self.letters, from);
        }
        if own {
            let backward = if self.side == 'g' { 's' } else { 'n' };
            let forward = !is_rabbit(piece) || direction != backward;
            return forward && !is_frozen(&self.letters, from);
        }
        self.is_pull(from, to) || self.can_be_pushed(from)
    }

    fn is_pull(&self, from: usize, to: usize) -> bool {
        match self.open {
            Open::Pull { square, puller } => {
                to == square && strength(puller) > strength(self.letters[from])
            }
            _ => false,
        }
    }

    /// A push may start if there are two steps for it, and a stronger own piece beside is not frozen.
    fn can_be_pushed(&self, from: usize) -> bool {
        self.used <= 2
            && beside(from).iter().any(|&(next, _)| {
                let pusher = self.letters[next];
                pusher != EMPTY
                    && owner(pusher) == self.side
                    && strength(pusher) > strength(self.letters[from])
                    && !is_frozen(&self.letters, next)
            })
    }

    fn after(&self, from: usize, to: usize) -> Self {
        let mut next = self.clone();
        let piece = self.letters[from];
        next.open = if owner(piece) == self.side {
            match self.open {
                Open::Push { .. } => Open::Nothing,
                _ => Open::Pull {
                    square: from,
                    puller: piece,
                },
            }
        } else if self.is_pull(from, to) {
            Open::Nothing
        } else {
            Open::Push {
                square: from,
                pushed: piece,
            }
        };
        next.letters[from] = EMPTY;
        next.letters[to] = piece;
        next.used += 1;
        for trap in TRAPS {
            if next.letters[trap] != EMPTY && !has_friend_beside(&next.letters, trap) {
                next.letters[trap] = EMPTY;
            }
        }
        next
    }

    /// Whether the turn may end now.
    pub(crate) fn may_end(&self, past: &Past) -> bool {
        self.used >= 1
            && !matches!(self.open, Open::Push { .. })
            && self.letters != self.start
            && !has_stood_twice(past, &self.letters, other(self.side))
    }

    /// Whether a legal turn begins with the steps so far.
    fn can_be_finished(&self, past: &Past) -> bool {
        self.may_end(past)
            || self
                .possible_steps()
                .iter()
                .any(|&(from, to, _)| self.after(from, to).can_be_finished(past))
    }

    /// The names of all legal steps, like `d2n`, and the turn after each.
    pub(crate) fn legal_steps(&self, past: &Past) -> Vec<(String, Self)> {
        self.possible_steps()
            .into_iter()
            .map(|(from, to, direction)| {
                (format!("{}{direction}", name(from)), self.after(from, to))
            })
            .filter(|(_, next)| next.can_be_finished(past))
            .collect()
    }

    /// How many steps the pieces could make now, legal or not.
    pub(crate) fn count_possible(&self) -> usize {
        self.possible_steps().len()
    }

    /// All boards on which a legal turn can end.
    pub(crate) fn ends(&self, past: &Past) -> BTreeSet<Letters> {
        let mut ends = BTreeSet::new();
        self.collect_ends(past, &mut ends, &mut FxHashSet::default());
        ends
    }

    fn collect_ends(&self, past: &Past, ends: &mut BTreeSet<Letters>, seen: &mut FxHashSet<Self>) {
        if !seen.insert(self.clone()) {
            return;
        }
        if self.may_end(past) {
            ends.insert(self.letters);
        }
        for (from, to, _) in self.possible_steps() {
            self.after(from, to).collect_ends(past, ends, seen);
        }
    }
}

/// Who has won, and how, when `side` is to move and the other has just ended its turn.
pub(crate) fn outcome(letters: &Letters, side: Side, past: &Past) -> Option<(Side, &'static str)> {
    let (a, b) = (other(side), side);
    let at_goal = |of: Side| {
        let goal = if of == 'g' { 56..64 } else { 0..8 };
        letters[goal].contains(&if of == 'g' { b'R' } else { b'r' })
    };
    let has_rabbits = |of: Side| letters.contains(&if of == 'g' { b'R' } else { b'r' });
    if at_goal(a) {
        Some((a, "goal"))
    } else if at_goal(b) {
        Some((b, "goal"))
    } else if !has_rabbits(b) {
        Some((a, "elimination"))
    } else if !has_rabbits(a) {
        Some((b, "elimination"))
    } else if !Turn::new(*letters, side).can_be_finished(past) {
        Some((a, "immobilization"))
    } else {
        None
    }
}
