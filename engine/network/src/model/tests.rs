use super::*;
use crate::batch::unpack_rows;
use crate::device::set_single_threaded;
use crate::heads::{Head, HeadOutput};
use crate::precision::cpu_computes_bf16;
use crate::samples::{Sample, random_states};
use engine::config::Precision;
use engine::encoding::{InputRow, LegalMask, POLICY_SIZE, encode};
use tch::no_grad;

pub(in super::super) fn rows(samples: &[Sample]) -> Vec<InputRow> {
    samples
        .iter()
        .map(|sample| encode(&sample.state, sample.repetitions))
        .collect()
}

fn architecture(blocks: u32, channels: u32) -> Architecture {
    Architecture { blocks, channels }
}

/// The precisions that this CPU computes in.
pub(in super::super) fn cpu_precisions() -> &'static [Precision] {
    let all = &[Precision::Fp32, Precision::Bf16];
    if cpu_computes_bf16() { all } else { &all[..1] }
}

/// A network like a trained one: its running statistics are those of real positions, and its outputs differ widely.
pub(in super::super) fn decided_network(blocks: u32, channels: u32) -> Network {
    // Tests run side by side.
    set_single_threaded();
    let mut network = Network::new(architecture(blocks, channels), 5).unwrap();
    let planes = unpack_rows(&rows(&random_states(6, 256)), Device::Cpu).unwrap();
    no_grad(|| {
        for _ in 0..60 {
            network.forward_train(&planes, &PerHead::ALL).unwrap();
        }
        decide(&network);
    });
    network
}

/// Gives the heads' last weights, which start at 0, random numbers.
fn decide(network: &Network) {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for (spec, tensor) in &network.tensors {
        if spec.role == (Role::Weight { gain: 0.0 }) {
            let numbers = initial_values_of(spec, 1.2, &mut random);
            let numbers = Tensor::from_slice(&numbers).view(spec.shape.as_slice());
            tensor.shallow_clone().copy_(&numbers);
        }
    }
}

fn to_vec(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.detach().contiguous().view([-1])).unwrap()
}

#[test]
fn equal_seeds_make_equal_networks() {
    let weights = |seed| {
        let network = Network::new(architecture(2, 8), seed).unwrap();
        let all = network.tensors.iter();
        all.flat_map(|(_, tensor)| to_vec(tensor))
            .collect::<Vec<f32>>()
    };
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
}

#[test]
fn initial_values_follow_the_roles() {
    let network = Network::new(architecture(2, 64), 1).unwrap();
    for (spec, tensor) in &network.tensors {
        let numbers = to_vec(tensor);
        match spec.role {
            Role::Weight { gain } if numbers.len() > 5_000 => {
                let square = numbers.iter().map(|x| f64::from(x * x)).sum::<f64>();
                let deviation = (square / numbers.len() as f64).sqrt();
                let expected = gain * (2.0 / spec.inputs() as f64).sqrt();
                assert!((deviation / expected - 1.0).abs() < 0.1, "{}", spec.name);
            }
            Role::Weight { gain } => {
                assert_eq!(numbers.iter().any(|&x| x != 0.0), gain > 0.0);
            }
            Role::Bias | Role::Mean => assert!(numbers.iter().all(|&x| x == 0.0)),
            Role::Scale | Role::Variance => assert!(numbers.iter().all(|&x| x == 1.0)),
        }
    }
    for parameter in network.parameters() {
        let weight = parameter.name.ends_with("weight") && !parameter.name.contains("norm");
        assert_eq!(parameter.decay, weight, "{}", parameter.name);
    }
    let count: usize = network
        .parameters()
        .map(|parameter| parameter.tensor.numel())
        .sum();
    assert_eq!(network.parameter_count(), count);
    assert!(network.buffers().all(|(name, _)| name.contains("norm")));
}

#[test]
fn all_tensors_are_views_of_one() {
    // With 9 channels no length is a multiple of 4.
    for channels in [8, 9] {
        let network = Network::new(architecture(2, channels), 1).unwrap();
        network.set_requires_grad(true).unwrap();
        let count = network.flat().numel() as i64;
        let places = Tensor::arange(count, (Kind::Float, Device::Cpu));
        network.flat().shallow_clone().copy_(&places);
        let sorted = |tensors: &mut dyn Iterator<Item = &Tensor>| {
            let mut numbers: Vec<i64> = tensors
                .flat_map(to_vec)
                .map(|number| number as i64)
                .collect();
            numbers.sort();
            numbers
        };
        let mut all = network.tensors().iter().map(|(_, tensor)| tensor);
        assert_eq!(sorted(&mut all), Vec::from_iter(0..count));
        let mut trained = network.parameters().map(|parameter| parameter.tensor);
        assert_eq!(
            sorted(&mut trained),
            sorted(&mut [&network.trained().unwrap()].into_iter())
        );
        let decayed = network.parameters().filter(|parameter| parameter.decay);
        assert_eq!(
            sorted(&mut decayed.map(|parameter| parameter.tensor)),
            sorted(&mut [&network.decayed().unwrap()].into_iter())
        );
        let mut buffers = network.buffers().map(|(_, tensor)| tensor);
        assert_eq!(
            sorted(&mut buffers),
            sorted(&mut [&network.statistics().unwrap()].into_iter())
        );
        assert!(network.parameters().all(|one| one.tensor.requires_grad()));
        assert!(!network.flat().requires_grad());
    }
}

