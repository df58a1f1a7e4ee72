//! The kinds of operations that a fleet offers: how many of each, which goes first, and which makes an older one pointless.
//!
//! Which kind an operation is, and which object it is about, is drawn by its own key: it depends neither on the policy nor on
//! what happened before. The priority travels with the request, as the `Priority` header of RFC 9218.

use crate::config::{Node, Place, Problems, Read, Shape, Table, TimeScale};
pub use crate::priority::Priority;
use crate::rng::{Key, Purpose};
use crate::time::Share;
use crate::{keyword, record};

/// The most kinds of a fleet.
const MAX_KINDS: usize = 64;

keyword! {
    /// What an operation makes pointless that waits.
    pub enum Replaces {
        /// One of its kind that is about the same object.
        key => Key,
    }
}

record! {
    /// A kind of operation.
    pub struct OperationKind {
        /// How many of the fleet's operations are of this kind.
        share: Share,
        /// What goes first from the outbox.
        priority: Priority = Priority::Normal,
        /// What a new one makes pointless that waits for an attempt: `key`, one about the same object. That one is superseded.
        replaces: Option<Replaces>,
        /// How many objects a client has; each operation is about one of them, drawn at random.
        keys: u32 = 1,
    } => |kind: &OperationKind| match (kind.keys, kind.share.get() == 0.0) {
        (0, _) => Err("`keys` must be 1 or more".to_string()),
        (_, true) => Err("`share` is 0%: such an operation never comes, remove it".to_string()),
        _ => Ok(()),
    }
}

/// The kinds of operations of a fleet by name, in the order of the plan. Without any, all are alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operations(Table<OperationKind>);

impl Operations {
    /// Whether all operations are alike.
    pub const fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }

    /// The kinds by name, and where each name stands in the plan.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, Place, &OperationKind)> {
        self.0.0.iter().map(|entry| (entry.name.as_str(), entry.place, &entry.value))
    }

    fn check(&self) -> Result<(), String> {
        let sum: f64 = self.kinds().map(|(_, _, kind)| kind.share.get()).sum();
        if self.is_empty() || self.0.0.len() > MAX_KINDS {
            return Err(format!(
                "expected 1 to {MAX_KINDS} kinds, such as `{{ read: {{ share: 80% }}, sync: {{ share: 20% }} }}`"
            ));
        }
        if (sum - 1.0).abs() > 1e-6 {
            let percent = (sum * 1e8).round() / 1e6;
            return Err(format!("the shares of the operations are {percent}% together: they must be 100%"));
        }
        Ok(())
    }
}

impl Read for Operations {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let operations = Table::read(node, problems).map(Self)?;
        match operations.check() {
            Ok(()) => Some(operations),
            Err(message) => {
                problems.error(node.place, message);
                None
            }
        }
    }
    fn shape() -> Shape {
        Table::<OperationKind>::shape()
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}

/// What one operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// What goes first.
    pub(super) priority: Priority,
    /// The kind and the object that it is about, where it makes older ones pointless.
    pub(super) replaces: Option<(u8, u32)>,
}

/// Says what each operation is.
#[derive(Debug)]
pub(super) struct Kinds {
    /// The sum of the shares up to each kind, and the kind.
    upto: Vec<(f64, OperationKind)>,
}

impl Kinds {
    /// The kinds of a fleet; none where all operations are alike.
    pub(super) fn new(operations: &Operations) -> Self {
        let mut sum = 0.0;
        let upto = operations.kinds().map(|(_, _, kind)| {
            sum += kind.share.get();
            (sum, kind.clone())
        });
        Self { upto: upto.collect() }
    }

    /// Whether operations are of kinds at all.
    pub(super) const fn are_there(&self) -> bool {
        !self.upto.is_empty()
    }

    /// What the operation is that the key names.
    pub(super) fn of(&self, key: Key) -> Kind {
        let Some(last) = self.upto.len().checked_sub(1) else { return Kind { priority: Priority::Normal, replaces: None } };
        let mut draws = key.stream(Purpose::Kind);
        let draw = draws.unit();
        let index = self.upto.partition_point(|(upto, _)| *upto <= draw).min(last);
        let kind = &self.upto[index].1;
        let replaces = kind.replaces.map(|Replaces::Key| (index as u8, (draws.unit() * f64::from(kind.keys)) as u32));
        Kind { priority: kind.priority, replaces }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::config::Entry;

    /// Kinds by (share, priority, keys; 0 for one that replaces nothing).
    pub(crate) fn operations(kinds: &[(f64, Priority, u32)]) -> Operations {
        let entry = |(n, &(share, priority, keys)): (usize, &(f64, Priority, u32))| {
            let replaces = (keys > 0).then_some(Replaces::Key);
            let value = OperationKind { share: Share::new(share).unwrap(), priority, replaces, keys: keys.max(1) };
            Entry { name: format!("k{n}"), place: Place::default(), value }
        };
        Operations(Table(kinds.iter().enumerate().map(entry).collect()))
    }

    #[test]
    fn shares_and_objects_are_drawn_and_stay() {
        let kinds = Kinds::new(&operations(&[(0.7, Priority::Critical, 0), (0.3, Priority::BestEffort, 10)]));
        let key = |operation| Key { operation, ..Key::default() };
        let all: Vec<Kind> = (0..10_000).map(|n| kinds.of(key(n))).collect();
        let sync: Vec<_> = all.iter().filter_map(|kind| kind.replaces).collect();
        // Three standard errors: 137.
        assert!((2_863..3_137).contains(&sync.len()), "{}", sync.len());
        for object in 0..10 {
            let of_it = sync.iter().filter(|replaces| **replaces == (1, object)).count();
            assert!((240..360).contains(&of_it), "{object}: {of_it}");
        }
        assert!(all.iter().all(|kind| (kind.priority == Priority::BestEffort) == kind.replaces.is_some()));
        assert_eq!(kinds.of(key(7)), all[7]);
        let alike = Kinds::new(&Operations::default());
        assert_eq!((alike.of(key(7)).priority, alike.are_there()), (Priority::Normal, false));
    }

    #[test]
    fn shares_that_are_not_the_whole_are_refused() {
        for (kinds, want) in [(&[][..], "expected 1 to"), (&[(0.5, Priority::Normal, 0); 3][..], "150% together")] {
            let said = operations(kinds).check().unwrap_err();
            assert!(said.contains(want), "{said}");
        }
    }
}
