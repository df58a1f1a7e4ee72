//! Commands and webhooks of the timeline: begun at their moments beside the run, never waited for, and undone at its end.
//!
//! What was begun is undone on every way out, the last one first: at the end of the plan, after a stop condition or a signal, and where the
//! coordinator itself breaks (then by a thread of its own, see `Owed`). A third signal leaves what is not undone by then, and the run
//! ends with exit code 7. SIGKILL is no way out: it leaves everything, a command that still runs too.
//!
//! What is killed, after its time and at the end, is a command's process group: a child that has left it with `setsid` lives on.

use super::clock::Clock;
use super::group::Group;
use super::guard::Allowed;
use super::redacted::Redacted;
use super::signal::{Owing, Signals};
use super::webhook::{Webhook, WebhookError};
use crate::plan::{Deed, Plan};
use crate::time::{Span, Timestamp};
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

/// So much of what a command says is kept.
const KEPT: usize = 300;
/// How long, after a command's end, what it has said last is waited for: what it left in the background may hold its output open.
const LAST_WORDS: Span = Span::from_millis(50);

/// Why an action cannot be done at all; known before the run begins.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// A command that nobody approved.
    #[error(
        "refused: the plan's action `{action}` runs the command `{command}` on this machine: run again with --approve if you mean it"
    )]
    NotApproved {
        /// The action.
        action: String,
        /// What would be run.
        command: String,
    },
    /// A change of a service that is not the built-in target.
    #[error(
        "the plan's step `{action}` changes the target's service, and the target is a URL: nothing here can change somebody's server; change it with \
         `action: {{ exec: … }}`, or simulate the plan, where the step changes its `model`"
    )]
    NotOurs {
        /// The step.
        action: String,
    },
    /// A webhook that cannot be called.
    #[error("the plan's action `{action}` cannot be done: {source}")]
    Webhook {
        /// The action.
        action: String,
        /// Why.
        source: WebhookError,
    },
}

impl ActionError {
    /// Whether this is a refusal (exit code 5).
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::NotApproved { .. } => true,
            Self::NotOurs { .. } => false,
            Self::Webhook { source: WebhookError::Guard(guard), .. } => guard.is_refusal(),
            Self::Webhook { .. } => false,
        }
    }
}

/// What came of a command or a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The action, by its place in the plan.
    pub index: usize,
    /// When it was begun.
    pub began: Timestamp,
    /// Whether it worked.
    pub worked: bool,
    /// What it answered.
    pub detail: String,
}

/// What came of undoing an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The action, by its place in the plan.
    pub index: usize,
    /// Whether it worked.
    pub confirmed: bool,
    /// What it answered.
    pub detail: String,
}

/// Something that is done outside.
#[derive(Clone)]
enum Deal {
    Command(Vec<String>),
    Call(Box<Webhook>),
}

#[derive(Clone)]
struct Task {
    index: usize,
    name: String,
    at: Timestamp,
    within: Span,
    deal: Deal,
    undo: Option<Deal>,
}

/// Actions that can be done, with what that needs.
pub struct Prepared(Vec<Task>);

/// The actions of a run. Dropping it kills what still runs, and undoes what was begun.
pub struct Outside {
    /// What has not been begun.
    waiting: Vec<Task>,
    running: JoinSet<()>,
    /// What was begun and has not answered, and when.
    unanswered: Vec<(usize, Timestamp)>,
    answers: mpsc::UnboundedReceiver<Answer>,
    answered: mpsc::UnboundedSender<Answer>,
    owed: Owed,
    clock: Arc<dyn Clock>,
}

impl Outside {
    /// Makes the actions ready before the run begins. Blocks while names are resolved.
    ///
    /// # Errors
    /// A command without approval, a webhook that must not or cannot be called.
    pub fn prepare(plan: &Plan, allowed: &Allowed, approved: bool) -> Result<Prepared, ActionError> {
        let mut tasks = Vec::new();
        for (index, action) in plan.actions.iter().enumerate() {
            let (within, deal, undo) = match &action.what {
                Deed::Service { .. } if plan.target.service.is_none() => {
                    return Err(ActionError::NotOurs { action: action.name.clone() });
                }
                Deed::Fleet { .. } | Deed::Service { .. } => continue,
                Deed::Exec(exec) if !approved => {
                    return Err(ActionError::NotApproved { action: action.name.clone(), command: exec.command.join(" ") });
                }
                Deed::Exec(exec) => {
                    let undo = Some(exec.undo.clone()).filter(|undo| !undo.is_empty());
                    (exec.within.0, Deal::Command(exec.command.clone()), undo.map(Deal::Command))
                }
                Deed::Http(http) => {
                    let ready = |call| {
                        let ready = Webhook::new(call, allowed, plan.target.ca_file.as_deref());
                        let deal = ready.map(|webhook| Deal::Call(Box::new(webhook)));
                        deal.map_err(|source| ActionError::Webhook { action: action.name.clone(), source })
                    };
                    (http.within.0, ready(&http.call())?, http.undo.as_ref().map(ready).transpose()?)
                }
            };
            tasks.push(Task { index, name: action.name.clone(), at: action.at, within, deal, undo });
        }
        Ok(Prepared(tasks))
    }

