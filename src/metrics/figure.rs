//! The one table of figures: their names, units and definitions. Gates, stop conditions, reports, the plan
//! reference and the result's schema read it.

use crate::keyword;
use crate::time::Span;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A fraction; written `5%`.
    Share,
    /// Per second; written `600/s`.
    Rate,
    /// A time in seconds; written `400ms`.
    Time,
    /// A whole number.
    Count,
    /// A factor; written `1.3x`.
    Factor,
}

keyword! {
    /// A figure of a run, or of a stretch of it.
    pub enum Figure {
        /// Operations that succeeded within their deadline / operations that ended before the run did.
        success => Success,
        /// Attempts that failed / attempts that ended, booked when they end.
        errors => Errors,
        /// Operations per second that succeeded within their deadline, booked at completion.
        goodput => Goodput,
        /// Operations per second, booked at their intended start.
        offered => Offered,
        /// Attempts per second, booked when sent.
        attempts => Attempts,
        /// The most attempts in one window, per second.
        peak_attempts => PeakAttempts,
        /// Retries / attempts.
        retry_share => RetryShare,
        /// Attempts / distinct operations attempted, across passes; in a stretch of the run, attempts / first attempts.
        amplification => Amplification,
        /// attempts/operations − 1/(1 − retry share): retries that a requeue made look like first attempts.
        laundered_retries => LaunderedRetries,
        /// Median operation latency, from the intended start, of operations that succeeded.
        p50 => P50,
        /// 90th percentile of operation latency, of operations that succeeded.
        p90 => P90,
        /// 99th percentile of operation latency, of operations that succeeded.
        p99 => P99,
        /// 99.9th percentile of operation latency, of operations that succeeded.
        p999 => P999,
        /// 99th percentile of attempt latency, from the send.
        attempt_p99 => AttemptP99,
        /// Attempts on the wire, at the end of a window; over a stretch, the most.
        in_flight => InFlight,
        /// Operations offered and not finished, at the end of a window; over a stretch, the most.
        backlog => Backlog,
        /// Age of the oldest unfinished operation, at the end of a window; over a stretch, the highest.
        oldest_age => OldestAge,
        /// Operations whose client gave up.
        failed => Failed,
        /// Operations that failed, and that nobody holds any more; today all that failed, since nothing takes them over.
        lost => Lost,
        /// Operations still held when the run ended.
        unresolved => Unresolved,
        /// Operations refused at ingress.
        refused => Refused,
        /// End of the fault to the start of the first sustained good stretch.
        recovery_time => RecoveryTime,
        /// First to last window with errors above baseline + 1%, from the fault's start.
        error_window => ErrorWindow,
        /// Times that health was lost again after recovery.
        relapses => Relapses,
        /// At the arrived tap, from the first fault on: the median per-period peak/mean of the strongest period, the trend divided out; 1 where nothing repeats (an autocorrelation of at most 0.2).
        wave_score => WaveScore,
        /// Service work for requests whose client had gone / all service work.
        wasted_work => WastedWork,
        /// Operations that the service carried out again: another attempt of them, known by its idempotency key, had been served already.
        duplicates => Duplicates,
        /// 99th percentile of generator lag.
        lag_p99 => LagP99,
    }
}

/// No two values that differ are so near that it takes more digits than these, beyond the usual ones, to see it.
const MOST_DIGITS: usize = 9;

impl Unit {
    /// A value as text, in the form that a plan writes it: `5%`, `600/s`, `400ms`, `12`, `1.3x`.
    pub fn show(self, value: f64) -> String {
        self.with_digits(value, 0)
    }

    /// A value and the bound that it stands beside, both with as many digits as it takes to tell them apart: `98.96%` beside `99%`, which
    /// rounded as usual would be `99%` as well. Rounding keeps the order of two numbers, so where the texts differ they lie as the values do.
    pub fn show_beside(self, value: f64, bound: f64) -> (String, String) {
        let shown = |more| (self.with_digits(value, more), self.with_digits(bound, more));
        if value == bound || !value.is_finite() || !bound.is_finite() {
            return shown(0);
        }
        (0..=MOST_DIGITS).map(shown).find(|(value, bound)| value != bound).unwrap_or_else(|| {
            let side = if value < bound { "just under" } else { "just over" };
            (format!("{side} {}", self.show(bound)), self.show(bound))
        })
    }

    /// With so many digits more than usual.
    fn with_digits(self, value: f64, more: usize) -> String {
        match self {
            Self::Share => format!("{}%", short(value * 100.0, more)),
            Self::Rate => format!("{}/s", short(value, more)),
            Self::Time => show_time(value, more),
            Self::Count => short(value, more),
            Self::Factor => format!("{}x", short(value, more)),
        }
    }
}

/// About three digits and so many more, without zeros that say nothing.
fn short(value: f64, more: usize) -> String {
    let digits = more
        + match value.abs() {
            v if v >= 100.0 => 0,
            v if v >= 10.0 => 1,
            _ => 2,
        };
    let text = format!("{value:.digits$}");
    let text = if digits == 0 { &text } else { text.trim_end_matches('0').trim_end_matches('.') };
    // A little less than nothing, rounded.
    if text == "-0" { "0".into() } else { text.to_string() }
}

