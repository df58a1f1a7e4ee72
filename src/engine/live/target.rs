//! scaffold
#![allow(missing_docs)]
use crate::metrics::record::ServiceCounts;
use std::net::SocketAddr;
use std::path::Path;
pub struct TargetProcess;
#[derive(Debug, thiserror::Error)]
#[error("the target cannot start: {0}")]
pub struct TargetError(String);
impl TargetProcess {
    pub async fn spawn(_program: &Path, _plan_yaml: &str) -> Result<Self, TargetError> { Err(TargetError("scaffold".into())) }
    pub fn addr(&self) -> SocketAddr { SocketAddr::from(([127, 0, 0, 1], 1)) }
    pub async fn counts(&mut self) -> Option<ServiceCounts> { None }
    pub async fn stop(self) -> Option<ServiceCounts> { None }
    pub fn died(&mut self) -> Option<String> { None }
}
