//! Prompts with integer versions and labels, over the prompts of this server, whose versions are transactions.
//!
//! The newest row of a prompt has the number of its version, the transactions of the earlier versions, and the versions
//! of all labels. Every change is a new row. Its writer names the row that it saw, so that concurrent changes are not
//! lost.

use serde_json::{Map, Value, json};

use crate::fields::{BadField, given, needed, shown, text, texts};
use crate::metadata::{OWN, own};

/// Label of a request without a version and without a label.
pub const PROMPT_LABEL_DEFAULT: &str = "production";
/// Label of the newest version, which the server assigns.
const LATEST: &str = "latest";
/// Beginning of a reference to another prompt.
const COMPOSITION: &str = "@@@langfusePrompt:";
/// Upper bound of the versions of a prompt, whose transactions are in its row.
const VERSIONS_MAX: u64 = 5_000;
/// Upper bound of the labels of a prompt.
const LABELS_MAX: usize = 200;
/// Roles that prompts of this server have.
const ROLES: [&str; 5] = ["system", "user", "assistant", "tool", "developer"];
/// Keys of a configuration that are parameters of a model call.
const PARAMS: [&str; 12] = [
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "frequency_penalty",
    "presence_penalty",
    "stop",
    "seed",
    "response_format",
    "tool_choice",
    "reasoning_effort",
    "n",
];

/// Version of a prompt in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPrompt {
    pub name: String,
    kind: &'static str,
    prompt: Value,
    config: Value,
    labels: Vec<String>,
    tags: Option<Vec<String>>,
    commit_message: Option<String>,
}

/// Requested version of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionChoice {
    Version(u64),
    Label(String),
}

impl VersionChoice {
    pub fn of(version: Option<&str>, label: Option<&str>) -> Result<VersionChoice, BadField> {
        match (version.filter(|text| !text.is_empty()), label.filter(|text| !text.is_empty())) {
            (Some(_), Some(_)) => Err(BadField("`version` and `label` exclude each other".into())),
            (Some(version), None) => version_number(version).map(VersionChoice::Version),
            (None, label) => Ok(VersionChoice::Label(label.unwrap_or(PROMPT_LABEL_DEFAULT).to_owned())),
        }
    }
}

fn version_number(text: &str) -> Result<u64, BadField> {
    let wrong = || BadField(format!("the version `{}` has to be a number, 1 or more", shown(text)));
    text.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong)
}

impl NewPrompt {
    pub fn of_body(body: &Map<String, Value>) -> Result<NewPrompt, BadField> {
        let name = needed(body, "name")?.to_owned();
        let sent = given(body, "prompt").ok_or_else(|| BadField("`prompt` is missing".into()))?;
        let kind = match (text(body, "type")?, sent) {
            (Some("chat") | None, Value::Array(messages)) => {
                messages.iter().try_for_each(check_message)?;
                "chat"
            }
            (Some("text") | None, Value::String(_)) => "text",
            (Some("chat"), _) => return Err(BadField("`prompt` of a chat prompt has to be a list of messages".into())),
            (Some("text"), _) => return Err(BadField("`prompt` of a text prompt has to be a string".into())),
            _ => return Err(BadField("`type` has to be `chat` or `text`".into())),
        };
        if sent.to_string().contains(COMPOSITION) {
            let why = "`prompt` refers to another prompt, which this server does not resolve: write out its text";
            return Err(BadField(why.into()));
        }
        let labels = texts(body, "labels")?.unwrap_or_default();
        check_labels(&labels)?;
        Ok(NewPrompt {
            name,
            kind,
            prompt: sent.clone(),
            config: given(body, "config").cloned().unwrap_or_else(|| json!({})),
            labels,
            tags: texts(body, "tags")?,
            commit_message: text(body, "commitMessage")?.map(str::to_owned),
        })
    }
}

