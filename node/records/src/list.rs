//! Lists of records in pages, newest first, with the filters of the kind.
//!
//! Records are looked up by id or name if the filters allow it. Otherwise they are scanned in batches, so that the
//! catalog is never locked for long. A record that is created or deleted between two batches may or may not be listed.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use assay_node_auth::{Decision, Permission, Principal};
use assay_node_shapes::Shape;
use assay_storage_catalog::{Cursor, ListQuery, State};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use serde_json::Value;
use uuid::Uuid;

use crate::Records;
use crate::authz::CatalogView;
use crate::authz::{no_organization, within, within_named};
use crate::draft;
use crate::error::RecordsError;
use crate::kind::{Filter, Home, Kind, Naming};
use crate::kinds::PROJECT;
use crate::read::decided;

/// Upper bound of the ids in one request.
pub const IDS_MAX: usize = 1000;
/// Number of records that are scanned under one lock of the catalog.
const BATCH: usize = 1000;
/// Upper bound of the bytes of one page. A truncated page continues from its last record, like any other.
const PAGE_BYTES_MAX: usize = 32 << 20;
/// Upper bound of lookups by name. Requests for more are answered by a scan.
const LOOKUPS_MAX: usize = 1000;

/// Request for one page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Page size; `None` for the default of the kind, which is high because some clients never request a second page.
    pub limit: Option<u64>,
    pub starting_after: Option<Uuid>,
    pub ending_before: Option<Uuid>,
    pub ids: Vec<Uuid>,
    /// Query parameters by name. Unknown parameters and empty values are ignored.
    pub filters: Vec<(String, String)>,
}

impl ListRequest {
    /// Reads the decoded query of a URL. Empty values mean "not given".
    pub fn from_query(pairs: impl IntoIterator<Item = (String, String)>) -> Result<ListRequest, RecordsError> {
        let mut request = ListRequest::default();
        for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
            match name.as_str() {
                "limit" => request.limit = Some(parse_limit(&value)?),
                "starting_after" => request.starting_after = Some(parse_id(&name, &value)?),
                "ending_before" => request.ending_before = Some(parse_id(&name, &value)?),
                "ids" if request.ids.len() == IDS_MAX => {
                    return Err(RecordsError::BadRequest(format!("`ids` is repeated more than {IDS_MAX} times")));
                }
                "ids" => request.ids.push(parse_id(&name, &value)?),
                _ => request.filters.push((name, value)),
            }
        }
        Ok(request)
    }

    /// Returns the name of the requested organization.
    pub fn organization(&self) -> Option<&str> {
        self.filters
            .iter()
            .rev()
            .find(|(name, value)| name == "org_name" && !value.is_empty())
            .map(|(_, value)| &**value)
    }

    fn cursor(&self) -> Result<Option<Cursor>, RecordsError> {
        match (self.starting_after, self.ending_before) {
            (Some(_), Some(_)) => {
                let said = "`starting_after` and `ending_before` exclude each other: send only one of them";
                Err(RecordsError::BadRequest(said.into()))
            }
            (Some(id), None) => Ok(Some(Cursor::After(id))),
            (None, Some(id)) => Ok(Some(Cursor::Before(id))),
            (None, None) => Ok(None),
        }
    }
}

/// Returns a filter value in stored form, which normalizes ids.
fn wanted(kind: &Kind, field: &str, name: &str, value: &str) -> Result<String, RecordsError> {
    let is_id = kind.fields.iter().any(|known| known.name == field && matches!(known.shape, Shape::Uuid));
    if is_id { Ok(parse_id(name, value)?.to_string()) } else { Ok(value.to_owned()) }
}

fn parse_limit(text: &str) -> Result<u64, RecordsError> {
    let wrong = |_| RecordsError::BadRequest("`limit` has to be a whole number, 0 or more".into());
    text.parse().map_err(wrong)
}

fn parse_id(name: &str, text: &str) -> Result<Uuid, RecordsError> {
    Uuid::parse_str(text).map_err(|_| RecordsError::BadRequest(format!("`{name}` has to be a UUID")))
}

/// Decoded filters of one request. An empty filter matches everything.
#[derive(Clone, Debug, Default)]
struct ListFilters {
    ids: HashSet<Uuid>,
    names: HashSet<String>,
    project_names: HashSet<String>,
    project_ids: HashSet<Uuid>,
    metadata: Vec<Value>,
    /// Allowed values of each field.
    fields: HashMap<&'static str, HashSet<String>>,
}

