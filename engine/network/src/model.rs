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
pub(super) mod tests;
