//! The layers that a network is built of, in the form that is trained and in the inference form.

use crate::architecture::{Role, TensorSpec};
use crate::error::NetworkError;
use tch::{Device, Kind, TchError, Tensor};

/// What batch norm adds to the variance.
const NORM_EPSILON: f64 = 1e-5;

/// The share of each training batch's statistics in the running ones.
pub(super) const NORM_MOMENTUM: f64 = 0.1;

/// Whether a forward pass uses the batch's own statistics (and updates the running ones) or the running ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Training,
    Evaluation,
}

/// Makes a network's tensors, one after the other, and keeps the list of them.
pub(super) struct Builder<'a> {
    make: &'a mut dyn FnMut(&TensorSpec) -> Result<Tensor, NetworkError>,
    pub(super) tensors: Vec<(TensorSpec, Tensor)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        make: &'a mut dyn FnMut(&TensorSpec) -> Result<Tensor, NetworkError>,
    ) -> Self {
        Self {
            make,
            tensors: Vec::new(),
        }
    }

    /// Makes one tensor. The list's tensor and the returned one are the same storage.
    pub(super) fn tensor(
        &mut self,
        name: String,
        shape: &[i64],
        role: Role,
    ) -> Result<Tensor, NetworkError> {
        let spec = TensorSpec {
            name,
            shape: shape.to_vec(),
            role,
        };
        let tensor = (self.make)(&spec)?;
        self.tensors.push((spec, tensor.shallow_clone()));
        Ok(tensor)
    }
}

/// A convolution that keeps the board's size, in either form.
pub(super) trait Convolution {
    /// `[batch, inputs, 8, 8]` to `[batch, outputs, 8, 8]`: the convolution; plus `shift` (`[batch, outputs]`), before the norm; plus
    /// `residual` (`[batch, outputs, 8, 8]`), after it; ReLU.
    fn forward(
        &self,
        input: &Tensor,
        shift: Option<&Tensor>,
        residual: Option<&Tensor>,
        mode: Mode,
    ) -> Result<Tensor, TchError>;
}

/// Adds `residual` and takes the ReLU, in place.
fn add_and_relu(mut result: Tensor, residual: Option<&Tensor>) -> Result<Tensor, TchError> {
    if let Some(residual) = residual {
        result = result.f_add_(residual)?;
    }
    result.f_relu_()
}

/// A convolution and its batch norm, as they are trained.
#[derive(Debug)]
pub(super) struct NormedConvolution {
    weight: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
}

impl NormedConvolution {
    /// A convolution of `size`×`size`.
    pub(super) fn new(
        builder: &mut Builder,
        name: &str,
        (inputs, outputs): (i64, i64),
        size: i64,
    ) -> Result<Self, NetworkError> {
        let mut norm =
            |part: &str, role| builder.tensor(format!("{name}.norm.{part}"), &[outputs], role);
        let (scale, bias) = (norm("weight", Role::Scale)?, norm("bias", Role::Bias)?);
        let (mean, variance) = (norm("mean", Role::Mean)?, norm("variance", Role::Variance)?);
        let weight = builder.tensor(
            format!("{name}.weight"),
            &[outputs, inputs, size, size],
            Role::Weight { gain: 1.0 },
        )?;
        Ok(Self {
            weight,
            scale,
            bias,
            mean,
            variance,
        })
    }

    /// What the norm multiplies the convolution's result with, in evaluation: `[outputs]`.
    pub(super) fn factor(&self) -> Result<Tensor, TchError> {
        let deviation = self.variance.f_add_scalar(NORM_EPSILON)?.f_sqrt()?;
        self.scale.f_div(&deviation)
    }

    /// The same convolution with its norm folded in, computing with `kind`.
    pub(super) fn fold(&self, kind: Kind) -> Result<FoldedConvolution, TchError> {
        let factor = self.factor()?;
        let weight = self.weight.f_mul(&factor.f_view([-1, 1, 1, 1])?)?;
        let bias = self.bias.f_sub(&self.mean.f_mul(&factor)?)?;
        Ok(FoldedConvolution {
            weight: channels_last(&weight.f_to_kind(kind)?)?,
            bias: bias.f_to_kind(kind)?,
            fused: false,
        })
    }
}

impl Convolution for NormedConvolution {
    fn forward(
        &self,
        input: &Tensor,
        shift: Option<&Tensor>,
        residual: Option<&Tensor>,
        mode: Mode,
    ) -> Result<Tensor, TchError> {
        let mut result = convolve(input, &like(&self.weight, input)?, None)?;
        if let Some(shift) = shift {
            result = result.f_add(&shift.f_view(spread(shift))?)?;
        }
        let normed = result.f_batch_norm(
            Some(&self.scale),
            Some(&self.bias),
            Some(&self.mean),
            Some(&self.variance),
            mode == Mode::Training,
            NORM_MOMENTUM,
            NORM_EPSILON,
            true,
        )?;
        add_and_relu(normed, residual)
    }
}

