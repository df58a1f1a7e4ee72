//! The macros that define a configurable type once: its fields, how it is read, its shape.

/// Defines a struct that is read from a map with known keys. Each field is `name: Type` (required, unless
/// [`Read::missing`](crate::config::Read::missing) gives a value, as `Option` does) or `name: Type = default`.
/// `=> check` names a `fn(&Self) -> Result<(), String>` for what must hold of and between fields; a message that begins
/// with a field's name in backquotes is placed at that field. `; with part: Record` after the fields adds those of another
/// record, in the same map. Docs become the schema's descriptions.
///
/// ```
/// use stormwake::{record, time::Span};
///
/// record! {
///     /// Waits the same time before every retry.
///     pub struct Steady {
///         /// How long.
///         delay: Span,
///         /// How many times.
///         times: u32 = 3,
///     }
/// }
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $fdoc:literal])* $field:ident : $ty:ty $(= $default:expr)? ),* $(,)?
            $( ; with $( $(#[doc = $pdoc:literal])* $part:ident : $pty:ty ),+ $(,)? )?
        } $(=> $check:expr)?
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name { $( $(#[doc = $fdoc])* pub $field: $ty, )* $( $( $(#[doc = $pdoc])* pub $part: $pty, )+ )? }

        impl $crate::config::Read for $name {
            fn read(node: &$crate::config::Node, problems: &mut $crate::config::Problems) -> Option<Self> {
                let mut fields = $crate::config::Fields::open(node, problems)?;
                let taken = <Self as $crate::config::Part>::take(node, &mut fields, problems);
                fields.close(problems);
                $crate::config::checked(taken?, node, problems)
            }

            fn shape() -> $crate::config::Shape {
                $crate::config::Shape::Record {
                    doc: concat!($($doc, "\n",)* "").trim().to_string(),
                    fields: <Self as $crate::config::Part>::fields(),
                }
            }

            fn missing() -> Option<Self> {
                None
            }

            #[allow(unused_variables)]
            fn rescale(&mut self, by: $crate::config::TimeScale) {
                $( $crate::config::Read::rescale(&mut self.$field, by); )*
                $( $( $crate::config::Read::rescale(&mut self.$part, by); )+ )?
            }
        }

        impl $crate::config::Part for $name {
            #[allow(unused_variables, clippy::question_mark)]
            fn take(
                node: &$crate::config::Node,
                fields: &mut $crate::config::Fields,
                problems: &mut $crate::config::Problems,
            ) -> Option<Self> {
                $( let $field = fields.take::<$ty>(stringify!($field), problems, || $crate::record!(@missing $ty $(, $default)?)); )*
                $( $( let $part = $crate::config::read_part::<$pty>(node, fields, problems); )+ )?
                Some(Self { $( $field: $field?, )* $( $( $part: $part?, )+ )? })
            }

            #[allow(clippy::vec_init_then_push, unused_mut)]
            fn fields() -> Vec<$crate::config::Field> {
                let mut fields = vec![ $( $crate::config::Field {
                    name: stringify!($field).trim_start_matches("r#"),
                    doc: concat!($($fdoc, "\n",)* "").trim().to_string(),
                    required: { let missing: Option<$ty> = $crate::record!(@missing $ty $(, $default)?); missing.is_none() },
                    shape: <$ty as $crate::config::Read>::shape(),
                }, )* ];
                $( $( fields.extend(<$pty as $crate::config::Part>::fields()); )+ )?
                fields
            }

            $( fn check(&self) -> Result<(), String> { ($check)(self) } )?
        }
    };
    (@missing $ty:ty) => { <$ty as $crate::config::Read>::missing() };
    (@missing $ty:ty, $default:expr) => { Some($default) };
}

/// Defines an enum that is read from a one-key map: `key => Variant(Type)`, where the type reads the key's value.
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        $vis:vis enum $name:ident {
            $( $(#[doc = $vdoc:literal])* $key:ident => $variant:ident ( $ty:ty ) ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        $vis enum $name { $( $(#[doc = $vdoc])* $variant($ty), )* }

        impl $name {
            /// The key of this variant in a plan.
            pub fn key(&self) -> &'static str {
                match self { $( Self::$variant(_) => stringify!($key).trim_start_matches("r#"), )* }
            }
        }

        impl $crate::config::Read for $name {
            fn read(node: &$crate::config::Node, problems: &mut $crate::config::Problems) -> Option<Self> {
                let words = [ $( stringify!($key).trim_start_matches("r#"), )* ];
                let (index, inner) = $crate::config::read_choice(node, &words, problems)?;
                let mut at = 0usize;
                $(
                    if index == at { return <$ty as $crate::config::Read>::read(&inner, problems).map(Self::$variant); }
                    at += 1;
                )*
                unreachable!("an index below {at}: read_choice gives one of the words")
            }

            fn shape() -> $crate::config::Shape {
                $crate::config::Shape::Choice {
                    doc: concat!($($doc, "\n",)* "").trim().to_string(),
                    alternatives: vec![ $( $crate::config::Alternative {
                        name: stringify!($key).trim_start_matches("r#"),
                        doc: concat!($($vdoc, "\n",)* "").trim().to_string(),
                        shape: Some(<$ty as $crate::config::Read>::shape()),
                    }, )* ],
                }
            }

            fn rescale(&mut self, by: $crate::config::TimeScale) {
                match self { $( Self::$variant(value) => $crate::config::Read::rescale(value, by), )* }
            }
        }
    };
}

/// Defines an enum that is read from a word: `word => Variant`.
#[macro_export]
macro_rules! keyword {
    (
        $(#[doc = $doc:literal])*
        $vis:vis enum $name:ident {
            $( $(#[doc = $vdoc:literal])* $key:ident => $variant:ident ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $( $(#[doc = $vdoc])* $variant, )* }

        impl $name {
            /// Every variant, in the order of definition.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The word of this variant in a plan.
            pub fn word(self) -> &'static str {
                match self { $( Self::$variant => stringify!($key).trim_start_matches("r#"), )* }
            }
        }

        impl $crate::config::Read for $name {
            fn read(node: &$crate::config::Node, problems: &mut $crate::config::Problems) -> Option<Self> {
                let words = [ $( stringify!($key).trim_start_matches("r#"), )* ];
                $crate::config::read_keyword(node, &words, problems).map(|index| Self::ALL[index])
            }

            fn shape() -> $crate::config::Shape {
                $crate::config::Shape::Keyword(vec![ $( $crate::config::Alternative {
                    name: stringify!($key).trim_start_matches("r#"),
                    doc: concat!($($vdoc, "\n",)* "").trim().to_string(),
                    shape: None,
                }, )* ])
            }

            fn rescale(&mut self, _by: $crate::config::TimeScale) {}
        }
    };
}
