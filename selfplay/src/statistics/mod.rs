//! Shares and means with what they can be trusted for, and whether values are what they say.

mod calibration;
mod share;
pub(crate) mod text;

pub(crate) use calibration::{Calibration, CalibrationReport};
pub(crate) use share::{Share, mean};
