use super::*;
use crate::ratings::simulation::{ALL_CONDITIONS, Conditions, PLAIN, SimulatedMatch};
use crate::ratings::{PairCounts, Pairs, fit_pairs};
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
    let (ratings, players) = (fit(&games, 0), linked(&games, 0));
    let problem = Problem::new(&games, &players);
    let strengths = problem.maximize();
    let slopes = problem.gradient(&strengths);
    assert!(slopes.iter().all(|slope| slope.abs() < 1e-6), "{slopes:?}");
    // A step along a column of the matrix's inverse changes one slope alone.
    for (place, player) in players.iter().enumerate() {
        let mut changes = vec![0.0; 3];
        changes[place] = 1e-5;
        let step = problem.information(&strengths).solve(changes.clone());
        let moved: Vec<f64> = strengths.iter().zip(&step).map(|(a, b)| a + b).collect();
        let moved = problem.gradient(&moved);
        for ((before, after), change) in slopes.iter().zip(moved).zip(&changes) {
            assert!((before - after - change).abs() < 1e-8);
        }
        let error = ELO * QUANTILE * (step[place] / 1e-5).sqrt();
        assert!((ratings[player].high - ratings[player].elo - error).abs() < 1e-6);
    }
}

/// Networks that each play the two before them, the first, and two anchors; 0 is `random`.
#[test]
fn players_of_known_strength_are_found_within_their_errors() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let networks = 60_u32;
    // No player is so far from the reference that it wins or loses every game.
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

fn round_robin_coverage(rounds: u32, pairs: usize, conditions: Conditions, seed: u64) -> f64 {
    coverage_of_strengths(STRENGTHS, rounds, pairs, conditions, seed)
}

/// In so many round robins of so many pairs a match, how often an interval holds the true difference from the reference.
fn coverage_of_strengths(
    strengths: [f64; 5],
    rounds: u32,
    pairs: usize,
    conditions: Conditions,
    seed: u64,
) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut covered = 0_u32;
    for _ in 0..rounds {
        let mut matches = Vec::new();
        for (a, of_a) in strengths.iter().enumerate() {
            for (b, of_b) in strengths.iter().enumerate().skip(a + 1) {
                let simulated = SimulatedMatch::new(of_a - of_b, conditions);
                let counts = simulated.pairs(pairs, &mut rng);
                matches.push(Pairs { a, b, counts });
            }
        }
        for (player, rating) in fit_pairs(&matches, 0) {
            let holds = (rating.low..=rating.high).contains(&(strengths[player] - strengths[0]));
            covered += u32::from(player != 0 && holds);
        }
    }
    f64::from(covered) / f64::from(rounds * (strengths.len() as u32 - 1))
}

#[test]
fn intervals_of_a_round_robin_cover_the_truth() {
    for conditions in ALL_CONDITIONS {
        let coverage = round_robin_coverage(150, 30, conditions, 8);
        assert!(
            (0.92..=0.985).contains(&coverage),
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
            // Little spread is believed only when many pairs show it.
            assert!((0.93..=0.99).contains(&coverage), "{pairs} {conditions:?}");
        }
    }
}

/// The coverage of the interval of two players' difference, in matches of so many pairs.
fn match_coverage(matches: u32, pairs: usize, elo: f64, conditions: Conditions, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let simulated = SimulatedMatch::new(elo, conditions);
    let mut covered = 0_u32;
    for _ in 0..matches {
        let of = Pairs {
            a: 1,
            b: 0,
            counts: simulated.pairs(pairs, &mut rng),
        };
        let rating = fit_pairs(&[of], 0)[&1];
        covered += u32::from((rating.low..=rating.high).contains(&elo));
    }
    f64::from(covered) / f64::from(matches)
}

