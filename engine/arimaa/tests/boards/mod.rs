//! Positions for the tests: from lists of pieces, and at random.
#![allow(dead_code, reason = "each test program uses what it needs")]

use arimaa::notation::parse_turn;
use arimaa::rules::{
    Action, Bitboard, Board, Game, History, Kind, Phase, Piece, Position, Setup, Side, Square,
    StepState, Steps, Turn, TurnError,
};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand::seq::{IndexedRandom, IteratorRandom, SliceRandom};

/// The square of a name.
pub(crate) fn square(name: &str) -> Square {
    name.parse().unwrap()
}

/// The board of a list of pieces: `Eg7 rh7`.
pub(crate) fn board(pieces: &str) -> Board {
    pieces
        .split_whitespace()
        .map(|word| {
            let piece = Piece::from_letter(word.chars().next().unwrap()).unwrap();
            (square(&word[1..]), piece)
        })
        .collect()
}

/// The position of a list of pieces.
pub(crate) fn position(side: Side, pieces: &str) -> Position {
    Position::new(board(pieces), side).unwrap()
}

/// The position after a turn in the notation, which must be readable, or why it is illegal; without repetition.
pub(crate) fn play(position: &Position, turn: &str) -> Result<Position, TurnError> {
    let turn = parse_turn(turn, position).unwrap();
    position.after_turn(&turn, &History::default())
}

/// The state after steps in the notation, none or some, which must be readable.
pub(crate) fn state_after(position: &Position, steps: &str) -> StepState {
    if steps.is_empty() {
        return StepState::new(position);
    }
    let Turn::Steps(steps) = parse_turn(steps, position).unwrap() else {
        panic!("{steps} is a setup");
    };
    steps.iter().fold(StepState::new(position), |state, &step| {
        state.after_step(step)
    })
}

/// A random position of play, of any density; half of them huddle on a part of the board. Nothing stands unsupported on a trap.
pub(crate) fn random_position(rng: &mut ChaCha8Rng) -> Position {
    let mut bag: Vec<Piece> = all_pieces().collect();
    bag.shuffle(rng);
    let huddled = rng.random_bool(0.5);
    let (width, height) = if huddled {
        (rng.random_range(2..=6), rng.random_range(2..=6))
    } else {
        (8, 8)
    };
    let (file, rank) = (
        rng.random_range(0..=8 - width),
        rng.random_range(0..=8 - height),
    );
    let mut squares: Vec<Square> = Square::all()
        .filter(|square| {
            (file..file + width).contains(&square.file())
                && (rank..rank + height).contains(&square.rank())
        })
        .collect();
    squares.shuffle(rng);
    let count = rng.random_range(1..=bag.len().min(squares.len()));
    let mut board: Board = squares.into_iter().zip(bag).take(count).collect();
    for side in Side::ALL {
        for trap in board.unsupported(side) {
            board.take(trap);
        }
    }
    let side = *Side::ALL.choose(rng).unwrap();
    match Position::new(board, side).unwrap() {
        position if position.phase() == Phase::Setup => random_position(rng),
        position => position,
    }
}

/// A random setup.
pub(crate) fn random_setup(rng: &mut ChaCha8Rng) -> Setup {
    let mut kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .flat_map(|kind| std::iter::repeat_n(kind, kind.full_count() as usize))
        .collect();
    kinds.shuffle(rng);
    Setup::new(kinds.try_into().unwrap()).unwrap()
}

/// A random legal turn, if there is one: random steps, which end where they must, or by a coin.
pub(crate) fn random_turn(
    position: &Position,
    history: &History,
    rng: &mut ChaCha8Rng,
) -> Option<Turn> {
    let mut state = StepState::new(position);
    let mut steps = Steps::new();
    loop {
        let legal = state.legal_actions(history);
        let choices: Vec<_> = legal.steps().collect();
        if state.is_complete() || (legal.end && (choices.is_empty() || rng.random_bool(0.2))) {
            return Some(Turn::Steps(steps));
        }
        let step = *choices.choose(rng)?;
        state = state.after(Action::Step(step));
        steps.push(step);
    }
}

/// A random game of so many turns at most, setups included.
pub(crate) fn random_game(turns: usize, rng: &mut ChaCha8Rng) -> Game {
    let mut game = Game::new();
    for index in 0..turns {
        if game.outcome().is_some() {
            break;
        }
        let turn = match index {
            0 | 1 => Turn::Setup(random_setup(rng)),
            _ => random_turn(game.position(), game.history(), rng).unwrap(),
        };
        game.play(&turn).unwrap();
    }
    game
}

