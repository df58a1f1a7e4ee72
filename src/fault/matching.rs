//! Which requests a fault is meant for, by what stands in their heads.
//!
//! Heads are looked at once, where a request comes in, and only where a plan has matchers at all: what each of them says is
//! one bit of the request from then on, so that it costs nothing to ask again, and no head is kept.

use super::answer::is_token;
use crate::config::Table;
use crate::record;
use std::sync::Arc;

/// The most different matchers of a plan: each is a bit of a request.
pub const MOST_MATCHERS: usize = 64;
/// The longest path or value that is compared, in bytes.
const LONGEST: usize = 8192;

record! {
    /// Requests by what stands in their heads; all that is said must fit.
    pub struct Match {
        /// The method, in capitals.
        method: Option<String>,
        /// The path: exactly, or the beginning of it where this ends in `*`. What stands behind a `?` counts where this holds one too.
        path: Option<String>,
        /// Headers by name, each with its value, or `*` for any.
        header: Table<String> = Table::default(),
    } => Match::check
}

/// The head of a request, as far as a matcher looks at it.
pub trait Head {
    /// The method.
    fn method(&self) -> &[u8];
    /// The path, with what stands behind its `?`.
    fn path(&self) -> &[u8];
    /// Whether a header of this name, in any spelling, is there with a value for which `fits` holds.
    fn header(&self, name: &str, fits: &mut dyn FnMut(&[u8]) -> bool) -> bool;
}

impl Match {
    fn check(&self) -> Result<(), String> {
        if self.method.is_none() && self.path.is_none() && self.header.0.is_empty() {
            return Err("nothing is said that a request could fit: such as `match: { path: /pay* }`; or leave it out".into());
        }
        if self.method.as_ref().is_some_and(|method| !is_token(method) || *method != method.to_ascii_uppercase()) {
            return Err("`method` is one word in capitals: such as `POST`".into());
        }
        if let Some(path) = &self.path {
            let plain = path.strip_suffix('*').unwrap_or(path);
            let sound = path.starts_with('/') && plain.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
            if !sound || path.len() > LONGEST {
                return Err("`path` begins with `/` and holds no spaces: such as `/pay`, or `/pay*` for all that begin so".into());
            }
        }
        match self.header.0.iter().find(|entry| !is_token(&entry.name) || entry.value.len() > LONGEST) {
            Some(_) => {
                Err("`header` maps names of headers to values: such as `header: { x-tenant: big }`, or `\"*\"` for any".into())
            }
            None => Ok(()),
        }
    }

    /// Whether a request fits.
    pub fn fits(&self, head: &impl Head) -> bool {
        self.method.as_ref().is_none_or(|method| method.as_bytes() == head.method())
            && self.path.as_ref().is_none_or(|path| path_fits(path.as_bytes(), head.path()))
            && self.header.0.iter().all(|wanted| {
                let any = wanted.value == "*";
                head.header(&wanted.name, &mut |value| any || value == wanted.value.as_bytes())
            })
    }
}

/// Whether a path is the one that is wanted, or begins so.
pub fn path_fits(wanted: &[u8], path: &[u8]) -> bool {
    let path = if wanted.contains(&b'?') { path } else { path.split(|&b| b == b'?').next().unwrap_or_default() };
    match wanted.strip_suffix(b"*") {
        Some(start) => path.starts_with(start),
        None => path == wanted,
    }
}

/// The matchers of a plan, each once.
#[derive(Clone, Debug, Default)]
pub struct Matchers(Arc<[Option<Match>]>);

impl Matchers {
    /// Those of a plan's steps, each once, in order. What does not fit into a request's bits is left out, and its faults strike nothing;
    /// a plan with so many is refused before.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Match>) -> Self {
        let mut each: Vec<Match> = Vec::new();
        for one in all {
            if each.len() < MOST_MATCHERS && !each.iter().any(|other| other.says(one)) {
                each.push(one.clone());
            }
        }
        Self(each.into_iter().map(Some).collect())
    }

    /// These, where some of them are known already: those keep their bits, for requests are in flight that have been looked at. A bit that
    /// nobody needs any more is used again as late as can be.
    #[must_use]
    pub fn changed_to<'a>(&self, all: impl IntoIterator<Item = &'a Match>) -> Self {
        let all: Vec<&Match> = all.into_iter().collect();
        let stays = |slot: &Option<Match>| slot.as_ref().is_some_and(|one| all.iter().any(|other| other.says(one)));
        let mut each: Vec<Option<Match>> = self.0.iter().map(|slot| slot.clone().filter(|_| stays(slot))).collect();
        for one in all {
            if each.iter().flatten().any(|other| other.says(one)) {
                continue;
            }
            let old = self.0.iter().position(Option::is_none).filter(|&at| each[at].is_none());
            match old.or_else(|| each.iter().position(Option::is_none)) {
                _ if each.len() < MOST_MATCHERS => each.push(Some(one.clone())),
                Some(at) => each[at] = Some(one.clone()),
                None => {}
            }
        }
        Self(each.into())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Which of them a request fits, a bit each.
    pub fn bits(&self, head: &impl Head) -> u64 {
        self.0
            .iter()
            .enumerate()
            .fold(0, |bits, (at, one)| bits | u64::from(one.as_ref().is_some_and(|one| one.fits(head))) << at)
    }

    /// The bit of a matcher; none where it is not among them.
    pub(super) fn bit(&self, of: &Match) -> u64 {
        self.0.iter().position(|one| one.as_ref().is_some_and(|one| one.says(of))).map_or(0, |at| 1 << at)
    }
}

