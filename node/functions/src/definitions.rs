//! Operations on one prompt or function: create, read, replace, patch, delete; and lists.

use std::collections::{HashMap, HashSet};

use assay_node_auth::{Permission, Principal};
use assay_node_records::{ListRequest, ObjectHome, PromptPlace, RecordsError};
use assay_storage_model::{ObjectKey, Xact};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::row::{first_write, is_one, merge_paths, next_write, shown, written};
use crate::{Definition, Functions, FunctionsError, Version, read, row_home};

/// Upper bound of attempts when concurrent requests reserve and release the slug.
const ATTEMPTS_MAX: usize = 8;
/// Records that a list reads before their rows.
const PLACES_AT_ONCE: u64 = 500;

impl Functions {
    /// Creates a definition. An existing one of the slug is returned unmodified, with that information.
    pub async fn create(
        &self,
        who: &Principal,
        definition: Definition,
        body: Map<String, Value>,
    ) -> Result<(Value, bool), FunctionsError> {
        let fields = definition.created(body)?;
        let fields = self.with_functions_named(who, fields, &HashSet::new()).await?;
        for _ in 0..ATTEMPTS_MAX {
            let (place, found) = self.place(who, &fields).await?;
            if let Some(row) = self.row_if(found, &place).await? {
                return Ok((of(definition, row)?, true));
            }
            if found {
                self.records.prompt(who, place.id, Permission::Update).await?;
            }
            if let Some(row) = self.write_first(&place, &fields).await? {
                return Ok((shown(definition, row), false));
            }
        }
        Err(others_are_faster())
    }

    /// Replaces the definition of the slug, or creates one. Also returns whether it existed.
    pub async fn replace(
        &self,
        who: &Principal,
        definition: Definition,
        body: Map<String, Value>,
    ) -> Result<(Value, bool), FunctionsError> {
        let fields = definition.created(body)?;
        let fields = self.with_functions_named(who, fields, &HashSet::new()).await?;
        for _ in 0..ATTEMPTS_MAX {
            let (place, found) = self.place(who, &fields).await?;
            if found {
                self.records.prompt(who, place.id, Permission::Update).await?;
            }
            let Some(before) = self.row_if(found, &place).await? else {
                match self.write_first(&place, &fields).await? {
                    Some(row) => return Ok((shown(definition, row), false)),
                    None => continue,
                }
            };
            of(definition, before.clone())?;
            let mut row = written(place.id, fields.clone());
            row.insert("created".into(), before.get("created").cloned().unwrap_or(Value::Null));
            return Ok((self.changed(definition, &place, row).await?, true));
        }
        Err(others_are_faster())
    }

    /// Replaces the definition whose newest row the caller saw at a version.
    ///
    /// Returns `None` if another such change of that version came first, so that no change is lost. Other writes are
    /// not noticed.
    pub async fn replace_at(
        &self,
        who: &Principal,
        definition: Definition,
        (id, seen): (Uuid, Xact),
        body: Map<String, Value>,
    ) -> Result<Option<Value>, FunctionsError> {
        let place = self.records.prompt(who, id, Permission::Update).await?;
        let fields = definition.created(body)?;
        let before = self.row(&place, Some(seen)).await?.filter(|row| is_one(definition, row));
        let before = before.ok_or_else(|| missing(definition, id))?;
        let mut row = written(id, fields);
        row.insert("created".into(), before.get("created").cloned().unwrap_or(Value::Null));
        let (xact, duplicate) = self.write(&place.home, row, Some(next_write(id, seen))).await?;
        if duplicate {
            return Ok(None);
        }
        let row = self.row(&place, Some(xact)).await?;
        Ok(Some(shown(definition, row.ok_or_else(|| missing(definition, id))?)))
    }

    pub async fn get(
        &self,
        who: &Principal,
        definition: Definition,
        id: Uuid,
        version: &Version,
    ) -> Result<Value, FunctionsError> {
        let place = self.records.prompt(who, id, Permission::Read).await?;
        let at = match version {
            Version::Newest => None,
            Version::At(xact) => Some(*xact),
            Version::Of(environment) => {
                let pinned = self.pinned(&place, environment)?;
                Some(pinned.ok_or_else(|| missing(definition, id))?)
            }
        };
        let row = self.row(&place, at).await?.filter(|row| is_one(definition, row));
        Ok(shown(definition, row.ok_or_else(|| missing(definition, id))?))
    }

