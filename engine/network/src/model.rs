//! A network as it is trained: named tensors, and the forward passes of training and evaluation.

use crate::architecture::{Architecture, Role, TensorSpec};
use crate::body::{Outputs, TrainingLayers};
use crate::error::NetworkError;
use crate::heads::{PerHead, is_auxiliary};
use crate::layers::{Builder, Mode, channels_last};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

/// A policy/value network with float tensors.
///
/// Its tensors are changed in place (`f_copy_`, `f_add_`, …, under `no_grad`), never replaced. They are views of one flat tensor,
/// [`flat`](Self::flat): an operation on all of them is one operation on it, or on a part of it.
#[derive(Debug)]
pub struct Network {
    architecture: Architecture,
    device: Device,
    pub(super) body: TrainingLayers,
    tensors: Vec<(TensorSpec, Tensor)>,
    numbers: Tensor,
    layout: Layout,
}

/// A network's layers, and its tensors with what they are.
type Layers = (TrainingLayers, Vec<(TensorSpec, Tensor)>);

/// A trained tensor of a [`Network`].
#[derive(Debug, Clone, Copy)]
pub struct Parameter<'a> {
    /// Its name in the weights file.
    pub name: &'a str,
    /// The tensor itself.
    pub tensor: &'a Tensor,
    /// Whether weight decay applies: to weights, not to biases and norms.
    pub decay: bool,
    /// Whether playing needs it: auxiliary heads are for training alone.
    pub used_in_inference: bool,
}

