//! Rows as tensors: the bits travel to the device and are unpacked there.

use crate::error::NetworkError;
use engine::encoding::{CHANNELS, InputRow, PLANES, SCALARS};
use tch::{Device, Kind, TchError, Tensor};

/// Unpacks rows to `[batch, CHANNELS, 8, 8]`, float, on a device, channels-last.
pub(super) fn unpack_rows(rows: &[InputRow], device: Device) -> Result<Tensor, NetworkError> {
    let sets: Vec<i64> = rows
        .iter()
        .flat_map(|row| row.planes.map(|set| set as i64))
        .collect();
    let scalars: Vec<f32> = rows.iter().flat_map(|row| row.scalars).collect();
    let sets = Tensor::f_from_slice(&sets)?.f_view([-1, PLANES as i64])?;
    let scalars = Tensor::f_from_slice(&scalars)?.f_view([-1, SCALARS as i64])?;
    unpack_planes(&sets.f_to_device(device)?, &scalars.f_to_device(device)?)
}

/// Unpacks rows' bitboards (`[batch, PLANES]`, int64) and scalars (`[batch, SCALARS]`) to planes `[batch, CHANNELS, 8, 8]`, float,
/// channels-last, on the same device.
pub fn unpack_planes(sets: &Tensor, scalars: &Tensor) -> Result<Tensor, NetworkError> {
    let batch = sets.size2()?.0;
    let planes = squares_of(&sets.f_unsqueeze(1)?, [1, 64, 1])?.f_to_kind(Kind::Float)?;
    let scalars = scalars
        .f_unsqueeze(1)?
        .f_expand([batch, 64, SCALARS as i64], false)?;
    let unpacked = Tensor::f_cat(&[planes, scalars], 2)?;
    let unpacked = unpacked.f_view([batch, 8, 8, CHANNELS as i64])?;
    Ok(unpacked.f_permute([0, 3, 1, 2])?)
}

/// Unpacks bitboards `[batch, sets]` to 0 or 1 for each square, `[batch, sets, 64]`, int64, on the same device.
pub fn unpack_sets(sets: &Tensor) -> Result<Tensor, NetworkError> {
    Ok(squares_of(&sets.f_unsqueeze(2)?, [1, 1, 64])?)
}

/// The bits of bitboards, with the squares in this shape.
fn squares_of(sets: &Tensor, shape: [i64; 3]) -> Result<Tensor, TchError> {
    let squares = Tensor::f_arange(64, (Kind::Int64, sets.device()))?;
    // The shift is arithmetic, but only its lowest bit is looked at.
    sets.f_bitwise_right_shift(&squares.f_view(shape)?)?
        .f_bitwise_and(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::random_states;
    use engine::encoding::encode;

    #[test]
    fn planes_hold_the_numbers_of_rows() {
        let samples = random_states(4, 200);
        let rows: Vec<_> = samples
            .iter()
            .map(|sample| encode(&sample.state, 1))
            .collect();
        let planes = unpack_rows(&rows, Device::Cpu).unwrap();
        assert_eq!(planes.size(), [200, CHANNELS as i64, 8, 8]);
        let planes = Vec::<f32>::try_from(planes.contiguous().view([-1])).unwrap();
        let mut expected = vec![0.0; CHANNELS * 64];
        for (row, planes) in rows.iter().zip(planes.chunks_exact(CHANNELS * 64)) {
            row.write_planes(&mut expected);
            assert_eq!(planes, expected);
        }
    }
}
