//! The retry loop: one operation, its attempts, its deadline.
