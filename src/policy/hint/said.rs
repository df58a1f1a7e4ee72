//! How a server says a hint: in which header, and in which form.

use super::{Hint, HintKind};
use crate::keyword;
use crate::time::{Span, Timestamp};

keyword! {
    /// How a server says how long to wait.
    pub enum HintForm {
        /// `Retry-After` in whole seconds.
        retry_after => RetryAfter,
        /// `Retry-After` as an HTTP-date: one moment for everybody, in whole seconds.
        http_date => HttpDate,
        /// `retry-after-ms`.
        retry_after_ms => RetryAfterMs,
        /// `RateLimit` with nothing remaining, in whole seconds.
        ratelimit => RateLimit,
        /// `x-ratelimit-reset` in seconds since 1970: one moment for everybody.
        x_ratelimit_reset => XRateLimitReset,
        /// `grpc-retry-pushback-ms`.
        grpc_pushback => GrpcPushback,
        /// `grpc-retry-pushback-ms: -1`, which says not to retry; needs no time.
        grpc_stop => GrpcStop,
    }
}

impl HintForm {
    /// Whether it is said in whole seconds.
    pub const fn has_whole_seconds(self) -> bool {
        match self {
            Self::RetryAfter | Self::HttpDate | Self::RateLimit | Self::XRateLimitReset => true,
            Self::RetryAfterMs | Self::GrpcPushback | Self::GrpcStop => false,
        }
    }

    /// Whether it names a moment, and so brings everybody back at once.
    pub const fn is_moment(self) -> bool {
        matches!(self, Self::HttpDate | Self::XRateLimitReset)
    }
}

/// What a server says to whom it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// How.
    pub form: HintForm,
    /// How long to wait.
    pub wait: Span,
}

impl Said {
    /// What a plan says: how long, and in which form, which is Retry-After in seconds where nothing is said.
    pub fn new(wait: Option<Span>, form: Option<HintForm>) -> Option<Self> {
        match (wait, form) {
            (_, Some(HintForm::GrpcStop)) => Some(Self { form: HintForm::GrpcStop, wait: Span::ZERO }),
            (wait, form) => wait.map(|wait| Self { form: form.unwrap_or(HintForm::RetryAfter), wait }),
        }
    }

    /// What does not fit together in a plan.
    ///
    /// # Errors
    /// A sentence that says what to write.
    pub(crate) fn check(wait: Option<Span>, form: Option<HintForm>) -> Result<(), String> {
        match (wait, form) {
            (Some(_), Some(HintForm::GrpcStop)) => {
                Err("`hint` is `grpc_stop`, which says no time: leave `retry_after` out".into())
            }
            (None, Some(form)) if form != HintForm::GrpcStop => Err(format!(
                "`hint` says how `retry_after` is said, and there is none: add such as `retry_after: 2s` to `{}`",
                form.word()
            )),
            _ => Ok(()),
        }
    }

    /// The header's name and value, said at so many milliseconds since 1970 UTC. Seconds are rounded up: a client that honours them must not be
    /// early.
    pub fn header(&self, wall_millis: i64) -> (&'static str, String) {
        let seconds = self.wait.as_secs_up();
        let millis = self.wait.0.div_ceil(1_000_000);
        match self.form {
            HintForm::RetryAfter => ("retry-after", seconds.to_string()),
            HintForm::HttpDate => ("retry-after", http_date(self.moment(wall_millis))),
            HintForm::RetryAfterMs => ("retry-after-ms", millis.to_string()),
            HintForm::RateLimit => ("ratelimit", format!("\"default\";r=0;t={seconds}")),
            HintForm::XRateLimitReset => ("x-ratelimit-reset", self.moment(wall_millis).to_string()),
            HintForm::GrpcPushback => ("grpc-retry-pushback-ms", millis.to_string()),
            HintForm::GrpcStop => ("grpc-retry-pushback-ms", "-1".to_string()),
        }
    }

    /// The same, said at a moment of a simulated run, whose calendar begins with a whole second.
    pub fn told(self, at: Timestamp) -> Told {
        let seconds = Span::from_secs(self.wait.as_secs_up());
        match self.form {
            HintForm::RetryAfter | HintForm::RateLimit => Told { form: self.form, nanos: seconds.0 },
            HintForm::RetryAfterMs | HintForm::GrpcPushback | HintForm::GrpcStop => Told { form: self.form, nanos: self.wait.0 },
            HintForm::HttpDate | HintForm::XRateLimitReset => {
                let second = Span((at + self.wait).0).as_secs_up();
                Told { form: self.form, nanos: Span::from_secs(second).0 }
            }
        }
    }

