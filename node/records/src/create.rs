//! Creation of records, and replacement by name. A create with an existing name usually returns the existing record
//! unmodified.

use assay_node_auth::{
    API_KEY_BYTES, Decision, ObjectType, Permission, Principal, Secret, Target, new_api_key, preview,
};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, UniqueKey};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::audit::By;
use crate::authz::CatalogView;
use crate::authz::guard::{self, About};
use crate::authz::{no_organization, within, within_named};
use crate::commit::unexpected;
use crate::credentials::check_is_self;
use crate::draft::{self, Body, Frame};
use crate::error::RecordsError;
use crate::kind::{Checked, Home, Kind, Making, Naming, OnCreate};
use crate::kinds::api_key::fingerprint_key;
use crate::kinds::experiment::{self, BaseSearch};
use crate::kinds::{EXPERIMENT, PROJECT, SERVICE_TOKEN, acl};
use crate::list::Walk;
use crate::patch::put;
use crate::read::{VisibleRecord, decided, never_changes, visible};
use crate::sealed_values::{self, Writing};
use crate::{Created, Records, edge};

/// Upper bound of attempts while concurrent requests take or free the name.
const ATTEMPTS_MAX: usize = 8;
/// Upper bound of the experiments whose commits are compared, newest first.
const BASES_MAX: usize = 10_000;

/// Principal and owner of a new record.
#[derive(Clone, Debug)]
struct CreationContext {
    who: Principal,
    org: OrgId,
    /// Id of the organization or project in which its name is unique.
    within: Uuid,
    /// Whether the principal may create it.
    may: bool,
    /// Secret value, which is stored encrypted.
    secret: Option<Secret>,
}

/// Name of a new record.
#[derive(Clone, Debug)]
enum RequestedName {
    /// Exactly this name. An existing record of this name is returned.
    Exactly(String),
    /// This name, or a longer name with this prefix if it exists.
    Fresh(String),
}

impl Records {
    pub async fn create(
        &self,
        who: &Principal,
        kind: &'static Kind,
        mut body: Map<String, Value>,
    ) -> Result<Created, RecordsError> {
        let secret = sealed_values::taken(kind, &mut body)?;
        self.catalog.fresh().await?;
        if kind.record == SERVICE_TOKEN.record {
            return self.create_token(who, body).await;
        }
        let fields = draft::created(kind, body.clone())?;
        if let Some(of_system) = of_system(kind, &fields) {
            let object = self.answer(kind, &of_system)?;
            return Ok(Created { object, found_existing: true, secret: None });
        }
        if kind.record == EXPERIMENT.record {
            experiment::check_bases(&body)?;
        }
        let place = CreationContext { secret, ..self.place(who, kind, &fields, &body).await? };
        if kind.naming == Naming::Secret {
            return self.create_key(kind, &place, fields).await;
        }
        if let Naming::UniqueBy(field) = kind.naming {
            return self.create_alone(kind, &place, field, fields).await;
        }
        if matches!(kind.naming, Naming::Whole(_) | Naming::UniqueAmong(_)) {
            return self.create_whole(kind, &place, fields).await;
        }
        let wanted = wanted(kind, &fields, &body)?;
        if let RequestedName::Exactly(name) = &wanted
            && let Some(found) = self.existing(kind, &place, &kind.name_key(place.within, name)).await?
        {
            return Ok(found);
        }
        // A principal without permission must not learn which base experiments exist.
        if !place.may {
            return Err(forbidden_to_make(kind));
        }
        let fields =
            if kind.record == EXPERIMENT.record { self.with_base(&place, fields, &body).await? } else { fields };
        self.create_named(kind, &place, wanted, fields).await
    }

