//! Checks of faults that strike TLS handshakes: there must be some.

use super::Context;
use crate::config::Place;
use crate::fault::Fault;

/// Checks that a fault of handshakes acts at a proxy that `speaks_tls` to its clients.
pub(super) fn handshake_fault(fault: &Fault, speaks_tls: bool, place: Place, cx: &mut Context) {
    if matches!(fault, Fault::Certificate(_) | Fault::HandshakeHang(_)) && !speaks_tls {
        let message = format!(
            "`{}` strikes TLS handshakes, and this proxy speaks plain HTTP to its clients: it would strike nothing",
            fault.key()
        );
        let hint = "let it act `on` one of `proxies` that has `tls: {}`, or use `refuse`, `hang` or `reset`";
        cx.error(place, message, hint);
    }
}