impl ListFilters {
    fn read(kind: &Kind, request: &ListRequest) -> Result<ListFilters, RecordsError> {
        let mut filters = ListFilters { ids: request.ids.iter().copied().collect(), ..ListFilters::default() };
        for (name, value) in request.filters.iter().filter(|(_, value)| !value.is_empty()) {
            let filter = kind.filters.iter().find(|(known, _)| known == name);
            match filter.map(|(_, filter)| filter) {
                Some(Filter::Name) => drop(filters.names.insert(value.clone())),
                Some(Filter::ProjectName) => drop(filters.project_names.insert(value.clone())),
                Some(Filter::ProjectId) => drop(filters.project_ids.insert(parse_id(name, value)?)),
                Some(Filter::Field(field)) => {
                    filters.fields.entry(field).or_default().insert(wanted(kind, field, name, value)?);
                }
                Some(Filter::Metadata) => filters.metadata.push(parse_metadata(value)?),
                None => {}
            }
        }
        Ok(filters)
    }

    /// Returns whether the request names records, so that an empty response denies their existence.
    fn names_something(&self) -> bool {
        let none = self.ids.is_empty()
            && self.names.is_empty()
            && self.project_names.is_empty()
            && self.project_ids.is_empty()
            && self.fields.is_empty();
        !none
    }

    /// Returns the requested projects; `None` for all projects.
    fn projects(&self, state: &State, org: OrgId) -> Option<HashSet<Uuid>> {
        let named = || {
            let keys = self.project_names.iter().map(|name| PROJECT.name_key(org.0, name));
            keys.filter_map(|key| state.find(&key)).map(|project| project.id).collect::<HashSet<_>>()
        };
        match (self.project_names.is_empty(), self.project_ids.is_empty()) {
            (true, true) => None,
            (true, false) => Some(self.project_ids.clone()),
            (false, true) => Some(named()),
            (false, false) => Some(named().intersection(&self.project_ids).copied().collect()),
        }
    }

    /// Returns records that can be found without a scan: by id, by unique key, or all records of kinds with system
    /// records. Returns `None` if only a scan finds them.
    fn direct(&self, state: &State, kind: &Kind, org: OrgId, cursor: Option<Cursor>) -> Option<Vec<Arc<Record>>> {
        let of_system = (kind.builtin)();
        if !of_system.is_empty() {
            let stored = state.all(kind.record).filter(|record| record.org == Some(org) && kind.lives(state, record));
            let all = stored.cloned().chain(of_system.iter().cloned().map(Arc::new)).collect();
            return between(state, kind.record, &of_system, all, cursor);
        }
        if cursor.is_some() {
            return None;
        }
        let homes = match kind.home {
            Home::Organization => Some(HashSet::from([org.0])),
            Home::Project => self.projects(state, org),
            Home::Object => None,
        };
        let by_key = kind.naming != Naming::Secret && !self.names.is_empty();
        let mut found: Vec<Arc<Record>> = match homes {
            _ if !self.ids.is_empty() => {
                self.ids.iter().filter_map(|id| state.get(kind.record, *id)).cloned().collect()
            }
            Some(homes) if by_key && homes.len().saturating_mul(self.names.len()) <= LOOKUPS_MAX => {
                let keys = homes.iter().flat_map(|home| self.names.iter().map(|name| kind.name_key(*home, name)));
                keys.filter_map(|key| state.find(&key).cloned()).collect()
            }
            _ => return None,
        };
        found.retain(|record| record.org == Some(org) && kind.lives(state, record));
        found.sort_by_key(|record| (Reverse(record.created), record.id));
        Some(found)
    }