fn check_message(message: &Value) -> Result<(), BadField> {
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    match text("type") {
        Some("placeholder") if text("name").is_some() => Ok(()),
        None | Some("chatmessage") if text("role").is_some() && text("content").is_some() => Ok(()),
        _ => Err(BadField("each message has `role` and `content`, or `type` \"placeholder\" and `name`".into())),
    }
}

fn check_labels(labels: &[String]) -> Result<(), BadField> {
    match labels.iter().find(|label| label.is_empty() || *label == LATEST) {
        Some(label) if label == LATEST => {
            Err(BadField("the label `latest` always names the newest version: leave it out".into()))
        }
        Some(_) => Err(BadField("a label is empty".into())),
        None if labels.len() > LABELS_MAX => Err(BadField(format!("a prompt has at most {LABELS_MAX} labels"))),
        None => Ok(()),
    }
}

/// Reads the labels of a request that moves them.
pub fn label_list(body: &Map<String, Value>) -> Result<Vec<String>, BadField> {
    texts(body, "newLabels")?.ok_or_else(|| BadField("`newLabels` is missing: it is the list of labels".into()))
}

/// Versions and labels of a prompt, from its newest row.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptState {
    newest: u64,
    /// Transactions of the earlier versions.
    versions: Map<String, Value>,
    /// Version of each label.
    labels: Map<String, Value>,
}

impl PromptState {
    /// Reads the state. A prompt of this server alone has one version, which all labels name.
    pub fn of(row: &Value) -> PromptState {
        let own = own(row);
        let map = |name: &str| own.and_then(|own| own.get(name)?.as_object()).cloned().unwrap_or_default();
        match own.and_then(|own| own.get("version")?.as_u64()) {
            Some(newest) => PromptState { newest, versions: map("versions"), labels: map("labels") },
            None => {
                let labels = Map::from_iter([(PROMPT_LABEL_DEFAULT.to_owned(), json!(1))]);
                PromptState { newest: 1, versions: Map::new(), labels }
            }
        }
    }

    /// Returns the version of a choice, with its transaction if it is not the newest.
    pub fn resolve(&self, choice: &VersionChoice) -> Option<(u64, Option<String>)> {
        let version = match choice {
            VersionChoice::Version(version) => *version,
            VersionChoice::Label(label) if label == LATEST => self.newest,
            VersionChoice::Label(label) => self.labels.get(label)?.as_u64()?,
        };
        if version == self.newest {
            return Some((version, None));
        }
        let xact = self.versions.get(&version.to_string())?.as_str()?;
        Some((version, Some(xact.to_owned())))
    }

    fn labels_of(&self, version: u64) -> Vec<String> {
        let named = self.labels.iter().filter(|(_, of)| of.as_u64() == Some(version)).map(|(label, _)| label.clone());
        let latest = (version == self.newest).then(|| LATEST.to_owned());
        latest.into_iter().chain(named).collect()
    }

    /// Moves labels to a version.
    fn label(&mut self, version: u64, labels: &[String]) -> Result<(), BadField> {
        for label in labels {
            self.labels.insert(label.clone(), version.into());
        }
        match self.labels.len() > LABELS_MAX {
            true => Err(BadField(format!("a prompt has at most {LABELS_MAX} labels"))),
            false => Ok(()),
        }
    }

    fn put(self, own: &mut Map<String, Value>) {
        own.insert("version".into(), self.newest.into());
        own.insert("versions".into(), Value::Object(self.versions));
        own.insert("labels".into(), Value::Object(self.labels));
    }

    /// Returns the transaction of a version, given the newest row.
    pub fn xact_of(&self, version: u64, newest_row: &Value) -> Option<String> {
        match version == self.newest {
            true => newest_row["_xact_id"].as_str().map(str::to_owned),
            false => self.versions.get(&version.to_string())?.as_str().map(str::to_owned),
        }
    }
}