impl Match {
    /// Whether it says the same as another one, wherever either stands.
    fn says(&self, other: &Self) -> bool {
        let header = |of: &Self| of.header.0.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect::<Vec<_>>();
        self.method == other.method && self.path == other.path && header(self) == header(other)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::Entry;

    pub(crate) struct Plain(pub &'static str, pub &'static str, pub &'static [(&'static str, &'static str)]);

    impl Head for Plain {
        fn method(&self) -> &[u8] {
            self.0.as_bytes()
        }
        fn path(&self) -> &[u8] {
            self.1.as_bytes()
        }
        fn header(&self, name: &str, fits: &mut dyn FnMut(&[u8]) -> bool) -> bool {
            self.2.iter().any(|(n, value)| n.eq_ignore_ascii_case(name) && fits(value.as_bytes()))
        }
    }

    fn by(method: &str, path: &str, header: &[(&str, &str)]) -> Match {
        let said = |text: &str| (!text.is_empty()).then(|| text.to_string());
        let entry =
            |(name, value): &(&str, &str)| Entry { name: (*name).into(), place: Default::default(), value: (*value).to_string() };
        Match { method: said(method), path: said(path), header: Table(header.iter().map(entry).collect()) }
    }

    #[test]
    fn all_that_is_said_must_fit() {
        let head = Plain("POST", "/pay/7?x=1", &[("X-Tenant", "big"), ("accept", "a"), ("accept", "b")]);
        for (fits, one) in [
            (true, by("POST", "", &[])),
            (false, by("GET", "", &[])),
            (true, by("", "/pay/7", &[])),
            (true, by("", "/pay/7?x=1", &[])),
            (false, by("", "/pay/7?x=2", &[])),
            (true, by("", "/pay/7?*", &[])),
            (false, by("", "/pay", &[])),
            (true, by("", "/pay*", &[])),
            (true, by("", "/*", &[])),
            (false, by("", "/pays*", &[])),
            (true, by("", "", &[("x-tenant", "big")])),
            (true, by("", "", &[("x-tenant", "*"), ("accept", "b")])),
            (false, by("", "", &[("x-tenant", "small")])),
            (false, by("", "", &[("x-other", "*")])),
            (true, by("POST", "/pay*", &[("x-tenant", "big")])),
            (false, by("PUT", "/pay*", &[("x-tenant", "big")])),
        ] {
            assert_eq!(one.fits(&head), fits, "{one:?}");
        }
    }

    #[test]
    fn a_matcher_that_stays_keeps_its_bit_and_one_that_goes_leaves_it_free_for_long() {
        let path = |n: usize| by("", &format!("/{n}"), &[]);
        let (a, b, c) = (path(1), path(2), path(3));
        let both = Matchers::default().changed_to([&a, &b]);
        let later = both.changed_to([&c, &b]);
        assert_eq!((later.len(), later.bit(&a), later.bit(&b), later.bit(&c)), (2, 0, 2, 4));
        assert!(later.changed_to([]).is_empty());
        let many: Vec<Match> = (0..200).map(path).collect();
        let mut now = Matchers::default().changed_to([&b]);
        for one in &many {
            now = now.changed_to([&b, one]);
            assert_eq!((now.bit(&b), now.bit(one) != 0), (1, true), "{one:?}");
        }
        assert_eq!(Matchers::default().changed_to(&many).len(), MOST_MATCHERS);
    }

    #[test]
    fn each_matcher_is_a_bit_and_equal_ones_share_it() {
        let (pay, get) = (by("", "/pay*", &[]), by("GET", "", &[]));
        let all = Matchers::of([&pay, &get, &pay]);
        assert_eq!((all.len(), all.bit(&pay), all.bit(&get), all.bit(&by("PUT", "", &[]))), (2, 1, 2, 0));
        assert_eq!(all.bits(&Plain("GET", "/pay", &[])), 3);
        assert_eq!(all.bits(&Plain("GET", "/", &[])), 2);
        let many: Vec<Match> = (0..100).map(|n| by("", &format!("/{n}"), &[])).collect();
        assert_eq!(Matchers::of(&many).len(), MOST_MATCHERS);
    }

    #[test]
    fn what_no_request_can_fit_is_refused() {
        assert!(by("POST", "/a*", &[("x", "y")]).check().is_ok());
        for (one, why) in [
            (by("", "", &[]), "nothing is said"),
            (by("post", "", &[]), "capitals"),
            (by("", "pay", &[]), "begins with `/`"),
            (by("", "/a b", &[]), "no spaces"),
            (by("", "", &[("x y", "z")]), "names of headers"),
        ] {
            assert!(one.check().unwrap_err().contains(why), "{one:?}");
        }
    }
}
