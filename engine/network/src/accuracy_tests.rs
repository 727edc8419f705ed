//! What a network says when it plays, held against what it says itself in fp32, on real positions.

use super::*;
use crate::batch::unpack_rows;
use crate::evaluator::tests::{evaluate, evaluator};
use crate::model::tests::{cpu_precisions, decided_network};
use crate::positions::real_positions;
use crate::precision::cpu_computes_bf16;
use crate::prepare::Prepared;
use arimaa::rules::{ActionSet, History, Side, StepState};
use engine::encoding::{InputRow, LegalMask, MIRRORED_INDICES, encode};
use engine::search::{Evaluation, Query};
use tch::no_grad;

/// Changes the numbers of a tensor.
fn change(network: &Network, name: &str, change: impl Fn(&mut tch::Tensor)) {
    let parameter = network.parameters().find(|found| found.name == name);
    no_grad(|| change(&mut parameter.unwrap().tensor.shallow_clone()));
}

fn rows(queries: &[Query]) -> Vec<InputRow> {
    let rows = queries
        .iter()
        .map(|query| encode(&query.state, query.repetitions));
    rows.collect()
}

/// What the unfolded network says in fp32: Gold's win probability, and the policy over the legal actions.
fn reference(network: &Network, queries: &[Query]) -> Vec<(f64, Vec<f64>)> {
    let planes = unpack_rows(&rows(queries), tch::Device::Cpu).unwrap();
    let outputs = no_grad(|| network.forward_eval(&planes).unwrap());
    let answer = |(row, query): (usize, &Query)| {
        let row = row as i64;
        let value = outputs.value_logit.sigmoid().double_value(&[row]);
        let weights: Vec<f64> = LegalMask::new(&query.legal, query.side())
            .indices()
            .map(|index| outputs.policy.double_value(&[row, index as i64]).exp())
            .collect();
        let sum: f64 = weights.iter().sum();
        let value = match query.side() {
            Side::Gold => value,
            Side::Silver => 1.0 - value,
        };
        (value, weights.iter().map(|weight| weight / sum).collect())
    };
    queries.iter().enumerate().map(answer).collect()
}

/// The root mean square error of the values, and the mean divergence of the policies, on 1,000 positions.
fn compare(network: &Network, precision: Precision) -> (f64, f64) {
    compare_with(network, &mut evaluator(network, precision))
}

