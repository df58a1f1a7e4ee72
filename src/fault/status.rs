//! Requests are answered with a status.

use super::answer::{check_headers, check_status};
use super::{Answer, Dice, Effect, Harm, When};
use crate::config::Table;
use crate::policy::hint::{HintForm, Said};
use crate::record;
use crate::time::{Share, Span};

record! {
    /// Requests are answered with a status, before the upstream sees them or in the place of its answer.
    pub struct Status {
        /// The status.
        code: u16,
        /// How long the answer asks its client to wait.
        retry_after: Option<Span>,
        /// In which form it says so; `Retry-After` in seconds where nothing is said.
        hint: Option<HintForm>,
        /// Headers of the answer, beside what frames it and the hint.
        headers: Table<String> = Table::default(),
        /// The body of the answer.
        body: String = String::new(),
        /// Before the upstream sees the request, or after it has done the work: then this takes the place of its answer.
        when: When = When::Before,
        /// The share of requests that it strikes.
        share: Share = Share::ALL,
    } => |s: &Status| {
        check_status(s.code).and_then(|()| Said::check(s.retry_after, s.hint)).and_then(|()| check_headers(&s.headers))
    }
}

impl Status {
    /// A status and nothing more, for every request.
    pub fn bare(code: u16) -> Self {
        let (headers, body, when) = (Table::default(), String::new(), When::Before);
        Self { code, retry_after: None, hint: None, headers, body, when, share: Share::ALL }
    }

    pub(super) fn effect(&self, dice: Dice) -> Effect {
        if !dice.strikes(self.share) {
            return Effect::Pass;
        }
        let headers = self.headers.0.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect();
        let hint = Said::new(self.retry_after, self.hint);
        let answer = Answer { status: self.code, hint, headers, body: self.body.clone() };
        match self.when {
            When::Before => Effect::Answer(answer),
            When::After => Effect::Harm(Harm::Replace(answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn it_answers_what_it_strikes() {
        let dice = Request::ours(0, 1, 1).dice(1, 0);
        let wait = Some(Span::from_secs(2));
        let with = |share, when| Status { retry_after: wait, body: "down".into(), share, when, ..Status::bare(503) }.effect(dice);
        let answer = Answer { body: "down".into(), ..Answer::bare(503, Said::new(wait, None)) };
        assert_eq!(with(Share::ALL, When::Before), Effect::Answer(answer.clone()));
        assert_eq!(with(Share::ALL, When::After), Effect::Harm(Harm::Replace(answer)));
        assert_eq!(with(Share::default(), When::Before), Effect::Pass);
    }
}
