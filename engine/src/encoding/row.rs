//! A step state as bitboards and a few numbers.

use super::{CHANNELS, PLANES, SCALARS};
use arimaa::rules::{
    Bitboard, Kind, Pending, Phase, Position, StepState, capture_threats, captures, goal_threat,
};
use serde::{Deserialize, Serialize};

/// What each bitboard of an [`InputRow`] holds. "Own" is the side to move.
pub mod plane {
    /// The own pieces by kind, rabbit to elephant: six planes.
    pub const OWN: usize = 0;
    /// The enemy's pieces by kind, rabbit to elephant: six planes.
    pub const ENEMY: usize = 6;
    /// The squares of own pieces at the turn's start that hold something else, or nothing, now.
    pub const OWN_MOVED: usize = 12;
    /// The squares of enemy pieces at the turn's start that hold something else, or nothing, now.
    pub const ENEMY_MOVED: usize = 13;
    /// Inside a push: the square that must be filled now.
    pub const PUSH_SQUARE: usize = 14;
    /// Inside a push: the own pieces that may fill that square.
    pub const PUSHERS: usize = 15;
    /// After a step that a pull may follow: the square to pull to.
    pub const PULL_SQUARE: usize = 16;
    /// After a step that a pull may follow: the enemy pieces that may be pulled there.
    pub const PULLED: usize = 17;
    /// The own pieces that are frozen.
    pub const OWN_FROZEN: usize = 18;
    /// The enemy's pieces that are frozen.
    pub const ENEMY_FROZEN: usize = 19;
    /// The four traps.
    pub const TRAPS: usize = 20;
    /// The enemy's pieces that can be captured within two, three or four of the steps that are left: three planes.
    pub const CAPTURES: usize = 21;
    /// The own pieces that the enemy could capture within two, three or four steps, from the board as it stands: three planes.
    pub const CAPTURE_THREATS: usize = 24;
}

/// What each number of an [`InputRow`] says.
pub mod scalar {
    /// Four numbers, one of them 1 in play: one, two, three or four steps are left. All 0 in a setup.
    pub const STEPS_LEFT: usize = 0;
    /// Six numbers, one of them 1 in a setup: the kind to place next, rabbit to elephant. All 0 in play.
    pub const PLACEMENT: usize = 4;
    /// How often the turn's start has stood in the game before: 0, 0.5 (once) or 1 (twice).
    pub const REPETITIONS: usize = 10;
    /// 1 where the enemy could reach its goal in one turn from the board as it stands, else 0.
    pub const THREAT: usize = 11;
}

/// One position as a network sees it: bitboards and numbers, the side to move playing north.
///
/// Serialised it is the 27 bitboards in the order of [`plane`], bit `8 * rank + file`, and then the 12 numbers in the order
/// of [`scalar`]: with fixed-size little-endian integers 264 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct InputRow {
    /// The bitboards, by [`plane`].
    pub planes: [u64; PLANES],
    /// The numbers, by [`scalar`].
    pub scalars: [f32; SCALARS],
}

/// Encodes a step state. `repetitions` says how often the turn's start has stood in the game before: 0, 1 or 2.
pub fn encode(state: &StepState, repetitions: u8) -> InputRow {
    InputRow {
        planes: planes(state),
        scalars: scalars(state, repetitions),
    }
}

fn planes(state: &StepState) -> [u64; PLANES] {
    let (own, enemy) = (state.side(), state.side().opponent());
    let (board, start) = (state.board(), state.start());
    let seen = |set: Bitboard| set.seen_by(own).0;

    let mut planes = [0; PLANES];
    for kind in Kind::ALL {
        planes[plane::OWN + kind.index()] = seen(board.pieces(own, kind));
        planes[plane::ENEMY + kind.index()] = seen(board.pieces(enemy, kind));
    }
    let changed = board.difference(start);
    planes[plane::OWN_MOVED] = seen(start.side(own) & changed);
    planes[plane::ENEMY_MOVED] = seen(start.side(enemy) & changed);
    match state.pending() {
        Pending::Nothing => {}
        Pending::Push { square, pushers } => {
            planes[plane::PUSH_SQUARE] = seen(Bitboard::of(square));
            planes[plane::PUSHERS] = seen(pushers);
        }
        Pending::Pull { square, pulled } => {
            planes[plane::PULL_SQUARE] = seen(Bitboard::of(square));
            planes[plane::PULLED] = seen(pulled);
        }
    }
    planes[plane::OWN_FROZEN] = seen(board.frozen(own));
    planes[plane::ENEMY_FROZEN] = seen(board.frozen(enemy));
    planes[plane::TRAPS] = seen(Bitboard::TRAPS);
    if state.phase() == Phase::Play {
        let [captures, threats] = [captures(state), capture_threats(&position(state))];
        for steps in 2..captures.len() {
            planes[plane::CAPTURES + steps - 2] = seen(captures[steps]);
            planes[plane::CAPTURE_THREATS + steps - 2] = seen(threats[steps]);
        }
    }
    planes
}

