//! Whether a run of the plan can have the evidence that its baseline and its gates take. What no run can show is refused; what the load will
//! hardly bring is warned of.

use super::{Context, timeline};
use crate::fault::Step;
use crate::gate::condition::Bound;
use crate::gate::config::During;
use crate::gate::findings::needed;
use crate::gate::verdict::LEAST_OPERATIONS;
use crate::gate::{GateConfig, RecoveryConfig, SteadyState};
use crate::metrics::Figure;
use crate::plan::action::Deed;
use crate::plan::{Fleet, arithmetic};
use crate::time::{Span, Timestamp};

/// What of a plan says how much a run will see.
pub(super) struct Run<'a> {
    pub(super) timeline: &'a timeline::Checked,
    pub(super) fleets: &'a [Fleet],
    pub(super) steady: Option<&'a SteadyState>,
    pub(super) recovery: Option<&'a RecoveryConfig>,
    pub(super) length: Option<Span>,
}

impl Run<'_> {
    /// Whether enough ends in the baseline, where something is compared with it.
    pub(super) fn baseline(&self, cx: &mut Context) {
        let Some(steady) = self.steady else { return };
        let takes = self.recovery.map_or(LEAST_OPERATIONS, |recovery| recovery.operations);
        let Some(come) = self.operations(None, steady.r#for).filter(|come| *come < takes as f64) else { return };
        let place = if cx.has("steady_state") { cx.at(&["steady_state", "for"]) } else { cx.at(&["recovery"]) };
        let message = format!(
            "about {come:.0} operations come in the baseline of {}, and it takes {takes} (`recovery.operations`): a run of this plan is inconclusive",
            steady.r#for
        );
        cx.warn(place, message, "offer more, make the baseline longer, or lower `recovery.operations`");
    }

    /// Whether a gate can be judged at all.
    pub(super) fn gate(&self, gate: &GateConfig, index: &str, cx: &mut Context) {
        let figure = gate.condition.figure;
        let (word, place) = (figure.word(), cx.at(&["gates", index, figure.word()]));
        let of_baseline = matches!(gate.condition.comparison.bound, Bound::OfBaseline(_));
        if of_the_whole(figure) && of_baseline {
            let message = format!("`{word}` is known of the whole run only: a baseline has none to compare it with");
            cx.error(place, message, "compare it with an absolute value");
        }
        let counted = matches!(figure, Figure::WastedWork | Figure::Duplicates);
        if counted && gate.during != During::Run {
            let message =
                format!("`{word}` is counted over the whole run only: during a part of it this gate could never be judged");
            cx.error(gate.during_place, message, "remove `during`");
        } else if of_the_whole(figure) && gate.during != During::Run {
            let message = format!("`{word}` is found over the whole run: `during` changes nothing");
            cx.warn(gate.during_place, message, "remove `during`");
        } else if is_of_operations(figure) && gate.at.is_none() {
            self.samples(gate, place, of_baseline, cx);
        }
    }

    /// Whether as many operations come as its figure takes.
    fn samples(&self, gate: &GateConfig, place: crate::config::Place, of_baseline: bool, cx: &mut Context) {
        let figure = gate.condition.figure;
        let takes = needed(figure);
        let baseline = || Some(("the baseline".to_string(), self.steady?.r#for));
        let looked_at = [self.stretch(&gate.during), if of_baseline { baseline() } else { None }];
        for (name, lasts) in looked_at.into_iter().flatten() {
            let Some(come) = self.operations(gate.fleet.as_deref(), lasts).filter(|come| *come < takes as f64) else { continue };
            let message = format!(
                "about {come:.0} operations come in {name}, which lasts {lasts}, and `{}` takes {takes}: this gate is inconclusive",
                figure.word()
            );
            cx.warn(place, message, "offer more, look at a longer stretch, or at a figure that takes fewer, such as `p50`");
            return;
        }
    }

    /// What a gate looks at, and how long that lasts; none where it is not known here.
    fn stretch(&self, during: &During) -> Option<(String, Span)> {
        let lasts = |step: &Step| (format!("`{}`", step.name), step.to.since(step.from));
        match during {
            During::Run => Some(("the run".into(), self.length?)),
            During::Baseline => Some(("the baseline".into(), self.steady?.r#for)),
            During::Recovery => {
                let after = &self.recovery?.after.as_ref()?.value;
                let step = self.timeline.steps.iter().find(|step| step.name == *after)?;
                Some((format!("the stretch after `{after}`"), Timestamp(self.length?.0).since(step.to)))
            }
            During::Step(name) => self.timeline.steps.iter().find(|step| step.name == *name).map(lasts),
        }
    }

    /// The most operations that come within a time, of one fleet or of all; none where that is not known here: of closed load, of load that an
    /// action changes, and where fleets fill each other's queues.
    fn operations(&self, fleet: Option<&str>, within: Span) -> Option<f64> {
        let changed = self.timeline.actions.iter().any(|action| matches!(action.what, Deed::Fleet { .. }));
        if changed || self.fleets.is_empty() || self.fleets.iter().any(|fleet| fleet.into.is_some()) {
            return None;
        }
        let asked = self.fleets.iter().filter(|of| fleet.is_none_or(|name| of.name == name));
        asked.map(|of| arithmetic::offered(&of.config).within(within.as_secs_f64())).sum()
    }
}

/// Figures that a run has one of.
fn of_the_whole(figure: Figure) -> bool {
    let of_recovery = matches!(figure, Figure::RecoveryTime | Figure::ErrorWindow | Figure::Relapses);
    of_recovery || matches!(figure, Figure::WastedWork | Figure::Duplicates)
}

/// Figures whose evidence is operations: attempts may be more of them.
fn is_of_operations(figure: Figure) -> bool {
    matches!(figure, Figure::Success | Figure::Amplification) || figure.is_of_successes()
}