fn show_time(seconds: f64, more: usize) -> String {
    let finer = 10u64.saturating_pow(more as u32);
    let rounded = |grain: Span| {
        let grain = (grain.0 / finer).max(1);
        Span(((seconds * 1e9 / grain as f64).round() as u64).saturating_mul(grain)).to_string()
    };
    match seconds {
        s if s < 0.01 => format!("{}ms", short(s * 1e3, more)),
        s if s < 10.0 => rounded(Span::from_millis(1)),
        _ => rounded(Span::from_millis(100)),
    }
}

impl Figure {
    /// Whether the tap of one of a plan's `proxies` can know it, which sees requests and not what a client holds or means.
    pub fn known_at_taps(self) -> bool {
        !matches!(
            self,
            Self::LaunderedRetries
                | Self::OldestAge
                | Self::Failed
                | Self::Lost
                | Self::Unresolved
                | Self::Refused
                | Self::WastedWork
                | Self::Duplicates
                | Self::LagP99
        )
    }

    /// Whether it is made of which requests are retries.
    pub fn is_of_retries(self) -> bool {
        matches!(self, Self::RetryShare | Self::Amplification | Self::Offered)
    }

    /// Whether it is a latency of operations, which those alone have that succeeded.
    pub fn is_of_successes(self) -> bool {
        matches!(self, Self::P50 | Self::P90 | Self::P99 | Self::P999)
    }

    /// What it is counted in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Success | Self::Errors | Self::RetryShare | Self::WastedWork => Unit::Share,
            Self::Goodput | Self::Offered | Self::Attempts | Self::PeakAttempts => Unit::Rate,
            Self::Amplification | Self::LaunderedRetries | Self::WaveScore => Unit::Factor,
            Self::P50
            | Self::P90
            | Self::P99
            | Self::P999
            | Self::AttemptP99
            | Self::OldestAge
            | Self::RecoveryTime
            | Self::ErrorWindow
            | Self::LagP99 => Unit::Time,
            Self::InFlight
            | Self::Backlog
            | Self::Failed
            | Self::Lost
            | Self::Unresolved
            | Self::Refused
            | Self::Relapses
            | Self::Duplicates => Unit::Count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_like_a_plan() {
        for (unit, value, text) in [
            (Unit::Share, 0.05, "5%"),
            (Unit::Share, 0.747_3, "74.7%"),
            (Unit::Share, 1.0, "100%"),
            (Unit::Rate, 0.0, "0/s"),
            (Unit::Rate, 400.4, "400/s"),
            (Unit::Rate, 3.25, "3.25/s"),
            (Unit::Time, 0.000_85, "0.85ms"),
            (Unit::Time, 0.4, "400ms"),
            (Unit::Time, 2.0, "2s"),
            (Unit::Time, 92.04, "1m32s"),
            (Unit::Count, 1987.0, "1987"),
            (Unit::Factor, 1.3, "1.3x"),
        ] {
            assert_eq!(unit.show(value), text);
        }
    }

    #[test]
    fn a_value_never_reads_like_the_bound_that_it_misses() {
        for (unit, value, bound, texts) in [
            (Unit::Share, 0.989_6, 0.99, ("98.96%", "99%")),
            (Unit::Share, 0.99, 0.99, ("99%", "99%")),
            (Unit::Share, 0.5, 0.99, ("50%", "99%")),
            (Unit::Share, 0.050_04, 0.05, ("5.004%", "5%")),
            (Unit::Rate, 800.4, 800.0, ("800.4/s", "800/s")),
            (Unit::Rate, 378.2, 378.4, ("378.2/s", "378.4/s")),
            (Unit::Time, 0.400_4, 0.4, ("400ms400us", "400ms")),
            (Unit::Time, 20.04, 20.0, ("20s40ms", "20s")),
            (Unit::Time, 0.009_999, 0.01, ("9.999ms", "10ms")),
            (Unit::Factor, 1.304, 1.3, ("1.304x", "1.3x")),
            (Unit::Count, 99.97, 100.2, ("99.97", "100.2")),
            (Unit::Factor, 1.3 + 1e-15, 1.3, ("just over 1.3x", "1.3x")),
        ] {
            let (value, bound) = unit.show_beside(value, bound);
            assert_eq!((value.as_str(), bound.as_str()), texts);
        }
    }

    #[test]
    fn what_is_shown_lies_as_what_was_seen() {
        let number = |text: &str| text.trim_end_matches(['x']).parse::<f64>();
        for n in 0..20_000u32 {
            // Around bounds of every size, from far away to a millionth beside them.
            let bound = [0.0, 0.3, 1.3, 9.995, 10.0, 99.96, 100.0, 4_000.0][n as usize % 8];
            let value = bound + (f64::from(n) - 10_000.0) / f64::from(10u32.pow(n % 7 + 1));
            let (shown, against) = Unit::Factor.show_beside(value, bound);
            let (Ok(shown), Ok(against)) = (number(&shown), number(&against)) else { panic!("{shown} beside {against}") };
            assert_eq!(shown.partial_cmp(&against), value.partial_cmp(&bound), "{value} beside {bound}: {shown} and {against}");
        }
    }
}