/// The same of another network's evaluator.
fn compare_with(network: &Network, other: &mut NetworkEvaluator) -> (f64, f64) {
    let queries = real_positions(1_000).unwrap();
    let answers = evaluate(other, &queries);
    let (mut value_error, mut divergence) = (0f64, 0.0);
    let (mut lowest, mut highest, mut peaked) = (1f64, 0f64, 0);
    for (index, (value, policy)) in reference(network, &queries).into_iter().enumerate() {
        let Evaluation {
            value: answer,
            priors,
            ..
        } = answers.get(index).unwrap();
        assert_eq!(priors.len(), policy.len());
        assert!((priors.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        value_error += (f64::from(answer) - value).powi(2) / 1_000.0;
        let terms = policy
            .iter()
            .zip(priors)
            .map(|(p, &q)| p * (p / f64::from(q)).ln());
        divergence += terms.sum::<f64>() / 1_000.0;
        (lowest, highest) = (lowest.min(value), highest.max(value));
        peaked += usize::from(policy.iter().any(|&p| p > 3.0 / policy.len() as f64));
    }
    assert!(
        lowest < 0.3 && highest > 0.7 && peaked > 250,
        "{lowest} {highest} {peaked}"
    );
    (value_error.sqrt(), divergence)
}

#[test]
fn the_folded_and_cast_network_gives_the_same_answers() {
    let network = decided_network(4, 32);
    let (value_error, divergence) = compare(&network, Precision::Fp32);
    assert!(
        value_error < 1e-5 && divergence < 1e-7,
        "fp32: {value_error} {divergence}"
    );
    if !cpu_computes_bf16() {
        return;
    }
    let (value_error, divergence) = compare(&network, Precision::Bf16);
    assert!(
        value_error <= 0.01 && divergence <= 0.01,
        "bf16: {value_error} {divergence}"
    );
    assert!(value_error > 1e-4, "bf16 is not fp32");
    let checked = evaluator(&network, Precision::Bf16).drift();
    assert!(checked.value_error > 1e-4 && checked.value_error <= 0.01);
    assert!(checked.divergence > 1e-7);
}

/// What a drift costs in play: rounds the built-in network's numbers to fewer and fewer bits, says how far each is from itself, and
/// writes them for matches (`selfplay pit --a FILE --b tusker`). The bounds of [`Drift`] come from there.
#[test]
#[ignore = "writes networks into target/rounded"]
fn rounded_networks_for_matches() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/rounded");
    std::fs::create_dir_all(&folder).unwrap();
    let network = Network::built_in().unwrap().network;
    println!("| | RMS of the values | divergence of the policies |");
    let (value_error, divergence) = compare(&network, Precision::Bf16);
    println!("| computed in bf16 | {value_error:.4} | {divergence:.5} |");
    for bits in [7, 5, 4, 3, 2] {
        let rounded = network.copy().unwrap();
        for parameter in rounded.parameters() {
            let _no_grad = tch::no_grad_guard();
            let mut tensor = parameter.tensor.shallow_clone();
            let numbers = Vec::<f32>::try_from(tensor.contiguous().view([-1])).unwrap();
            let numbers: Vec<f32> = numbers
                .into_iter()
                .map(|number| round(number, bits))
                .collect();
            tensor.copy_(&tch::Tensor::from_slice(&numbers).view_as(&tensor));
        }
        let mut evaluator = evaluator(&rounded, Precision::Fp32);
        let (value_error, divergence) = compare_with(&network, &mut evaluator);
        println!("| {bits} bits | {value_error:.4} | {divergence:.5} |");
        let path = folder.join(format!("bits-{bits}.safetensors"));
        rounded.save(&path, &Origin::default()).unwrap();
    }
}

/// A number with so many bits behind the first one.
fn round(number: f32, bits: u32) -> f32 {
    let dropped = 23 - bits;
    f32::from_bits((number.to_bits() + (1 << (dropped - 1))) >> dropped << dropped)
}

/// A query of a state that `turned` makes of another.
fn turned(query: &Query, turned: impl Fn(&StepState) -> StepState) -> Query {
    let state = turned(&query.state);
    Query {
        state,
        legal: state.legal_actions(&History::default()),
        ..*query
    }
}

/// Real positions, legality without the game before.
fn queries_without_history(count: usize) -> Vec<Query> {
    let queries = real_positions(count).unwrap();
    let queries = queries.iter().map(|query| turned(query, |&state| state));
    queries
        .filter(|query| query.legal != ActionSet::default())
        .collect()
}

#[test]
fn exchanged_colours_get_the_answer_of_the_other_side() {
    let network = decided_network(2, 16);
    let queries = queries_without_history(1_000);
    assert!(queries.len() > 900);
    let swapped: Vec<_> = queries
        .iter()
        .map(|query| turned(query, StepState::swap_colours))
        .collect();
    for &precision in cpu_precisions() {
        let mut evaluator = evaluator(&network, precision);
        let here = evaluate(&mut evaluator, &queries);
        let there = evaluate(&mut evaluator, &swapped);
        for (index, query) in queries.iter().enumerate() {
            let (one, other) = (here.get(index).unwrap(), there.get(index).unwrap());
            assert_eq!(one.priors, other.priors);
            match query.side() {
                Side::Gold => assert_eq!(1.0 - one.value, other.value),
                Side::Silver => assert_eq!(one.value, 1.0 - other.value),
            }
        }
    }
}

#[test]
fn a_mirrored_network_plays_a_mirrored_position_alike() {
    let network = decided_network(3, 16);
    let queries = queries_without_history(1_000);
    let mirrored: Vec<_> = queries
        .iter()
        .map(|query| turned(query, StepState::mirror))
        .collect();
    let here = evaluate(&mut evaluator(&network, Precision::Fp32), &queries);
    let there = evaluate(
        &mut evaluator(&network.mirrored(), Precision::Fp32),
        &mirrored,
    );
    let indices = |query: &Query| LegalMask::new(&query.legal, query.side()).indices();
    for (index, query) in queries.iter().enumerate() {
        let (one, other) = (here.get(index).unwrap(), there.get(index).unwrap());
        assert!((one.value - other.value).abs() < 1e-5);
        let back: Vec<_> = indices(&mirrored[index]).collect();
        for (entry, prior) in indices(query).zip(one.priors) {
            let entry = usize::from(MIRRORED_INDICES[entry]);
            let found = back.iter().position(|&back| back == entry).unwrap();
            assert!((prior - other.priors[found]).abs() < 1e-5);
        }
    }
}

/// A network that is nothing like itself in bf16: the tower's numbers stand so far from 0 that their digits don't reach the
/// differences between them, which the heads' norms, in fp32, bring out again.
fn drifting_network() -> Network {
    let mut network = decided_network(2, 16);
    change(&network, "blocks.1.second.norm.bias", |bias| {
        let _ = bias.fill_(500.0);
    });
    let planes = unpack_rows(&rows(&real_positions(64).unwrap()), tch::Device::Cpu).unwrap();
    no_grad(|| {
        for _ in 0..60 {
            network.forward_train(&planes, &PerHead::playing()).unwrap();
        }
    });
    network
}

#[test]
fn a_network_that_drifts_is_refused_by_name() {
    let network = drifting_network();
    // In fp32 it is itself.
    let fine = evaluator(&network, Precision::Fp32);
    assert_eq!(fine.precision(), Precision::Fp32);
    assert!(fine.notes().is_empty());
    if !cpu_computes_bf16() {
        return;
    }
    let refused = NetworkEvaluator::new(&network, Precision::Bf16, "a.safetensors");
    let message = refused.unwrap_err().to_string();
    for part in [
        "a.safetensors: ",
        " in bf16 on cpu ",
        "at most 1e-2",
        "drifts",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn an_automatic_choice_that_drifts_gives_way_to_fp32_and_says_so() {
    if !cpu_computes_bf16() {
        return;
    }
    let choices = [Precision::Bf16, Precision::Fp32];
    let prepare = |network: &Network| Prepared::try_choices(network, Device::Cpu, &choices, "a");
    let prepared = prepare(&drifting_network()).unwrap();
    assert_eq!(prepared.precision, Precision::Fp32);
    let [note] = prepared.notes.as_slice() else {
        panic!("{:?}", prepared.notes)
    };
    assert!(
        note.contains("bf16 on cpu") && note.ends_with("computed in fp32 instead"),
        "{note}"
    );

    let prepared = prepare(&decided_network(2, 16)).unwrap();
    assert_eq!(prepared.precision, Precision::Bf16);
    assert!(prepared.notes.is_empty());
}

#[test]
fn nan_in_a_layer_names_the_layer() {
    // Tests run side by side.
    set_single_threaded();
    for (tensor, place) in [
        ("input.weight", "layer input"),
        ("blocks.0.first.norm.bias", "layer blocks.0.first"),
        ("blocks.1.pooling.weight", "layer blocks.1.second"),
        ("policy.end.bias", "the policy head"),
        ("value.output.bias", "the value head"),
    ] {
        for number in [f64::NAN, f64::INFINITY] {
            let sizes = Architecture {
                blocks: 2,
                channels: 8,
            };
            let network = Network::new(sizes, 1).unwrap();
            change(&network, tensor, |tensor| {
                let _ = tensor.fill_(number);
            });
            let made = NetworkEvaluator::new(&network, Precision::Auto, "a");
            let message = made.unwrap_err().to_string();
            assert!(
                message.starts_with("a: ") && message.contains(&format!("{place} gives numbers")),
                "{tensor}: {message}"
            );
        }
    }
}
