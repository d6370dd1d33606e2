//! Calls with their constant arguments prepared once: compiled patterns, words, lists for IN.

use ahash::AHashSet;
use assay_node_btql::bound::Function;
use assay_node_btql::values::{Like, Pattern, Value, Words, number};
use assay_storage_model::merge::Picker;
use memchr::memmem::Finder;

use crate::functions::{self, FunctionEntry, PreparedCall};

#[derive(Debug)]
pub(crate) struct Call {
    pub function: Function,
    /// FunctionEntry of a scalar function; none for an operator.
    pub entry: Option<FunctionEntry>,
    pub prepared: Prepared,
    /// Minutes that UTC is ahead of local time.
    pub tz_offset: i32,
}

#[derive(Debug)]
pub(crate) enum Prepared {
    Nothing,
    Like(Like),
    Regex(Box<Pattern>),
    Words(Words),
    List(List),
    /// Needle of INCLUDES: a text that is no number, and so equals nothing but itself.
    Needle(Needle),
    Picker(Picker),
    /// Scalar function with constant arguments.
    Call(PreparedCall),
}

pub(crate) type Needle = Finder<'static>;

/// Right side of IN.
#[derive(Debug)]
pub(crate) struct List {
    /// The whole list as one value.
    pub values: Value<'static>,
    pub texts: AHashSet<String>,
    pub ints: AHashSet<i64>,
    pub has_null: bool,
    /// Whether a text can equal only what is in `texts`, and a whole number only what is in `ints`.
    pub decides_texts: bool,
    pub decides_ints: bool,
}

impl Call {
    /// Prepares a call; `constants` has the arguments that are the same for every row.
    pub fn new(function: &Function, constants: &[Option<&Value<'_>>], tz_offset: i32) -> Call {
        let second = constants.get(1).copied().flatten();
        let entry = match function {
            Function::Scalar(scalar) => Some(functions::entry(*scalar)),
            _ => None,
        };
        let of_entry = || entry.as_ref().and_then(|entry| entry.prepare(constants));
        let prepared = match (function, second) {
            (Function::Get(steps), _) => Prepared::Picker(Picker::new([steps.as_slice()])),
            (Function::Like { any_case }, Some(pattern)) => {
                let like = pattern.to_text().and_then(|pattern| Like::new(&pattern, *any_case).ok());
                like.map_or(Prepared::Nothing, Prepared::Like)
            }
            (Function::Regex { any_case }, Some(pattern)) => {
                let pattern = pattern.to_text().unwrap_or_default();
                Pattern::new(&pattern, *any_case)
                    .map_or(Prepared::Nothing, |pattern| Prepared::Regex(Box::new(pattern)))
            }
            (Function::Match, Some(words)) => Prepared::Words(Words::of(words)),
            (Function::In, Some(list)) => List::of(list).map_or(Prepared::Nothing, Prepared::List),
            (Function::Includes | Function::TagsInclude, Some(Value::Text(text))) if number(text).is_null() => {
                Prepared::Needle(Finder::new(text.as_bytes()).into_owned())
            }
            _ => of_entry().map_or(Prepared::Nothing, Prepared::Call),
        };
        Call { function: function.clone(), entry, prepared, tz_offset }
    }
}

impl List {
    fn of(list: &Value<'_>) -> Option<List> {
        let opened = list.opened();
        let Value::List(values) = &*opened else { return None };
        let mut list = List {
            values: opened.clone().into_owned().into_owned(),
            texts: AHashSet::new(),
            ints: AHashSet::new(),
            has_null: false,
            decides_texts: true,
            decides_ints: true,
        };
        for value in values {
            match value {
                Value::Null => list.has_null = true,
                Value::Text(text) => {
                    list.texts.insert(text.to_string());
                    list.decides_ints = false;
                }
                Value::Integer(number) => {
                    list.ints.insert(*number);
                    list.decides_texts = false;
                }
                // Numbers and times equal texts that say them, and a transaction both; no whole number equals a fraction.
                Value::Unsigned(_) | Value::Time(_) | Value::Stored(_) => list.decides_texts = false,
                Value::Float(_) | Value::Xact(_) => (list.decides_texts, list.decides_ints) = (false, false),
                _ => {}
            }
        }
        Some(list)
    }
}
