//! Source of the cases of an eval: a dataset, a list in the request, or an experiment.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::members::{EvalRequestError, Members, kind};

const SOURCE: &str = "one source: `dataset_id`, `project_name` with `dataset_name`, `data`, `experiment_id` or \
     `experiment_name`";
const LIST: &str = "an array of cases";
const PROJECT: &str = "the name of the dataset's project";
const ONE_VERSION: &str = "absent beside `dataset_environment`";

/// Source of the cases of an eval.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalData {
    Dataset(EvalDataset),
    /// Cases in the request, as sent.
    Inline(Vec<Value>),
    Experiment(EvalSourceExperiment),
}

/// Dataset whose rows are the cases.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalDataset {
    pub name: EvalDatasetName,
    pub version: EvalDatasetVersion,
    /// Additional filter and limit, as a query in its JSON form.
    pub query: Option<Map<String, Value>>,
}

/// Id of a dataset, or its name in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalDatasetName {
    Id(Uuid),
    Name { project_name: String, dataset_name: String },
}

/// Version of a dataset to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalDatasetVersion {
    Newest,
    Version(String),
    /// Version that an environment names.
    Environment(String),
}

/// Experiment whose root rows are the cases.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalSourceExperiment {
    pub name: EvalExperimentName,
    /// Additional filter and limit, as a query in its JSON form.
    pub query: Option<Map<String, Value>>,
}

/// Id of an experiment, or its name in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalExperimentName {
    Id(Uuid),
    /// Without `project_name`, the experiment is in the project of the eval.
    Name {
        project_name: Option<String>,
        experiment_name: String,
    },
}

impl EvalData {
    /// Reads the member `data`, of which at most one source may be given.
    pub(crate) fn read(value: Option<Value>) -> Result<EvalData, EvalRequestError> {
        let invalid = |found: &str| EvalRequestError { member: "data".into(), found: found.into(), valid: SOURCE };
        let mut object = match value {
            Some(Value::Object(object)) => object,
            Some(other) => return Err(invalid(kind(&other))),
            None => return Err(invalid("missing")),
        };
        let members = Members::new(&object, "data");
        let has = |names: &[&str]| names.iter().any(|name| members.get(name).is_some_and(|value| value != ""));
        match (has(&["dataset_id", "dataset_name"]), has(&["data"]), has(&["experiment_id", "experiment_name"])) {
            (true, false, false) => dataset(&members).map(EvalData::Dataset),
            (false, false, true) => experiment(&members).map(EvalData::Experiment),
            (false, true, false) => match object.remove("data") {
                Some(Value::Array(listed)) => Ok(EvalData::Inline(listed)),
                other => Err(EvalRequestError {
                    member: "data.data".into(),
                    found: other.as_ref().map_or("missing", kind).to_owned(),
                    valid: LIST,
                }),
            },
            (false, false, false) => Err(invalid("an object without a source")),
            _ => Err(invalid("an object with several sources")),
        }
    }
}

fn dataset(members: &Members<'_>) -> Result<EvalDataset, EvalRequestError> {
    let name = match members.uuid("dataset_id")? {
        Some(id) => EvalDatasetName::Id(id),
        None => EvalDatasetName::Name {
            dataset_name: members.text("dataset_name")?.ok_or_else(|| members.invalid("dataset_name", "a name"))?,
            project_name: members.text("project_name")?.ok_or_else(|| members.invalid("project_name", PROJECT))?,
        },
    };
    let version = match (members.text("dataset_version")?, members.text("dataset_environment")?) {
        (None, None) => EvalDatasetVersion::Newest,
        (Some(version), None) => EvalDatasetVersion::Version(version),
        (None, Some(environment)) => EvalDatasetVersion::Environment(environment),
        (Some(_), Some(_)) => return Err(members.invalid("dataset_version", ONE_VERSION)),
    };
    Ok(EvalDataset { name, version, query: members.object("_internal_btql")?.cloned() })
}

fn experiment(members: &Members<'_>) -> Result<EvalSourceExperiment, EvalRequestError> {
    let name = match members.uuid("experiment_id")? {
        Some(id) => EvalExperimentName::Id(id),
        None => EvalExperimentName::Name {
            project_name: members.text("project_name")?,
            experiment_name: members
                .text("experiment_name")?
                .ok_or_else(|| members.invalid("experiment_name", "a name"))?,
        },
    };
    Ok(EvalSourceExperiment { name, query: members.object("_internal_btql")?.cloned() })
}
