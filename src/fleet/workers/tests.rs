//! Tests of the machine, in `machine` terms.