    /// Nothing has been begun.
    pub fn new(prepared: Prepared, clock: Arc<dyn Clock>) -> Self {
        let (answered, answers) = mpsc::unbounded_channel();
        let (running, unanswered, owed) = (JoinSet::new(), Vec::new(), Owed::default());
        Self { waiting: prepared.0, running, unanswered, answers, answered, owed, clock }
    }

    /// The moments at which something is begun.
    pub fn moments(&self) -> impl Iterator<Item = Timestamp> {
        self.waiting.iter().map(|task| task.at)
    }

    /// Begins what is to be begun at a moment. To be called inside the coordinator's runtime.
    pub fn begin(&mut self, moment: Timestamp) {
        let (due, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|task| task.at <= moment);
        self.waiting = waiting;
        let due: Vec<Task> = due;
        for Task { index, name, within, deal, undo, .. } in due {
            let began = self.clock.now();
            info!(action = ?name, what = %deal, "an action begins");
            // Owed from before it begins: half of it may be done when it fails.
            self.owed.add(undo.map(|deal| Undo { index, name: name.clone(), within, deal }));
            self.unanswered.push((index, began));
            let (answered, clock) = (self.answered.clone(), self.clock.clone());
            self.running.spawn(async move {
                let (worked, detail) = match deal.settle(within).await {
                    Ok(detail) => (true, detail),
                    Err(detail) => (false, detail),
                };
                info!(action = ?name, worked, ms = clock.now().since(began).as_millis(), "an action has ended");
                let _ = answered.send(Answer { index, began, worked, detail });
            });
        }
    }

    /// The next answer; never, where nothing is begun. Cancel safe.
    pub async fn next(&mut self) -> Answer {
        match self.answers.recv().await {
            Some(answer) => {
                self.unanswered.retain(|(index, _)| *index != answer.index);
                answer
            }
            None => std::future::pending().await,
        }
    }

    /// Kills what still runs, and begins to undo. Gives the answers that were not heard, and what becomes of the undoing.
    pub fn end(mut self) -> (Vec<Answer>, JoinHandle<Vec<Undone>>) {
        self.running.abort_all();
        let mut answers = Vec::new();
        while let Ok(answer) = self.answers.try_recv() {
            self.unanswered.retain(|(index, _)| *index != answer.index);
            answers.push(answer);
        }
        let cut = |&(index, began): &(usize, Timestamp)| {
            let detail = "the run ended before it did".to_string();
            Answer { index, began, worked: false, detail }
        };
        answers.extend(self.unanswered.iter().map(cut));
        (answers, tokio::spawn(std::mem::take(&mut self.owed).settle()))
    }
}

struct Undo {
    index: usize,
    name: String,
    within: Span,
    deal: Deal,
}

/// What is to be undone, in the order in which it was begun. Where it is dropped with something left, a thread of its own undoes that.
#[derive(Default)]
struct Owed(Vec<Undo>);

impl Owed {
    fn add(&mut self, undo: Option<Undo>) {
        self.0.extend(undo);
        self.tell(false);
    }

    /// Tells who hears the signals what is left; `begun`: the last of it is being undone.
    fn tell(&self, begun: bool) {
        let owing = |undo: &Undo| Owing { name: undo.name.clone(), within: undo.within, begun: false };
        let mut all: Vec<Owing> = self.0.iter().map(owing).collect();
        all.iter_mut().last().into_iter().for_each(|last| last.begun = begun);
        Signals::owe(all);
    }