    /// The first whole second since 1970 that is not before the moment meant.
    fn moment(&self, wall_millis: i64) -> i64 {
        let wait = i64::try_from(self.wait.0.div_ceil(1_000_000)).unwrap_or(i64::MAX);
        let then = wall_millis.saturating_add(wait);
        then.div_euclid(1000).saturating_add(i64::from(then.rem_euclid(1000) > 0))
    }
}

/// A hint on its way through a simulated network: a length of time, or a moment, as its form has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    form: HintForm,
    nanos: u64,
}

impl Told {
    /// What whoever reads it now makes of it.
    pub fn hint(self, now: Timestamp) -> Hint {
        let wait = if self.form.is_moment() { Timestamp(self.nanos).since(now) } else { Span(self.nanos) };
        match self.form {
            HintForm::RetryAfter | HintForm::HttpDate => Hint::retry_after(wait),
            HintForm::RetryAfterMs => Hint::NONE.with(HintKind::RetryAfterMs, wait),
            HintForm::RateLimit => Hint::NONE.with(HintKind::RateLimit, wait),
            HintForm::XRateLimitReset => Hint::NONE.with(HintKind::XRateLimitReset, wait),
            HintForm::GrpcPushback => Hint::NONE.with(HintKind::GrpcPushback, wait),
            HintForm::GrpcStop => Hint::NONE.with_stop(),
        }
    }
}

/// Seconds since 1970 UTC as RFC 9110's preferred date; what no calendar holds, as its end.
fn http_date(seconds: i64) -> String {
    const LAST: i64 = 253_402_300_799;
    let date = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0) + jiff::SignedDuration::from_secs(seconds.clamp(0, LAST));
    date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::super::{Asked, read};
    use super::*;

    fn said(form: HintForm, millis: u64) -> Said {
        Said { form, wait: Span::from_millis(millis) }
    }

    #[test]
    fn what_is_said_is_what_is_read() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let then = 784_111_777_000;
        for (form, name, value) in [
            (HintForm::RetryAfter, "retry-after", "2"),
            (HintForm::HttpDate, "retry-after", "Sun, 06 Nov 1994 08:49:39 GMT"),
            (HintForm::RetryAfterMs, "retry-after-ms", "1500"),
            (HintForm::RateLimit, "ratelimit", "\"default\";r=0;t=2"),
            (HintForm::XRateLimitReset, "x-ratelimit-reset", "784111779"),
            (HintForm::GrpcPushback, "grpc-retry-pushback-ms", "1500"),
            (HintForm::GrpcStop, "grpc-retry-pushback-ms", "-1"),
        ] {
            let said = said(form, 1_500);
            let (seen, text) = said.header(then);
            assert_eq!((seen, text.as_str()), (name, value));
            if form != HintForm::XRateLimitReset {
                let live = read(|header| (header == name).then_some(text.as_bytes()), then);
                assert_eq!(live, said.told(Timestamp::ZERO).hint(Timestamp::ZERO), "{form:?}: the engines agree");
            }
        }
        assert_eq!(HintForm::ALL.len(), 7, "each is tried");
    }

    #[test]
    fn a_moment_is_the_same_for_everybody() {
        let at = |millis| Timestamp::ZERO + Span::from_millis(millis);
        for form in [HintForm::HttpDate, HintForm::XRateLimitReset] {
            let kind = if form == HintForm::HttpDate { HintKind::RetryAfter } else { HintKind::XRateLimitReset };
            for (asked, read) in [(100, 110), (900, 910), (999, 1_600)] {
                let hint = said(form, 2_000).told(at(asked)).hint(at(read));
                assert_eq!(hint.get(kind), Some(Asked::Wait(Span::from_millis(3_000 - read))), "{form:?}");
            }
        }
        let late = said(HintForm::HttpDate, 0).told(at(1_000)).hint(at(9_000));
        assert_eq!(late, Hint::retry_after(Span::ZERO), "what has passed means now");
        assert!(said(HintForm::HttpDate, u64::MAX).header(i64::MAX).1.ends_with("9999 23:59:59 GMT"));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let wait = Some(Span::from_secs(2));
        assert!(Said::check(wait, None).is_ok() && Said::check(wait, Some(HintForm::HttpDate)).is_ok());
        assert!(Said::check(None, Some(HintForm::GrpcStop)).is_ok() && Said::check(None, None).is_ok());
        assert!(Said::check(None, Some(HintForm::HttpDate)).unwrap_err().contains("retry_after: 2s"));
        assert!(Said::check(wait, Some(HintForm::GrpcStop)).unwrap_err().contains("leave `retry_after` out"));
    }
}