impl Network {
    /// A new network on the CPU. Equal seeds make equal networks.
    pub fn new(architecture: Architecture, seed: u64) -> Result<Self, NetworkError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self::build(architecture, Device::Cpu, |spec| {
            let numbers = initial_values(spec, &mut random);
            Ok(Tensor::f_from_slice(&numbers)?.f_view(spec.shape.as_slice())?)
        })
    }

    /// A network whose tensors `make` makes, on `device`.
    pub(super) fn build(
        architecture: Architecture,
        device: Device,
        mut make: impl FnMut(&TensorSpec) -> Result<Tensor, NetworkError>,
    ) -> Result<Self, NetworkError> {
        architecture.check()?;
        // Before there is room for them: a broken file may name sizes that no memory holds.
        let (_, made) = layers(architecture, &mut make)?;
        let layout = Layout::new(made.iter().map(|(spec, _)| spec));
        let numbers = Tensor::f_zeros([layout.length], (Kind::Float, device))?;
        let network = Self::over(architecture, layout, numbers)?;
        for ((_, own), (_, made)) in network.tensors.iter().zip(made) {
            own.shallow_clone().f_copy_(&made)?;
        }
        Ok(network)
    }

    /// A network over these numbers.
    fn over(
        architecture: Architecture,
        layout: Layout,
        numbers: Tensor,
    ) -> Result<Self, NetworkError> {
        let mut places = layout.offsets.iter();
        let mut view = |spec: &TensorSpec| {
            let place = places.next().copied().unwrap_or(layout.length);
            Ok(view(&numbers, place, &spec.shape)?)
        };
        let (body, tensors) = layers(architecture, &mut view)?;
        Ok(Self {
            architecture,
            device: numbers.device(),
            body,
            tensors,
            numbers,
            layout,
        })
    }

    /// A copy on a device, which may be this one's own. The copy's tensors need no gradient.
    pub fn to_device(&self, device: Device) -> Result<Self, NetworkError> {
        let numbers = self
            .numbers
            .f_to_device_(device, Kind::Float, false, true)?;
        Self::over(self.architecture, self.layout.clone(), numbers)
    }

    /// A copy on the same device.
    pub fn copy(&self) -> Result<Self, NetworkError> {
        self.to_device(self.device)
    }

    /// The sizes.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Where the tensors are.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The trained tensors, always in the same order.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter<'_>> {
        self.tensors
            .iter()
            .filter(|(spec, _)| spec.role.trained())
            .map(|(spec, tensor)| Parameter {
                name: &spec.name,
                tensor,
                decay: matches!(spec.role, Role::Weight { .. }),
                used_in_inference: !is_auxiliary(&spec.name),
            })
    }

    /// The names and tensors that training updates without gradients: the norms' running means and variances.
    pub fn buffers(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors
            .iter()
            .filter(|(spec, _)| !spec.role.trained())
            .map(|(spec, tensor)| (spec.name.as_str(), tensor))
    }

    /// All values, one tensor's after the other's: `[values]`. It needs no gradient.
    pub fn flat(&self) -> &Tensor {
        &self.numbers
    }

    /// The trained ones of them: `[trained]`.
    pub fn trained(&self) -> Result<Tensor, NetworkError> {
        let trained = &self.layout.trained;
        Ok(part(&self.numbers, trained)?)
    }

    /// Those of the trained ones that weight decay applies to: `[decayed]`.
    pub fn decayed(&self) -> Result<Tensor, NetworkError> {
        Ok(part(&self.numbers, &self.layout.decayed)?)
    }

    /// The norms' running means and variances: `[statistics]`.
    pub fn statistics(&self) -> Result<Tensor, NetworkError> {
        Ok(part(&self.numbers, &(0..self.layout.trained.start))?)
    }

    /// One tensor laid out like [`trained`](Self::trained) from a tensor for each parameter, in their order; 0 where one is not
    /// defined.
    pub fn flatten(&self, tensors: &[Tensor]) -> Result<Tensor, NetworkError> {
        let parameters: Vec<_> = self.parameters().zip(tensors).collect();
        let places = self.layout.order.iter().map(|&number| &parameters[number]);
        let pieces = places.map(|(parameter, tensor)| {
            if !tensor.defined() {
                let count = parameter.tensor.numel() as i64;
                return Tensor::f_zeros([count], (Kind::Float, self.device));
            }
            match tensor.dim() {
                4 => tensor.f_permute([0, 2, 3, 1])?.f_reshape([-1]),
                _ => tensor.f_reshape([-1]),
            }
        });
        let pieces = pieces.collect::<Result<Vec<_>, TchError>>()?;
        Ok(Tensor::f_cat(&pieces, 0)?)
    }

    /// The parameters' places in a tensor laid out like [`trained`](Self::trained), in their order: they share its storage.
    pub fn unflatten(&self, flat: &Tensor) -> Result<Vec<Tensor>, NetworkError> {
        let places = self.tensors.iter().zip(&self.layout.offsets);
        let trained = places.filter(|((spec, _), _)| spec.role.trained());
        let start = self.layout.trained.start;
        let views = trained.map(|((spec, _), place)| view(flat, place - start, &spec.shape));
        Ok(views.collect::<Result<_, _>>()?)
    }

    /// All tensors with what they are, in the order of the layers.
    pub(super) fn tensors(&self) -> &[(TensorSpec, Tensor)] {
        &self.tensors
    }

    /// How many numbers are trained, those of the auxiliary heads among them.
    pub fn parameter_count(&self) -> usize {
        let trained = self.tensors.iter().filter(|(spec, _)| spec.role.trained());
        trained.map(|(spec, _)| spec.len()).sum()
    }

    /// Sets whether gradients are kept for the trained tensors.
    pub fn set_requires_grad(&self, required: bool) -> Result<(), NetworkError> {
        for parameter in self.parameters() {
            let _ = parameter.tensor.f_set_requires_grad(required)?;
        }
        Ok(())
    }

    /// Evaluates `[batch, CHANNELS, 8, 8]` (on this device) with the batch's own statistics, and updates the running ones of the
    /// norms that are computed. The convolutions are computed in the planes' type, float or bf16; the norms' statistics are float
    /// in both, as are the outputs, and the gradients at the parameters.
    pub fn forward_train(
        &mut self,
        planes: &Tensor,
        heads: &PerHead<bool>,
    ) -> Result<PerHead<Option<Tensor>>, NetworkError> {
        self.forward_with(planes, heads, Mode::Training)
    }

    /// Evaluates `[batch, CHANNELS, 8, 8]` (float, on this device) with the norms' running statistics, as training measures it.
    pub fn forward_measure(
        &self,
        planes: &Tensor,
        heads: &PerHead<bool>,
    ) -> Result<PerHead<Option<Tensor>>, NetworkError> {
        self.forward_with(planes, heads, Mode::Evaluation)
    }

    /// Evaluates `[batch, CHANNELS, 8, 8]` (float, on this device) with the norms' running statistics, as playing does.
    pub(super) fn forward_eval(&self, planes: &Tensor) -> Result<Outputs, NetworkError> {
        Ok(self.body.forward(planes, Mode::Evaluation)?)
    }

    fn forward_with(
        &self,
        planes: &Tensor,
        heads: &PerHead<bool>,
        mode: Mode,
    ) -> Result<PerHead<Option<Tensor>>, NetworkError> {
        // With channels-last: PyTorch's eager step of 6×64 (batch 256, fp32, a CPU with AVX-512) makes an
        // eighth more rows/s so, and this one is as fast as that (`scripts/compare_pytorch`).
        let planes = &channels_last(planes)?;
        Ok(self.body.forward_heads(planes, heads, mode)?)
    }

    /// The network that gives for a mirrored row what this one gives for the row.
    #[cfg(test)]
    pub(super) fn mirrored(&self) -> Self {
        let mut tensors = self.tensors.iter();
        Self::build(self.architecture, self.device, |spec| {
            let (_, tensor) = tensors.next().unwrap();
            let mut tensor = super::layers::cast(tensor, Kind::Float)?;
            if spec.shape.len() == 4 {
                tensor = tensor.f_flip([3])?.f_contiguous()?;
            }
            if ["policy.squares", "helpers.reply.squares"]
                .iter()
                .any(|head| spec.name.starts_with(head))
            {
                // North, west, south, east, placements.
                let order = Tensor::from_slice(&[0i64, 3, 2, 1, 4]);
                tensor = tensor.f_index_select(0, &order)?;
            }
            Ok(tensor)
        })
        .unwrap()
    }
}