    /// Merges a patch and returns the new row.
    pub async fn patch(
        &self,
        who: &Principal,
        definition: Definition,
        id: Uuid,
        body: Map<String, Value>,
    ) -> Result<Value, FunctionsError> {
        let place = self.records.prompt(who, id, Permission::Update).await?;
        let before = self.row(&place, None).await?.filter(|row| is_one(definition, row));
        let before = before.ok_or_else(|| missing(definition, id))?;
        let changes = definition.changes(body)?;
        let mut changes = self.with_functions_named(who, changes, &HashSet::new()).await?;
        if changes.is_empty() {
            return Ok(shown(definition, before));
        }
        if let Some(slug) = changes.get("slug").and_then(Value::as_str).filter(|slug| **slug != *place.slug) {
            self.records.change_slug(who, id, slug).await?;
        }
        changes.insert("id".into(), id.to_string().into());
        changes.insert("_is_merge".into(), true.into());
        changes.insert("_merge_paths".into(), merge_paths());
        self.changed(definition, &place, changes).await
    }

    /// Deletes a definition and returns it.
    pub async fn delete(&self, who: &Principal, definition: Definition, id: Uuid) -> Result<Value, FunctionsError> {
        let place = self.records.prompt(who, id, Permission::Delete).await?;
        let row = self.row(&place, None).await?.filter(|row| is_one(definition, row));
        let row = row.ok_or_else(|| missing(definition, id))?;
        self.write(&place.home, gone(id), None).await?;
        self.records.leave_slug(who, id).await?;
        Ok(shown(definition, row))
    }

    /// Returns readable definitions, newest first. `name` filters rows, the others filter records.
    pub async fn list(
        &self,
        who: &Principal,
        definition: Definition,
        mut request: ListRequest,
        version: &Version,
    ) -> Result<Vec<Value>, FunctionsError> {
        let wanted = usize::try_from(request.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let names = taken_filters(&mut request, &format!("{}_name", definition.name()));
        // An environment is resolved for one prompt, so the request has to match one, whichever of them are pinned.
        if matches!(version, Version::Of(_)) && wanted > 1 {
            let all = self.matching(who, definition, request.clone(), &names, &Version::Newest, 2).await?;
            if all.len() > 1 {
                return Err(FunctionsError::bad(format!(
                    "`environment` needs a request that matches one {}, and several match: add `slug` and `project_id`, or \
                     `limit=1`",
                    definition.name()
                )));
            }
        }
        self.matching(who, definition, request, &names, version, wanted).await
    }

    /// Returns up to `wanted` of those that match, newest first; of those before a cursor the ones next to it.
    async fn matching(
        &self,
        who: &Principal,
        definition: Definition,
        mut request: ListRequest,
        names: &[String],
        version: &Version,
        wanted: usize,
    ) -> Result<Vec<Value>, FunctionsError> {
        request.limit = Some(PLACES_AT_ONCE);
        let (mut found, backwards) = (Vec::new(), request.ending_before.is_some());
        while found.len() < wanted {
            let places = self.records.prompts(who, &request).await?;
            let (first, last) = (places.first().map(|place| place.id), places.last().map(|place| place.id));
            let is_last = (places.len() as u64) < PLACES_AT_ONCE;
            let rows = self.rows(places, version).await?.into_iter();
            let kept = rows.filter(|row| is_one(definition, row) && (names.is_empty() || is_named(row, names)));
            let kept: Vec<_> = kept.map(|row| shown(definition, row)).collect();
            if backwards {
                found.splice(0..0, kept);
                request.ending_before = first;
            } else {
                found.extend(kept);
                request.starting_after = last;
            }
            if is_last {
                break;
            }
        }
        if found.len() > wanted {
            let surplus = found.len() - wanted;
            if backwards { drop(found.drain(..surplus)) } else { found.truncate(wanted) }
        }
        Ok(found)
    }

    /// The rows of these, in their order; those that there are.
    pub(crate) async fn rows(&self, places: Vec<PromptPlace>, version: &Version) -> Result<Vec<Value>, FunctionsError> {
        let mut reads: HashMap<(ObjectKey, Option<Xact>), (ObjectHome, Vec<String>)> = HashMap::new();
        let mut order = Vec::new();
        for place in places {
            let at = match version {
                Version::Newest => None,
                Version::At(xact) => Some(*xact),
                Version::Of(environment) => match self.pinned(&place, environment)? {
                    Some(xact) => Some(xact),
                    None => continue,
                },
            };
            let read = reads.entry((place.home.key, at)).or_insert_with(|| (place.home, Vec::new()));
            read.1.push(place.id.to_string());
            order.push(place.id.to_string());
        }
        let mut rows: HashMap<String, Value> = HashMap::new();
        for ((_, at), (home, ids)) in reads {
            for row in self.objects.rows(&row_home(&home), ids, at).await? {
                let row = read(&row)?;
                if let Some(id) = row.get("id").and_then(Value::as_str).map(str::to_owned) {
                    rows.insert(id, row);
                }
            }
        }
        Ok(order.into_iter().filter_map(|id| rows.remove(&id)).collect())
    }

    async fn place(&self, who: &Principal, fields: &Map<String, Value>) -> Result<(PromptPlace, bool), FunctionsError> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let project = text("project_id").and_then(|id| Uuid::parse_str(id).ok());
        let project = project.ok_or_else(|| FunctionsError::bad("`project_id` is missing"))?;
        let slug = text("slug").ok_or_else(|| FunctionsError::bad("`slug` is missing"))?;
        Ok(self.records.take_slug(who, project, slug).await?)
    }

