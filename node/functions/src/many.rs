//! Batches of functions, as build tools push them, and tools that a prompt names by slug.

use std::collections::HashSet;

use assay_node_auth::{Permission, Principal};
use assay_node_records::{ListRequest, RecordsError};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{Definition, Functions, FunctionsError, Version};

/// Functions that one request pushes.
pub const DEFINITIONS_AT_ONCE_MAX: usize = 1000;

/// Action for an existing slug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfExists {
    Error,
    Ignore,
    Replace,
}

/// Project and slug of a function.
type SlugKey = (Uuid, String);

/// Result for one function.
#[derive(Clone, Debug)]
pub struct Inserted {
    pub function: Value,
    /// Whether it existed before.
    pub found_existing: bool,
    /// Whether it existed and is unmodified.
    pub ignored: bool,
}

impl IfExists {
    fn of(body: &Map<String, Value>) -> Result<Option<IfExists>, FunctionsError> {
        match body.get("if_exists") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(word)) if word == "error" => Ok(Some(IfExists::Error)),
            Some(Value::String(word)) if word == "ignore" => Ok(Some(IfExists::Ignore)),
            Some(Value::String(word)) if word == "replace" => Ok(Some(IfExists::Replace)),
            Some(_) => Err(FunctionsError::bad("`if_exists` has to be `error`, `ignore` or `replace`")),
        }
    }
}

impl Functions {
    /// Inserts functions, whose prompts may name tools of the same request in any order.
    ///
    /// An invalid function refuses the request before the first is written, and so does one that exists and must not.
    pub async fn insert(
        &self,
        who: &Principal,
        functions: Vec<Map<String, Value>>,
    ) -> Result<Vec<Inserted>, FunctionsError> {
        if functions.len() > DEFINITIONS_AT_ONCE_MAX {
            let said = format!("`functions` has {} items; the maximum is {DEFINITIONS_AT_ONCE_MAX}", functions.len());
            return Err(FunctionsError::bad(said));
        }
        for (place, body) in functions.iter().enumerate() {
            let at = |why| in_list(place, why);
            Definition::Function.created(body.clone()).map_err(|why| at(why.into()))?;
            if IfExists::of(body).map_err(at)?.unwrap_or(IfExists::Error) == IfExists::Error {
                self.must_be_new(who, body).await.map_err(at)?;
            }
        }
        let pushed: HashSet<SlugKey> = functions.iter().filter_map(slug_key).collect();
        let mut named = Vec::with_capacity(functions.len());
        for (place, body) in functions.into_iter().enumerate() {
            let body = self.with_functions_named(who, body, &pushed).await;
            named.push(body.map_err(|why| in_list(place, why))?);
        }
        let mut inserted = Vec::with_capacity(named.len());
        for (place, body) in named.into_iter().enumerate() {
            inserted.push(self.insert_one(who, body, IfExists::Error).await.map_err(|why| in_list(place, why))?);
        }
        Ok(inserted)
    }

    /// Creates one function. The body has the action for an existing one, which is returned by default.
    pub async fn create_function(&self, who: &Principal, body: Map<String, Value>) -> Result<Inserted, FunctionsError> {
        self.insert_one(who, body, IfExists::Ignore).await
    }

    async fn insert_one(
        &self,
        who: &Principal,
        body: Map<String, Value>,
        otherwise: IfExists,
    ) -> Result<Inserted, FunctionsError> {
        if IfExists::of(&body)?.unwrap_or(otherwise) == IfExists::Replace {
            let (function, found_existing) = self.replace(who, Definition::Function, body).await?;
            return Ok(Inserted { function, found_existing, ignored: false });
        }
        let must_be_new = IfExists::of(&body)?.unwrap_or(otherwise) == IfExists::Error;
        let (function, ignored) = self.create(who, Definition::Function, body).await?;
        if must_be_new && ignored {
            return Err(exists(&function));
        }
        Ok(Inserted { function, found_existing: ignored, ignored })
    }

    async fn must_be_new(&self, who: &Principal, body: &Map<String, Value>) -> Result<(), FunctionsError> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        match self.by_slug(who, text("project_id"), text("slug")).await? {
            Some(function) => Err(exists(&function)),
            None => Ok(()),
        }
    }

    /// The function of a project's that has the slug, as it is.
    async fn by_slug(&self, who: &Principal, project: &str, slug: &str) -> Result<Option<Value>, FunctionsError> {
        let filters = vec![("project_id".to_owned(), project.to_owned()), ("slug".to_owned(), slug.to_owned())];
        let request = ListRequest { limit: Some(1), filters, ..ListRequest::default() };
        Ok(self.list(who, Definition::Function, request, &Version::Newest).await?.pop())
    }

    /// Replaces slugs of tools by their ids. Slugs of `pushed` get their ids before the functions are written.
    pub(crate) async fn with_functions_named(
        &self,
        who: &Principal,
        mut fields: Map<String, Value>,
        pushed: &HashSet<SlugKey>,
    ) -> Result<Map<String, Value>, FunctionsError> {
        let Some(tools) = fields.get_mut("prompt_data").and_then(|data| data.get_mut("tool_functions")) else {
            return Ok(fields);
        };
        for tool in tools.as_array_mut().into_iter().flatten() {
            let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            if text("type") != "slug" {
                continue;
            }
            let (project, slug) = (text("project_id"), text("slug"));
            let key = Uuid::parse_str(&project).ok().map(|project| (project, slug.clone()));
            let id = match key.filter(|key| pushed.contains(key)) {
                Some((project, slug)) => Some(self.records.take_slug(who, project, &slug).await?.0.id),
                None => self.by_slug(who, &project, &slug).await?.as_ref().and_then(id_of),
            };
            let missing = || format!("`prompt_data.tool_functions`: no function `{slug}` is in the project {project}");
            let id = id.ok_or_else(|| FunctionsError::bad(missing()))?;
            self.records.prompt(who, id, Permission::Read).await?;
            *tool = json!({ "type": "function", "id": id.to_string() });
        }
        Ok(fields)
    }
}

fn exists(function: &Value) -> FunctionsError {
    let slug = function.get("slug").and_then(Value::as_str).unwrap_or_default();
    let said = format!("a function with the slug `{slug}` already exists, and `if_exists` is `error`");
    FunctionsError::Records(RecordsError::BadRequest(said))
}

fn in_list(place: usize, why: FunctionsError) -> FunctionsError {
    match why {
        FunctionsError::Records(RecordsError::BadRequest(said)) => {
            FunctionsError::bad(format!("`functions[{place}]`: {said}"))
        }
        other => other,
    }
}

fn slug_key(body: &Map<String, Value>) -> Option<SlugKey> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    Some((Uuid::parse_str(text("project_id")?).ok()?, text("slug")?.to_owned()))
}

/// The id that an answer has.
fn id_of(answer: &Value) -> Option<Uuid> {
    Uuid::parse_str(answer.get("id")?.as_str()?).ok()
}
