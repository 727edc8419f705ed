//! Tests of the sampling, the halving and the targets.
