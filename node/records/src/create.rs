//! Create or get: a name that is there gives the record that has it, unmodified.

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

/// A name that is taken and freed again while we look, or taken by another request each time.
const ATTEMPTS_MAX: usize = 8;
/// Experiments of a project whose commits are compared, newest first.
const BASES_MAX: usize = 10_000;

/// Where a new record goes, and who makes it.
#[derive(Clone, Debug)]
struct Place {
    who: Principal,
    org: OrgId,
    /// The organization or the project that its name is unique in.
    within: Uuid,
    /// Whether they may make it.
    may: bool,
    /// What it is to keep encrypted.
    secret: Option<Secret>,
}

/// What it is to be called.
#[derive(Clone, Debug)]
enum Wanted {
    /// This; the record that has it already is the answer.
    Exactly(String),
    /// This or, where it is taken, something that begins so.
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
        let place = Place { secret, ..self.place(who, kind, &fields, &body).await? };
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
        if let Wanted::Exactly(name) = &wanted
            && let Some(found) = self.existing(kind, &place, &kind.name_key(place.within, name)).await?
        {
            return Ok(found);
        }
        // Who may not make one is not told either which experiments there are to compare it with.
        if !place.may {
            return Err(forbidden_to_make(kind));
        }
        let fields =
            if kind.record == EXPERIMENT.record { self.with_base(&place, fields, &body).await? } else { fields };
        self.create_named(kind, &place, wanted, fields).await
    }

    /// Takes the place of what has the name, all but what the service said of it; made where nothing has it.
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
        let place = Place { secret, ..self.place(who, kind, &fields, &body).await? };
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
        Err(RecordsError::Busy(format!("others keep changing this {}: try again", kind.name)))
    }

    /// Where it would go. Whoever may not make it there may still be given the one that is there.
    async fn place(
        &self,
        who: &Principal,
        kind: &'static Kind,
        fields: &Body,
        body: &Body,
    ) -> Result<Place, RecordsError> {
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
                Ok(Place { may, who, org, within: project.unwrap_or(org.0), secret: None })
            })
            .await
    }

    /// The record that has the name. What this node's copy of the catalog says is fenced first, since it may be gone.
    async fn existing(&self, kind: &Kind, place: &Place, key: &UniqueKey) -> Result<Option<Created>, RecordsError> {
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
        place: &Place,
        wanted: Wanted,
        fields: Body,
    ) -> Result<Created, RecordsError> {
        let mut suffix = false;
        for _ in 0..ATTEMPTS_MAX {
            let id = edge::new_id();
            let name = match &wanted {
                Wanted::Fresh(base) if suffix => experiment::suffixed(base, id),
                Wanted::Exactly(name) | Wanted::Fresh(name) => name.clone(),
            };
            let key = kind.name_key(place.within, &name);
            if matches!(wanted, Wanted::Fresh(_)) && self.catalog.peek(|state| state.find(&key).is_some()) {
                suffix = true;
                continue;
            }
            let mut body = fields.clone();
            body.insert(kind.named_by().into(), name.into());
            match self.put_new(kind, place, id, key.clone(), body).await? {
                Some(object) => return Ok(Created { object, found_existing: false, secret: None }),
                None if matches!(wanted, Wanted::Fresh(_)) => suffix = true,
                None => {
                    self.catalog.fence().await?;
                    if let Some(found) = self.existing(kind, place, &key).await? {
                        return Ok(found);
                    }
                }
            }
        }
        Err(RecordsError::Busy(format!("others keep taking the name of this {}: try again", kind.name)))
    }

    /// None where the unique key is taken.
    async fn put_new(
        &self,
        kind: &Kind,
        place: &Place,
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

    /// What is there already is no answer.
    async fn create_alone(
        &self,
        kind: &Kind,
        place: &Place,
        field: &str,
        fields: Body,
    ) -> Result<Created, RecordsError> {
        let missing = || RecordsError::BadRequest(format!("`{field}` is missing"));
        let key = kind.key_of(place.within, &fields).ok_or_else(missing)?;
        let taken = RecordsError::BadRequest(format!("`{field}`: another {} has `{}`", kind.name, key.name));
        let made = self.put_new(kind, place, edge::new_id(), key, fields).await?;
        let object = made.ok_or(taken)?;
        Ok(Created { object, found_existing: false, secret: None })
    }

    /// What several of its fields make unique.
    async fn create_whole(&self, kind: &Kind, place: &Place, fields: Body) -> Result<Created, RecordsError> {
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
        Err(RecordsError::Busy(format!("others keep making and deleting this {}: try again", kind.name)))
    }

    async fn create_key(&self, kind: &Kind, place: &Place, mut fields: Body) -> Result<Created, RecordsError> {
        self.check_may_have_keys(place.who.user)?;
        check_is_self(&place.who)?;
        self.check_key_count(place.org, place.who.user, 1)?;
        let secret = new_api_key(&edge::random::<API_KEY_BYTES>()?);
        fields.insert("preview_name".into(), preview(secret.expose()).into());
        let fingerprint =
            self.catalog.peek(|state| self.catalog.pepper(state).map(|pepper| pepper.fingerprint(secret.expose())))?;
        let made = self.put_new(kind, place, edge::new_id(), fingerprint_key(&fingerprint), fields).await?;
        let object = made.ok_or_else(|| RecordsError::Internal("a new API key is one that is there already".into()))?;
        Ok(Created { object, found_existing: false, secret: Some(secret) })
    }

    /// The experiment to compare with: given by id, by name, or the newest on the nearest ancestor.
    async fn with_base(&self, place: &Place, mut fields: Body, body: &Body) -> Result<Body, RecordsError> {
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

    async fn base_by_name(&self, place: &Place, name: &str) -> Result<Uuid, RecordsError> {
        let key = EXPERIMENT.name_key(place.within, name);
        let missing = || RecordsError::NotFound(String::new());
        let look = |view: &CatalogView<'_>| {
            let found = view.find(&key).ok_or_else(missing)?;
            visible(view, &place.who, &EXPERIMENT, found.id, Permission::Read).map(|seen| seen.record.id)
        };
        let found = self.catalog.look(look).await;
        // Clients look for these two words, drop the field and ask again.
        let said = || RecordsError::BadRequest(format!("the base experiment `{name}` is not in this project"));
        found.map_err(|error| if error.may_be_stale() { said() } else { error })
    }

    fn base_by_commit(&self, place: &Place, body: &Body) -> Result<Option<Uuid>, RecordsError> {
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

/// What belongs to the system and has the name.
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

/// The project need not be one they may read: what is granted may be to make something in it.
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

/// What is said where a record that the caller may not see has the name. Who may make one learns that it is taken, all
/// others what they would be told if it were free; and nobody what has it.
fn unseen(kind: &Kind, place: &Place, why: RecordsError) -> RecordsError {
    match why {
        RecordsError::NotFound(_) if place.may => {
            RecordsError::Taken(format!("another {} has the name, and this credential may not see it", kind.name))
        }
        RecordsError::NotFound(_) => forbidden_to_make(kind),
        other => other,
    }
}

fn forbidden_to_make(kind: &Kind) -> RecordsError {
    RecordsError::Forbidden(format!("this credential is not granted to make a {} there", kind.name))
}

fn wanted(kind: &Kind, fields: &Body, body: &Body) -> Result<Wanted, RecordsError> {
    let field = kind.named_by();
    let name = fields.get(field).and_then(Value::as_str).map(str::to_owned);
    let fresh = kind.naming == Naming::UniqueOrFresh;
    match name {
        Some(name) if fresh && draft::flag_of(body, "ensure_new")? => Ok(Wanted::Fresh(name)),
        Some(name) => Ok(Wanted::Exactly(name)),
        None if fresh => Ok(Wanted::Fresh(experiment::generated_name(fields, edge::now_micros()))),
        None => Err(RecordsError::BadRequest(format!("`{field}` is missing"))),
    }
}
