//! A model of a target: what a service with these limits does with the requests it gets.

pub mod config;

pub use config::ServiceConfig;