/// Returns the state after a first version with its labels.
pub fn new_state(new: &NewPrompt) -> PromptState {
    let labels = new.labels.iter().map(|label| (label.clone(), json!(1))).collect();
    PromptState { newest: 1, versions: Map::new(), labels }
}

/// Fields of a version of a prompt, and its number.
pub type NumberedFields = (Map<String, Value>, u64);
/// Fields of a new version of a prompt, its number, and its labels.
pub type NewVersionFields = (Map<String, Value>, u64, Vec<String>);

/// Returns the fields of the next version of a prompt, and its number. `before` is the newest row, if there is one.
pub fn new_version(new: &NewPrompt, before: Option<&Value>, project: &str) -> Result<NewVersionFields, BadField> {
    let mut state = match before {
        None => new_state(new),
        Some(row) => {
            let mut state = PromptState::of(row);
            if state.newest >= VERSIONS_MAX {
                return Err(BadField(format!("the prompt has {VERSIONS_MAX} versions, which is the maximum")));
            }
            let xact = row["_xact_id"].as_str().unwrap_or_default();
            state.versions.insert(state.newest.to_string(), xact.into());
            state.newest += 1;
            state
        }
    };
    let version = state.newest;
    state.label(version, &new.labels)?;
    let data = prompt_data(new);
    let mut own = Map::from_iter([("type".to_owned(), json!(new.kind)), ("config".to_owned(), new.config.clone())]);
    own.extend(new.commit_message.clone().map(|message| ("commit_message".to_owned(), message.into())));
    if content_of(&data) != new.prompt {
        own.insert("prompt".into(), new.prompt.clone());
    }
    state.put(&mut own);
    let tags = match &new.tags {
        Some(tags) => json!(tags),
        None => before.map_or(json!([]), |row| row["tags"].clone()),
    };
    let fields = json!({
        "project_id": project, "name": new.name, "slug": new.name, "prompt_data": data, "tags": tags,
        "metadata": {OWN: own},
    });
    match fields {
        Value::Object(fields) => Ok((fields, version, new.labels.clone())),
        _ => Err(BadField("the prompt is not an object".into())),
    }
}

/// Returns the fields of a prompt whose labels change, given the newest row.
pub fn with_labels(
    before: &Value,
    project: &str,
    version: &str,
    labels: &[String],
) -> Result<Option<NumberedFields>, BadField> {
    check_labels(labels)?;
    let version = version_number(version)?;
    let mut state = PromptState::of(before);
    if state.resolve(&VersionChoice::Version(version)).is_none() {
        return Ok(None);
    }
    state.label(version, labels)?;
    let mut own = own(before).cloned().unwrap_or_default();
    state.put(&mut own);
    let mut fields = Map::from_iter([("project_id".to_owned(), project.into())]);
    for name in ["name", "slug", "description", "prompt_data", "tags"] {
        fields.extend(given_in(before, name).map(|value| (name.to_owned(), value)));
    }
    let mut metadata = before["metadata"].as_object().cloned().unwrap_or_default();
    metadata.insert(OWN.into(), Value::Object(own));
    fields.insert("metadata".into(), Value::Object(metadata));
    Ok(Some((fields, version)))
}

fn given_in(row: &Value, name: &str) -> Option<Value> {
    row.get(name).filter(|value| !value.is_null()).cloned()
}

