//! Waiting until a moment, to a fraction of a millisecond: tokio's own timers are a millisecond late at the
//! median, so on Linux a timerfd is armed instead, once for the next deadline of a whole shard.

use super::clock::Clock;
use crate::time::{Span, Timestamp};
use std::io;

/// Waits for one moment at a time.
pub struct Timer {
    // A timerfd, like a pipe, is something that becomes readable; tokio's `AsyncFd` would say it more plainly,
    // but its constructors are unsafe or deprecated as unsound.
    #[cfg(target_os = "linux")]
    expirations: tokio::net::unix::pipe::Receiver,
}

#[cfg(target_os = "linux")]
impl Timer {
    /// A timer of the current runtime.
    ///
    /// # Errors
    /// When the kernel gives no timerfd, as when file descriptors have run out.
    pub fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { expirations: tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(fd)? })
    }

    /// Returns once the clock has reached `at`. Dropping the future disarms nothing; the next call re-arms.
    ///
    /// # Errors
    /// When the timerfd fails, which the kernel documents only for misuse.
    pub async fn until(&mut self, clock: &dyn Clock, at: Timestamp) -> io::Result<()> {
        loop {
            let left = at.since(clock.now());
            if left.is_zero() {
                return Ok(());
            }
            self.arm(left.min(Span::from_secs(3600)))?;
            self.expirations.readable().await?;
            // An empty read means that the wake-up was left over from an earlier deadline.
            let _ = self.expirations.try_read(&mut [0u8; 8]);
        }
    }

    fn arm(&self, left: Span) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let value = Timespec { tv_sec: (left.0 / 1_000_000_000) as i64, tv_nsec: (left.0 % 1_000_000_000) as _ };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.expirations, TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl Timer {
    /// A timer of the current runtime.
    ///
    /// # Errors
    /// Never.
    pub fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Returns once the clock has reached `at`.
    ///
    /// # Errors
    /// Never.
    pub async fn until(&mut self, clock: &dyn Clock, at: Timestamp) -> io::Result<()> {
        loop {
            let left = at.since(clock.now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(left.to_std()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::LiveClock;
    use super::*;

    #[test]
    fn it_never_returns_early_and_can_be_rearmed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let clock = LiveClock::starting_now();
            let mut timer = Timer::new().expect("a timer");
            for millis in [3, 5, 5, 9] {
                let at = Timestamp::ZERO + Span::from_millis(millis);
                timer.until(&*clock, at).await.expect("it waits");
                assert!(clock.now() >= at);
            }
            let far = clock.now() + Span::from_secs(3600);
            tokio::select! {
                _ = timer.until(&*clock, far) => panic!("an hour has not passed"),
                () = tokio::time::sleep(std::time::Duration::from_millis(2)) => {}
            }
            let near = clock.now() + Span::from_millis(2);
            timer.until(&*clock, near).await.expect("it waits");
            assert!(clock.now() >= near && clock.now() < far);
        });
    }
}