    /// Replaces the fields of the record with this name, except those that the service sets. A missing record is
    /// created.
    pub async fn replace(
        &self,
        who: &Principal,
        kind: &'static Kind,
        mut body: Map<String, Value>,
    ) -> Result<Value, RecordsError> {
        let secret = sealed_values::taken(kind, &mut body)?;
        self.catalog.fresh().await?;
        let fields = draft::created(kind, body.clone())?;
        if of_system(kind, &fields).is_some() {
            return Err(never_changes(kind));
        }
        let place = CreationContext { secret, ..self.place(who, kind, &fields, &body).await? };
        let unnamed = || RecordsError::BadRequest("`name` is missing".into());
        let key = kind.key_of(place.within, &fields).ok_or_else(unnamed)?;
        for _ in 0..ATTEMPTS_MAX {
            let Some(id) = self.catalog.peek(|view| view.find(&key).map(|record| record.id)) else {
                match self.put_new(kind, &place, edge::new_id(), key.clone(), fields.clone()).await? {
                    Some(object) => return Ok(object),
                    None => self.catalog.fence().await?,
                }
                continue;
            };
            let seen = self.catalog.look(|view| visible(view, &place.who, kind, id, Permission::Update)).await;
            let VisibleRecord { record, .. } = seen.map_err(|why| unseen(kind, &place, why))?;
            let stored = draft::read(&record)?;
            let mut replaced = fields.clone();
            for field in kind.fields.iter().filter(|field| field.create == OnCreate::Ours) {
                if let Some(value) = stored.get(field.name) {
                    replaced.insert(field.name.to_owned(), value.clone());
                }
            }
            (kind.derive)(&mut replaced);
            if let Some(check) = kind.check {
                let who = &place.who;
                self.catalog
                    .peek(|view| check(&Checked { view, who, id: Some(id), before: Some(&stored), body: &replaced }))?;
            }
            let (org, user, at) = (place.org, place.who.user, edge::now_micros());
            self.sign_rule(kind, &place.who, Some(&stored), &mut replaced).await?;
            let writing = Writing { kind, org, id, user, at, before: Some(&stored) };
            self.seal(&writing, place.secret.as_ref(), &mut replaced).await?;
            match self
                .catalog
                .propose_one(By::Caller(&place.who), CatalogCommand::Put(put(kind, &record, &replaced)))
                .await?
            {
                CatalogOutcome::Put { .. } => {
                    return Ok(self.joined(kind, draft::shown(kind, &Frame::of(&record), replaced)));
                }
                CatalogOutcome::Taken { .. } | CatalogOutcome::Stale { .. } => {
                    self.catalog.fence().await?;
                }
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy(format!("concurrent changes to this {} prevented the request: try again", kind.name)))
    }

    /// Returns the owner of a new record, and whether the principal may create it. Without permission the principal can
    /// still get an existing record.
    async fn place(
        &self,
        who: &Principal,
        kind: &'static Kind,
        fields: &Body,
        body: &Body,
    ) -> Result<CreationContext, RecordsError> {
        let (name, id) = (draft::text_of(body, "org_name")?, draft::uuid_of(body, "org_id")?);
        self.catalog
            .look(|view| {
                let (who, project) = match kind.home {
                    Home::Project => in_project(view, who, fields)?,
                    Home::Object => (of_object(view, who, fields)?, None),
                    Home::Organization => (in_organization(view, who, id.map(OrgId), name)?, None),
                };
                let org = who.org;
                let about = About { kind, org, id: None, project, body: (kind.home == Home::Object).then_some(fields) };
                let may = about.decide(view, &who, Permission::Create) == Decision::Allowed;
                if let Some(check) = kind.check.filter(|_| may) {
                    check(&Checked { view, who: &who, id: None, before: None, body: fields })?;
                }
                Ok(CreationContext { may, who, org, within: project.unwrap_or(org.0), secret: None })
            })
            .await
    }

    /// Returns the record of this name. A found record is confirmed behind a fence, since it may have been deleted.
    async fn existing(
        &self,
        kind: &Kind,
        place: &CreationContext,
        key: &UniqueKey,
    ) -> Result<Option<Created>, RecordsError> {
        let find = |view: &CatalogView<'_>| match view.find(key) {
            None => Ok(None),
            Some(found) => match visible(view, &place.who, kind, found.id, Permission::Read) {
                Ok(seen) => Ok(Some(seen.record)),
                Err(why) => Err(unseen(kind, place, why)),
            },
        };
        if self.catalog.peek(find)?.is_none() {
            return Ok(None);
        }
        self.catalog.fence().await?;
        let Some(record) = self.catalog.peek(find)? else {
            return Ok(None);
        };
        Ok(Some(Created { object: self.answer(kind, &record)?, found_existing: true, secret: None }))
    }

