//! Administration of organizations, users and keys by the owner of the data directory, without a key. Responses are
//! JSON.

use std::sync::Arc;

use assay_node_auth::{API_KEY_BYTES, new_api_key};
use assay_node_records::kinds::{API_KEY, GROUP, organization, user};
use assay_node_records::mechanism::{self, Body, By, NewKey, Walk, text_in, unexpected};
use assay_node_records::{Kind, RecordsError};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Record, RecordKind};
use assay_storage_model::event::format_micros;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Identity;

/// Upper bound of attempts with concurrent administrators.
const ATTEMPTS_MAX: usize = 8;

impl Identity {
    /// Returns all organizations.
    pub async fn admin_organizations(&self) -> Result<Value, RecordsError> {
        self.catalog.fence().await?;
        let mut orgs: Vec<_> = self.catalog.peek(|state| state.all(RecordKind::ORGANIZATION).cloned().collect());
        orgs.sort_by_key(|org| (org.created, org.id));
        orgs.iter().map(|org| described(org, "name")).collect::<Result<_, _>>().map(Value::Array)
    }

    /// Creates an organization with its owner, who may exist already, and a key for the owner.
    ///
    /// If two administrators concurrently create the same organization, the later one gets an error. Its leftover
    /// membership and key are useless.
    pub async fn admin_create_organization(&self, name: &str, owner_email: &str) -> Result<Value, RecordsError> {
        organization::check_name(name)?;
        user::check_email(owner_email)?;
        let taken = || RecordsError::Taken(format!("the organization `{name}` already exists"));
        self.catalog.fence().await?;
        if self.catalog.peek(|state| state.find(&organization::name_key(name)).is_some()) {
            return Err(taken());
        }
        let owner = self.user_of(By::Operator, owner_email).await?;
        let (org, now) = (OrgId(mechanism::new_id()), mechanism::now_micros());
        self.check_may_join(org, owner)?;
        let secret = new_api_key(&mechanism::random::<API_KEY_BYTES>()?);
        let mut puts = vec![
            organization::put(org.0, name, now),
            organization::put_member(mechanism::new_id(), org, owner, now),
            self.records.key_of(&NewKey { org, user: owner, name: "owner", every_org: false }, &secret, now)?,
        ];
        puts.extend(organization::put_groups(org, &[owner], now));
        let outcomes = self.catalog.propose(By::Operator, puts.into_iter().map(CatalogCommand::Put).collect()).await?;
        if !outcomes.iter().all(|outcome| matches!(outcome, CatalogOutcome::Put { made: true, .. })) {
            return Err(taken());
        }
        let owner = json!({ "id": owner.to_string(), "email": owner_email });
        Ok(json!({ "id": org.to_string(), "name": name, "owner": owner, "api_key": secret.expose() }))
    }

    /// Returns the users of an organization.
    pub async fn admin_users(&self, organization: &str) -> Result<Value, RecordsError> {
        let org = self.records.organization_named(organization).await?;
        let mut users: Vec<Arc<Record>> = self.catalog.peek(|state| {
            let users = state.all(RecordKind::USER);
            users.filter(|user| state.find(&organization::member_key(org, user.id)).is_some()).cloned().collect()
        });
        users.sort_by_key(|user| (user.created, user.id));
        users.iter().map(|user| described(user, "email")).collect::<Result<_, _>>().map(Value::Array)
    }