    /// Undoes everything, the last begun first, until a signal says to leave it.
    async fn settle(mut self) -> Vec<Undone> {
        let mut all = Vec::new();
        while let Some(Undo { index, within, deal, .. }) = self.0.last() {
            let index = *index;
            let settled = if Signals::leaves() {
                Err("not begun: a third signal said to leave it undone".to_string())
            } else {
                self.tell(true);
                info!(action = index, what = %deal, "an action is being undone");
                tokio::select! {
                    settled = deal.settle(*within) => settled,
                    () = Signals::left() => Err("cut short: a third signal said to leave it undone".to_string()),
                }
            };
            // Only now: were this dropped meanwhile, it would still be owed.
            self.0.pop();
            self.tell(false);
            let (confirmed, detail) = match settled {
                Ok(detail) => (true, detail),
                Err(detail) => (false, detail),
            };
            all.push(Undone { index, confirmed, detail });
        }
        all
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.0);
        if left.is_empty() {
            return;
        }
        warn!(count = left.len(), "the coordinator broke: what it began is undone without it");
        let undoing = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(Self(left).settle()).len()).unwrap_or_default()
        });
        // Nobody is left to be told.
        let _ = undoing.join();
    }
}

impl std::fmt::Display for Deal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(words) => Redacted::Command(words).fmt(f),
            Self::Call(webhook) => f.write_str(&webhook.name()),
        }
    }
}

impl Deal {
    /// Does it, for no longer than `within`: what was answered, as an error where it did not work.
    async fn settle(&self, within: Span) -> Result<String, String> {
        let (name, work) = match self {
            Self::Command(words) => (words.join(" "), tokio::time::timeout(within.to_std(), run(words)).await),
            Self::Call(webhook) => (webhook.name(), tokio::time::timeout(within.to_std(), webhook.send()).await),
        };
        let answer = work.unwrap_or_else(|_| Err(format!("no end within {within}")));
        let shown = |text: String| short(&format!("`{}`: {text}", short(&name, 100)), KEPT + 200);
        answer.map(shown).map_err(shown)
    }
}

/// Runs a command to its end; dropped before, it is killed with all that it has started. What it leaves in the background lives.
async fn run(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let cannot = |error| format!("it cannot be run: {error}");
    let mut child = command.process_group(0).spawn().map_err(cannot)?;
    let group = Group::of(&child);
    let (mut out, mut err) = (Pipe::new(child.stdout.take()), Pipe::new(child.stderr.take()));
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(cannot)?,
            () = out.more() => {}
            () = err.more() => {}
        }
    };
    let rest = async {
        while out.is_open() || err.is_open() {
            tokio::select! { () = out.more() => {} () = err.more() => {} }
        }
    };
    let _ = tokio::time::timeout(LAST_WORDS.to_std(), rest).await;
    group.let_go();
    let said = format!("{} {}", out.text(), err.text());
    let text = if said.trim().is_empty() { status.to_string() } else { format!("{status}: {}", said.trim()) };
    if status.success() { Ok(text) } else { Err(text) }
}

/// What a command says on one of its streams: read to the end, so that it never waits for us, and kept as far as there is room.
struct Pipe<R> {
    from: Option<R>,
    kept: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    const fn new(from: Option<R>) -> Self {
        Self { from, kept: Vec::new() }
    }

    const fn is_open(&self) -> bool {
        self.from.is_some()
    }

    /// Reads once; never returns where nothing more comes. Cancel safe.
    async fn more(&mut self) {
        let mut part = [0; 1024];
        let Some(from) = &mut self.from else { return std::future::pending().await };
        match from.read(&mut part).await {
            Ok(0) | Err(_) => self.from = None,
            Ok(n) => self.kept.extend_from_slice(&part[..n.min(KEPT - self.kept.len().min(KEPT))]),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).trim().to_string()
    }
}