/// A random position whose pieces huddle at the mover's goal, a rabbit of the mover within two ranks of it.
pub(crate) fn near_goal(rng: &mut ChaCha8Rng) -> Position {
    let side = *Side::ALL.choose(rng).unwrap();
    let (width, height) = (rng.random_range(3..=8), rng.random_range(3..=5));
    let file = rng.random_range(0..=8 - width);
    let mut squares: Vec<Square> = Square::all()
        .filter(|square| {
            (file..file + width).contains(&square.file()) && square.rank() >= 8 - height
        })
        .collect();
    squares.shuffle(rng);
    let mut bag: Vec<Piece> = all_pieces()
        .filter(|piece| piece.kind != Kind::Rabbit)
        .collect();
    bag.extend([Piece::new(side, Kind::Rabbit); 2]);
    bag.extend([Piece::new(side.opponent(), Kind::Rabbit); 3]);
    bag.shuffle(rng);
    let runner = squares
        .iter()
        .position(|square| matches!(square.rank(), 5 | 6))
        .unwrap();
    let mut board: Board = [(
        squares.swap_remove(runner).seen_by(side),
        Piece::new(side, Kind::Rabbit),
    )]
    .into_iter()
    .collect();
    let count = rng.random_range(1..=squares.len().min(bag.len()));
    for (square, piece) in squares.into_iter().zip(bag).take(count) {
        let arrived = piece == Piece::new(side, Kind::Rabbit) && square.rank() == 7;
        if !arrived {
            board.put(square.seen_by(side), piece);
        }
    }
    playable(board, side).unwrap_or_else(|| near_goal(rng))
}

/// A random position in which the enemy of the mover has one to three rabbits, close to traps.
pub(crate) fn near_elimination(rng: &mut ChaCha8Rng) -> Position {
    let side = *Side::ALL.choose(rng).unwrap();
    let around = Bitboard::TRAPS | Bitboard::TRAPS.neighbours();
    let place = |rng: &mut ChaCha8Rng| {
        let wide = if rng.random_bool(0.7) {
            around
        } else {
            around.neighbours()
        };
        wide.into_iter().choose(rng).unwrap()
    };
    let mut board = Board::EMPTY;
    for _ in 0..*[1, 1, 2, 2, 3].choose(rng).unwrap() {
        let square = place(rng);
        board.take(square);
        board.put(square, Piece::new(side.opponent(), Kind::Rabbit));
    }
    let mut bag: Vec<Piece> = all_pieces()
        .filter(|piece| piece.kind != Kind::Rabbit)
        .collect();
    bag.extend([Piece::new(side, Kind::Rabbit); 3]);
    bag.shuffle(rng);
    bag.truncate(rng.random_range(1..=12));
    for piece in bag {
        let square = place(rng);
        if board.empty().contains(square) {
            board.put(square, piece);
        }
    }
    playable(board, side).unwrap_or_else(|| near_elimination(rng))
}

/// A random position in which the enemy of the mover has few pieces, crowded into a corner or along an edge with pieces of the mover.
pub(crate) fn near_immobilization(rng: &mut ChaCha8Rng) -> Position {
    let side = *Side::ALL.choose(rng).unwrap();
    let (width, height) = *[(2, 4), (3, 3), (4, 2), (5, 2), (8, 2), (2, 8), (4, 4)]
        .choose(rng)
        .unwrap();
    let (east, north) = (rng.random_bool(0.5), rng.random_bool(0.5));
    let mut squares: Vec<Square> = Square::all()
        .filter(|square| {
            let (file, rank) = (square.file(), square.rank());
            let from_edge = |at: u8, is_far: bool| if is_far { 7 - at } else { at };
            from_edge(file, east) < width && from_edge(rank, north) < height
        })
        .collect();
    squares.shuffle(rng);
    let enemy = side.opponent();
    let mut board = Board::EMPTY;
    let others = rng.random_range(0..=3);
    let kinds = Kind::ALL.into_iter().sample(rng, others);
    let pieces = std::iter::once(Kind::Rabbit).chain(kinds);
    for (kind, square) in pieces.zip(squares.split_off(squares.len() - 1 - others)) {
        board.put(square, Piece::new(enemy, kind));
    }
    let mut bag: Vec<Piece> = all_pieces().filter(|piece| piece.side == side).collect();
    bag.shuffle(rng);
    let count = squares.len() - rng.random_range(0..=squares.len().min(3));
    for (square, piece) in squares.into_iter().take(count).zip(bag) {
        board.put(square, piece);
    }
    let home = Bitboard::home(side).into_iter().choose(rng).unwrap();
    if board.empty().contains(home) {
        board.put(home, Piece::new(side, Kind::Rabbit));
    }
    playable(board, side).unwrap_or_else(|| near_immobilization(rng))
}

fn all_pieces() -> impl Iterator<Item = Piece> {
    Side::ALL.into_iter().flat_map(|side| {
        Kind::ALL.into_iter().flat_map(move |kind| {
            std::iter::repeat_n(Piece::new(side, kind), kind.full_count() as usize)
        })
    })
}

/// The position without the pieces that no trap would have left, unless the game is over in it.
pub(crate) fn playable(mut board: Board, side: Side) -> Option<Position> {
    for of in Side::ALL {
        for trap in board.unsupported(of) {
            board.take(trap);
        }
    }
    Position::new(board, side)
        .ok()
        .filter(|position| position.phase() == Phase::Play && position.outcome_on_board().is_none())
}

/// A position of a random unfinished game.
pub(crate) fn from_game(rng: &mut ChaCha8Rng) -> Position {
    let game = random_game(rng.random_range(4..120), rng);
    match game.outcome() {
        None => *game.position(),
        Some(_) => from_game(rng),
    }
}