/// A convolution with its batch norm folded in.
#[derive(Debug)]
pub(super) struct FoldedConvolution {
    weight: Tensor,
    bias: Tensor,
    /// Whether the bias, what is added and ReLU are left to one call of cuDNN.
    fused: bool,
}

impl FoldedConvolution {
    /// The same layer on the same storage.
    pub(super) fn shallow_clone(&self) -> Self {
        Self {
            weight: self.weight.shallow_clone(),
            bias: self.bias.shallow_clone(),
            fused: self.fused,
        }
    }

    /// One layer whose outputs are this one's and then another's.
    pub(super) fn concatenate_outputs(&self, other: &Self) -> Result<Self, TchError> {
        let weight = Tensor::f_cat(&[&self.weight, &other.weight], 0)?;
        Ok(Self {
            weight: channels_last(&weight)?,
            bias: Tensor::f_cat(&[&self.bias, &other.bias], 0)?,
            fused: false,
        })
    }

    pub(super) fn set_fused(&mut self, fused: bool) {
        self.fused = fused;
    }

    fn activate_fused(&self, input: &Tensor, added: Option<&Tensor>) -> Result<Tensor, TchError> {
        let padding = self.weight.size4()?.2 / 2;
        let (padding, one) = ([padding, padding], [1, 1]);
        // Where nothing is added the input stands in, times 0. libtorch's `cudnn_convolution_relu` takes the output that nothing has
        // been written to, and 0 times what stands in it may be NaN.
        let (added, share) = match added {
            Some(added) => (added, 1.0),
            None => (input, 0.0),
        };
        let bias = Some(&self.bias);
        input.f_cudnn_convolution_add_relu(&self.weight, added, share, bias, one, padding, one, 1)
    }
}

impl Convolution for FoldedConvolution {
    fn forward(
        &self,
        input: &Tensor,
        shift: Option<&Tensor>,
        residual: Option<&Tensor>,
        _: Mode,
    ) -> Result<Tensor, TchError> {
        match (self.fused, shift, residual) {
            (true, None, added) => self.activate_fused(input, added),
            (true, Some(shift), Some(residual)) => {
                let added = residual.f_add(&shift.f_view(spread(shift))?)?;
                self.activate_fused(input, Some(&added))
            }
            _ => {
                let mut result = convolve(input, &self.weight, Some(&self.bias))?;
                if let Some(shift) = shift {
                    result = result.f_add_(&shift.f_view(spread(shift))?)?;
                }
                add_and_relu(result, residual)
            }
        }
    }
}

/// Weights and a bias: a linear layer, or a convolution of 1×1 without a norm.
#[derive(Debug)]
pub(super) struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// The shape's first number counts the outputs.
    pub(super) fn new(
        builder: &mut Builder,
        name: &str,
        shape: &[i64],
        gain: f64,
    ) -> Result<Self, NetworkError> {
        Ok(Self {
            weight: builder.tensor(format!("{name}.weight"), shape, Role::Weight { gain })?,
            bias: builder.tensor(format!("{name}.bias"), &shape[..1], Role::Bias)?,
        })
    }

    /// A layer of these weights and this bias.
    pub(super) fn of(weight: Tensor, bias: Tensor) -> Self {
        Self { weight, bias }
    }

    /// Its weights and its bias.
    pub(super) fn parts(&self) -> (&Tensor, &Tensor) {
        (&self.weight, &self.bias)
    }

    /// `[batch, inputs]` to `[batch, outputs]`.
    pub(super) fn apply(&self, input: &Tensor) -> Result<Tensor, TchError> {
        linear(input, &self.weight, Some(&self.bias))
    }

    /// `[batch, inputs, 8, 8]` to `[batch, outputs, 8, 8]`.
    pub(super) fn apply_to_squares(&self, input: &Tensor) -> Result<Tensor, TchError> {
        let (weight, bias) = (like(&self.weight, input)?, like(&self.bias, input)?);
        convolve(input, &weight, Some(&bias))
    }

    /// The same layer on the same storage.
    pub(super) fn shallow_clone(&self) -> Self {
        Self {
            weight: self.weight.shallow_clone(),
            bias: self.bias.shallow_clone(),
        }
    }

    /// Makes outputs NaN.
    #[cfg(test)]
    pub(super) fn spoil(&self, outputs: std::ops::Range<i64>) {
        let _ = self
            .bias
            .slice(0, outputs.start, outputs.end, 1)
            .fill_(f64::NAN);
    }
}

