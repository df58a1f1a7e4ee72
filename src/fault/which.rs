//! Which of the requests that a fault meets it strikes, beside its share: those of a kind, every n-th, the first few.
//!
//! First a request must fit `match`; of those that fit, `every` takes the n-th, 2n-th and so on; of those `first` takes the first
//! few; and of those the fault's own `share` is drawn. `every` and `first` count in the order in which requests reach the proxy,
//! from the fault's start to its end, whatever it rests between.

use super::Request;
use super::matching::Match;
use crate::{keyword, record};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most clients or connections that a fault counts apart. It does not strike the others, which are counted.
const MOST_COUNTED: usize = 1 << 20;

keyword! {
    /// What `every` and `first` count by.
    pub enum Per {
        /// All requests of the run together.
        run => Run,
        /// Those of each connection by themselves.
        connection => Connection,
        /// Those of each client by themselves: of ours by the client, of others by the connection.
        client => Client,
    }
}

record! {
    /// Which requests a fault strikes; all where nothing is said.
    pub struct Which {
        /// Those that fit, by method, path and headers.
        r#match: Option<Match>,
        /// Every n-th of them: `3` strikes the third, the sixth and so on.
        every: Option<u32>,
        /// The first so many of them; the others pass.
        first: Option<u32>,
        /// By what `every` and `first` count; the whole run for `every` where nothing is said.
        per: Option<Per>,
    } => Which::check
}

impl Which {
    /// All of them.
    pub const ALL: Self = Self { r#match: None, every: None, first: None, per: None };

    fn check(&self) -> Result<(), String> {
        match (self.every, self.first, self.per) {
            (Some(0), ..) => {
                Err("`every` is 0: 1 strikes each request, 2 every other one; leave it out to strike them all".into())
            }
            (_, Some(0), _) => Err("`first` is 0: the fault would strike nothing; leave it out to strike all requests".into()),
            (_, Some(_), None) => Err("`first` needs to know of what: add `per: client`, `per: connection` or `per: run`".into()),
            (None, None, Some(_)) => {
                Err("`per` says by what `every` or `first` count, and neither is there: leave it out".into())
            }
            _ => Ok(()),
        }
    }

    /// Whether it counts requests.
    pub const fn counts(&self) -> bool {
        self.every.is_some() || self.first.is_some()
    }

    /// Whether it leaves out any.
    pub const fn is_all(&self) -> bool {
        self.r#match.is_none() && !self.counts()
    }
}

/// What a fault has counted.
#[derive(Debug)]
pub(super) struct Counted {
    every: u64,
    first: u64,
    per: Per,
    all: AtomicU64,
    each: Mutex<BTreeMap<u64, u64>>,
    /// Requests that were not counted, for want of room.
    pub(super) left_out: AtomicU64,
}

impl Counted {
    /// None where a fault counts nothing.
    pub(super) fn new(which: &Which) -> Option<Self> {
        which.counts().then(|| Self {
            every: which.every.unwrap_or(1).max(1).into(),
            first: which.first.map_or(u64::MAX, u64::from),
            per: which.per.unwrap_or(Per::Run),
            all: AtomicU64::new(0),
            each: Mutex::default(),
            left_out: AtomicU64::new(0),
        })
    }

    /// Counts a request, and says whether the fault strikes it.
    pub(super) fn takes(&self, request: &Request) -> bool {
        let key = match self.per {
            Per::Run => return self.is_struck(self.all.fetch_add(1, Ordering::Relaxed)),
            Per::Connection => request.connection,
            Per::Client => request.client,
        };
        let mut each = self.each.lock().expect("nobody panics while holding it");
        if each.len() >= MOST_COUNTED && !each.contains_key(&key) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let count = each.entry(key).or_insert(0);
        *count += 1;
        self.is_struck(*count - 1)
    }

    /// Whether the one behind so many is struck.
    const fn is_struck(&self, before: u64) -> bool {
        (before + 1).is_multiple_of(self.every) && before / self.every < self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(every: Option<u32>, first: Option<u32>, per: Option<Per>, requests: &[Request]) -> Vec<usize> {
        let counted = Counted::new(&Which { every, first, per, ..Which::ALL }).expect("it counts");
        (1..).zip(requests).filter(|(_, request)| counted.takes(request)).map(|(n, _)| n).collect()
    }

    fn of(client: u64, connection: u64) -> Request {
        Request::ours(0, 1, 1).on(connection).of_client(client)
    }

    #[test]
    fn every_and_first_count_what_they_are_told_to() {
        let one = [of(1, 1); 9];
        assert_eq!(struck(Some(3), None, None, &one), [3, 6, 9]);
        assert_eq!(struck(Some(1), None, None, &one).len(), 9);
        assert_eq!(struck(None, Some(2), Some(Per::Run), &one), [1, 2]);
        assert_eq!(struck(Some(3), Some(2), Some(Per::Run), &one), [3, 6]);
        let mixed = [of(1, 1), of(2, 1), of(1, 2), of(2, 2), of(1, 2), of(2, 3)];
        assert_eq!(struck(None, Some(1), Some(Per::Client), &mixed), [1, 2]);
        assert_eq!(struck(None, Some(1), Some(Per::Connection), &mixed), [1, 3, 6]);
        assert_eq!(struck(Some(2), None, Some(Per::Client), &mixed), [3, 4]);
    }

    #[test]
    fn those_that_find_no_room_pass_and_are_counted() {
        let counted = Counted::new(&Which { first: Some(1), per: Some(Per::Client), ..Which::ALL }).unwrap();
        counted.each.lock().unwrap().extend((0..MOST_COUNTED as u64).map(|n| (n, 1)));
        assert!(!counted.takes(&of(u64::MAX, 1)) && !counted.takes(&of(u64::MAX, 1)));
        assert_eq!(counted.left_out.load(Ordering::Relaxed), 2);
        assert!(!counted.takes(&of(5, 1)), "a client that is known is counted on");
        assert_eq!(counted.left_out.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let check = |every, first, per| Which { every, first, per, ..Which::ALL }.check();
        assert!(check(Some(2), None, None).is_ok() && check(None, Some(3), Some(Per::Client)).is_ok());
        for (wrong, why) in [
            (check(Some(0), None, None), "`every` is 0"),
            (check(None, Some(0), Some(Per::Run)), "`first` is 0"),
            (check(None, Some(3), None), "`per: client`"),
            (check(None, None, Some(Per::Run)), "leave it out"),
        ] {
            assert!(wrong.unwrap_err().contains(why));
        }
    }
}
