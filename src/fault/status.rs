//! Requests are answered with a status.

use super::{Dice, Effect};
use crate::policy::hint::{HintForm, Said};
use crate::record;
use crate::time::{Share, Span};

record! {
    /// Requests are answered with a status before the upstream sees them.
    pub struct Status {
        /// The status.
        code: u16,
        /// How long the answer asks its client to wait.
        retry_after: Option<Span>,
        /// In which form it says so; `Retry-After` in seconds where nothing is said.
        hint: Option<HintForm>,
        /// The body of the answer.
        body: String = String::new(),
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    } => |s: &Status| check_status(s.code).and_then(|()| Said::check(s.retry_after, s.hint))
}

impl Status {
    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if !dice.strikes(self.share) {
            return Effect::Pass;
        }
        Effect::Answer { status: self.code, hint: Said::new(self.retry_after, self.hint), body: self.body.clone() }
    }
}

/// A final status that a proxy may answer with.
pub(crate) fn check_status(code: u16) -> Result<(), String> {
    if (200..=599).contains(&code) { Ok(()) } else { Err(format!("{code} is not a status of an answer: expected 200 to 599")) }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_answers_what_it_strikes() {
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let with = |share| Status { code: 503, retry_after: Some(Span::from_secs(2)), hint: None, body: "down".into(), share };
        let hint = Said::new(Some(Span::from_secs(2)), None);
        let answer = Effect::Answer { status: 503, hint, body: "down".into() };
        assert_eq!(with(Share::ALL).effect(dice), answer);
        assert_eq!(with(Share::default()).effect(dice), Effect::Pass);
    }

    #[test]
    fn a_status_is_a_final_one() {
        assert!(check_status(200).is_ok() && check_status(599).is_ok());
        assert!(check_status(101).unwrap_err().contains("200 to 599"));
        assert!(check_status(600).is_err());
    }
}