    async fn create_named(
        &self,
        kind: &Kind,
        place: &CreationContext,
        wanted: RequestedName,
        fields: Body,
    ) -> Result<Created, RecordsError> {
        let mut suffix = false;
        for _ in 0..ATTEMPTS_MAX {
            let id = edge::new_id();
            let name = match &wanted {
                RequestedName::Fresh(base) if suffix => experiment::suffixed(base, id),
                RequestedName::Exactly(name) | RequestedName::Fresh(name) => name.clone(),
            };
            let key = kind.name_key(place.within, &name);
            if matches!(wanted, RequestedName::Fresh(_)) && self.catalog.peek(|state| state.find(&key).is_some()) {
                suffix = true;
                continue;
            }
            let mut body = fields.clone();
            body.insert(kind.named_by().into(), name.into());
            match self.put_new(kind, place, id, key.clone(), body).await? {
                Some(object) => return Ok(Created { object, found_existing: false, secret: None }),
                None if matches!(wanted, RequestedName::Fresh(_)) => suffix = true,
                None => {
                    self.catalog.fence().await?;
                    if let Some(found) = self.existing(kind, place, &key).await? {
                        return Ok(found);
                    }
                }
            }
        }
        Err(RecordsError::Busy(format!("concurrent requests keep using the name of this {}: try again", kind.name)))
    }