/// The offsets of a network's tensors among its values: the running statistics, then the trained values, with the decayed ones in
/// one piece. Tensors whose length is no multiple of 4 come last of their kind, so that all others are aligned for wide loads.
#[derive(Debug, Clone)]
struct Layout {
    /// Each tensor's offset, in the order of the layers.
    offsets: Vec<i64>,
    /// The parameters' indices, ordered by offset.
    order: Vec<usize>,
    trained: Range<i64>,
    decayed: Range<i64>,
    length: i64,
}

impl Layout {
    fn new<'a>(specs: impl Iterator<Item = &'a TensorSpec>) -> Self {
        let specs: Vec<_> = specs.collect();
        let mut order: Vec<usize> = (0..specs.len()).collect();
        order.sort_by_key(|&number| Self::rank(specs[number]));
        let (mut offsets, mut length) = (vec![0; specs.len()], 0);
        // Where the tensors of each rank begin, and the last of them end.
        let mut starts = [0; 6];
        for &number in &order {
            offsets[number] = length;
            length += specs[number].len() as i64;
            starts[Self::rank(specs[number]) + 1..].fill(length);
        }
        let parameters: Vec<_> = (0..specs.len())
            .filter(|&number| specs[number].role.trained())
            .collect();
        Self {
            offsets,
            order: order
                .iter()
                .filter_map(|number| parameters.binary_search(number).ok())
                .collect(),
            trained: starts[1]..length,
            decayed: starts[2]..starts[4],
            length,
        }
    }

    fn rank(spec: &TensorSpec) -> usize {
        /// 16 bytes.
        const WIDE: usize = 4;
        match (spec.role, spec.len().is_multiple_of(WIDE)) {
            (Role::Mean | Role::Variance, _) => 0,
            (Role::Bias | Role::Scale, true) => 1,
            (Role::Weight { .. }, true) => 2,
            (Role::Weight { .. }, false) => 3,
            (Role::Bias | Role::Scale, false) => 4,
        }
    }
}

/// The layers of an architecture, with the list of the tensors that `make` makes for them.
fn layers(
    architecture: Architecture,
    make: &mut dyn FnMut(&TensorSpec) -> Result<Tensor, NetworkError>,
) -> Result<Layers, NetworkError> {
    let mut builder = Builder::new(make);
    let body = TrainingLayers::new(architecture, &mut builder)?;
    Ok((body, builder.tensors))
}

fn part(numbers: &Tensor, range: &Range<i64>) -> Result<Tensor, TchError> {
    numbers.f_narrow(0, range.start, range.end - range.start)
}

/// A part of a flat tensor as a tensor of its own (a leaf, where it needs a gradient) on the same storage. A convolution's weights
/// `[outputs, inputs, height, width]` have their inputs together in memory, as the convolutions want them.
fn view(flat: &Tensor, place: i64, shape: &[i64]) -> Result<Tensor, TchError> {
    let numbers = flat.f_narrow(0, place, shape.iter().product())?;
    let view = match *shape {
        [outputs, inputs, height, width] => numbers
            .f_view([outputs, height, width, inputs])?
            .f_permute([0, 3, 1, 2])?,
        _ => numbers.f_view(shape)?,
    };
    view.f_data()
}

/// The initial values of a tensor.
fn initial_values(spec: &TensorSpec, random: &mut ChaCha8Rng) -> Vec<f32> {
    let count = spec.len();
    match spec.role {
        Role::Weight { gain } => initial_values_of(spec, gain, random),
        Role::Bias | Role::Mean => vec![0.0; count],
        Role::Scale | Role::Variance => vec![1.0; count],
    }
}

/// The initial values of a weight of this gain.
pub(super) fn initial_values_of(spec: &TensorSpec, gain: f64, random: &mut ChaCha8Rng) -> Vec<f32> {
    let deviation = gain * (2.0 / spec.inputs() as f64).sqrt();
    match Normal::new(0.0, deviation) {
        Ok(normal) => (0..spec.len())
            .map(|_| normal.sample(random) as f32)
            .collect(),
        Err(error) => unreachable!("{deviation} is a finite deviation: {error}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::batch::unpack_rows;
    use crate::device::set_single_threaded;
    use crate::heads::{Head, HeadOutput};
    use crate::samples::{Sample, random_states};
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
        for (blocks, channels, key) in [(0, 64, "blocks"), (101, 64, "blocks"), (1, 7, "channels")]
        {
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
        let allowed =
            |mask: &LegalMask| (0..POLICY_SIZE).map(|index| mask.contains(index)).collect();
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
}
