//! Destination of spans, from a header or an attribute of a span.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::OtelError;
use crate::slug::{ObjectType, Slug, SlugObject, SpanIds};

/// Object that contains the rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ParentObject {
    /// Logs of the project with this id.
    Project(String),
    /// Logs of the project with this name, which is created if it does not exist.
    ProjectNamed(String),
    Experiment(String),
    /// Experiment with this name in a project, which is created if it does not exist.
    ExperimentNamed {
        project: Uuid,
        name: String,
        dataset: Option<Uuid>,
    },
    /// Logs of the playground with this id.
    Playground(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    pub object: ParentObject,
    /// Parent of the spans that have no parent of their own.
    pub span: Option<SpanIds>,
    /// Event that is merged into every span.
    pub propagated_event: Option<Map<String, Value>>,
}

type MakeParent = fn(String) -> ParentObject;
const PREFIXES: [(&str, MakeParent); 4] = [
    ("project_id:", ParentObject::Project),
    ("project_name:", ParentObject::ProjectNamed),
    ("experiment_id:", ParentObject::Experiment),
    ("playground_id:", ParentObject::Playground),
];

impl Parent {
    pub fn parse(text: &str) -> Result<Parent, OtelError> {
        let text = text.trim();
        for (prefix, object) in PREFIXES {
            if let Some(given) = text.strip_prefix(prefix) {
                let given = given.trim();
                if given.is_empty() {
                    return Err(OtelError::parent(text, "names nothing after its colon"));
                }
                return Ok(Parent { object: object(given.to_owned()), span: None, propagated_event: None });
            }
        }
        let slug =
            Slug::decode(text).map_err(|why| OtelError::parent(text, format!("has no known prefix, and {why}")))?;
        Parent::of(slug).map_err(|why| OtelError::parent(text, why.to_string()))
    }

    /// Returns the parent that a slug names.
    pub fn of(slug: Slug) -> Result<Parent, OtelError> {
        let Slug { object_type, object, span, propagated_event } = slug;
        let object = match (object_type, object) {
            (ObjectType::ProjectLogs, SlugObject::Id(id)) => ParentObject::Project(id),
            (ObjectType::Experiment, SlugObject::Id(id)) => ParentObject::Experiment(id),
            (ObjectType::PlaygroundLogs, SlugObject::Id(id)) => ParentObject::Playground(id),
            (ObjectType::ProjectLogs, SlugObject::Args(args)) => {
                match (text(&args, "project_id"), text(&args, "project_name")) {
                    (Some(id), _) => ParentObject::Project(id),
                    (None, Some(name)) => ParentObject::ProjectNamed(name),
                    (None, None) => {
                        return Err(OtelError::slug("has neither project_id nor project_name"));
                    }
                }
            }
            (ObjectType::Experiment, SlugObject::Args(args)) => match text(&args, "experiment_id") {
                Some(id) => ParentObject::Experiment(id),
                None => return Err(OtelError::slug("refers to an experiment without its id")),
            },
            (ObjectType::PlaygroundLogs, SlugObject::Args(_)) => {
                return Err(OtelError::slug("refers to a playground without its id"));
            }
        };
        Ok(Parent { object, span, propagated_event })
    }
}

fn text(args: &Map<String, Value>, name: &str) -> Option<String> {
    args.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, object: ParentObject) {
        let parent = Parent::parse(text).expect("parses");
        assert_eq!((parent.object, parent.span), (object, None));
    }

    #[test]
    fn each_prefix_names_its_object() {
        check("project_id:p 1", ParentObject::Project("p 1".to_owned()));
        check("project_name:a: b", ParentObject::ProjectNamed("a: b".to_owned()));
        check(" experiment_id:e ", ParentObject::Experiment("e".to_owned()));
        check("playground_id:x", ParentObject::Playground("x".to_owned()));
    }

    #[test]
    fn what_is_no_parent_says_what_one_is() {
        for text in ["", "project_id:", "project:x", "BAEC", "AAAA", &"A".repeat(100_000)] {
            let refused = Parent::parse(text).expect_err(text).to_string();
            assert!(refused.contains("`project_id:<id>`") && refused.len() < 500, "{refused}");
        }
    }

    #[test]
    fn a_slug_names_its_project_by_id_before_name() {
        let args = |pairs: &[(&str, &str)]| {
            let args = pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
            Slug {
                object_type: ObjectType::ProjectLogs,
                object: SlugObject::Args(args),
                span: None,
                propagated_event: None,
            }
        };
        let both = Parent::of(args(&[("project_name", "n"), ("project_id", "i")])).expect("names one");
        assert_eq!(both.object, ParentObject::Project("i".to_owned()));
        let name = Parent::of(args(&[("project_name", "n")])).expect("names one");
        assert_eq!(name.object, ParentObject::ProjectNamed("n".to_owned()));
        assert!(Parent::of(args(&[("name", "n")])).is_err());
    }
}