    /// Stores a new record. Returns `None` if the unique key exists.
    async fn put_new(
        &self,
        kind: &Kind,
        place: &CreationContext,
        id: Uuid,
        key: UniqueKey,
        mut body: Body,
    ) -> Result<Option<Value>, RecordsError> {
        if !place.may {
            return Err(forbidden_to_make(kind));
        }
        self.check_record_count(kind.record, place.org)?;
        (kind.complete)(&Making { id, user: place.who.user }, &mut body);
        (kind.derive)(&mut body);
        self.sign_rule(kind, &place.who, None, &mut body).await?;
        let at = edge::now_micros();
        let writing = Writing { kind, org: place.org, id, user: place.who.user, at, before: None };
        self.seal(&writing, place.secret.as_ref(), &mut body).await?;
        let put = PutRecord {
            kind: kind.record,
            id,
            org: Some(place.org),
            expect: Expect::Absent,
            keys: vec![key],
            body: Value::Object(body.clone()).to_string().into_bytes(),
            at,
        };
        match self.catalog.propose_one(By::Caller(&place.who), CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => {
                let frame = Frame { id, org: Some(place.org), created: at, deleted: None };
                Ok(Some(self.joined(kind, draft::shown(kind, &frame, body))))
            }
            CatalogOutcome::Taken { .. } | CatalogOutcome::Stale { .. } => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// Creates a record. An existing one is an error.
    async fn create_alone(
        &self,
        kind: &Kind,
        place: &CreationContext,
        field: &str,
        fields: Body,
    ) -> Result<Created, RecordsError> {
        let missing = || RecordsError::BadRequest(format!("`{field}` is missing"));
        let key = kind.key_of(place.within, &fields).ok_or_else(missing)?;
        let taken = RecordsError::BadRequest(format!("`{field}`: another {} already has `{}`", kind.name, key.name));
        let made = self.put_new(kind, place, edge::new_id(), key, fields).await?;
        let object = made.ok_or(taken)?;
        Ok(Created { object, found_existing: false, secret: None })
    }

    /// Creates a record that several fields identify.
    async fn create_whole(&self, kind: &Kind, place: &CreationContext, fields: Body) -> Result<Created, RecordsError> {
        let unnamed = || RecordsError::BadRequest("`name` is missing".into());
        let key = kind.key_of(place.within, &fields).ok_or_else(unnamed)?;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(found) = self.existing(kind, place, &key).await? {
                return Ok(found);
            }
            if let Some(object) = self.put_new(kind, place, edge::new_id(), key.clone(), fields.clone()).await? {
                return Ok(Created { object, found_existing: false, secret: None });
            }
            self.catalog.fence().await?;
        }
        Err(RecordsError::Busy(format!("concurrent requests keep creating and deleting this {}: try again", kind.name)))
    }

    async fn create_key(
        &self,
        kind: &Kind,
        place: &CreationContext,
        mut fields: Body,
    ) -> Result<Created, RecordsError> {
        self.check_may_have_keys(place.who.user)?;
        check_is_self(&place.who)?;
        self.check_key_count(place.org, place.who.user, 1)?;
        let secret = new_api_key(&edge::random::<API_KEY_BYTES>()?);
        fields.insert("preview_name".into(), preview(secret.expose()).into());
        let fingerprint =
            self.catalog.peek(|state| self.catalog.pepper(state).map(|pepper| pepper.fingerprint(secret.expose())))?;
        let made = self.put_new(kind, place, edge::new_id(), fingerprint_key(&fingerprint), fields).await?;
        let object = made.ok_or_else(|| RecordsError::Internal("a new API key already exists".into()))?;
        Ok(Created { object, found_existing: false, secret: Some(secret) })
    }

    /// Resolves the base experiment: by id, by name, or the newest one on the nearest ancestor commit.
    async fn with_base(&self, place: &CreationContext, mut fields: Body, body: &Body) -> Result<Body, RecordsError> {
        if fields.contains_key("base_exp_id") {
            return Ok(fields);
        }
        let base = match draft::text_of(body, "base_experiment")? {
            Some(name) => Some(self.base_by_name(place, name).await?),
            None => self.base_by_commit(place, body)?,
        };
        if let Some(base) = base {
            fields.insert("base_exp_id".into(), base.to_string().into());
        }
        Ok(fields)
    }

    async fn base_by_name(&self, place: &CreationContext, name: &str) -> Result<Uuid, RecordsError> {
        let key = EXPERIMENT.name_key(place.within, name);
        let missing = || RecordsError::NotFound(String::new());
        let look = |view: &CatalogView<'_>| {
            let found = view.find(&key).ok_or_else(missing)?;
            visible(view, &place.who, &EXPERIMENT, found.id, Permission::Read).map(|seen| seen.record.id)
        };
        let found = self.catalog.look(look).await;
        // Clients detect the words `base experiment`, and retry without the field.
        let said = || RecordsError::BadRequest(format!("the base experiment `{name}` is not in this project"));
        found.map_err(|error| if error.may_be_stale() { said() } else { error })
    }

    fn base_by_commit(&self, place: &CreationContext, body: &Body) -> Result<Option<Uuid>, RecordsError> {
        let mut search = BaseSearch::new(experiment::ancestors(body)?);
        let mut walk = Walk::from_newest(&EXPERIMENT, place.org);
        let mut seen = 0;
        while !search.is_over() && !walk.is_over() && seen < BASES_MAX {
            let is_seen = |view: &CatalogView<'_>, record: &Record| {
                EXPERIMENT.lives(view, record)
                    && decided(view, &place.who, &EXPERIMENT, record, Permission::Read)
                        .is_ok_and(|said| said == Decision::Allowed)
            };
            let batch = self.catalog.peek(|view| walk.step(view, |record| is_seen(view, record)))?;
            seen += batch.len();
            for record in batch.iter().filter(|record| EXPERIMENT.project_of(record) == Some(place.within)) {
                search.see(record.id, &draft::read(record)?);
            }
        }
        Ok(search.found())
    }
}

