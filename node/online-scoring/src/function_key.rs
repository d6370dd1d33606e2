//! Functions that a rule runs, and the keys under which the state of a row names them.

use std::fmt;

use assay_node_scorers::{GlobalFunctionType, global_function};
use serde_json::{Value, json};

use crate::fields::{Fields, RuleError};

/// Bytes of the id, version or name of a function.
const NAME_BYTES_MAX: usize = 512;
const SAVED_PREFIX: &str = "function_id:";
const GLOBAL_PREFIX: &str = "global:";
const VERSION_MARK: &str = "#version:";
const VALID_ID: &str = "an id without spaces and `#`";

/// Type of a global function that can run online.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnlineFunctionType {
    Scorer,
    Classifier,
    Facet,
    Tag,
}

const TYPES: [(&str, OnlineFunctionType); 4] = [
    ("scorer", OnlineFunctionType::Scorer),
    ("classifier", OnlineFunctionType::Classifier),
    ("facet", OnlineFunctionType::Facet),
    ("tag", OnlineFunctionType::Tag),
];

impl OnlineFunctionType {
    /// Returns the type of this name, if functions of the type can run online.
    pub fn of_name(name: &str) -> Option<OnlineFunctionType> {
        TYPES.iter().find(|(word, _)| *word == name).map(|(_, found)| *found)
    }

    pub fn name(self) -> &'static str {
        match self {
            OnlineFunctionType::Scorer => "scorer",
            OnlineFunctionType::Classifier => "classifier",
            OnlineFunctionType::Facet => "facet",
            OnlineFunctionType::Tag => "tag",
        }
    }
}

/// Reference of a rule to a function: `SavedFunctionId` of the API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnlineFunction {
    Saved { id: String, version: Option<String> },
    Global { function_type: OnlineFunctionType, name: String },
}

impl OnlineFunction {
    /// Reads a reference, and refuses global functions that do not exist or cannot run online.
    pub fn read(path: &str, value: &Value) -> Result<OnlineFunction, RuleError> {
        let fields = Fields::new(path, Some(value))?;
        let is_global = fields.word("type", &[("function", false), ("global", true)])?;
        if !fields.required("type", is_global, "`function` or `global`")? {
            return saved(&fields);
        }
        let name = fields.text("name", NAME_BYTES_MAX)?;
        let name = fields.required("name", name, "the name of a global function")?;
        let function_type = fields.word("function_type", &TYPES)?.unwrap_or(OnlineFunctionType::Scorer);
        let known = match function_type {
            OnlineFunctionType::Scorer => Some(GlobalFunctionType::Scorer),
            OnlineFunctionType::Facet => Some(GlobalFunctionType::Facet),
            OnlineFunctionType::Classifier | OnlineFunctionType::Tag => None,
        };
        let Some(known) = known else {
            return Err(fields.error("function_type", "`scorer` or `facet`, as no others are global"));
        };
        global_function(known, name)
            .map_err(|error| fields.error("name", format!("the name of a global function ({error})")))?;
        Ok(OnlineFunction::Global { function_type, name: name.to_owned() })
    }

    /// Returns the key in the state of rows, which clients use in queries.
    pub fn key(&self) -> String {
        self.to_string()
    }

    /// Returns the function of a key, or `None` for keys of another form.
    pub fn of_key(key: &str) -> Option<OnlineFunction> {
        if let Some(saved) = key.strip_prefix(SAVED_PREFIX) {
            let (id, version) = match saved.split_once(VERSION_MARK) {
                Some((id, version)) => (id, Some(version.to_owned())),
                None => (saved, None),
            };
            let is_valid = is_plain(id) && version.as_deref().is_none_or(is_plain);
            return is_valid.then(|| OnlineFunction::Saved { id: id.to_owned(), version });
        }
        let (function_type, name) = key.strip_prefix(GLOBAL_PREFIX)?.split_once(':')?;
        let function_type = OnlineFunctionType::of_name(function_type)?;
        (!name.is_empty()).then(|| OnlineFunction::Global { function_type, name: name.to_owned() })
    }