/// The board as it stands, with the same side to move and a whole turn.
fn position(state: &StepState) -> Position {
    Position::in_play(*state.board(), state.side())
}

fn scalars(state: &StepState, repetitions: u8) -> [f32; SCALARS] {
    let mut scalars = [0.0; SCALARS];
    if let (Phase::Play, left @ 1..) = (state.phase(), state.steps_left()) {
        scalars[scalar::STEPS_LEFT + usize::from(left) - 1] = 1.0;
    }
    if let Some(kind) = state.next_placement() {
        scalars[scalar::PLACEMENT + kind.index()] = 1.0;
    }
    scalars[scalar::REPETITIONS] = f32::from(repetitions.min(2)) / 2.0;
    if state.phase() == Phase::Play {
        scalars[scalar::THREAT] = f32::from(u8::from(goal_threat(&position(state)).is_some()));
    }
    scalars
}

impl InputRow {
    /// The squares of all pieces.
    pub fn pieces(&self) -> u64 {
        let pieces = &self.planes[plane::OWN..plane::ENEMY + Kind::ALL.len()];
        pieces.iter().fold(0, |squares, &plane| squares | plane)
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        Self {
            planes: self.planes.map(|set| Bitboard(set).mirror().0),
            scalars: self.scalars,
        }
    }

    /// Unpacks the row to `[CHANNELS, 8, 8]`: channel, rank, file. The bitboards become 0 and 1, and each number fills its
    /// plane. `out` holds `CHANNELS * 64` numbers; where it is too short, nothing or less is written.
    pub fn write_planes(&self, out: &mut [f32]) {
        let (planes, scalars) = out.split_at_mut_checked(PLANES * 64).unwrap_or_default();
        for (out, &set) in planes.chunks_exact_mut(64).zip(&self.planes) {
            for (square, out) in out.iter_mut().enumerate() {
                *out = (set >> square & 1) as f32;
            }
        }
        for (out, &scalar) in scalars.chunks_exact_mut(64).zip(&self.scalars) {
            out.fill(scalar);
        }
    }

