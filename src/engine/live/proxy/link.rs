//! A client's socket and the faults of its bytes: what stands between the network and whatever protocol is spoken on it.
//!
//! Reading gives what the client sent, once the faults let it through; writing takes what shall go to the client, and sends it when they
//! let it. What the faults are is decided by [`crate::fault::pipe`]. Where none acts, both are what they are on a socket, and nothing is
//! allocated; where none holds anything back, bytes go from the caller's buffer to the socket as they are.
//!
//! A link has one timer, which runs only while something waits, and wakes the task that asked last. A change of the faults is taken up
//! whenever the link is asked for anything, so its task must ask when the hub wakes it.

use super::hub::Hub;
use super::io::poll_read;
use crate::fault::Stream;
use crate::fault::pipe::{Course, End, Next, Pipe};
use crate::time::{Span, Timestamp};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How long, and for how many bytes, a connection that a fault closed is read on, so that its client sees FIN: bytes that nobody reads would
/// turn it into RST.
const LINGER: Span = Span::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;

/// A socket to a client.
pub(super) struct Link {
    stream: TcpStream,
    hub: Rc<Hub>,
    course: Course,
    /// The number of the snapshot that it has taken up.
    generation: u64,
    /// How many bytes of a connection that is over have been read on.
    read_on: usize,
    /// Only where faults act on its bytes, or have.
    pipes: Option<Box<Pipes>>,
}

#[derive(Default)]
struct Pipes {
    /// From the client.
    up: Pipe,
    /// To the client.
    down: Pipe,
    timer: Option<(Timestamp, Pin<Box<Sleep>>)>,
    /// How a fault has ended the connection, once it has; by closing it also where the socket is broken.
    over: Option<End>,
    /// Whether this side has sent its FIN.
    shut: bool,
    /// Until when the rest is read of what a fault has closed.
    lingers: Option<Timestamp>,
}

impl Link {
    /// A link with the faults that act on its bytes.
    pub(super) fn new(stream: TcpStream, hub: Rc<Hub>, course: Course) -> Self {
        let generation = hub.generation();
        let mut link = Self { stream, hub, course, generation, read_on: 0, pipes: None };
        link.retune();
        link
    }

    /// From here on a close is a reset. It fails only on what is no socket any more.
    pub(super) fn reset_on_close(&self) {
        drop(self.stream.set_zero_linger());
    }

    /// How a fault of bytes has ended the connection, if one has.
    pub(super) fn over(&self) -> Option<End> {
        self.pipes.as_ref()?.over
    }

    /// Closes the connection as a fault does.
    pub(super) fn close(&mut self, now: Timestamp) {
        let pipes = self.pipes.get_or_insert_default();
        if pipes.over.is_none() {
            pipes.end(End::Close, &self.stream, now);
        }
    }