    pub fn to_json(&self) -> Value {
        match self {
            OnlineFunction::Saved { id, version: None } => json!({"type": "function", "id": id}),
            OnlineFunction::Saved { id, version: Some(version) } => {
                json!({"type": "function", "id": id, "version": version})
            }
            OnlineFunction::Global { function_type, name } => {
                json!({"type": "global", "name": name, "function_type": function_type.name()})
            }
        }
    }
}

impl fmt::Display for OnlineFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnlineFunction::Saved { id, version: None } => write!(f, "{SAVED_PREFIX}{id}"),
            OnlineFunction::Saved { id, version: Some(version) } => {
                write!(f, "{SAVED_PREFIX}{id}{VERSION_MARK}{version}")
            }
            OnlineFunction::Global { function_type, name } => {
                write!(f, "{GLOBAL_PREFIX}{}:{name}", function_type.name())
            }
        }
    }
}

fn saved(fields: &Fields<'_>) -> Result<OnlineFunction, RuleError> {
    let part = |name| match fields.text(name, NAME_BYTES_MAX)? {
        Some(text) if !is_plain(text) => Err(fields.error(name, VALID_ID)),
        text => Ok(text.map(str::to_owned)),
    };
    let id = fields.required("id", part("id")?, VALID_ID)?;
    Ok(OnlineFunction::Saved { id, version: part("version")? })
}

/// Returns whether a text can be a part of a key and be found again.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c == '#' || c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_forms_that_clients_query() {
        let cases = [
            (json!({"type": "function", "id": "7b6c"}), "function_id:7b6c"),
            (json!({"type": "function", "id": "7b6c", "version": "1000"}), "function_id:7b6c#version:1000"),
            (json!({"type": "function", "id": "7b6c", "version": null}), "function_id:7b6c"),
            (json!({"type": "global", "name": "Factuality"}), "global:scorer:Factuality"),
            (json!({"type": "global", "name": "Task", "function_type": "facet"}), "global:facet:Task"),
        ];
        for (value, key) in cases {
            let function = OnlineFunction::read("f", &value).expect("a valid function");
            assert_eq!(function.key(), key);
            assert_eq!(OnlineFunction::of_key(key), Some(function.clone()));
            assert_eq!(OnlineFunction::read("f", &function.to_json()), Ok(function));
        }
    }

    #[test]
    fn functions_that_cannot_run_online_are_refused_with_their_path() {
        let cases = [
            (json!("x"), "`s` is \"x\"; it must be an object"),
            (json!({"id": "x"}), "`s.type` is missing; it must be `function` or `global`"),
            (json!({"type": "function"}), "`s.id` is missing; it must be an id without spaces and `#`"),
            (json!({"type": "function", "id": "a#b"}), "`s.id` is \"a#b\"; it must be an id without spaces and `#`"),
            (json!({"type": "global", "name": "Nope"}), "`s.name` is \"Nope\"; it must be the name of a global"),
            (json!({"type": "global", "name": "factuality"}), "`s.name` is \"factuality\""),
            (json!({"type": "global", "name": "x", "function_type": "task"}), "`s.function_type` is \"task\"; it must"),
            (json!({"type": "global", "name": "x", "function_type": "tag"}), "`s.function_type` is \"tag\"; it must"),
        ];
        for (value, begin) in cases {
            let error = OnlineFunction::read("s", &value).expect_err("not valid").to_string();
            assert!(error.starts_with(begin), "{error}");
        }
    }

    #[test]
    fn keys_of_other_forms_are_not_understood() {
        for key in ["", "function_id:", "function_id:a#version:", "global:scorer:", "global:task:x", "slug:x"] {
            assert_eq!(OnlineFunction::of_key(key), None, "{key}");
        }
    }
}