    /// Unpacks the row to `[8, 8, CHANNELS]`: rank, file, channel. `number` turns the row's numbers, 0 and 1 among them,
    /// into what the network computes with. `out` holds `CHANNELS * 64` of them; where it is too short, less is written.
    pub fn write_squares<T: Copy>(&self, number: impl Fn(f32) -> T, out: &mut [T]) {
        let mut empty = [number(0.0); CHANNELS];
        for (out, &scalar) in empty[PLANES..].iter_mut().zip(&self.scalars) {
            *out = number(scalar);
        }
        for square in out.chunks_exact_mut(CHANNELS) {
            square.copy_from_slice(&empty);
        }
        let one = number(1.0);
        for (channel, &set) in self.planes.iter().enumerate() {
            for square in Bitboard(set) {
                if let Some(out) = out.get_mut(square.index() * CHANNELS + channel) {
                    *out = one;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{random_states, state};
    use super::*;
    use arimaa::rules::{Action, Game, Side, Square, Step};

    /// The squares of a plane, as the mover sees them.
    fn named(row: &InputRow, plane: usize) -> String {
        let names: Vec<String> = Bitboard(row.planes[plane])
            .into_iter()
            .map(|square| square.to_string())
            .collect();
        names.join(" ")
    }

    fn step(state: &StepState, text: &str) -> StepState {
        let from: Square = text[..2].parse().unwrap();
        let direction =
            arimaa::rules::Direction::from_letter(text.chars().nth(2).unwrap()).unwrap();
        state.after_step(Step::new(from, direction))
    }

    #[test]
    fn the_squares_of_all_pieces_are_those_of_the_board() {
        for sample in random_states(7, 200) {
            let occupied = sample.state.board().occupied();
            let row = encode(&sample.state, 0);
            assert_eq!(row.pieces(), occupied.seen_by(sample.state.side()).0);
        }
    }

    #[test]
    fn a_push_shows_pieces_movement_and_pushers() {
        // The dog on c4 is pushed to c5, and the elephant on c3 is lost; the camel or the elephant must fill c4.
        let state = step(
            &state(Side::Gold, "Ra1 Rc1 Mb4 Ed4 Cf4 ra8 rh7 dc4 ec3 hb6"),
            "c4n",
        );
        let row = encode(&state, 1);
        let expected = [
            (plane::OWN, "a1 c1"),
            (plane::OWN + 1, "f4"),
            (plane::OWN + 4, "b4"),
            (plane::OWN + 5, "d4"),
            (plane::ENEMY, "h7 a8"),
            (plane::ENEMY + 2, "c5"),
            (plane::ENEMY + 3, "b6"),
            (plane::ENEMY_MOVED, "c3 c4"),
            (plane::PUSH_SQUARE, "c4"),
            (plane::PUSHERS, "b4 d4"),
            (plane::TRAPS, "c3 f3 c6 f6"),
        ];
        for plane in 0..PLANES {
            let squares = expected.iter().find(|(of, _)| *of == plane);
            let squares = squares.map_or("", |(_, squares)| squares);
            assert_eq!(named(&row, plane), squares, "plane {plane}");
        }
        assert_eq!(
            row.scalars,
            [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0]
        );
    }

    #[test]
    fn silver_sees_a_pull_from_its_side() {
        // Silver's horse goes from d5 to d4: the gold dogs on d6 and c5 may follow. Seen by Silver, rank 5 is rank 4.
        let state = step(&state(Side::Silver, "Ra1 Dd6 Dc5 Mc7 rh8 hd5 cb7"), "d5s");
        let row = encode(&state, 2);
        for (plane, squares) in [
            (plane::OWN, "h1"),
            (plane::OWN + 1, "b2"),
            (plane::OWN + 3, "d5"),
            (plane::ENEMY, "a8"),
            (plane::ENEMY + 2, "d3 c4"),
            (plane::ENEMY + 4, "c2"),
            (plane::OWN_MOVED, "d4"),
            (plane::ENEMY_MOVED, ""),
            (plane::PUSH_SQUARE, ""),
            (plane::PUSHERS, ""),
            (plane::PULL_SQUARE, "d4"),
            (plane::PULLED, "d3 c4"),
            (plane::OWN_FROZEN, "b2"),
            (plane::ENEMY_FROZEN, ""),
        ] {
            assert_eq!(named(&row, plane), squares, "plane {plane}");
        }
        assert_eq!(row.scalars[scalar::STEPS_LEFT + 2], 1.0);
        assert_eq!(row.scalars[scalar::REPETITIONS], 1.0);
    }

    #[test]
    fn captures_are_shown_by_the_number_of_steps() {
        // The horse pushes the rabbit on b3 into the trap in two steps, the dog the one on h3 in four. The silver
        // horse can push the rabbit on g6.
        let start = state(Side::Gold, "Ra1 Hb4 rb3 Dh4 rh3 Rg6 hg5 rh8");
        let shown = |state: &StepState, first: usize| {
            let row = encode(state, 0);
            [0, 1, 2].map(|count| named(&row, first + count))
        };
        assert_eq!(shown(&start, plane::CAPTURES), ["b3", "b3", "b3 h3"]);
        assert_eq!(shown(&start, plane::CAPTURE_THREATS), ["g6"; 3]);
        // Behind two steps of the rabbit two are left, behind three one.
        let late = step(&step(&start, "a1n"), "a2n");
        assert_eq!(shown(&late, plane::CAPTURES), ["b3"; 3]);
        let last = step(&late, "a3n");
        assert_eq!(shown(&last, plane::CAPTURES), [""; 3]);
        assert_eq!(shown(&last, plane::CAPTURE_THREATS), ["g6"; 3]);
    }

    #[test]
    fn frozen_pieces_of_both_sides_are_shown() {
        // Worked case 2 of the rules: two frozen rabbits, a frozen horse that freezes another rabbit.
        let state = state(Side::Gold, "Da6 Rb7 Hd6 Ra1 ra7 db6 ed5 re6 rh8");
        let row = encode(&state, 0);
        assert_eq!(named(&row, plane::OWN_FROZEN), "d6 b7");
        assert_eq!(named(&row, plane::ENEMY_FROZEN), "e6 a7");
        assert_eq!(row.scalars[scalar::STEPS_LEFT + 3], 1.0);
    }

    #[test]
    fn a_threat_is_the_enemys_goal_on_the_board_as_it_stands() {
        // The rabbit on b3 has two steps to go; the dog can close its way, and freeze it from the side.
        let threatened = state(Side::Gold, "Ra7 Db1 rb3");
        let threat = |state: &StepState| encode(state, 0).scalars[scalar::THREAT];
        assert_eq!(threat(&threatened), 1.0);
        let closed = step(&step(&threatened, "b1e"), "c1n");
        assert_eq!(
            threat(&closed),
            1.0,
            "from c2 the dog stands beside its way, not on it"
        );
        let frozen = step(&closed, "c2w");
        assert_eq!(
            threat(&frozen),
            0.0,
            "from b2 it is on its path and freezes it"
        );
        // The own goal is no threat.
        assert_eq!(threat(&state(Side::Silver, "Ra5 Db1 rb8 ch8")), 1.0);
        assert_eq!(threat(&state(Side::Gold, "Ra6 Db1 rb8 ch8")), 0.0);
    }

    #[test]
    fn a_setup_shows_the_kind_to_place() {
        let mut state = StepState::new(Game::new().position());
        let shown: Vec<usize> = ["e2", "d2", "b2", "g2"]
            .into_iter()
            .map(|square| {
                let row = encode(&state, 0);
                assert_eq!(row.scalars[..scalar::PLACEMENT], [0.0; 4]);
                let kinds = &row.scalars[scalar::PLACEMENT..scalar::REPETITIONS];
                assert_eq!(kinds.iter().sum::<f32>(), 1.0);
                state = state.after(Action::Place(square.parse().unwrap()));
                kinds.iter().position(|&kind| kind == 1.0).unwrap()
            })
            .collect();
        assert_eq!(shown, [5, 4, 3, 3], "elephant, camel, horse, horse");
        let row = encode(&state, 0);
        assert_eq!(named(&row, plane::OWN + 3), "b2 g2");
        assert_eq!(named(&row, plane::OWN_MOVED), "", "nothing has moved");
    }

    #[test]
    fn the_mirror_and_the_exchange_of_colours_are_exact() {
        let mut rows = Vec::new();
        for sample in random_states(1, 3_000) {
            let row = encode(&sample.state, sample.repetitions);
            assert_eq!(
                encode(&sample.state.mirror(), sample.repetitions),
                row.mirror()
            );
            assert_eq!(
                encode(&sample.state.swap_colours(), sample.repetitions),
                row
            );
            rows.push(row);
        }
        // Every plane is used, so that equality says something.
        for plane in 0..PLANES {
            assert!(rows.iter().any(|row| row.planes[plane] != 0), "{plane}");
        }
        assert!(rows.iter().any(|row| row.mirror() != *row));
        let threats = rows.iter().filter(|row| row.scalars[scalar::THREAT] == 1.0);
        assert!((1..rows.len()).contains(&threats.count()));
    }

    #[test]
    fn rows_unpack_to_channels_of_ranks_of_files() {
        let state = state(Side::Gold, "Ed2 Rh1 ra8 ch7");
        let row = encode(&state, 1);
        let mut planes = vec![7.0; CHANNELS * 64];
        row.write_planes(&mut planes);
        let at = |channel: usize, rank: usize, file: usize| planes[channel * 64 + rank * 8 + file];
        assert_eq!(at(plane::OWN + 5, 1, 3), 1.0, "the elephant on d2");
        assert_eq!(at(plane::OWN + 5, 3, 1), 0.0);
        assert_eq!(at(plane::ENEMY + 1, 6, 7), 1.0, "the silver cat on h7");
        assert_eq!(
            planes.iter().filter(|&&number| number == 1.0).count(),
            4 + 4 + 64
        );
        assert_eq!(planes.iter().filter(|&&number| number == 0.5).count(), 64);
        assert!((0..64).all(|square| planes[(PLANES + scalar::REPETITIONS) * 64 + square] == 0.5));

        let mut squares = vec![7.0; CHANNELS * 64];
        row.write_squares(|number| number, &mut squares);
        for channel in 0..CHANNELS {
            for square in 0..64 {
                assert_eq!(
                    squares[square * CHANNELS + channel],
                    planes[channel * 64 + square]
                );
            }
        }
    }
}
