//! Whole games of the search against itself, and searches that are repeated: every turn is legal, and the seed alone decides.

#[path = "../arimaa/tests/boards/mod.rs"]
mod boards;
mod exact;

use arimaa::rules::{Game, Position, Reason};
use boards::from_game;
use engine::config::SearchMode;
use engine::search::{Decision, Search, Uniform, run_search, search_turn};
use exact::{MODES, Purpose, decide, options};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;

/// The turns, setups included, after which a game is left unfinished.
const MAX_TURNS: usize = 1_000;

/// Plays a game to its end; every turn is checked by the rules.
fn play(mode: SearchMode, seed: u64) -> Game {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let options = options(mode, Purpose::Learning, 16);
    let mut game = Game::new();
    while game.outcome().is_none() && game.turns().len() < MAX_TURNS {
        let (position, history) = (game.position(), game.history());
        let decision = search_turn(&mut Uniform, position, history, options, &mut rng).unwrap();
        let is_value = (0.0..=1.0).contains(&decision.value);
        assert!(is_value, "{mode:?}, game {seed}: {decision:?}\n{game}");
        if let Err(error) = game.play(&decision.turn) {
            panic!(
                "{mode:?}, game {seed}: {error}: {} in\n{game}",
                decision.turn
            );
        }
    }
    game
}

/// The most bytes that the tree of a game at 16 evaluations a turn may take: what is kept from turn to turn does not pile up.
const MAX_BYTES: usize = 100_000;

/// The same with one search a game, which keeps what it found below the turns that were played.
fn play_on(mode: SearchMode, seed: u64) -> Game {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let options = options(mode, Purpose::Learning, 16);
    let mut game = Game::new();
    let mut search = Search::new(game.position(), game.history(), options).unwrap();
    while game.outcome().is_none() && game.turns().len() < MAX_TURNS {
        let history = game.history().clone();
        search
            .reuse_tree(game.position(), &history, options)
            .unwrap();
        let decision = run_search(&mut search, &mut Uniform, &history, &mut rng).unwrap();
        let is_value = (0.0..=1.0).contains(&decision.value);
        assert!(is_value, "{mode:?}, game {seed}: {decision:?}\n{game}");
        assert!(search.bytes() <= MAX_BYTES, "{} bytes", search.bytes());
        if let Err(error) = game.play(&decision.turn) {
            panic!(
                "{mode:?}, game {seed}: {error}: {} in\n{game}",
                decision.turn
            );
        }
    }
    game
}

/// Plays so many games in each mode; all of them end, by more than one of the rules.
fn play_all(play: fn(SearchMode, u64) -> Game, games: u64) {
    for mode in MODES {
        let games: Vec<Game> = (0..games)
            .into_par_iter()
            .map(|seed| play(mode, seed))
            .collect();
        let by = |reason| {
            let ended = games.iter().filter_map(Game::outcome);
            ended.filter(|outcome| outcome.reason == reason).count()
        };
        let (goals, eliminations) = (by(Reason::Goal), by(Reason::Elimination));
        let immobilizations = by(Reason::Immobilization);
        let turns: usize = games.iter().map(|game| game.turns().len()).sum();
        println!(
            "{mode:?}: {} games, {turns} turns, {goals} goals, {eliminations} eliminations, {immobilizations} immobilizations",
            games.len()
        );
        assert_eq!(goals + eliminations + immobilizations, games.len());
        assert!(goals > 0, "{mode:?}");
    }
}

#[test]
fn whole_games_are_legal() {
    play_all(play, 40);
}

#[test]
#[ignore = "minutes on two cores: 10,000 games"]
fn ten_thousand_whole_games_are_legal() {
    play_all(play, 10_000);
}

#[test]
fn whole_games_with_a_kept_tree_are_legal() {
    play_all(play_on, 40);
}

#[test]
#[ignore = "minutes on two cores: 10,000 games"]
fn ten_thousand_whole_games_with_a_kept_tree_are_legal() {
    play_all(play_on, 10_000);
}

#[test]
fn the_seed_alone_decides() {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let mut positions: Vec<Position> = (0..15).map(|_| from_game(&mut rng)).collect();
    positions.push(Position::INITIAL);
    for mode in MODES {
        let of = |seed: u64, position: &Position| -> Decision {
            decide(
                &mut Uniform,
                position,
                options(mode, Purpose::Learning, 200),
                seed,
            )
        };
        let alone: Vec<Decision> = positions.iter().map(|position| of(1, position)).collect();
        let again: Vec<Decision> = positions
            .par_iter()
            .map(|position| of(1, position))
            .collect();
        assert_eq!(alone, again, "{mode:?}");
        let otherwise: Vec<Decision> = positions
            .par_iter()
            .map(|position| of(2, position))
            .collect();
        assert_ne!(alone, otherwise, "{mode:?}: the seed decides nothing");
    }
}