    /// Does what is due by now, and sees to it that the task is woken for what will be.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        self.take_up();
        // Most often nothing waits, and the clock is left alone.
        while let Some(pipes) = self.pipes.as_mut().filter(|pipes| !pipes.is_quiet()) {
            let now = self.hub.control.clock.now();
            pipes.send(&mut self.stream, cx, now);
            if pipes.listen(&self.stream, now) {
                // Whoever reads may have been asked before this, and is not told by the socket.
                cx.waker().wake_by_ref();
            }
            if !pipes.is_due(cx, now) {
                return;
            }
        }
    }

    /// Sends what waits for the client, closes behind it, and after a fault's close waits a while for the client to read it. Ready when that is
    /// done, or nobody is there any more.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.hub.control.clock.now();
        let Some(pipes) = &mut self.pipes else { return Poll::Ready(()) };
        pipes.down.finish(now);
        if self.poll_gone(cx).is_ready() {
            return Poll::Ready(());
        }
        self.drive(cx);
        let now = self.hub.control.clock.now();
        let done = self.pipes.as_ref().is_none_or(|pipes| match (pipes.over, pipes.lingers) {
            (Some(End::Reset), _) => true,
            (_, Some(until)) => until <= now,
            (_, None) => pipes.shut,
        });
        if done { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads and drops what the client sends. Ready when it has gone, or sends too much.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut rest = [0; 1024];
        while let Poll::Ready(read) = poll_read(&mut self.stream, cx, &mut rest) {
            match read {
                Ok(n @ 1..) if self.read_on < LINGER_BYTES => self.read_on += n,
                _ => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Takes up what is installed, if that is new.
    fn take_up(&mut self) {
        let generation = self.hub.generation();
        if self.generation != generation {
            self.generation = generation;
            self.retune();
        }
    }

    fn retune(&mut self) {
        let active = self.hub.active();
        if self.pipes.is_none() && !active.of_bytes() {
            return;
        }
        let now = self.hub.control.clock.now();
        let up = self.course.stages(&active, Stream::Upstream, now);
        let down = self.course.stages(&active, Stream::Downstream, now);
        if self.pipes.is_none() && up.is_empty() && down.is_empty() {
            return;
        }
        let pipes = self.pipes.get_or_insert_default();
        pipes.up.retune(up, now);
        pipes.down.retune(down, now);
        if pipes.over.is_none() && pipes.up.is_spent() && pipes.down.is_spent() {
            self.pipes = None;
        }
    }
}

impl Pipes {
    /// Whether nothing waits, nothing will happen by itself, and nothing has.
    fn is_quiet(&self) -> bool {
        self.over.is_none() && self.timer.is_none() && self.up.is_quiet() && self.down.is_quiet()
    }

    /// Writes what may go to the client, and ends its direction where it ends.
    fn send(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>, now: Timestamp) {
        while self.over.is_none() && !self.shut {
            match self.down.next(now) {
                Next::Send(_) => match Pin::new(&mut *stream).poll_write(cx, self.down.front()) {
                    Poll::Ready(Ok(sent @ 1..)) => self.down.consume(sent),
                    Poll::Ready(_) => self.over = Some(End::Close),
                    Poll::Pending => return,
                },
                Next::End(End::Fin) => self.shut(stream),
                Next::End(end) => self.end(end, stream, now),
                Next::Wait(_) | Next::Idle => return,
            }
        }
    }

    /// Looks whether a fault ends the connection on the way from the client, whoever reads; and whether bytes may go on from there that could not before.
    fn listen(&mut self, stream: &TcpStream, now: Timestamp) -> bool {
        if self.over.is_some() {
            return false;
        }
        let nothing = self.up.front().is_empty();
        match self.up.next(now) {
            Next::End(end @ (End::Close | End::Reset)) => self.end(end, stream, now),
            Next::End(End::Fin) | Next::Send(_) | Next::Wait(_) | Next::Idle => {}
        }
        nothing && !self.up.front().is_empty()
    }

    fn end(&mut self, end: End, stream: &TcpStream, now: Timestamp) {
        self.over = Some(end);
        match end {
            End::Reset => drop(stream.set_zero_linger()),
            End::Close | End::Fin => {
                self.shut(stream);
                self.lingers = Some(now + LINGER);
            }
        }
    }

    /// Sends FIN. It fails only on what is no connection any more.
    fn shut(&mut self, stream: &TcpStream) {
        if !self.shut {
            self.shut = true;
            let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
        }
    }

    /// Whether a moment has come that something waits for; if none has, the task is woken at the next one.
    fn is_due(&mut self, cx: &mut Context<'_>, now: Timestamp) -> bool {
        let next = match self.over {
            Some(_) => self.lingers.filter(|at| *at > now),
            None => self.up.wakes(now).into_iter().chain(self.down.wakes(now).filter(|_| !self.shut)).min(),
        };
        let Some(next) = next else {
            self.timer = None;
            return false;
        };
        // It came since that direction was asked.
        if next <= now {
            return true;
        }
        let sleep = || tokio::time::sleep(next.since(now).to_std());
        let (at, timer) = self.timer.get_or_insert_with(|| (next, Box::pin(sleep())));
        if *at != next {
            *at = next;
            timer.as_mut().reset(sleep().deadline());
        }
        let due = timer.as_mut().poll(cx).is_ready();
        if due {
            self.timer = None;
        }
        due
    }

    /// What a reader gets where a fault has ended the connection.
    fn ended(&self) -> Option<io::Result<()>> {
        match self.over? {
            End::Reset => Some(Err(io::ErrorKind::ConnectionReset.into())),
            End::Close | End::Fin => Some(Ok(())),
        }
    }

    /// Reads through the pipe.
    fn poll_read(
        &mut self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
        now: Timestamp,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.up.next(now) {
                Next::Send(_) => {
                    let front = self.up.front();
                    let len = front.len().min(into.remaining());
                    into.put_slice(&front[..len]);
                    self.up.consume(len);
                    return Poll::Ready(Ok(()));
                }
                Next::End(End::Fin) => return Poll::Ready(Ok(())),
                Next::End(end) => {
                    self.end(end, stream, now);
                    return Poll::Ready(self.ended().expect("it has just ended"));
                }
                Next::Wait(_) | Next::Idle => {}
            }
            let room = self.up.room().min(into.remaining());
            if room == 0 {
                return Poll::Pending;
            }
            let space = into.initialize_unfilled_to(room);
            let read = std::task::ready!(poll_read(stream, cx, space))?;
            if read == 0 {
                self.up.finish(now);
            } else if self.up.is_empty() {
                let ready = self.up.arrive(read, now);
                self.up.keep(&space[..read], ready);
                into.advance(ready);
                if ready > 0 {
                    return Poll::Ready(Ok(()));
                }
            } else {
                self.up.push(&space[..read], now);
            }
        }
    }

    /// Writes through the pipe: what it takes counts as written.
    fn write(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>, bytes: &[u8], now: Timestamp) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(self.down.room())];
        if !self.down.is_empty() {
            self.down.push(bytes, now);
            return Ok(bytes.len());
        }
        let sent = match self.down.arrive(bytes.len(), now) {
            0 => 0,
            ready => match Pin::new(stream).poll_write(cx, &bytes[..ready]) {
                Poll::Ready(written) => written?,
                Poll::Pending => 0,
            },
        };
        self.down.keep(bytes, sent);
        Ok(bytes.len())
    }
}