/// So many characters of a text, line breaks and the like as spaces.
fn short(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::clock::LiveClock;
    use super::*;
    use crate::plan::{Source, load};

    fn plan(actions: &str) -> Plan {
        let text = format!(
            "version: 1\ntarget: {{ service: {{ servers: 1, service_time: 1ms }} }}\nlength: 1m\ntimeline:\n{actions}\
             fleets: {{ a: {{ clients: 1, policy: {{ attempts: 1, timeout: 1s }}, load: {{ constant: {{ rate: 1/s }} }} }} }}\n"
        );
        load(&Source { file: "p", text: &text, overrides: &[], env: &|_| None }).unwrap_or_else(|e| panic!("{e}")).plan
    }

    fn outside(actions: &str) -> Outside {
        let prepared = Outside::prepare(&plan(actions), &Allowed::default(), true).unwrap_or_else(|error| panic!("{error}"));
        Outside::new(prepared, LiveClock::starting_now())
    }

    fn scratch(name: &str) -> String {
        let path = std::env::temp_dir().join(format!("stormwake-action-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path.display().to_string()
    }

    #[test]
    fn a_command_needs_approval_and_a_far_host_is_refused() {
        let exec = plan("  - { at: 1s, name: stop, action: { exec: { command: [echo, hi] } } }\n");
        let error = Outside::prepare(&exec, &Allowed::default(), false).err().expect("it is refused");
        assert!(
            error.is_refusal() && error.to_string().contains("`echo hi`") && error.to_string().contains("--approve"),
            "{error}"
        );
        let far = plan("  - { at: 1s, action: { http: { url: 'http://192.0.2.1/' } } }\n");
        let error = Outside::prepare(&far, &Allowed::default(), true).err().expect("it is refused");
        assert!(error.is_refusal(), "{error}");
    }

    #[tokio::test]
    async fn what_was_begun_is_undone_the_last_one_first_whatever_came_of_it() {
        let file = scratch("order");
        let step = |name: &str, command: &str| {
            format!(
                "  - {{ at: 1s, name: {name}, action: {{ exec: {{ command: [sh, -c, '{command}'], within: 200ms, \
                 undo: [sh, -c, 'echo {name} >> {file}'] }} }} }}\n"
            )
        };
        let later = "  - { at: 2s, name: later, action: { exec: { command: ['false'], undo: ['false'] } } }\n";
        let steps = [step("good", "echo done"), step("bad", "echo no >&2; exit 3"), step("slow", "sleep 100"), later.into()];
        let mut outside = outside(&steps.concat());
        outside.begin(Timestamp(1_000_000_000));
        let mut answers = [outside.next().await, outside.next().await, outside.next().await];
        answers.sort_by_key(|answer| answer.index);
        let told: Vec<(bool, &str)> = answers.iter().map(|answer| (answer.worked, answer.detail.as_str())).collect();
        assert!(told[0].0 && told[0].1.contains("done"), "{told:?}");
        assert!(!told[1].0 && told[1].1.contains('3') && told[1].1.contains("no"), "{told:?}");
        assert!(!told[2].0 && told[2].1.contains("no end within 200ms"), "{told:?}");
        let (unheard, undoing) = outside.end();
        assert_eq!(unheard, []);
        let undone = undoing.await.unwrap();
        assert_eq!(
            undone.iter().map(|undone| (undone.index, undone.confirmed)).collect::<Vec<_>>(),
            [(2, true), (1, true), (0, true)]
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "slow\nbad\ngood\n");
        let _ = std::fs::remove_file(&file);
    }

    #[tokio::test]
    async fn what_still_runs_at_the_end_is_cut_short_and_undone() {
        let mut outside = outside("  - { at: 1s, action: { exec: { command: [sleep, '100'], undo: ['false'] } } }\n");
        outside.begin(Timestamp(1_000_000_000));
        let (unheard, undoing) = outside.end();
        assert_eq!(unheard.iter().map(|answer| answer.worked).collect::<Vec<_>>(), [false]);
        let undone = undoing.await.unwrap();
        assert_eq!(undone.iter().map(|undone| undone.confirmed).collect::<Vec<_>>(), [false], "{undone:?}");
    }

    #[test]
    fn a_coordinator_that_breaks_undoes_all_the_same() {
        let file = scratch("broken");
        let steps = format!("  - {{ at: 1s, action: {{ exec: {{ command: ['true'], undo: [touch, '{file}'] }} }} }}\n");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async {
                let mut outside = outside(&steps);
                outside.begin(Timestamp(1_000_000_000));
                panic!("as if by a mistake of ours");
            });
        }));
        assert!(broken.is_err() && std::fs::exists(&file).unwrap());
        let _ = std::fs::remove_file(&file);
    }

    #[tokio::test]
    async fn what_a_command_says_is_kept_in_part_and_what_it_leaves_behind_lives() {
        let loud = ["sh", "-c", "yes | head -c 1000000; sleep 2 & echo $! >&2"].map(str::to_string);
        let said = run(&loud).await.unwrap();
        assert!(said.len() < 3 * KEPT, "{}", said.len());
        let id = said.rsplit(' ').next().unwrap().trim().to_string();
        assert!(std::fs::exists(format!("/proc/{id}")).unwrap(), "{said}");
    }
}
