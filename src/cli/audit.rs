//! `stormwake audit`: how far apart backoffs carry clients that failed together.

use super::exit::Code;
use super::{check, output, policies, terminal};
use crate::plan::presets;
use crate::policy::Policy;
use crate::policy::audit::Audit;
use crate::policy::backoff::{Backoff, Jitter};
use crate::report::audit::{self, Audited, Judged};
use crate::report::policies::own_backoffs;
use crate::time::Span;

/// What it is given.
#[derive(clap::Args)]
pub struct Args {
    /// Plans, whose policies are all audited, and presets; every preset where nothing is named.
    #[arg(value_name = "PLAN|PRESET")]
    named: Vec<String>,
    /// How many clients fail together.
    #[arg(long, value_name = "N", default_value_t = Audit::default().clients, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,
    /// How long after the failure counting begins, in whole seconds.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = seconds)]
    from: u32,
    /// How long after the failure counting ends, in whole seconds.
    #[arg(long, value_name = "TIME", default_value = "900s", value_parser = seconds)]
    to: u32,
    /// Where the draws come from.
    #[arg(long, value_name = "N", default_value_t = Audit::default().seed)]
    seed: u64,
    /// Fail (exit 1) where the busiest second has more than X times the mean.
    #[arg(long, value_name = "X", value_parser = limit)]
    max_peak: Option<f64>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<u32, String> {
    let span = Span::parse(text)?;
    let day = Span::from_secs(86_400);
    match u32::try_from(span.as_secs_up()) {
        Ok(seconds) if span <= day && Span::from_secs(u64::from(seconds)) == span => Ok(seconds),
        _ => Err(format!("{span}: expected whole seconds up to a day, such as `600s` or `15m`")),
    }
}

fn limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x >= 1.0 => Ok(x),
        _ => Err("expected a number of 1 or more: no peak is below its mean".into()),
    }
}

/// Runs the command.
pub fn run(args: Args) -> Code {
    if args.from >= args.to {
        return policies::usage("`--from` must be before `--to`: counting would end before it begins");
    }
    let policies = match named(&args.named) {
        Ok(policies) => policies,
        Err(code) => return code,
    };
    let setup = Audit { clients: args.clients, from: args.from, to: args.to, seed: args.seed };
    let audits: Vec<Audited> = policies.iter().flat_map(|(name, policy)| audit_of(name, policy, &setup)).collect();
    let text = if args.json {
        format!("{}\n", audit::json(&audits, &setup, args.max_peak))
    } else {
        audit::table(&audits, &setup, args.max_peak, &terminal::style(terminal::Stream::Out))
    };
    output::print(text.as_bytes()).map_or_else(|lost| lost, |()| code(&audits, args.max_peak))
}

/// The audit of a policy, and those of the backoffs that it has for single classes of outcomes.
fn audit_of(name: &str, policy: &Policy, setup: &Audit) -> Vec<Audited> {
    let one = |name: String, backoff: &Backoff| {
        let in_step = matches!(backoff.jitter(), Jitter::None(_));
        Audited { name, found: setup.run(backoff), in_step }
    };
    let own = own_backoffs(policy).map(|(class, backoff)| one(format!("{name}, {class}"), backoff));
    std::iter::once(one(name.to_string(), &policy.backoff)).chain(own).collect()
}

/// What was named: policies of plans, and presets.
fn named(named: &[String]) -> Result<Vec<(String, Policy)>, Code> {
    if named.is_empty() {
        return Ok(presets::all().into_iter().map(|preset| (preset.name.to_string(), preset.policy)).collect());
    }
    let mut found = Vec::new();
    for name in named {
        match presets::named(name) {
            Some(preset) => found.push((preset.name.to_string(), preset.policy)),
            None if is_path(name) => {
                let loaded = check::open(name, &[])?;
                found.extend(policies::of_plan(&loaded.effective).into_iter().map(|(name, _, policy)| (name, policy)));
            }
            None => return Err(policies::no_preset(name)),
        }
    }
    Ok(found)
}

/// Whether a name that no preset has is that of a file.
fn is_path(name: &str) -> bool {
    name == "-"
        || name.contains(['/', '\\'])
        || name.ends_with(".yaml")
        || name.ends_with(".yml")
        || std::path::Path::new(name).exists()
}

fn code(audits: &[Audited], max_peak: Option<f64>) -> Code {
    let any = |judged| audits.iter().any(|audited| audited.judge(max_peak) == judged);
    match (any(Judged::Past), any(Judged::Unknown)) {
        (true, _) => Code::Fail,
        (false, true) => Code::Inconclusive,
        (false, false) => Code::Pass,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::audit::Found;

    #[test]
    fn the_exit_code_follows_the_limit() {
        let audited = |found| Audited { name: "x".into(), found, in_step: false };
        let march = || audited(Found::Attempts(vec![0, 0, 0, 8]));
        let frantic = || audited(Found::TooMany);
        for (audits, limit, want) in [
            (vec![march()], None, Code::Pass),
            (vec![march()], Some(4.0), Code::Pass),
            (vec![march()], Some(3.9), Code::Fail),
            (vec![audited(Found::AtOnce)], Some(1_000.0), Code::Fail),
            (vec![frantic()], None, Code::Pass),
            (vec![frantic()], Some(3.0), Code::Inconclusive),
            (vec![frantic(), march()], Some(3.0), Code::Fail),
        ] {
            assert_eq!(code(&audits, limit), want, "{audits:?} {limit:?}");
        }
    }

    #[test]
    fn times_are_whole_seconds() {
        assert_eq!((seconds("600s"), seconds("15m"), seconds("0")), (Ok(600), Ok(900), Ok(0)));
        for text in ["1500ms", "2d", "600", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(limit("3").is_ok() && limit("0.5").is_err() && limit("nan").is_err());
    }
}
