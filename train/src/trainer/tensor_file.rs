//! Tensors with their names, as safetensors files of F32 with one metadata entry.

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::{BTreeMap, HashMap};
use tch::{Kind, TchError, Tensor};

/// The shape and the bytes, little-endian, of each tensor by its name.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TensorFile(pub(super) BTreeMap<String, (Vec<usize>, Vec<u8>)>);

impl TensorFile {
    /// Copies a tensor into it.
    pub(crate) fn add(&mut self, name: &str, tensor: &Tensor) -> Result<(), TchError> {
        let tensor = tensor.f_detach()?.f_to_kind(Kind::Float)?.f_contiguous()?;
        let mut numbers = vec![0f32; tensor.numel()];
        tensor.f_copy_data(&mut numbers, tensor.numel())?;
        let shape = tensor.size().iter().map(|&size| size as usize).collect();
        let bytes = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
        self.0.insert(name.to_owned(), (shape, bytes));
        Ok(())
    }

    /// The tensors' bytes in the order of the names.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let tensors = self.0.iter();
        tensors.map(|(name, (_, bytes))| (name.as_str(), &bytes[..]))
    }

    /// The whole file, with a metadata entry of this name.
    pub(crate) fn to_bytes(
        &self,
        entry: &str,
        metadata: String,
    ) -> Result<Vec<u8>, SafeTensorError> {
        let mut views = Vec::new();
        for (name, (shape, bytes)) in &self.0 {
            views.push((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?));
        }
        let metadata = HashMap::from([(entry.to_owned(), metadata)]);
        safetensors::serialize(views, Some(metadata))
    }
}