    fn keeps(&self, kind: &Kind, projects: Option<&HashSet<Uuid>>, record: &Record) -> Result<bool, RecordsError> {
        let in_projects = || match (kind.home, projects) {
            (Home::Project, Some(projects)) => kind.project_of(record).is_some_and(|id| projects.contains(&id)),
            _ => true,
        };
        if !(self.ids.is_empty() || self.ids.contains(&record.id)) || !in_projects() {
            return Ok(false);
        }
        let names_in_body = kind.naming == Naming::Secret && !self.names.is_empty();
        if !self.names.is_empty() && !names_in_body {
            let named = record.keys.first().is_some_and(|key| self.names.contains(&key.name));
            if !named {
                return Ok(false);
            }
        }
        if !names_in_body && self.metadata.is_empty() && self.fields.is_empty() {
            return Ok(true);
        }
        let body = draft::read(record)?;
        let name = body.get("name").and_then(Value::as_str);
        let named = !names_in_body || name.is_some_and(|name| self.names.contains(name));
        // A record without metadata matches an empty filter.
        let none = Value::Object(serde_json::Map::new());
        let metadata = body.get("metadata").filter(|metadata| !metadata.is_null()).unwrap_or(&none);
        let has = |field: &str| body.get(field).and_then(Value::as_str);
        let fields = self.fields.iter().all(|(field, wanted)| has(field).is_some_and(|value| wanted.contains(value)));
        Ok(named
            && fields
            && (self.metadata.is_empty() || self.metadata.iter().any(|wanted| contains(metadata, wanted))))
    }
}

/// Returns one page of a few collected records.
pub fn one_page(
    state: &State,
    kind: RecordKind,
    records: Vec<Arc<Record>>,
    request: &ListRequest,
) -> Result<Vec<Arc<Record>>, RecordsError> {
    let cursor = request.cursor()?;
    let unknown = || match cursor {
        Some(Cursor::After(id) | Cursor::Before(id)) => wrong_cursor(unknown_cursor(id)),
        None => RecordsError::Internal("a list without a cursor has no position".into()),
    };
    if let Some(Cursor::After(id) | Cursor::Before(id)) = cursor
        && state.get(kind, id).is_some()
        && records.iter().all(|record| record.id != id)
    {
        return Err(unknown()); // it belongs to another organization
    }
    let found = between(state, kind, &[], records, cursor).ok_or_else(unknown)?;
    let limit = request.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut page = Page { limit, backwards: matches!(cursor, Some(Cursor::Before(_))), ..Page::default() };
    page.fill(found, |_| Ok(true))?;
    Ok(page.records.into())
}

/// Returns the records from a cursor on, in the order of lists; `None` if the cursor names no present or past record.
fn between(
    state: &State,
    kind: RecordKind,
    of_system: &[Record],
    mut records: Vec<Arc<Record>>,
    cursor: Option<Cursor>,
) -> Option<Vec<Arc<Record>>> {
    records.sort_by_key(|record| (Reverse(record.created), record.id));
    let place = |id| {
        let is_it = |record: &&Record| record.id == id;
        let created = state.created(kind, id).or_else(|| of_system.iter().find(is_it).map(|record| record.created));
        created.map(|created| (Reverse(created), id))
    };
    match cursor {
        None => {}
        Some(Cursor::After(id)) => {
            let place = place(id)?;
            records.retain(|record| (Reverse(record.created), record.id) > place);
        }
        Some(Cursor::Before(id)) => {
            let place = place(id)?;
            records.retain(|record| (Reverse(record.created), record.id) < place);
        }
    }
    Some(records)
}

fn parse_metadata(text: &str) -> Result<Value, RecordsError> {
    let parsed = serde_json::from_str(text).ok().filter(Value::is_object);
    parsed.ok_or_else(|| RecordsError::BadRequest("`metadata` has to be a JSON object".into()))
}

/// Returns whether the stored value has all wanted members with equal values, including nested ones.
fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| stored.get(name).is_some_and(|stored| contains(stored, wanted)))
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len() && stored.iter().zip(wanted).all(|(a, b)| contains(a, b) && contains(b, a))
        }
        // 1 and 1.0 are the same number.
        (Value::Number(a), Value::Number(b)) => a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())),
        _ => stored == wanted,
    }
}

/// Iterator over the records of a kind in one organization, in batches.
#[derive(Debug)]
pub struct Walk {
    kind: RecordKind,
    org: OrgId,
    cursor: Option<Cursor>,
    over: bool,
}

impl Walk {
    pub fn from_newest(kind: &Kind, org: OrgId) -> Walk {
        Walk::of(kind.record, org)
    }