/// Returns the prompt in the form of this server.
fn prompt_data(new: &NewPrompt) -> Value {
    let block = match &new.prompt {
        Value::Array(messages) => json!({"type": "chat", "messages": messages.iter().map(message).collect::<Vec<_>>()}),
        text => json!({"type": "completion", "content": text}),
    };
    let mut options = Map::new();
    if let Value::Object(config) = &new.config {
        options.extend(
            config.get("model").filter(|model| model.is_string()).map(|model| ("model".to_owned(), model.clone())),
        );
        let others: Map<String, Value> = config
            .iter()
            .filter(|(name, _)| PARAMS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !others.is_empty() {
            options.insert("params".into(), Value::Object(others));
        }
    }
    let mut data = json!({"prompt": block, "template_format": "mustache"});
    if !options.is_empty() {
        data["options"] = Value::Object(options);
    }
    data
}

/// Returns a message in the form of this server. A placeholder is a variable with the messages.
fn message(message: &Value) -> Value {
    let text = |name: &str| message[name].as_str().unwrap_or_default();
    if text("type") == "placeholder" {
        return json!({"role": "user", "content": format!("{{{{{}}}}}", text("name"))});
    }
    let role = if ROLES.contains(&text("role")) { text("role") } else { "user" };
    json!({"role": role, "content": text("content")})
}

/// Returns the prompt in Langfuse's form from that of this server.
fn content_of(data: &Value) -> Value {
    let block = &data["prompt"];
    match block["type"].as_str() {
        Some("chat") => {
            let messages = block["messages"].as_array().into_iter().flatten();
            let each = messages.map(|message| {
                let content = match &message["content"] {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                };
                json!({"role": message["role"], "content": content})
            });
            each.collect()
        }
        _ => block.get("content").cloned().unwrap_or_else(|| json!("")),
    }
}

/// Returns a version of a prompt as an answer has it. `state` is that of the newest row.
pub fn prompt_view(row: &Value, state: &PromptState, version: u64, project: &str) -> Value {
    let own = own(row).cloned().unwrap_or_default();
    let get = |name: &str| own.get(name).cloned().unwrap_or(Value::Null);
    let prompt = own.get("prompt").cloned().unwrap_or_else(|| content_of(&row["prompt_data"]));
    let kind = if prompt.is_array() { "chat" } else { "text" };
    let config = own.get("config").cloned().unwrap_or_else(|| {
        let options = &row["prompt_data"]["options"];
        let mut config = options["params"].as_object().cloned().unwrap_or_default();
        config.extend(given_in(options, "model").map(|model| ("model".to_owned(), model)));
        Value::Object(config)
    });
    json!({
        "id": row["id"], "name": row["name"], "version": version, "type": kind, "prompt": prompt, "config": config,
        "labels": state.labels_of(version), "tags": row["tags"].as_array().cloned().unwrap_or_default(),
        "commitMessage": get("commit_message"), "resolutionGraph": null, "projectId": project, "createdBy": "API",
        "createdAt": row["created"], "updatedAt": row["created"], "isActive": null,
    })
}

/// Returns the entry of a prompt in a list.
pub fn prompt_meta(row: &Value) -> Value {
    let state = PromptState::of(row);
    let view = prompt_view(row, &state, state.newest, "");
    let mut labels: Vec<String> = state.labels.keys().cloned().collect();
    labels.push(LATEST.into());
    json!({
        "name": view["name"], "type": view["type"], "versions": (1..=state.newest).collect::<Vec<_>>(),
        "labels": labels, "tags": view["tags"], "lastUpdatedAt": view["updatedAt"], "lastConfig": view["config"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(body: Value) -> Result<NewPrompt, BadField> {
        NewPrompt::of_body(body.as_object().expect("an object"))
    }

    fn stored(fields: Map<String, Value>, xact: &str) -> Value {
        let mut row = Value::Object(fields);
        row["_xact_id"] = xact.into();
        row["created"] = "2026-01-01T00:00:00.000Z".into();
        row
    }

    #[test]
    fn versions_are_integers_and_labels_name_them() {
        let first = new(json!({"name": "p", "prompt": "Hi {{x}}", "labels": ["production"]})).expect("a prompt");
        let (fields, version, _) = new_version(&first, None, "id").expect("fields");
        assert_eq!(
            (version, &fields["prompt_data"]["prompt"]),
            (1, &json!({"type": "completion", "content": "Hi {{x}}"}))
        );
        let row = stored(fields, "10");
        let second = new(json!({"name": "p", "prompt": "Ho", "labels": ["staging"]})).expect("a prompt");
        let (fields, version, _) = new_version(&second, Some(&row), "id").expect("fields");
        let newest = stored(fields, "20");
        let state = PromptState::of(&newest);
        let resolve = |label: &str| state.resolve(&VersionChoice::Label(label.into()));
        assert_eq!((version, resolve("production")), (2, Some((1, Some("10".into())))));
        assert_eq!((resolve("staging"), resolve("latest")), (Some((2, None)), Some((2, None))));
        assert_eq!((resolve("none"), state.resolve(&VersionChoice::Version(9))), (None, None));
        assert_eq!(prompt_view(&newest, &state, 2, "id")["labels"], json!(["latest", "staging"]));
        assert_eq!(prompt_meta(&newest)["versions"], json!([1, 2]));
        assert_eq!((state.xact_of(1, &newest), state.xact_of(2, &newest)), (Some("10".into()), Some("20".into())));
    }

    #[test]
    fn a_label_moves_between_versions() {
        let first = new(json!({"name": "p", "prompt": "a", "labels": ["production"]})).expect("a prompt");
        let one = stored(new_version(&first, None, "id").expect("fields").0, "10");
        let two = stored(new_version(&first, Some(&one), "id").expect("fields").0, "20");
        let (fields, version) =
            with_labels(&two, "id", "1", &["production".into()]).expect("labels").expect("a version");
        assert_eq!((version, &fields["metadata"]["langfuse"]["labels"]["production"]), (1, &json!(1)));
        assert_eq!(with_labels(&two, "id", "7", &[]), Ok(None));
        assert!(with_labels(&two, "id", "1", &["latest".into()]).is_err());
    }

    #[test]
    fn a_chat_prompt_reads_back_as_it_was_sent() {
        for prompt in [
            json!([{"role": "system", "content": "s"}, {"role": "user", "content": "{{q}}"}]),
            json!([{"role": "judge", "content": "d"}, {"type": "placeholder", "name": "history"}]),
        ] {
            let config = json!({"model": "m", "temperature": 1});
            let sent = new(json!({"name": "p", "type": "chat", "prompt": prompt, "config": config})).expect("a prompt");
            let row = stored(new_version(&sent, None, "id").expect("fields").0, "1");
            let view = prompt_view(&row, &PromptState::of(&row), 1, "id");
            assert_eq!((&view["prompt"], &view["config"], &view["type"]), (&prompt, &config, &json!("chat")));
            assert_eq!(row["prompt_data"]["options"], json!({"model": "m", "params": {"temperature": 1}}));
        }
    }

    #[test]
    fn a_prompt_of_this_server_is_version_1_in_production() {
        let messages = json!([{"role": "user", "content": "q"}]);
        let row = json!({"name": "n", "prompt_data": {"prompt": {"type": "chat", "messages": messages},
            "options": {"model": "m"}}});
        let state = PromptState::of(&row);
        assert_eq!(state.resolve(&VersionChoice::of(None, None).expect("the default")), Some((1, None)));
        let view = prompt_view(&row, &state, 1, "id");
        assert_eq!(
            (&view["prompt"], &view["config"]),
            (&json!([{"role": "user", "content": "q"}]), &json!({"model": "m"}))
        );
    }

    #[test]
    fn invalid_prompts_say_why() {
        for body in [
            json!({"prompt": "a"}),
            json!({"name": "p"}),
            json!({"name": "p", "prompt": "a", "type": "chat"}),
            json!({"name": "p", "prompt": [{"role": 3}]}),
            json!({"name": "p", "prompt": "a", "labels": ["latest"]}),
            json!({"name": "p", "prompt": {}, "type": "text"}),
        ] {
            assert!(new(body.clone()).is_err(), "{body}");
        }
        assert!(VersionChoice::of(Some("1"), Some("a")).is_err());
        assert!(VersionChoice::of(Some("0"), None).is_err());
    }
}