/// The coverage of all intervals in round robins of five with so much between neighbours.
fn ladder_coverage(rounds: u32, pairs: usize, gap: f64, conditions: Conditions, seed: u64) -> f64 {
    let strengths = std::array::from_fn(|step| gap * step as f64);
    coverage_of_strengths(strengths, rounds, pairs, conditions, seed)
}

#[test]
fn intervals_of_one_sided_results_cover_the_truth() {
    for pairs in [10, 20, 50] {
        for elo in [400.0, 600.0, -800.0, 1_000.0, 1_200.0] {
            let coverage = match_coverage(400, pairs, elo, PLAIN, 3);
            assert!(coverage >= 0.92, "{pairs} {elo}: {coverage}");
        }
        let coverage = ladder_coverage(60, pairs, 400.0, PLAIN, 4);
        assert!(coverage >= 0.93, "{pairs}: {coverage}");
    }
}

#[test]
#[ignore = "a minute: 180,000 matches and 36,000 round robins"]
fn intervals_of_many_one_sided_results_cover_the_truth() {
    for conditions in ALL_CONDITIONS {
        for pairs in [10, 20, 50] {
            for elo in [400.0, 600.0, 800.0, 1_000.0, 1_200.0] {
                let coverage = match_coverage(2_000, pairs, elo, conditions, 1);
                println!(
                    "{pairs} pairs, {elo}, {conditions:?}: {:.1}%",
                    100.0 * coverage
                );
                assert!(coverage >= 0.90, "{pairs} {elo} {conditions:?}");
            }
            for gap in [200.0, 400.0, 600.0, 800.0] {
                let coverage = ladder_coverage(500, pairs, gap, conditions, 1);
                println!(
                    "{pairs} pairs, {gap} between neighbours, {conditions:?}: {:.1}%",
                    100.0 * coverage
                );
                assert!(coverage >= 0.90, "{pairs} {gap} {conditions:?}");
            }
        }
    }
}

#[test]
fn the_interval_of_a_match_is_about_that_of_its_pairs() {
    for pairs in [10, 50, 500] {
        for lost in 0..pairs {
            let counts = PairCounts::from([lost / 2, 0, lost % 2, 0, pairs - lost / 2 - lost % 2]);
            let of = Pairs { a: 1, b: 0, counts };
            let (rating, match_alone) = (fit_pairs(&[of], 0)[&1], counts.elo());
            assert!(rating.low < rating.elo && rating.elo < rating.high);
            assert!((rating.low - match_alone.low).abs() < 130.0, "{counts:?}");
            let above = rating.high - match_alone.high;
            assert!((-130.0..400.0).contains(&above), "{counts:?} {above}");
        }
    }
}

#[test]
fn anchors_that_lose_everything_do_not_change_close_matches() {
    let pairs = |a, b, counts: [u64; 5]| Pairs {
        a,
        b,
        counts: counts.into(),
    };
    let close = [pairs(3, 2, [20, 0, 40, 0, 20])];
    let swept = [2, 3].map(|network| pairs(network, 1, [0, 0, 0, 0, 500]));
    let width = |matches: &[Pairs<u32>]| {
        let rating = fit_pairs(matches, 2)[&3];
        rating.high - rating.low
    };
    let (alone, anchored) = (width(&close), width(&[close[0], swept[0], swept[1]]));
    assert!((anchored / alone - 1.0).abs() < 0.05, "{anchored} {alone}");
}

#[test]
fn skewness_alone_finds_the_ends_where_few_games_are_lost() {
    let wins = [Games {
        a: 1,
        b: 0,
        games: 1e6,
        points: 1e6 - 3.0,
    }];
    let problem = Problem::with_draws(&wins, &[1], |_| 0.0);
    let top = problem.maximize();
    let profile = profile::Profile::new(&problem, top);
    for (found, sign) in profile.near_ends(0).into_iter().zip([-1.0, 1.0]) {
        let exact = profile.end(0, sign).unwrap();
        assert!((found - exact).abs() < 1e-3, "{found} {exact}");
    }
}