    pub fn of(kind: RecordKind, org: OrgId) -> Walk {
        Walk { kind, org, cursor: None, over: false }
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the records of the next batch that `keep` accepts, newest first.
    pub fn step(&mut self, state: &State, keep: impl Fn(&Record) -> bool) -> Result<Vec<Arc<Record>>, RecordsError> {
        let query = ListQuery { kind: self.kind, org: Some(self.org), cursor: self.cursor, limit: BATCH };
        let mut batch = state.list(&query, |_| true).map_err(|unknown| unknown_cursor(unknown.id))?;
        self.over = batch.len() < BATCH;
        let next = match self.cursor {
            Some(Cursor::Before(_)) => batch.first().map(|record| Cursor::Before(record.id)),
            _ => batch.last().map(|record| Cursor::After(record.id)),
        };
        self.cursor = next.or(self.cursor);
        batch.retain(|record| keep(record));
        Ok(batch)
    }
}

fn unknown_cursor(id: Uuid) -> RecordsError {
    RecordsError::NotFound(format!("the list cannot continue from {id}: it never had such a record"))
}

impl Records {
    pub async fn list(
        &self,
        who: &Principal,
        kind: &'static Kind,
        request: &ListRequest,
    ) -> Result<Vec<Value>, RecordsError> {
        self.listed(who, kind, request).await?.iter().map(|record| self.answer(kind, record)).collect()
    }

    /// Returns one page of stored records that the principal can read.
    pub async fn listed(
        &self,
        who: &Principal,
        kind: &'static Kind,
        request: &ListRequest,
    ) -> Result<Vec<Arc<Record>>, RecordsError> {
        let filters = ListFilters::read(kind, request)?;
        let cursor = request.cursor()?;
        self.catalog.fresh().await?;
        let limit = request.limit.or(kind.list_default).unwrap_or(u64::MAX);
        let who = match self.lister(who, request.organization()).await {
            // An organization that is not visible has no records.
            Err(RecordsError::NotFound(_)) => return Ok(Vec::new()),
            who => who?,
        };
        let page = || self.page(&who, kind, &filters, cursor, usize::try_from(limit).unwrap_or(usize::MAX));
        match page() {
            Ok(records) if records.is_empty() && limit > 0 && cursor.is_none() && filters.names_something() => {
                self.catalog.fence().await?;
                page()
            }
            Err(refusal) if refusal.may_be_stale() => {
                self.catalog.fence().await?;
                page().map_err(wrong_cursor)
            }
            records => records,
        }
    }

    /// Returns the principal in the listed organization.
    pub async fn lister(&self, who: &Principal, org_name: Option<&str>) -> Result<Principal, RecordsError> {
        self.catalog
            .look(|view| match org_name {
                Some(name) => within_named(view, who, name),
                None => within(view, who, who.org)?.ok_or_else(|| no_organization(&who.org_name)),
            })
            .await
    }

    fn page(
        &self,
        who: &Principal,
        kind: &Kind,
        filters: &ListFilters,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Vec<Arc<Record>>, RecordsError> {
        let org = who.org;
        let readable = |view: &CatalogView<'_>, record: &Record| {
            kind.lives(view, record)
                && decided(view, who, kind, record, Permission::Read).is_ok_and(|said| said == Decision::Allowed)
        };
        let (projects, direct) = self.catalog.peek(|view| {
            own_cursor(view, kind, org, cursor, |record| readable(view, record))?;
            let mut direct = filters.direct(view, kind, org, cursor);
            if let Some(found) = &mut direct {
                found.retain(|record| record.org.is_none() || readable(view, record));
            }
            Ok::<_, RecordsError>((filters.projects(view, org), direct))
        })?;
        let mut page = Page { limit, backwards: matches!(cursor, Some(Cursor::Before(_))), ..Page::default() };
        if let Some(found) = direct {
            page.fill(found, |record| filters.keeps(kind, projects.as_ref(), record))?;
            return Ok(page.records.into());
        }
        let mut walk = Walk { cursor, ..Walk::of(kind.record, org) };
        while !page.is_full() && !walk.is_over() {
            let batch = self.catalog.peek(|view| walk.step(view, |record| readable(view, record)))?;
            page.fill(batch, |record| filters.keeps(kind, projects.as_ref(), record))?;
        }
        Ok(page.records.into())
    }
}

/// Refuses a cursor at a record of another organization or an unreadable record, as if it never existed. A deleted
/// record remains a valid cursor, since a page may have ended at it.
fn own_cursor(
    state: &State,
    kind: &Kind,
    org: OrgId,
    cursor: Option<Cursor>,
    readable: impl Fn(&Record) -> bool,
) -> Result<(), RecordsError> {
    let Some(Cursor::After(id) | Cursor::Before(id)) = cursor else {
        return Ok(());
    };
    match state.get(kind.record, id) {
        Some(record) if record.org != Some(org) => Err(unknown_cursor(id)),
        Some(record) if kind.lives(state, record) && !readable(record) => Err(unknown_cursor(id)),
        _ => Ok(()),
    }
}

fn wrong_cursor(refusal: RecordsError) -> RecordsError {
    match refusal {
        RecordsError::NotFound(said) => RecordsError::BadRequest(said),
        other => other,
    }
}

/// Page under construction, from its cursor on.
#[derive(Debug, Default)]
struct Page {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    limit: usize,
    /// Whether the page is filled from its end, towards newer records.
    backwards: bool,
}

impl Page {
    fn is_full(&self) -> bool {
        self.records.len() >= self.limit || self.bytes >= PAGE_BYTES_MAX
    }

