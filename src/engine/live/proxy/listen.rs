//! Listening sockets: one port per fleet, kept for the whole run, and on it a listener per shard that can be closed
//! and opened again.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Connects that the kernel completes ahead of the proxy; thousands of clients may come back at once.
const BACKLOG: u32 = 8192;

/// A port that is ours. The socket is bound and does not listen, so that the kernel refuses connects while no
/// listener is open, and gives the port to nobody else.
#[derive(Debug)]
pub struct Port {
    pub(super) addr: SocketAddr,
    _bound: Socket,
}

impl Port {
    /// This address, which nobody else may hold; or any free port of the loopback address.
    pub(super) fn reserve(wanted: Option<SocketAddr>) -> io::Result<Self> {
        let wanted = wanted.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        // A listener of this user that shares its port would let us share it too, unless we ask for it alone first.
        alone(wanted)?;
        let bound = bind(wanted, false)?;
        let addr = bound.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { addr, _bound: bound })
    }
}

/// Opens a listener on a reserved port, beside those that are open.
pub(super) fn open(addr: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    // Its connections inherit this: one that lingers must not keep its port from whoever listens there next.
    let socket = bind(addr, true)?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

fn alone(addr: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(1)
}

fn bind(addr: SocketAddr, beside_old_connections: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(beside_old_connections)?;
    socket.set_reuse_port(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// The backlog that the kernel grants, and what to say where that is less than we want.
pub(super) fn backlog() -> (u32, Option<String>) {
    let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|text| text.trim().parse().ok());
    granted(limit)
}

fn granted(limit: Option<u32>) -> (u32, Option<String>) {
    match limit {
        Some(limit) if limit < BACKLOG => {
            let notice = format!(
                "the proxy's listen backlog is {limit} instead of {BACKLOG}: more clients than that connecting at once may wait \
                 a second or more; raise it with `sysctl net.core.somaxconn={BACKLOG}`"
            );
            (limit, Some(notice))
        }
        _ => (BACKLOG, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_port_refuses_while_closed_and_opens_again_for_several() {
        let port = Port::reserve(None).unwrap();
        let refused = |addr| TcpStream::connect(addr).unwrap_err().kind() == io::ErrorKind::ConnectionRefused;
        assert!(refused(port.addr));
        for _ in 0..3 {
            let (one, two) = (open(port.addr, 16).unwrap(), open(port.addr, 16).unwrap());
            drop(TcpStream::connect(port.addr).unwrap());
            drop((one, two));
            assert!(refused(port.addr));
        }
        assert!(TcpListener::bind(port.addr).is_err(), "nobody else gets it meanwhile");
        let listener = open(port.addr, 16).unwrap();
        let client = TcpStream::connect(port.addr).unwrap();
        listener.set_nonblocking(false).unwrap();
        let (served, _) = listener.accept().unwrap();
        assert!(Port::reserve(Some(port.addr)).is_err(), "nor another proxy");
        let addr = port.addr;
        drop((listener, port));
        let again = Port::reserve(Some(addr)).expect("an old connection is not in the way");
        drop((served, client, again));
        drop(Port::reserve(Some(addr)).expect("nor what is left of it"));
    }

    #[test]
    fn the_backlog_is_what_the_kernel_grants() {
        assert_eq!(granted(None), (8192, None));
        assert_eq!(granted(Some(65_536)), (8192, None));
        let (backlog, notice) = granted(Some(128));
        assert_eq!(backlog, 128);
        assert!(notice.unwrap().contains("somaxconn=8192"));
    }
}