impl AsyncRead for Link {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let link = &mut *self;
        loop {
            link.drive(cx);
            let Some(pipes) = &mut link.pipes else { return Pin::new(&mut link.stream).poll_read(cx, into) };
            if let Some(ended) = pipes.ended() {
                return Poll::Ready(ended);
            }
            let now = link.hub.control.clock.now();
            let read = pipes.poll_read(&mut link.stream, cx, into, now);
            if read.is_ready() || !pipes.is_due(cx, now) {
                return read;
            }
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let link = &mut *self;
        link.take_up();
        let Some(pipes) = &mut link.pipes else { return Pin::new(&mut link.stream).poll_write(cx, bytes) };
        if !pipes.down.is_empty() {
            link.drive(cx);
        }
        let Some(pipes) = &mut link.pipes else { return Pin::new(&mut link.stream).poll_write(cx, bytes) };
        if pipes.over.is_some() || pipes.shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if pipes.down.room() == 0 {
            return Poll::Pending;
        }
        let taken = pipes.write(&mut link.stream, cx, bytes, link.hub.control.clock.now());
        // What it keeps has a time, or waits for the socket: neither wakes anybody before it is asked.
        if !pipes.down.is_empty() || taken.is_err() {
            link.drive(cx);
        }
        Poll::Ready(taken)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.drive(cx);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let link = &mut *self;
        link.take_up();
        let now = link.hub.control.clock.now();
        let Some(pipes) = &mut link.pipes else { return Pin::new(&mut link.stream).poll_shutdown(cx) };
        pipes.down.finish(now);
        link.drive(cx);
        match &link.pipes {
            Some(pipes) if !pipes.shut && pipes.over.is_none() => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    }
}
