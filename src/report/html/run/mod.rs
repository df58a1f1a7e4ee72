//! The page of one run, from its document: the order in which people ask.

pub(super) mod banner;
mod inside;
mod latency;
mod load;
mod parts;
pub(super) mod setup;
mod told;
mod view;

use super::super::result::RunResult;
use super::frame::page;
use view::View;

/// The page of a run. `plan` is the effective plan as YAML.
pub fn run(result: &RunResult, plan: &str) -> String {
    let view = View::of(result);
    let sections = [
        vec![load::load(&view), load::retries(&view), latency::map(&view), inside::inside(&view), inside::attempts(&view)],
        vec![latency::spectrum(&view), inside::waves(&view)],
        parts::proxies(&view).into_iter().collect(),
        vec![parts::fleets(&view), told::rules(result), told::gates(result), told::happened(result)],
        vec![setup::setup(result), setup::plan(plan)],
    ];
    page(banner::banner(&view), &sections.concat(), &result.stormwake)
}

#[cfg(test)]
pub(super) mod tests;
