//! Integration tests.

mod target;
