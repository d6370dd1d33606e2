//! Create or get: a name that is there gives the record that has it, unmodified.

use assay_node_auth::{API_KEY_BYTES, Action, Principal, new_api_key, preview};
use assay_storage_catalog::State;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, UniqueKey};
use assay_storage_model::{GroupId, OrgId};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::commit::unexpected;
use crate::draft::{self, Body, Frame};
use crate::error::RecordsError;
use crate::kind::{Home, Kind, Making, Naming};
use crate::kinds::api_key::fingerprint_key;
use crate::kinds::experiment::{self, BaseSearch};
use crate::kinds::{EXPERIMENT, PROJECT};
use crate::list::Walk;
use crate::read::{allowed, visible};
use crate::standing::{no_organization, within_named};
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
        body: Map<String, Value>,
    ) -> Result<Created, RecordsError> {
        self.fresh().await?;
        let fields = draft::created(kind, body.clone())?;
        let place = self.place(who, kind, &fields, &body).await?;
        if kind.naming == Naming::Secret {
            return self.create_key(kind, &place, fields).await;
        }
        let wanted = wanted(kind, &fields, &body)?;
        if let Wanted::Exactly(name) = &wanted
            && let Some(found) = self.existing(kind, &place, &kind.name_key(place.within, name)).await?
        {
            return Ok(found);
        }
        let fields =
            if kind.record == EXPERIMENT.record { self.with_base(&place, fields, &body).await? } else { fields };
        self.create_named(kind, &place, wanted, fields).await
    }

    async fn place(
        &self,
        who: &Principal,
        kind: &'static Kind,
        fields: &Body,
        body: &Body,
    ) -> Result<Place, RecordsError> {
        if kind.home == Home::Project {
            let project = draft::id_in(fields, "project_id");
            let project = project.ok_or_else(|| RecordsError::BadRequest("`project_id` is missing".into()))?;
            let seen = self.look(|state| visible(state, who, &PROJECT, project, Action::Create)).await?;
            return Ok(Place { org: seen.who.org, who: seen.who, within: project });
        }
        let (name, id) = (draft::text_of(body, "org_name")?, draft::uuid_of(body, "org_id")?);
        self.look(|state| {
            let org = match (id, name) {
                (Some(id), _) => OrgId(id),
                (None, Some(name)) => within_named(state, who, name)?.org,
                (None, None) => who.org,
            };
            let there = allowed(state, who, org, Action::Create)?;
            let who = there.ok_or_else(|| no_organization(&name.map_or(org.to_string(), str::to_owned)))?;
            Ok(Place { who, org, within: org.0 })
        })
        .await
    }

    /// The record that has the name. What this node's copy of the catalog says is fenced first, since it may be gone.
    async fn existing(&self, kind: &Kind, place: &Place, key: &UniqueKey) -> Result<Option<Created>, RecordsError> {
        let find = |state: &State| match state.find(key) {
            Some(found) => visible(state, &place.who, kind, found.id, Action::Read).map(|seen| Some(seen.record)),
            None => Ok(None),
        };
        if self.peek(find)?.is_none() {
            return Ok(None);
        }
        self.cluster.fence(GroupId::CATALOG).await?;
        let Some(record) = self.peek(find)? else {
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
            if matches!(wanted, Wanted::Fresh(_)) && self.peek(|state| state.find(&key).is_some()) {
                suffix = true;
                continue;
            }
            let mut body = fields.clone();
            body.insert("name".into(), name.into());
            match self.put_new(kind, place, id, key.clone(), body).await? {
                Some(object) => return Ok(Created { object, found_existing: false, secret: None }),
                None if matches!(wanted, Wanted::Fresh(_)) => suffix = true,
                None => {
                    self.cluster.fence(GroupId::CATALOG).await?;
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
        (kind.complete)(&Making { id, user: place.who.user }, &mut body);
        (kind.derive)(&mut body);
        let at = edge::now_micros();
        let put = PutRecord {
            kind: kind.record,
            id,
            org: Some(place.org),
            expect: Expect::Absent,
            keys: vec![key],
            body: Value::Object(body.clone()).to_string().into_bytes(),
            at,
        };
        match self.propose_one(CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => {
                let frame = Frame { id, org: Some(place.org), created: at, deleted: None };
                Ok(Some(self.joined(kind, draft::shown(kind, &frame, body))))
            }
            CatalogOutcome::Taken { .. } | CatalogOutcome::Stale { .. } => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    async fn create_key(&self, kind: &Kind, place: &Place, mut fields: Body) -> Result<Created, RecordsError> {
        let secret = new_api_key(&edge::random::<API_KEY_BYTES>()?);
        fields.insert("preview_name".into(), preview(secret.expose()).into());
        let fingerprint = self.peek(|state| self.pepper(state).map(|pepper| pepper.fingerprint(secret.expose())))?;
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
        let found = self.look(|state| state.find(&key).map(|record| record.id).ok_or_else(missing)).await;
        // Clients look for these two words, drop the field and ask again.
        let said = || RecordsError::BadRequest(format!("the base experiment `{name}` is not in this project"));
        found.map_err(|error| if error.may_be_stale() { said() } else { error })
    }

    fn base_by_commit(&self, place: &Place, body: &Body) -> Result<Option<Uuid>, RecordsError> {
        let mut search = BaseSearch::new(experiment::ancestors(body)?);
        let mut walk = Walk::from_newest(&EXPERIMENT, place.org);
        let mut seen = 0;
        while !search.is_over() && !walk.is_over() && seen < BASES_MAX {
            let batch = self.peek(|state| walk.step(state, |record| EXPERIMENT.lives(state, record)))?;
            seen += batch.len();
            for record in batch.iter().filter(|record| EXPERIMENT.project_of(record) == Some(place.within)) {
                search.see(record.id, &draft::read(record)?);
            }
        }
        Ok(search.found())
    }
}

fn wanted(kind: &Kind, fields: &Body, body: &Body) -> Result<Wanted, RecordsError> {
    let name = fields.get("name").and_then(Value::as_str).map(str::to_owned);
    let fresh = kind.naming == Naming::UniqueOrFresh;
    match name {
        Some(name) if fresh && draft::flag_of(body, "ensure_new")? => Ok(Wanted::Fresh(name)),
        Some(name) => Ok(Wanted::Exactly(name)),
        None if fresh => Ok(Wanted::Fresh(experiment::generated_name(fields, edge::now_micros()))),
        None => Err(RecordsError::BadRequest("`name` is missing".into())),
    }
}
