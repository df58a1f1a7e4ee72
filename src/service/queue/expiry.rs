//! When whoever waits too long is served no more: the age, and how it is answered.

use crate::config::{Node, Problems, Read, Shape, TimeScale, Value};
use crate::keyword;
use crate::record;
use crate::time::Span;

keyword! {
    /// What a request is answered that has waited too long.
    pub enum ExpiryAnswer {
        /// A refusal, so that its client knows.
        refuse => Refuse,
        /// Nothing: its client waits until it times out.
        silent => Silent,
    }
}

keyword! {
    /// When it is seen that a request has waited too long.
    pub enum Checked {
        /// At the moment when it has.
        on_time => OnTime,
        /// When it would be served; until then it stands in the queue.
        at_dequeue => AtDequeue,
    }
}

record! {
    /// Whoever has waited for so long is served no more.
    pub struct ExpirySettings {
        /// How long, from the arrival at the service.
        age: Span,
        /// What it is answered.
        answer: ExpiryAnswer = ExpiryAnswer::Refuse,
        /// When that is seen: `on_time` where nothing is said, and `at_dequeue` where the answer is `silent`.
        checked: Option<Checked>,
    } => |expiry: &ExpirySettings| {
        if expiry.age.is_zero() {
            return Err("`age` must be above zero: somewhat shorter than the clients' timeout, such as `29s`".to_string());
        }
        Ok(())
    }
}

/// Whoever has waited too long is served no more: the age alone, or all settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Expiry(pub ExpirySettings);

impl Expiry {
    /// Refuses at this age, on time.
    pub const fn after(age: Span) -> Self {
        Self(ExpirySettings { age, answer: ExpiryAnswer::Refuse, checked: None })
    }

    /// How old a request is that is served no more.
    pub const fn age(&self) -> Span {
        self.0.age
    }

    /// Whether it is told so.
    pub fn is_answered(&self) -> bool {
        self.0.answer == ExpiryAnswer::Refuse
    }

    /// When that is seen.
    pub fn checked(&self) -> Checked {
        self.0.checked.unwrap_or(match self.0.answer {
            ExpiryAnswer::Refuse => Checked::OnTime,
            ExpiryAnswer::Silent => Checked::AtDequeue,
        })
    }
}

impl Read for Expiry {
    fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            return ExpirySettings::read(node, problems).map(Self);
        }
        let age = Span::read(node, problems)?;
        if age.is_zero() {
            problems.error(
                node.place,
                "`expire_after` must be above zero: somewhat shorter than the clients' timeout, such as `29s`",
            );
            return None;
        }
        Some(Self::after(age))
    }
    fn shape() -> Shape {
        Shape::OneOf(vec![Span::shape(), ExpirySettings::shape()])
    }
    fn rescale(&mut self, by: TimeScale) {
        self.0.rescale(by);
    }
}