/// A weight in the type of the input: trained weights are float, the input may be bf16. The gradients of the weights are float.
pub(super) fn like(weight: &Tensor, input: &Tensor) -> Result<Tensor, TchError> {
    weight.f_to_kind(input.f_kind()?)
}

/// A copy of a tensor, as `kind`.
pub(super) fn cast(tensor: &Tensor, kind: Kind) -> Result<Tensor, TchError> {
    tensor
        .f_detach()?
        .f_to_device_(tensor.device(), kind, false, true)
}

/// The same tensor `[a, channels, b, c]` channels-last.
pub(super) fn channels_last(tensor: &Tensor) -> Result<Tensor, TchError> {
    tensor
        .f_permute([0, 2, 3, 1])?
        .f_contiguous()?
        .f_permute([0, 3, 1, 2])
}

/// The mean and the maximum of each channel over the board: `[batch, channels, 8, 8]` to `[batch, 2 * channels]`.
pub(super) fn pool(input: &Tensor) -> Result<Tensor, TchError> {
    let mean = input.f_mean_dim([2i64, 3].as_slice(), false, None)?;
    let maximum = if input.device() == Device::Cpu {
        // Of 32 channels of bf16, libtorch takes the maximum without vector instructions, 13 times slower.
        let maximum = input.f_to_kind(Kind::Float)?.f_amax([2, 3], false)?;
        maximum.f_to_kind(input.f_kind()?)?
    } else {
        input.f_amax([2, 3], false)?
    };
    Tensor::f_cat(&[mean, maximum], 1)
}

/// `[batch, inputs]` to `[batch, outputs]` with weights `[outputs, inputs]`.
pub(super) fn linear(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> Result<Tensor, TchError> {
    if !computes_with_onednn(input) {
        return input.f_linear(weight, bias);
    }
    let square = |tensor: &Tensor| tensor.f_unsqueeze(2)?.f_unsqueeze(3);
    convolve(&square(input)?, &square(weight)?, bias)?.f_flatten(1, 3)
}

/// A convolution that keeps the board's size.
///
/// On a CPU oneDNN is called by its name, for linear layers too: then the result for a row is the same to the last bit
/// whatever else is in the batch, and games do not depend on how their evaluations were grouped. By itself libtorch
/// uses other algorithms for batches below 16 rows, and MKL's matrix products treat the last one to three rows differently.
fn convolve(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor, TchError> {
    let size = weight.size4()?.2;
    let (padding, one) = ([size / 2; 2], [1, 1]);
    if let (Some(bias), 1, true) = (bias, size, input.device().is_cuda()) {
        // cuDNN would be planned for each size of batches, and add the bias in a launch of its own.
        multiply(input, weight, bias)
    } else if computes_with_onednn(input) {
        input.f_mkldnn_convolution(weight, bias, padding, one, one, 1)
    } else if needs_cudnn_without_tf32(input, weight)? {
        let result =
            input.f_cudnn_convolution(weight, padding, one, one, 1, false, false, false)?;
        match bias {
            Some(bias) => result.f_add(&bias.f_view([1, -1, 1, 1])?),
            None => Ok(result),
        }
    } else {
        input.f_conv2d(weight, bias, one, padding, one, 1)
    }
}

/// A convolution of 1×1 as a matrix product, `[batch, inputs, 8, 8]` to `[batch, outputs, 8, 8]`, channels-last.
fn multiply(input: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor, TchError> {
    let (outputs, inputs, ..) = weight.size4()?;
    let squares = input.f_permute([0, 2, 3, 1])?.f_reshape([-1, inputs])?;
    let weight = weight.f_reshape([outputs, inputs])?;
    let result = squares.f_linear(&weight, Some(bias))?;
    result.f_view([-1, 8, 8, outputs])?.f_permute([0, 3, 1, 2])
}

/// Whether cuDNN has to be called by its name: left to itself it computes fp32 with TF32, whose 10 bits of mantissa are no
/// reference, and tch has no call for libtorch's switch. Training, whose weights need gradients, may have TF32.
fn needs_cudnn_without_tf32(input: &Tensor, weight: &Tensor) -> Result<bool, TchError> {
    Ok(input.device().is_cuda() && input.f_kind()? == Kind::Float && !weight.requires_grad())
}

fn computes_with_onednn(input: &Tensor) -> bool {
    input.device() == Device::Cpu && tch::utils::has_mkldnn()
}

/// The shape in which `[batch, channels]` is added to every square.
fn spread(tensor: &Tensor) -> [i64; 4] {
    let size = tensor.size();
    [size[0], size[1], 1, 1]
}