/// Returns the system record of this name.
fn of_system(kind: &Kind, fields: &Body) -> Option<Record> {
    let name = fields.get("name")?.as_str()?;
    (kind.builtin)().into_iter().find(|record| record.keys.first().is_some_and(|key| key.name == name))
}

pub(crate) fn in_organization(
    view: &CatalogView<'_>,
    who: &Principal,
    id: Option<OrgId>,
    name: Option<&str>,
) -> Result<Principal, RecordsError> {
    match (id, name) {
        (None, Some(name)) => within_named(view, who, name),
        (id, _) => {
            let org = id.unwrap_or(who.org);
            within(view, who, org)?.ok_or_else(|| no_organization(&name.map_or(org.to_string(), str::to_owned)))
        }
    }
}

/// Returns the context in a project. The principal need not be able to read it, because a grant may only allow the
/// creation of records.
fn in_project(
    view: &CatalogView<'_>,
    who: &Principal,
    fields: &Body,
) -> Result<(Principal, Option<Uuid>), RecordsError> {
    let id = draft::id_in(fields, "project_id");
    let id = id.ok_or_else(|| RecordsError::BadRequest("`project_id` is missing".into()))?;
    let missing = || RecordsError::NotFound(format!("no project with the id {id} is visible to this credential"));
    let project = view.get(PROJECT.record, id).filter(|record| PROJECT.lives(view, record)).ok_or_else(missing)?;
    let org = project.org.ok_or_else(missing)?;
    let there = within(view, who, org)?.ok_or_else(missing)?;
    if there.rights.reaches(&Target::in_organization(ObjectType::Project, Some(id), org)) {
        return Ok((there, Some(id)));
    }
    Err(missing())
}

fn of_object(view: &CatalogView<'_>, who: &Principal, fields: &Body) -> Result<Principal, RecordsError> {
    let on = acl::object(fields);
    let (object, id) = on.ok_or_else(|| RecordsError::BadRequest("`object_type` is missing".into()))?;
    let missing = || {
        let word = fields.get("object_type").and_then(Value::as_str).unwrap_or_else(|| object.word());
        let said = format!("no {word} with the id {id} is visible to this credential");
        RecordsError::NotFound(said)
    };
    let org = guard::org_of(view, object, id).ok_or_else(missing)?;
    let there = within(view, who, org)?.ok_or_else(missing)?;
    let target = guard::target_of(view, org, object, id).ok_or_else(missing)?;
    if there.rights.reaches(&target) { Ok(there) } else { Err(missing()) }
}

/// Returns the error if an invisible record has the name.
///
/// A principal who may create records learns that the name exists. Others get the same error as for a free name.
fn unseen(kind: &Kind, place: &CreationContext, why: RecordsError) -> RecordsError {
    match why {
        RecordsError::NotFound(_) if place.may => RecordsError::Taken(format!(
            "another {} that is not visible to this credential already has the name",
            kind.name
        )),
        RecordsError::NotFound(_) => forbidden_to_make(kind),
        other => other,
    }
}

fn forbidden_to_make(kind: &Kind) -> RecordsError {
    RecordsError::Forbidden(format!("this credential is not allowed to create a {} there", kind.name))
}

fn wanted(kind: &Kind, fields: &Body, body: &Body) -> Result<RequestedName, RecordsError> {
    let field = kind.named_by();
    let name = fields.get(field).and_then(Value::as_str).map(str::to_owned);
    let fresh = kind.naming == Naming::UniqueOrFresh;
    match name {
        Some(name) if fresh && draft::flag_of(body, "ensure_new")? => Ok(RequestedName::Fresh(name)),
        Some(name) => Ok(RequestedName::Exactly(name)),
        None if fresh => Ok(RequestedName::Fresh(experiment::generated_name(fields, edge::now_micros()))),
        None => Err(RecordsError::BadRequest(format!("`{field}` is missing"))),
    }
}
