//! Tools for records: lists, names, prompts, automations and addresses.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::arguments::{Argument, ArgumentKind, Arguments};
use crate::bounds::{CONTENT_BYTES_MAX, fitting, shrink};
use crate::data::{RecordKindName, RecordRequest, ToolData, ToolFailure};
use crate::tools::rows::{NAME, object_id};
use crate::tools::{Tool, ToolKind, ToolOutput, cursor_schema, notes_schema, object_schema, objects_schema};

/// Upper bound of the records of one answer.
const RECORDS_MAX: u64 = 100;
const RECORDS_DEFAULT: u64 = 20;
/// Upper bound of the bytes of one record in a list.
const RECORD_BYTES_MAX: usize = 2 << 10;
/// Upper bound of the bytes of one automation, whose configuration matters.
const AUTOMATION_BYTES_MAX: usize = 6 << 10;
/// Upper bound of records with one name.
const ALIKE_MAX: u64 = 20;
/// Bytes of an answer that belong to no record.
const HEAD_BYTES: usize = 2 << 10;
/// Fields of records in lists.
const LISTED: [&str; 12] = [
    "id",
    "name",
    "slug",
    "project_id",
    "description",
    "created",
    "function_type",
    "tags",
    "metadata",
    "base_exp_id",
    "dataset_id",
    "commit",
];
/// Fields of automations and rules.
const AUTOMATED: [&str; 6] = ["id", "name", "description", "project_id", "created", "config"];
/// Bytes of URL paths that need no escape.
const UNRESERVED: &[u8] = b"-_.~";
const OBJECT_TYPE: Argument = Argument::required(
    "object_type",
    ArgumentKind::Choice(RecordKindName::OBJECT_NAMES),
    "Kind of the object. Logs belong to a project.",
);
const PROJECT: Argument = Argument::optional("project", NAME, "Id or name of the project.");

pub(crate) const LIST_RECENT_OBJECTS: Tool = Tool {
    kind: ToolKind::ListRecentObjects,
    name: "list_recent_objects",
    title: "List objects",
    about: "Lists projects, experiments, datasets, prompts, functions or playgrounds, newest first, with their ids \
            and names. Start here to find what exists.",
    arguments: &[
        OBJECT_TYPE,
        PROJECT,
        Argument::optional(
            "limit",
            ArgumentKind::Number { least: 1, most: RECORDS_MAX, default: Some(RECORDS_DEFAULT) },
            "Upper bound of the objects.",
        ),
        Argument::optional("cursor", NAME, "Cursor of the previous answer."),
    ],
    output: || object_schema(json!({"objects": objects_schema(), "cursor": cursor_schema(), "notes": notes_schema()})),
};

pub(crate) const RESOLVE_OBJECT: Tool = Tool {
    kind: ToolKind::ResolveObject,
    name: "resolve_object",
    title: "Resolve a name or an id",
    about: "Finds objects by their exact name, or slug of a prompt or function, and returns their ids. An id is \
            resolved to its name.",
    arguments: &[OBJECT_TYPE, Argument::required("object", NAME, "Name, slug or id."), PROJECT],
    output: || object_schema(json!({"objects": objects_schema(), "notes": notes_schema()})),
};

pub(crate) const GET_PROMPT: Tool = Tool {
    kind: ToolKind::GetPrompt,
    name: "get_prompt",
    title: "Read a prompt or function",
    about: "Returns the definition of a prompt or function: messages, model, parameters, tools and schema.",
    arguments: &[
        Argument::required("prompt", NAME, "Id or slug."),
        PROJECT,
        Argument::optional("version", NAME, "Version to read, as in _xact_id. The default is the newest."),
        Argument::optional("environment", NAME, "Slug of an environment, whose version is read."),
    ],
    output: || object_schema(json!({"prompt": {"type": "object"}, "notes": notes_schema()})),
};

pub(crate) const LIST_AUTOMATIONS: Tool = Tool {
    kind: ToolKind::ListAutomations,
    name: "list_automations",
    title: "List automations",
    about: "Lists the automations of a project and its rules of online scoring, with their configurations.",
    arguments: &[Argument::required("project", NAME, "Id or name of the project.")],
    output: || {
        object_schema(json!({
            "automations": objects_schema(), "online_scoring_rules": objects_schema(), "notes": notes_schema(),
        }))
    },
};

pub(crate) const GENERATE_PERMALINK: Tool = Tool {
    kind: ToolKind::GeneratePermalink,
    name: "generate_permalink",
    title: "Link to the web console",
    about: "Returns the address of an object, a trace or a row in the web console, for people.",
    arguments: &[
        OBJECT_TYPE,
        Argument::required("object", NAME, "Id or name of the object."),
        PROJECT,
        Argument::optional("trace_id", NAME, "The root_span_id of a trace in the project's logs or the experiment."),
        Argument::optional("row_id", NAME, "Id of a row in the project's logs, the experiment or the dataset."),
    ],
    output: || object_schema(json!({"url": {"type": "string"}})),
};

