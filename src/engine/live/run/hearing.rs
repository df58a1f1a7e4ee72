//! Tells the observer what happens, from a thread of its own: a terminal that is stopped, or a disk that stalls,
//! must not keep a fault from being removed.

use super::RunError;
use crate::engine::Observer;
use crate::metrics::{RunEvent, Window};
use crate::time::{Span, Timestamp};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::oneshot;

/// How much may wait to be heard. A run tells a window a second and few events.
const WAITING: usize = 1024;

enum News {
    Event(Timestamp, RunEvent),
    Window(Box<Window>, String),
}

/// The way to the observer.
pub struct Hearing {
    news: Option<SyncSender<News>>,
    heard_all: Option<oneshot::Receiver<()>>,
    unheard: u64,
}

impl Hearing {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(observer: Box<dyn Observer>) -> Result<Self, RunError> {
        let (news, waiting) = sync_channel(WAITING);
        let (done, heard_all) = oneshot::channel();
        std::thread::Builder::new()
            .name("observer".into())
            .spawn(move || {
                hear(observer, &waiting);
                let _ = done.send(());
            })
            .map_err(|source| RunError::System { what: "no thread for the observer", source })?;
        Ok(Self { news: Some(news), heard_all: Some(heard_all), unheard: 0 })
    }

    /// Tells an event. Never waits.
    pub fn event(&mut self, at: Timestamp, event: &RunEvent) {
        self.tell(News::Event(at, event.clone()));
    }

    /// Tells a window. Never waits.
    pub fn window(&mut self, window: &Window, phase: &str) {
        self.tell(News::Window(Box::new(window.clone()), phase.to_string()));
    }

    /// Waits until everything is heard, for a bounded time, and returns how much will never be.
    pub async fn end(&mut self, patience: Span) -> u64 {
        self.news = None;
        if let Some(heard_all) = self.heard_all.take()
            && tokio::time::timeout(patience.to_std(), heard_all).await.is_err()
        {
            self.unheard += 1;
        }
        self.unheard
    }

    fn tell(&mut self, news: News) {
        let told = self.news.as_ref().is_some_and(|to| to.try_send(news).is_ok());
        self.unheard += u64::from(!told);
    }
}

fn hear(mut observer: Box<dyn Observer>, waiting: &Receiver<News>) {
    for news in waiting {
        match news {
            News::Event(at, event) => observer.event(at, &event),
            News::Window(window, phase) => observer.window(&window, &phase),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<u64>>);

    impl Observer for Slow {
        fn event(&mut self, _at: Timestamp, _event: &RunEvent) {
            *self.0.lock().unwrap() += 1;
        }
        fn window(&mut self, _window: &Window, _phase: &str) {
            *self.0.lock().unwrap() += 1;
        }
    }

    #[test]
    fn everything_is_heard_and_nobody_waits_for_an_observer_that_hangs() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let slow = Slow::default();
        let mut hearing = Hearing::start(Box::new(slow.clone())).unwrap();
        let stuck = slow.0.lock().unwrap();
        for _ in 0..WAITING + 10 {
            hearing.event(Timestamp::ZERO, &RunEvent::Started);
        }
        // One is in the observer's hands, perhaps, and as many as fit are waiting.
        assert!((9..=10).contains(&hearing.unheard), "{}", hearing.unheard);
        drop(stuck);
        let unheard = runtime.block_on(hearing.end(Span::from_secs(5)));
        assert_eq!(*slow.0.lock().unwrap(), WAITING as u64 + 10 - unheard);

        let mut hearing = Hearing::start(Box::new(slow.clone())).unwrap();
        let _stuck = slow.0.lock().unwrap();
        hearing.window(&Window::default(), "steady");
        assert_eq!(runtime.block_on(hearing.end(Span::from_millis(20))), 1);
    }
}