    /// Adds a user to the owners of an organization, and creates the user if necessary.
    pub async fn admin_create_user(&self, organization: &str, email: &str) -> Result<Value, RecordsError> {
        user::check_email(email)?;
        let org = self.records.organization_named(organization).await?;
        let id = self.user_of(By::Operator, email).await?;
        self.check_may_join(org, id)?;
        let put = organization::put_member(mechanism::new_id(), org, id, mechanism::now_micros());
        match self.catalog.propose_one(By::Operator, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } | CatalogOutcome::Taken { .. } => {}
            other => return Err(unexpected(&other)),
        }
        self.add_owner(org, id).await?;
        Ok(json!({ "id": id.to_string(), "email": email, "organization": organization }))
    }

    /// Adds a user to the group of owners, which is created again if it was deleted.
    pub(crate) async fn add_owner(&self, org: OrgId, user: Uuid) -> Result<(), RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            self.catalog.fence().await?;
            let commands =
                match self.catalog.peek(|view| view.get(RecordKind::GROUP, organization::owners_id(org)).cloned()) {
                    Some(group) => {
                        let sent = Body::from_iter([("add_member_users".to_owned(), json!([user.to_string()]))]);
                        match mechanism::patched(&GROUP, &group, sent)? {
                            Some(put) => vec![put],
                            None => return Ok(()),
                        }
                    }
                    None => organization::put_groups(org, &[user], mechanism::now_micros()),
                };
            // The next iteration checks whether the change succeeded.
            self.catalog.propose(By::Operator, commands.into_iter().map(CatalogCommand::Put).collect()).await?;
        }
        Err(busy())
    }

    pub async fn admin_keys(&self, organization: &str) -> Result<Value, RecordsError> {
        let org = self.records.organization_named(organization).await?;
        self.admin_listed(&API_KEY, org)
    }

    pub(crate) fn admin_listed(&self, kind: &Kind, org: OrgId) -> Result<Value, RecordsError> {
        let mut walk = Walk::from_newest(kind, org);
        let mut found = Vec::new();
        while !walk.is_over() {
            let batch = self.catalog.peek(|state| walk.step(state, |_| true))?;
            for record in batch {
                found.push(self.records.answer(kind, &record)?);
            }
        }
        Ok(Value::Array(found))
    }

    /// Creates a key for a user. Only this response contains the key itself.
    pub async fn admin_create_key(&self, organization: &str, email: &str, name: &str) -> Result<Value, RecordsError> {
        mechanism::check_created(&API_KEY, Body::from_iter([("name".to_owned(), Value::from(name))]))?;
        let org = self.records.organization_named(organization).await?;
        let user = self.catalog.peek(|state| {
            let user = state.find(&user::email_key(email)).map(|user| user.id);
            user.filter(|user| state.find(&organization::member_key(org, *user)).is_some())
        });
        let missing = || RecordsError::NotFound(format!("no user `{email}` is in the organization `{organization}`"));
        let user = user.ok_or_else(missing)?;
        self.records.check_may_have_keys(user)?;
        let secret = new_api_key(&mechanism::random::<API_KEY_BYTES>()?);
        let put =
            self.records.key_of(&NewKey { org, user, name, every_org: false }, &secret, mechanism::now_micros())?;
        let id = put.id;
        match self.catalog.propose_one(By::Operator, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { made: true, .. } => {
                Ok(json!({ "id": id.to_string(), "name": name, "user": email, "api_key": secret.expose() }))
            }
            other => Err(unexpected(&other)),
        }
    }

    pub async fn admin_delete_key(&self, id: Uuid) -> Result<Value, RecordsError> {
        self.admin_delete(&API_KEY, "API key", id).await
    }

    pub(crate) async fn admin_delete(&self, kind: &'static Kind, what: &str, id: Uuid) -> Result<Value, RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            self.catalog.fence().await?;
            let record = self.catalog.peek(|state| state.get(kind.record, id).cloned());
            let record =
                record.ok_or_else(|| RecordsError::NotFound(format!("there is no {what} with the id {id}")))?;
            if let Some(object) = self.records.delete_seen(By::Operator, kind, &record).await? {
                return Ok(object);
            }
        }
        Err(busy())
    }

    /// Returns the user with this address, and creates the user if there is none.
    pub(crate) async fn user_of(&self, by: By<'_>, email: &str) -> Result<Uuid, RecordsError> {
        if let Some(id) = self.catalog.peek(|state| state.find(&user::email_key(email)).map(|user| user.id)) {
            return Ok(id);
        }
        let id = mechanism::new_id();
        match self.catalog.propose_one(by, CatalogCommand::Put(user::put(id, email, mechanism::now_micros()))).await? {
            CatalogOutcome::Put { .. } => Ok(id),
            CatalogOutcome::Taken { id, .. } => Ok(id),
            other => Err(unexpected(&other)),
        }
    }
}

fn described(record: &Record, field: &str) -> Result<Value, RecordsError> {
    let said = text_in(&mechanism::read_body(record)?, field);
    Ok(json!({ "id": record.id.to_string(), field: said, "created": format_micros(record.created) }))
}

fn busy() -> RecordsError {
    RecordsError::Busy("concurrent changes prevented this change: try again".into())
}