    /// Adds records of a batch, which is ordered newest first.
    fn fill(
        &mut self,
        batch: Vec<Arc<Record>>,
        keeps: impl Fn(&Record) -> Result<bool, RecordsError>,
    ) -> Result<(), RecordsError> {
        let mut batch = VecDeque::from(batch);
        while !self.is_full() {
            let next = if self.backwards { batch.pop_back() } else { batch.pop_front() };
            let Some(record) = next else {
                break;
            };
            if !keeps(&record)? {
                continue;
            }
            self.bytes += record.body.len();
            if self.backwards { self.records.push_front(record) } else { self.records.push_back(record) }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Result<ListRequest, RecordsError> {
        ListRequest::from_query(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_query_is_read_and_empty_values_mean_not_given() {
        let id = Uuid::from_u128(7);
        let text = id.to_string();
        let read = query(&[("limit", "0"), ("ids", &text), ("ids", &text), ("org_name", ""), ("other", "x")]);
        let read = read.expect("reads");
        assert_eq!((read.limit, read.ids), (Some(0), vec![id, id]));
        assert_eq!(read.filters, [("other".to_owned(), "x".to_owned())]);
        assert_eq!(query(&[("limit", ""), ("starting_after", "")]), Ok(ListRequest::default()));
    }

    #[test]
    fn an_id_that_is_filtered_by_is_read_as_one() {
        let read =
            |value: &str| ListFilters::read(&crate::kinds::ENV_VAR, &query(&[("object_id", value)]).expect("reads"));
        let fields = read("0000000A-0000-0000-0000-000000000007").expect("reads").fields;
        assert_eq!(fields["object_id"], HashSet::from(["0000000a-0000-0000-0000-000000000007".to_owned()]));
        assert!(matches!(read("x"), Err(RecordsError::BadRequest(said)) if said.contains("`object_id`")));
    }

    #[test]
    fn what_does_not_read_is_refused_by_name() {
        let many = vec![("ids", "00000000-0000-0000-0000-000000000007"); IDS_MAX + 1];
        for (pairs, name) in [
            (&[("limit", "-1")][..], "`limit`"),
            (&[("limit", "1e3")], "`limit`"),
            (&[("starting_after", "x")], "`starting_after`"),
            (&[("ending_before", "x")], "`ending_before`"),
            (&[("ids", "x")], "`ids`"),
            (&many, "`ids`"),
        ] {
            assert!(matches!(query(pairs), Err(RecordsError::BadRequest(said)) if said.contains(name)), "{name}");
        }
    }

    #[test]
    fn metadata_matches_when_all_given_fields_are_equal() {
        let stored = json!({"model": "m", "n": 1, "deep": {"a": [1, {"b": 2}], "c": null}});
        for (wanted, matches) in [
            (json!({}), true),
            (json!({"model": "m"}), true),
            (json!({"n": 1.0}), true),
            (json!({"deep": {"c": null}}), true),
            (json!({"deep": {"a": [1, {"b": 2}]}}), true),
            (json!({"deep": {"a": [1]}}), false),
            (json!({"deep": {"a": [1, {}]}}), false),
            (json!({"deep": {"d": null}}), false),
            (json!({"model": "m", "n": 2}), false),
            (json!({"model": {"x": 1}}), false),
        ] {
            assert_eq!(contains(&stored, &wanted), matches, "{wanted}");
        }
        assert!(parse_metadata("[]").is_err() && parse_metadata("{").is_err());
    }
}
