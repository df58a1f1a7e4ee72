//! Checks of the load of a fleet: rates within bounds, moments within the run.

use super::Context;
use crate::config::Place;
use crate::load::{Constant, Foreground, Load, Poisson, Spike};
use crate::time::{Rate, Span};

/// The highest rate that a plan may ask for, per second.
const MAX_RATE: f64 = 10_000_000.0;

/// Checks a load that stands at `path`, its own key aside.
pub(super) fn check(path: &[&str], load: &Load, clients: u32, length: Option<Span>, cx: &mut Context) {
    let at = |cx: &Context, key: &str| cx.at(&[path, &[load.key(), key]].concat());
    match load {
        Load::Constant(Constant { rate, each }) | Load::Poisson(Poisson { rate, each }) => {
            for (key, value, factor) in [("rate", rate, 1.0), ("each", each, f64::from(clients))] {
                if let Some(value) = value {
                    let place = at(cx, key);
                    rate_bounds(*value, factor, place, cx);
                }
            }
        }
        Load::Ramp(ramp) => {
            let place = at(cx, "to");
            rate_bounds(if ramp.to > ramp.from { ramp.to } else { ramp.from }, 1.0, place, cx);
            if length.is_some_and(|length| ramp.over > length) {
                let place = at(cx, "over");
                cx.warn(place, format!("the ramp of {} is longer than the run", ramp.over), "make it shorter, or the run longer");
            }
        }
        Load::Spike(spike) => {
            let (higher, key) = if spike.peak > spike.rate { (spike.peak, "peak") } else { (spike.rate, "rate") };
            let place = at(cx, key);
            rate_bounds(higher, 1.0, place, cx);
            if spike.peak <= spike.rate {
                let place = at(cx, "peak");
                let message = format!("the peak of {} is not above the rate of {}: this is no spike", spike.peak, spike.rate);
                cx.warn(place, message, "raise it, or use `poisson`");
            }
            spike_fits(spike, length, [at(cx, "at"), at(cx, "for")], cx);
        }
        Load::Closed(closed) => {
            if length.is_some_and(|length| closed.think >= length) {
                let place = at(cx, "think");
                cx.warn(place, format!("a pause of {} is longer than the run", closed.think), "each client does one operation");
            }
        }
        Load::Trigger(trigger) => {
            let (place, after) = (at(cx, "at"), at(cx, "spread"));
            moment_fits(trigger.at, trigger.spread, length, [place, after], cx);
        }
        Load::Schedule(schedule) => {
            let places = [at(cx, if schedule.first.is_some() { "first" } else { "every" }), at(cx, "spread")];
            moment_fits(schedule.first(), Span::ZERO, length, places, cx);
            let every = schedule.every.as_secs_f64();
            if every > 0.0 {
                let place = at(cx, "every");
                rate_bounds_above(f64::from(clients) / every, place, cx);
            }
        }
        Load::DayCurve(curve) => {
            let place = at(cx, "points");
            rate_bounds(curve.peak(), 1.0, place, cx);
            // The rate goes towards a point that lies beyond the end; one behind it does nothing.
            if let Some([_, late]) =
                curve.points.array_windows().find(|[before, _]| length.is_some_and(|length| before.at >= length))
            {
                cx.warn(
                    place,
                    format!("the point at {} does nothing: the run is over before", late.at),
                    "make `length` longer, or remove it",
                );
            }
        }
        Load::Foreground(shape) => foreground(shape, clients, length, &[path, &[load.key()]].concat(), cx),
        // The timeline says when it comes: see `returns`.
        Load::OnReconnect(_) => {}
    }
}

fn foreground(shape: &Foreground, clients: u32, length: Option<Span>, path: &[&str], cx: &mut Context) {
    let at = |cx: &Context, keys: &[&str]| cx.at(&[path, keys].concat());
    for (key, value, factor) in [("rate", shape.rate, 1.0), ("each", shape.each, f64::from(clients))] {
        if let Some(value) = value {
            let place = at(cx, &[key]);
            rate_bounds(value, factor * f64::from(shape.operations), place, cx);
        }
    }
    let busy = shape.rate.map_or(0.0, |rate| rate.get() / f64::from(clients)) * shape.within.as_secs_f64();
    if busy >= 1.0 {
        let message = format!("{clients} clients cannot begin so many sessions of {}, one at a time", shape.within);
        let place = at(cx, &["rate"]);
        cx.error(place, message, "lower the rate, make `within` shorter, or use more clients");
    }
    if let Some(first) = &shape.first {
        moment_fits(first.at, first.spread, length, [at(cx, &["first", "at"]), at(cx, &["first", "spread"])], cx);
    }
}

/// A moment at which clients come, each later by a spread.
fn moment_fits(moment: Span, spread: Span, length: Option<Span>, [at, after]: [Place; 2], cx: &mut Context) {
    let Some(length) = length else { return };
    if moment >= length {
        cx.error(at, format!("the moment {moment} is not within the run"), "bring it forward, or make `length` longer");
    } else if moment + spread > length {
        cx.warn(after, "some clients come only after the end of the run", "make the spread shorter, or `length` longer");
    }
}

fn spike_fits(spike: &Spike, length: Option<Span>, [at, lasting]: [Place; 2], cx: &mut Context) {
    let Some(length) = length else { return };
    if spike.at >= length {
        cx.error(at, format!("the moment {} is not within the run", spike.at), "bring it forward, or make `length` longer");
    } else if spike.at + spike.r#for > length {
        cx.warn(lasting, "the spike lasts beyond the end of the run", "make it shorter, or `length` longer");
    }
}

fn rate_bounds(rate: Rate, factor: f64, place: Place, cx: &mut Context) {
    if rate.get() <= 0.0 {
        cx.error(place, "a rate of 0 offers nothing", "remove the fleet, or raise the rate");
    } else {
        rate_bounds_above(rate.get() * factor, place, cx);
    }
}

/// Whether a fleet's rate is no higher than a plan may ask for.
pub(super) fn rate_bounds_above(rate: f64, place: Place, cx: &mut Context) -> bool {
    let sound = rate <= MAX_RATE;
    if !sound {
        let message = format!("{rate}/s over the fleet: {MAX_RATE}/s at most");
        cx.error(place, message, "lower the rate, or the number of clients");
    }
    sound
}