#[test]
fn tensors_for_the_parameters_lie_like_the_parameters() {
    let network = Network::new(architecture(2, 9), 1).unwrap();
    // Whatever their layout in memory is; the last is left out.
    let tensors = network.parameters().map(|parameter| match parameter.name {
        "helpers.reply.end.bias" => Tensor::new(),
        _ => parameter.tensor.contiguous() + 1.0,
    });
    let tensors: Vec<Tensor> = tensors.collect();
    let flat = network.flatten(&tensors).unwrap();
    let expected = network.trained().unwrap() + 1.0;
    let mut left_out = network.unflatten(&expected).unwrap().pop().unwrap();
    let _ = left_out.zero_();
    assert_eq!(to_vec(&flat), to_vec(&expected));
    for (one, other) in network.unflatten(&flat).unwrap().iter().zip(&tensors) {
        assert!(!other.defined() || one.equal(other));
    }
}

#[test]
fn sizes_out_of_range_are_refused() {
    for (blocks, channels, key) in [(0, 64, "blocks"), (101, 64, "blocks"), (1, 7, "channels")] {
        let error = Network::new(architecture(blocks, channels), 1).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn copies_are_equal_and_independent() {
    let network = Network::new(architecture(1, 8), 1).unwrap();
    let copy = network.copy().unwrap();
    let first = |network: &Network| to_vec(network.parameters().next().unwrap().tensor);
    assert_eq!(first(&network), first(&copy));
    no_grad(|| {
        let parameter = copy.parameters().next().unwrap();
        let _ = parameter.tensor.shallow_clone().fill_(7.0);
    });
    assert_ne!(first(&network), first(&copy));
}

#[test]
fn training_mode_moves_the_running_statistics_towards_the_batch() {
    let mut network = Network::new(architecture(1, 8), 1).unwrap();
    no_grad(|| decide(&network));
    let planes = unpack_rows(&rows(&random_states(6, 128)), Device::Cpu).unwrap();
    let difference = |network: &mut Network| {
        let statistics: Vec<Vec<f32>> = network
            .buffers()
            .map(|(_, tensor)| to_vec(tensor))
            .collect();
        let trained = network.forward_train(&planes, &PerHead::ALL).unwrap();
        assert!(
            network
                .buffers()
                .zip(&statistics)
                .all(|((_, now), then)| to_vec(now) != *then)
        );
        let evaluated = network.forward_eval(&planes).unwrap();
        (trained[Head::Policy].as_ref().unwrap() - evaluated.policy)
            .abs()
            .max()
            .double_value(&[])
    };
    no_grad(|| {
        let before = difference(&mut network);
        for _ in 0..100 {
            network.forward_train(&planes, &PerHead::ALL).unwrap();
        }
        let after = difference(&mut network);
        assert!(after < before / 20.0, "{before} to {after}");
    });
}

/// The mean cross-entropies of policy and value against arbitrary fixed targets.
fn loss(network: &mut Network, planes: &Tensor, masks: &Tensor) -> Tensor {
    let outputs = network.forward_train(planes, &PerHead::ALL).unwrap();
    let batch = planes.size()[0];
    // The first legal action, and a win for every third row.
    let actions = masks.to_kind(Kind::Int64).argmax(1, false);
    let output = |head| outputs[head].as_ref().unwrap();
    let policy = output(Head::Policy).masked_fill(&masks.logical_not(), -1e9);
    let wins = Tensor::arange(batch, (Kind::Int64, Device::Cpu))
        .remainder(3)
        .eq(0);
    let value = output(Head::Value).binary_cross_entropy_with_logits::<Tensor>(
        &wins.to_kind(Kind::Float),
        None,
        None,
        tch::Reduction::Mean,
    );
    // The auxiliary heads: 30 turns, an elimination of the mover, all pieces taken, and the same actions.
    let turns = (output(Head::TurnsLeft) - 30.0).square().mean(Kind::Float) / 400.0;
    let endings = actions.full_like(4);
    let ending = output(Head::Ending).cross_entropy_for_logits(&endings);
    let captures = output(Head::Captures).softplus().mean(Kind::Float);
    let reply = output(Head::Reply).cross_entropy_for_logits(&actions);
    policy.cross_entropy_for_logits(&actions) + value + turns + ending + captures + reply
}

#[test]
fn gradients_reach_every_parameter_and_lead_downhill() {
    let samples = random_states(7, 64);
    let masks: Vec<_> = samples
        .iter()
        .map(|sample| LegalMask::new(&sample.legal, sample.state.side()))
        .collect();
    let planes = unpack_rows(&rows(&samples), Device::Cpu).unwrap();
    let allowed = |mask: &LegalMask| (0..POLICY_SIZE).map(|index| mask.contains(index)).collect();
    let masks: Vec<Vec<bool>> = masks.iter().map(allowed).collect();
    let masks = Tensor::from_slice2(&masks);
    let mut network = Network::new(architecture(2, 16), 1).unwrap();
    network.set_requires_grad(true).unwrap();
    let mut losses = Vec::new();
    for step in 0..30 {
        let loss = loss(&mut network, &planes, &masks);
        loss.backward();
        losses.push(loss.double_value(&[]));
        no_grad(|| {
            for parameter in network.parameters() {
                let mut gradient = parameter.tensor.grad();
                assert!(gradient.defined(), "{}", parameter.name);
                // The heads' last weights start at 0, and let nothing through before they have moved.
                assert!(
                    step == 0 || gradient.abs().max().double_value(&[]) > 0.0,
                    "{}",
                    parameter.name
                );
                let _ = parameter.tensor.shallow_clone().g_sub_(&(&gradient * 0.05));
                let _ = gradient.zero_();
            }
        });
    }
    assert!(losses[29] < 0.6 * losses[0], "{losses:?}");
    assert!(network.buffers().all(|(_, tensor)| !tensor.requires_grad()));
}

#[test]
fn a_mirrored_network_sees_a_mirrored_row_alike() {
    let network = decided_network(3, 16);
    let mirrored = network.mirrored();
    let rows = rows(&random_states(8, 64));
    let turned: Vec<_> = rows.iter().map(InputRow::mirror).collect();
    let evaluate = |network: &Network, rows: &[InputRow]| {
        let planes = unpack_rows(rows, Device::Cpu).unwrap();
        no_grad(|| network.forward_measure(&planes, &PerHead::ALL).unwrap())
    };
    let (there, here) = (evaluate(&mirrored, &turned), evaluate(&network, &rows));
    // Without its weights mirrored the network sees something else.
    let unturned = evaluate(&network, &turned);
    let order: Vec<i64> = engine::encoding::MIRRORED_INDICES.map(i64::from).to_vec();
    let actions = |logits: &Tensor| logits.index_select(1, &Tensor::from_slice(&order));
    let board = |squares: &Tensor| squares.view([-1, 8, 8]).flip([2]).view([-1, 64]);
    let same = |numbers: &Tensor| numbers.shallow_clone();
    let distance = |a: &Tensor, b: &Tensor| (a - b).abs().max().double_value(&[]);
    for head in Head::ALL {
        let (turn, unit): (&dyn Fn(&Tensor) -> Tensor, f64) = match head.spec().output {
            HeadOutput::Policy => (&actions, 1.0),
            HeadOutput::Squares => (&board, 1.0),
            HeadOutput::Count { scale } => (&same, scale),
            HeadOutput::Logit | HeadOutput::Classes(_) => (&same, 1.0),
        };
        let output = |all: &PerHead<Option<Tensor>>| all[head].as_ref().unwrap() / unit;
        let expected = output(&here);
        let found = distance(&turn(&output(&there)), &expected);
        assert!(found < 1e-5, "{head:?}: {found}");
        let other = distance(&turn(&output(&unturned)), &expected);
        assert!(other > 1e-2, "{head:?}: {other}");
    }
}

#[test]
fn only_enabled_heads_are_computed() {
    let mut network = Network::new(architecture(1, 8), 1).unwrap();
    let planes = unpack_rows(&rows(&random_states(6, 16)), Device::Cpu).unwrap();
    let _no_grad = tch::no_grad_guard();
    let ending = PerHead::from_fn(|head| head == Head::Ending);
    let before: Vec<Vec<f32>> = network
        .buffers()
        .map(|(_, buffer)| to_vec(buffer))
        .collect();
    let outputs = network.forward_train(&planes, &ending).unwrap();
    assert_eq!(outputs[Head::Ending].as_ref().unwrap().size(), [16, 6]);
    for (head, output) in outputs.iter() {
        let computed = !head.is_auxiliary() || head == Head::Ending;
        assert_eq!(output.is_some(), computed, "{head:?}");
    }
    for ((name, now), then) in network.buffers().zip(before) {
        let computed = !name.starts_with("helpers.") || name.starts_with("helpers.ending.");
        assert_eq!(to_vec(now) != then, computed, "{name}");
    }
    let all = network.forward_measure(&planes, &PerHead::ALL).unwrap();
    // A new network gives 20 ln 2 turns, and equal logits of all endings, pieces and replies.
    for (head, size, number) in [
        (Head::TurnsLeft, &[16][..], 20.0 * 2f64.ln()),
        (Head::Ending, &[16, 6], 0.0),
        (Head::Captures, &[16, 64], 0.0),
        (Head::Reply, &[16, 321], 0.0),
    ] {
        let output = all[head].as_ref().unwrap();
        assert_eq!(output.size(), size);
        assert!((output - number).abs().max().double_value(&[]) < 1e-5);
    }
}

#[test]
fn the_parameters_that_play_are_all_but_those_of_auxiliary_heads() {
    let network = Network::new(architecture(2, 8), 1).unwrap();
    for parameter in network.parameters() {
        let helps = parameter.name.starts_with("helpers.");
        assert_eq!(parameter.used_in_inference, !helps, "{}", parameter.name);
    }
}
