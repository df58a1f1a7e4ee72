//! Checks of a fault that is put on a proxy that stands alone.

use super::requests::{self, Said};
use super::{Context, MAX_LENGTH, timeline, tls};
use crate::config::{Node, Problems};
use crate::plan::{ProxyFault, Sees};
use crate::time::Span;

/// The shortest turn of a flap: each wakes every connection.
const SHORTEST: Span = Span::from_millis(10);

/// Checks what a plan's timeline checks of a step, as far as it has that.
pub(in crate::plan) fn check(given: &ProxyFault, sees: Sees, root: &Node, problems: &mut Problems) {
    let cx = &mut Context { root, problems };
    let fault = &given.fault.value;
    timeline::fault(fault, &["fault"], cx);
    tls::handshake_fault(fault, sees.handshakes, given.fault.place, cx);
    let lasts = given.r#for.as_ref().map_or(Span::MAX, |lasts| lasts.value);
    requests::shaped(fault, Said { which: &given.which, shape: &given.shape, repeats: false }, &[], lasts, cx);
    if let Some(flap) = given.shape.flap.as_ref().filter(|flap| flap.on.min(flap.off) < SHORTEST) {
        let message = format!("it turns after {}: {SHORTEST} at least", flap.on.min(flap.off));
        cx.error(root.place_of(&["flap"]), message, "such as `flap: { on: 2s, off: 3s }`");
    }
    if !sees.requests && given.of_requests() {
        let message = format!("`{}` needs to know requests, and this proxy sees bytes", fault.key());
        cx.error(given.fault.place, message, "give the proxy `protocol: http`, or use `reset`, `hang` or `blackhole`");
    }
    let Some(lasts) = &given.r#for else { return };
    if lasts.value.is_zero() || lasts.value > MAX_LENGTH {
        let message = format!("it lasts for {}: expected more than nothing, and {MAX_LENGTH} at most", lasts.value);
        cx.error(lasts.place, message, "such as `30s`; leave `for` out for a fault that lasts until it is removed");
    }
}