fn kind_of(arguments: &Arguments<'_>) -> Result<RecordKindName, ToolFailure> {
    // The check of arguments accepts only these kinds.
    let missing = || ToolFailure::refused("`object_type` is missing");
    RecordKindName::parse(arguments.required("object_type")).ok_or_else(missing)
}

/// Returns the fields of a record that are not null, in at most `bytes_max` bytes.
fn shown(record: &Value, fields: &[&str], bytes_max: usize) -> Value {
    let present = fields.iter().filter_map(|name| {
        let value = record.get(*name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    shrink(&Value::Object(present.collect::<Map<_, _>>()), bytes_max).0
}

pub(crate) async fn list_recent_objects<D: ToolData>(
    data: &D,
    arguments: Arguments<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let kind = kind_of(&arguments)?;
    let limit = arguments.number("limit");
    let mut notes: Vec<&str> = Vec::new();
    let project = arguments.text("project").map(str::to_owned);
    if kind == RecordKindName::Project && project.is_some() {
        notes.push("`project` has no effect on a list of projects: use resolve_object to find one");
    }
    let request = RecordRequest {
        project: project.filter(|_| kind != RecordKindName::Project),
        after: arguments.id("cursor")?,
        ..RecordRequest::of(kind, limit)
    };
    let found = data.records(&request).await?;
    let objects: Vec<Value> = found.iter().map(|record| shown(record, &LISTED, RECORD_BYTES_MAX)).collect();
    let count = fitting(&objects, CONTENT_BYTES_MAX - HEAD_BYTES);
    let has_more = count < objects.len() || objects.len() as u64 == limit;
    let last = objects[..count].last().map(|last| last["id"].clone());
    let cursor = last.filter(|_| has_more).unwrap_or_default();
    if found.is_empty() {
        notes.push("nothing is visible to this credential here");
    }
    Ok(ToolOutput::recorded(json!({"objects": objects[..count], "cursor": cursor, "notes": notes})))
}

pub(crate) async fn resolve_object<D: ToolData>(data: &D, arguments: Arguments<'_>) -> Result<ToolOutput, ToolFailure> {
    let kind = kind_of(&arguments)?;
    let found = named(data, kind, arguments.required("object"), arguments.text("project"), ALIKE_MAX).await?;
    let objects: Vec<Value> = found.iter().map(|record| shown(record, &LISTED, RECORD_BYTES_MAX)).collect();
    let notes: &[&str] = match objects.is_empty() {
        true => &["no such object exists, or this credential may not see it; list_recent_objects lists what it sees"],
        false => &[],
    };
    Ok(ToolOutput::recorded(json!({"objects": objects, "notes": notes})))
}

/// Returns the records with a name or an id.
async fn named<D: ToolData>(
    data: &D,
    kind: RecordKindName,
    object: &str,
    project: Option<&str>,
    limit: u64,
) -> Result<Vec<Value>, ToolFailure> {
    let id = Uuid::parse_str(object).ok();
    let project = project.filter(|_| kind != RecordKindName::Project).map(str::to_owned);
    let name = if id.is_some() { None } else { Some(object.to_owned()) };
    data.records(&RecordRequest { id, name, project, ..RecordRequest::of(kind, limit) }).await
}

pub(crate) async fn get_prompt<D: ToolData>(data: &D, arguments: Arguments<'_>) -> Result<ToolOutput, ToolFailure> {
    let project = arguments.text("project");
    let id = object_id(data, RecordKindName::Function, arguments.required("prompt"), project).await?;
    let prompt = data.definition(id, arguments.text("version"), arguments.text("environment")).await?;
    let (prompt, was_cut) = shrink(&prompt, CONTENT_BYTES_MAX - HEAD_BYTES);
    let notes: &[&str] = match was_cut {
        true => &["the definition was shortened: read parts of it with sql_query over prompt('id') or function('id')"],
        false => &[],
    };
    Ok(ToolOutput::recorded(json!({"prompt": prompt, "notes": notes})))
}

pub(crate) async fn list_automations<D: ToolData>(
    data: &D,
    arguments: Arguments<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let project = object_id(data, RecordKindName::Project, arguments.required("project"), None).await?;
    let mut lists = Vec::new();
    let mut notes = Vec::new();
    for kind in [RecordKindName::Automation, RecordKindName::OnlineRule] {
        let request = RecordRequest { project: Some(project.to_string()), ..RecordRequest::of(kind, RECORDS_MAX) };
        let found = data.records(&request).await?;
        let found: Vec<Value> = found.iter().map(|record| shown(record, &AUTOMATED, AUTOMATION_BYTES_MAX)).collect();
        let count = fitting(&found, CONTENT_BYTES_MAX / 2 - HEAD_BYTES);
        if count < found.len() || found.len() as u64 == RECORDS_MAX {
            notes.push(format!("there may be more {}s than the first {count}", kind.name()));
        }
        lists.push(Value::from(found[..count].to_vec()));
    }
    let [automations, rules] = [lists[0].take(), lists[1].take()];
    Ok(ToolOutput::recorded(json!({"automations": automations, "online_scoring_rules": rules, "notes": notes})))
}

pub(crate) async fn generate_permalink<D: ToolData>(
    data: &D,
    arguments: Arguments<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let kind = kind_of(&arguments)?;
    let id = object_id(data, kind, arguments.required("object"), arguments.text("project")).await?;
    let record = named(data, kind, &id.to_string(), None, 1).await?.into_iter().next();
    let Some(record) = record else {
        let why = format!("no {} {id} exists, or this credential may not see it", kind.name());
        return Err(ToolFailure::Refused(why));
    };
    let project = match kind {
        RecordKindName::Project => Some(record.clone()),
        _ => match record["project_id"].as_str() {
            Some(project) => named(data, RecordKindName::Project, project, None, 1).await?.into_iter().next(),
            None => None,
        },
    };
    let (trace, row) = (arguments.text("trace_id"), arguments.text("row_id"));
    let place =
        PermalinkPlace { kind, id, name: text(&record, "name"), project: project.map(|one| text(&one, "name")) };
    let url = format!("{}{}", data.console()?, place.path(trace, row)?);
    Ok(ToolOutput { structured: json!({ "url": url }), text: Some(url), is_recorded: false })
}

fn text(record: &Value, field: &str) -> String {
    record[field].as_str().unwrap_or_default().to_owned()
}

/// Object of an address in the web console.
struct PermalinkPlace {
    kind: RecordKindName,
    id: Uuid,
    name: String,
    /// Name of the project, or `None` if the caller may not see it.
    project: Option<String>,
}

impl PermalinkPlace {
    /// Returns the path below the organization.
    fn path(&self, trace: Option<&str>, row: Option<&str>) -> Result<String, ToolFailure> {
        let project = self.project.as_ref().map(|project| format!("/p/{}", encoded(project)));
        match (trace, row) {
            (Some(_), Some(_)) => Err(ToolFailure::refused("name either `trace_id` or `row_id`")),
            (Some(trace), None) => {
                let experiment = match self.kind {
                    RecordKindName::Project => String::new(),
                    RecordKindName::Experiment => format!("?experiment={}", self.id),
                    _ => return Err(ToolFailure::refused("`trace_id` goes with a project or an experiment")),
                };
                let hidden = || ToolFailure::refused("this credential may not see the project of the trace");
                Ok(format!("{}/trace/{}{experiment}", project.ok_or_else(hidden)?, encoded(trace)))
            }
            (None, Some(row)) => match self.kind {
                RecordKindName::Project | RecordKindName::Experiment | RecordKindName::Dataset => {
                    Ok(format!("{}&id={}", self.by_id(), encoded(row)))
                }
                _ => Err(ToolFailure::refused("`row_id` goes with a project, an experiment or a dataset")),
            },
            (None, None) => Ok(match (self.kind, project) {
                (RecordKindName::Project, Some(project)) => project,
                (RecordKindName::Experiment, Some(project)) => format!("{project}/experiments/{}", encoded(&self.name)),
                (RecordKindName::Dataset, Some(project)) => format!("{project}/datasets/{}", encoded(&self.name)),
                _ => self.by_id(),
            }),
        }
    }

    /// Returns the path that names the object by its type and id.
    fn by_id(&self) -> String {
        let object = match self.kind {
            RecordKindName::Project => "project_logs",
            RecordKindName::Experiment => "experiment",
            RecordKindName::Dataset => "dataset",
            RecordKindName::Prompt => "prompt",
            RecordKindName::Playground => "prompt_session",
            _ => "function",
        };
        format!("/object?object_type={object}&object_id={}", self.id)
    }
}

/// Encodes a text as a part of a URL.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(kind: RecordKindName, project: Option<&str>, trace: Option<&str>, row: Option<&str>) -> Option<String> {
        let place = PermalinkPlace { kind, id: Uuid::nil(), name: "a b".into(), project: project.map(str::to_owned) };
        place.path(trace, row).ok()
    }

    #[test]
    fn addresses_are_those_of_the_console() {
        use RecordKindName::{Dataset, Experiment, Function, Project, Prompt};
        let id = Uuid::nil();
        let at = Some("my/p");
        for (found, wanted) in [
            (path(Project, at, None, None), "/p/my%2Fp".to_owned()),
            (path(Project, at, Some("t 1"), None), "/p/my%2Fp/trace/t%201".into()),
            (path(Experiment, at, Some("t"), None), format!("/p/my%2Fp/trace/t?experiment={id}")),
            (path(Experiment, at, None, None), "/p/my%2Fp/experiments/a%20b".into()),
            (path(Experiment, None, None, None), format!("/object?object_type=experiment&object_id={id}")),
            (path(Dataset, at, None, Some("r")), format!("/object?object_type=dataset&object_id={id}&id=r")),
            (path(Project, at, None, Some("r")), format!("/object?object_type=project_logs&object_id={id}&id=r")),
            (path(Prompt, at, None, None), format!("/object?object_type=prompt&object_id={id}")),
        ] {
            assert_eq!(found, Some(wanted));
        }
        for wrong in [
            path(Project, at, Some("t"), Some("r")),
            path(Dataset, at, Some("t"), None),
            path(Experiment, None, Some("t"), None),
            path(Function, at, None, Some("r")),
        ] {
            assert_eq!(wrong, None);
        }
    }
}
