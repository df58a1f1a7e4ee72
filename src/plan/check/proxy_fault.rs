//! Checks of a fault that is put on a proxy that stands alone.

use super::{Context, MAX_LENGTH, timeline, tls};
use crate::config::{Node, Problems};
use crate::plan::ProxyFault;

/// Checks what a plan's timeline checks of a step, as far as it has that.
pub(in crate::plan) fn check(given: &ProxyFault, of_requests: bool, root: &Node, problems: &mut Problems) {
    let cx = &mut Context { root, problems };
    let fault = &given.fault.value;
    timeline::fault(fault, &["fault"], cx);
    tls::handshake_fault(fault, false, given.fault.place, cx);
    if !of_requests && fault.of_requests() {
        let message = format!("`{}` answers requests, and this proxy sees bytes", fault.key());
        cx.error(given.fault.place, message, "give the proxy `protocol: http`, or use `reset`, `hang` or `blackhole`");
    }
    let Some(lasts) = &given.r#for else { return };
    if lasts.value.is_zero() || lasts.value > MAX_LENGTH {
        let message = format!("it lasts for {}: expected more than nothing, and {MAX_LENGTH} at most", lasts.value);
        cx.error(lasts.place, message, "such as `30s`; leave `for` out for a fault that lasts until it is removed");
    }
}