    async fn row_if(&self, found: bool, place: &PromptPlace) -> Result<Option<Value>, FunctionsError> {
        if found { self.row(place, None).await } else { Ok(None) }
    }

    /// Writes the first row; `None` if a concurrent write won or was deleted since, which requires another look.
    async fn write_first(
        &self,
        place: &PromptPlace,
        fields: &Map<String, Value>,
    ) -> Result<Option<Value>, FunctionsError> {
        let request = first_write(place.id, place.revision);
        let (xact, duplicate) = self.write(&place.home, written(place.id, fields.clone()), Some(request)).await?;
        if !duplicate {
            return self.row(place, Some(xact)).await;
        }
        if self.row(place, None).await?.is_none() {
            self.records.renew_prompt(place).await?;
        }
        Ok(None)
    }

    /// Writes a changed row, and deletes it if the prompt was deleted meanwhile.
    async fn changed(
        &self,
        definition: Definition,
        place: &PromptPlace,
        row: Map<String, Value>,
    ) -> Result<Value, FunctionsError> {
        let (xact, _) = self.write(&place.home, row, None).await?;
        if !self.records.has_prompt(place).await? {
            self.write(&place.home, gone(place.id), None).await?;
            return Err(missing(definition, place.id));
        }
        let row = self.row(place, Some(xact)).await?;
        Ok(shown(definition, row.ok_or_else(|| missing(definition, place.id))?))
    }

    /// The version that is pinned to an environment, if one is.
    fn pinned(&self, place: &PromptPlace, environment: &str) -> Result<Option<Xact>, FunctionsError> {
        Ok(self.records.version_in(place.home.org, place.id, environment)?)
    }
}

pub(crate) fn gone(id: Uuid) -> Map<String, Value> {
    Map::from_iter([("id".to_owned(), Value::from(id.to_string())), ("_object_delete".to_owned(), true.into())])
}

/// Checks that the row is of the requested definition: a slug of a prompt may belong to a function.
fn of(definition: Definition, row: Value) -> Result<Value, FunctionsError> {
    if is_one(definition, &row) {
        return Ok(shown(definition, row));
    }
    let said = "a function that is not a prompt has this slug: choose another slug";
    Err(FunctionsError::Records(RecordsError::Taken(said.into())))
}

fn is_named(row: &Value, names: &[String]) -> bool {
    row.get("name").and_then(Value::as_str).is_some_and(|name| names.iter().any(|wanted| wanted == name))
}

/// Removes a filter that does not apply to records, and returns its values.
fn taken_filters(request: &mut ListRequest, name: &str) -> Vec<String> {
    let (taken, left) = std::mem::take(&mut request.filters).into_iter().partition(|(given, _)| given == name);
    request.filters = left;
    let taken: Vec<(String, String)> = taken;
    taken.into_iter().map(|(_, value)| value).filter(|value| !value.is_empty()).collect()
}

fn missing(definition: Definition, id: Uuid) -> FunctionsError {
    let said = format!("no {} with the id {id} is visible to this credential", definition.name());
    FunctionsError::Records(RecordsError::NotFound(said))
}

fn others_are_faster() -> FunctionsError {
    FunctionsError::Records(RecordsError::Busy(
        "concurrent requests keep creating and deleting this slug: try again".into(),
    ))
}
