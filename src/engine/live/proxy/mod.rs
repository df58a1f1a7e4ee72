//! The fault proxy between clients and target.
