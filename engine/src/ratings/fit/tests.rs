use super::*;
use crate::ratings::PairTable;
use crate::ratings::simulation::{ALL_CONDITIONS, Conditions, SimulatedMatch};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn of(a: u32, b: u32, games: f64, points: f64) -> Games<u32> {
    Games {
        a,
        b,
        games,
        points,
    }
}

#[test]
fn two_players_are_rated_as_by_hand() {
    // With a virtual draw for each: 31 points of 42.
    let ratings = fit(&[of(7, 1, 40.0, 30.0)], 1);
    let rating = ratings[&7];
    assert!((rating.elo - 400.0 * (31.0_f64 / 11.0).log10()).abs() < 1e-6);
    let error = 1.959_964 * 400.0 / 10f64.ln() / (31.0_f64 * 11.0 / 42.0).sqrt();
    assert!(
        (rating.high - rating.elo - error).abs() < 1e-6,
        "{rating:?}"
    );
    assert!((rating.elo - rating.low - error).abs() < 1e-6, "{rating:?}");
    assert_eq!(ratings[&1].elo, 0.0);
    // From the other side it is the same.
    let turned = fit(&[of(1, 7, 40.0, 10.0)], 7)[&1];
    assert!((turned.elo + rating.elo).abs() < 1e-6);
}

#[test]
fn what_is_always_won_is_finite_and_what_is_not_linked_has_no_rating() {
    let games = [
        of(1, 0, 100.0, 100.0),
        of(2, 1, 100.0, 100.0),
        of(8, 9, 10.0, 5.0),
        of(9, 9, 0.0, 0.0),
    ];
    let ratings = fit(&games, 0);
    assert_eq!(ratings.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    assert!((400.0..1_500.0).contains(&ratings[&1].elo), "{ratings:?}");
    assert!(ratings[&2].elo > ratings[&1].elo + 400.0, "{ratings:?}");
    assert!(ratings[&2].high.is_finite());
    assert!(fit::<u32>(&[], 3).len() == 1);
}

#[test]
fn the_likelihood_is_flat_at_the_ratings() {
    let games = [
        of(1, 0, 20.0, 15.0),
        of(2, 0, 20.0, 19.5),
        of(2, 1, 10.0, 6.0),
        of(3, 2, 30.0, 8.0),
        of(3, 1, 4.0, 4.0),
    ];
    let problem = Problem::new(&games, &linked(&games, 0));
    let strengths = problem.maximize();
    for slope in problem.gradient(&strengths) {
        assert!(slope.abs() < 1e-6, "{slope}");
    }
    // The matrix times its inverse's columns gives the unit matrix, of which the diagonal is compared.
    let variances = problem.information(&strengths).inverse_diagonal();
    for (place, variance) in variances.into_iter().enumerate() {
        let mut unit = vec![0.0; 3];
        unit[place] = 1.0;
        let column = problem.information(&strengths).solve(unit);
        assert!((column[place] - variance).abs() < 1e-9);
    }
}

/// Networks that each play the two before them, the first, and two anchors; 0 is `random`.
#[test]
fn players_of_known_strength_are_found_within_their_errors() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let networks = 60_u32;
    // Nobody is so far from the reference that nothing is ever lost.
    let truth = |player: u32| match player {
        0 => 0.0,
        1 => 200.0,
        network => 150.0 + 5.0 * f64::from(network),
    };
    let mut games = Vec::new();
    for network in 2..2 + networks {
        let last = (network.saturating_sub(2).max(2)..network).chain([0, 1, 2]);
        for opponent in last.filter(|&opponent| opponent != network) {
            let difference = truth(network) - truth(opponent);
            let chance = 1.0 / (1.0 + 10f64.powf(-difference / 400.0));
            let points = (0..100).filter(|_| rng.random_bool(chance)).count();
            games.push(of(network, opponent, 100.0, points as f64));
        }
    }
    let ratings = fit(&games, 0);
    assert_eq!(ratings.len(), 2 + networks as usize);
    let covered = ratings.iter().filter(|(player, rating)| {
        assert!(rating.high - rating.low < 200.0, "{rating:?}");
        (rating.low..=rating.high).contains(&truth(**player))
    });
    let covered = covered.count();
    assert!(covered >= 54, "{covered} of {}", ratings.len());
}

/// The strengths of a round robin's players, in Elo points; the first is the reference.
const STRENGTHS: [f64; 5] = [0.0, -150.0, 60.0, 120.0, 250.0];

/// In so many round robins of so many pairs a match, how often an interval holds the true difference from the reference.
fn round_robin_coverage(rounds: u32, pairs: usize, conditions: Conditions, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut covered = 0_u32;
    for _ in 0..rounds {
        let mut table = PairTable::default();
        for (a, of_a) in STRENGTHS.iter().enumerate() {
            for (b, of_b) in STRENGTHS.iter().enumerate().skip(a + 1) {
                let simulated = SimulatedMatch::new(of_a - of_b, conditions);
                for _ in 0..pairs {
                    table.add(a, b, simulated.pair(&mut rng));
                }
            }
        }
        for (player, rating) in table.ratings(0) {
            let holds = (rating.low..=rating.high).contains(&STRENGTHS[player]);
            covered += u32::from(player != 0 && holds);
        }
    }
    f64::from(covered) / f64::from(rounds * (STRENGTHS.len() as u32 - 1))
}

#[test]
fn intervals_of_a_round_robin_cover_the_truth() {
    for conditions in ALL_CONDITIONS {
        let coverage = round_robin_coverage(150, 30, conditions, 8);
        assert!(
            (0.92..=0.98).contains(&coverage),
            "{conditions:?}: {coverage}"
        );
    }
}

#[test]
#[ignore = "a minute: 24,000 round robins"]
fn intervals_of_1000_round_robins_cover_the_truth() {
    for pairs in [10, 20, 50, 100] {
        for conditions in ALL_CONDITIONS {
            let coverage = round_robin_coverage(1_000, pairs, conditions, 9);
            println!("{pairs} pairs, {conditions:?}: {:.1}%", 100.0 * coverage);
            assert!((0.93..=0.97).contains(&coverage), "{pairs} {conditions:?}");
        }
    }
}
