//! Members of an organization, and requests that add and remove them.
//!
//! A membership is one record. A user without a membership has no rights in an organization, whatever the grants say.
//! Therefore a removal deletes the membership first, and then the keys, tokens, logins, group entries and grants. A
//! returning user has none of these. People who belong to another organization are invited, and join when they accept
//! (`invitations`).

use std::sync::Arc;

use assay_node_auth::{Decision, Giving, ObjectType, Permission, Principal, Target, decide};
use assay_node_records::kinds::{ACL, API_KEY, GROUP, invitation, organization, role, user};
use assay_node_records::mechanism::{
    self, Body, By, CLOSED_ORGS, CatalogView, EVERY_ORG, NewToken, Walk, check_maker, check_name, one_page, text_in,
    unexpected, visible, within, within_named,
};
use assay_node_records::{Kind, ListRequest, RecordsError};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Record, RecordKind};
use assay_storage_model::event::format_micros;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Identity;
use crate::invitations::Invitations;
use crate::service_accounts::ServiceAccount;

/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;
/// Upper bound of the users that one request can invite and remove.
pub const MEMBERS_AT_ONCE_MAX: usize = 1000;

/// Decoded request that adds and removes members.
#[derive(Debug, Default)]
struct MembershipChange {
    ids: Vec<Uuid>,
    emails: Vec<String>,
    accounts: Vec<WantedAccount>,
    groups: Vec<Uuid>,
    group_names: Vec<String>,
    removed_ids: Vec<Uuid>,
    removed_emails: Vec<String>,
    sends_mail: bool,
}

/// Requested service account.
#[derive(Debug)]
struct WantedAccount {
    name: String,
    /// Name of its first token; `None` for no token.
    token_name: Option<String>,
}

/// Added member, as the response shows it.
#[derive(Debug)]
struct AddedMember {
    /// Id of the user, or of a pending invitation. Before acceptance the organization learns nothing about the user.
    id: Uuid,
    email: String,
    came: Joining,
}

/// Outcome of adding a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    Member,
    /// Invited, subject to acceptance.
    Invited,
    /// A new service account.
    Account,
}

/// Members and invitations that a request removes.
#[derive(Debug, Default)]
struct Removal {
    members: Vec<Uuid>,
    /// Pending invitations.
    invitations: Vec<Uuid>,
}

impl Identity {
    /// Returns the users of an organization. A principal who cannot read its members gets only themselves.
    pub async fn users(&self, who: &Principal, request: &ListRequest) -> Result<Vec<Value>, RecordsError> {
        self.catalog.fresh().await?;
        let lister = match self.records.lister(who, request.organization()).await {
            Err(RecordsError::NotFound(_)) => return Ok(Vec::new()),
            lister => lister?,
        };
        let found = self.catalog.peek(|view| {
            let all = may(&lister, Permission::Read);
            let mut found = Vec::new();
            for id in organization::members(view, lister.org)?.into_iter().filter(|id| all || *id == lister.user) {
                found.extend(view.get(RecordKind::USER, id).cloned());
            }
            let keep = |record: &Arc<Record>| keeps(request, record);
            found.retain(keep);
            one_page(view, RecordKind::USER, found, request)
        })?;
        found.iter().map(|record| shown(record)).collect()
    }

    /// Returns one user of the organization of the caller.
    pub async fn user(&self, who: &Principal, id: Uuid) -> Result<Value, RecordsError> {
        self.catalog.fresh().await?;
        let missing = || RecordsError::NotFound(format!("no user with the id {id} is visible to this credential"));
        let record = self
            .catalog
            .look(|view| {
                let there = within(view, who, who.org)?.ok_or_else(missing)?;
                let is_member = view.find(&organization::member_key(there.org, id)).is_some();
                let seen = is_member && (id == there.user || may(&there, Permission::Read));
                view.get(RecordKind::USER, id).filter(|_| seen).cloned().ok_or_else(missing)
            })
            .await?;
        shown(&record)
    }

    /// Invites and removes members. Repeated changes are no errors. After a refusal the earlier changes remain.
    pub async fn change_members(&self, who: &Principal, body: Map<String, Value>) -> Result<Value, RecordsError> {
        let (name, id) =
            (mechanism::text_of(&body, "org_name")?.map(str::to_owned), mechanism::uuid_of(&body, "org_id")?);
        let change = MembershipChange::read(body)?;
        self.catalog.fresh().await?;
        let there = self
            .catalog
            .look(|view| match (id, &name) {
                (None, Some(name)) => within_named(view, who, name),
                (id, _) => {
                    let org = id.map_or(who.org, OrgId);
                    within(view, who, org)?.ok_or_else(|| mechanism::no_organization(&org.to_string()))
                }
            })
            .await?;
        self.check_change(who, &there, &change).await?;
        let groups = self.groups_named(&there, &change).await?;
        let added = self.add(&there, &change, &groups).await?;
        let came = added.iter().filter(|added| added.came != Joining::Invited);
        let users: Vec<Value> = came.map(|added| added.id.to_string().into()).collect();
        for group in groups.into_iter().filter(|_| !users.is_empty()) {
            let sent = Body::from_iter([("add_member_users".to_owned(), Value::Array(users.clone()))]);
            self.records.patch(&there, &GROUP, group, sent).await?;
        }
        let leaving = self.leaving(&there, &change)?;
        for invitation in leaving.invitations {
            self.withdraw(&there, invitation).await?;
        }
        for user in leaving.members {
            self.remove_member(&there, user).await?;
        }
        let mail = (change.sends_mail && !change.emails.is_empty())
            .then_some("this server does not send mail: notify the users yourself, and give them a key or a login");
        Ok(json!({
            "status": "success",
            "org_id": there.org.to_string(),
            "send_email_error": mail,
            "added_users": self.told(&there, &change, &added).await?,
        }))
    }

    /// Checks the permissions for all changes before the first one.
    async fn check_change(
        &self,
        who: &Principal,
        there: &Principal,
        change: &MembershipChange,
    ) -> Result<(), RecordsError> {
        let missing = || mechanism::no_organization(&there.org_name);
        self.catalog
            .look(|view| {
                let there = within(view, who, there.org)?.ok_or_else(missing)?;
                for (permission, wanted) in [(Permission::Create, change.comes()), (Permission::Delete, change.goes())]
                {
                    if wanted && !may(&there, permission) {
                        let what = permission.word();
                        let said =
                            format!("this credential is not granted `{what}` on the members of the organization");
                        return Err(RecordsError::Forbidden(said));
                    }
                }
                match change.accounts.iter().any(|account| account.token_name.is_some()) {
                    true => check_maker(&there),
                    false => Ok(()),
                }
            })
            .await
    }

    async fn add(
        &self,
        there: &Principal,
        change: &MembershipChange,
        groups: &[Uuid],
    ) -> Result<Vec<AddedMember>, RecordsError> {
        let mut added = Vec::new();
        for id in &change.ids {
            let email = self.catalog.peek(|view| self.known_email(view, there.org, *id))?;
            self.add_member(there, *id).await?;
            added.push(AddedMember { id: *id, email, came: Joining::Member });
        }
        for email in &change.emails {
            let user = self.user_of(By::Caller(there), email).await?;
            let (id, came) = match self.catalog.peek(|view| self.is_asked(view, there.org, user)) {
                true => (self.invite(there, user, email, groups).await?, Joining::Invited),
                false => {
                    self.add_member(there, user).await?;
                    (user, Joining::Member)
                }
            };
            added.push(AddedMember { id, email: email.clone(), came });
        }
        for account in &change.accounts {
            let ServiceAccount { id, email } = self.add_account(By::Caller(there), there.org, &account.name).await?;
            added.push(AddedMember { id, email, came: Joining::Account });
        }
        Ok(added)
    }

    /// Returns whether a user has to accept an invitation.
    fn is_asked(&self, view: &CatalogView<'_>, org: OrgId, user: Uuid) -> bool {
        let is_member = view.find(&organization::member_key(org, user)).is_some();
        let is_account = view.get(RecordKind::USER, user).is_some_and(|user| user::is_service_account(user));
        self.invitations == Invitations::Accept
            && !is_member
            && !is_account
            && organization::is_member_elsewhere(view, org, user)
    }

    /// Returns the address of a user by id. A user outside of the organization is treated like a missing id.
    fn known_email(&self, view: &CatalogView<'_>, org: OrgId, id: Uuid) -> Result<String, RecordsError> {
        let is_member = view.find(&organization::member_key(org, id)).is_some();
        let is_known =
            |user: &&Arc<Record>| is_member || user.org == Some(org) || self.invitations == Invitations::Join;
        let record = view.get(RecordKind::USER, id).filter(is_known);
        let record = record.ok_or_else(|| {
            RecordsError::BadRequest(format!(
                "`invite_users.ids`: no user {id} is in the organization; invite other users by their address"
            ))
        })?;
        Ok(text_in(&mechanism::read_body(record)?, "email"))
    }

    /// Returns the response. Tokens of accounts are created last, because a token that is not returned is useless.
    async fn told(
        &self,
        there: &Principal,
        change: &MembershipChange,
        added: &[AddedMember],
    ) -> Result<Vec<Value>, RecordsError> {
        let accounts =
            added.iter().filter(|added| added.came == Joining::Account).map(|added| added.id).zip(&change.accounts);
        let wanted: Vec<NewToken<'_>> = accounts
            .filter_map(|(account, wanted)| {
                Some(NewToken { org: there.org, account, name: wanted.token_name.as_deref()? })
            })
            .collect();
        let made = self.records.put_tokens(By::Caller(there), &wanted).await?;
        let of_account =
            |account: &AddedMember| wanted.iter().zip(&made).find(|(token, _)| token.account == account.id);
        let told = added.iter().map(|added| {
            let mut told = json!({ "id": added.id.to_string(), "email": added.email });
            if added.came == Joining::Account {
                let token = of_account(added);
                told["api_key"] = token.map(|(_, (_, secret))| secret.expose()).into();
                told["token_name"] = token.map(|(token, _)| token.name).into();
            }
            told
        });
        Ok(told.collect())
    }

    async fn groups_named(&self, who: &Principal, change: &MembershipChange) -> Result<Vec<Uuid>, RecordsError> {
        self.catalog
            .look(|view| {
                let mut groups = change.groups.clone();
                for name in &change.group_names {
                    let found = view.find(&GROUP.name_key(who.org.0, name)).map(|group| group.id);
                    let missing = || RecordsError::BadRequest(format!("no group `{name}` is in the organization"));
                    groups.push(found.ok_or_else(missing)?);
                }
                for group in &groups {
                    visible(view, who, &GROUP, *group, Permission::Update)?;
                    // A caller may also see groups of other organizations, whose rights are not checked here.
                    if view.get(RecordKind::GROUP, *group).is_none_or(|record| record.org != Some(who.org)) {
                        let said = format!("`group_ids`: no group {group} is in the organization");
                        return Err(RecordsError::BadRequest(said));
                    }
                    if change.comes() {
                        view.check_giving(who, "invite_users", &Giving::Member { group: *group })?;
                    }
                }
                Ok(groups)
            })
            .await
    }

    async fn add_member(&self, who: &Principal, user: Uuid) -> Result<(), RecordsError> {
        self.check_may_join(who.org, user)?;
        if self.catalog.peek(|view| view.find(&organization::member_key(who.org, user)).is_some()) {
            return Ok(());
        }
        self.records.check_record_count(RecordKind::ORG_MEMBER, who.org)?;
        let put = organization::put_member(mechanism::new_id(), who.org, user, mechanism::now_micros());
        match self.catalog.propose_one(By::Caller(who), CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } | CatalogOutcome::Taken { .. } => {}
            other => return Err(unexpected(&other)),
        }
        // An earlier invitation may remain if the person has left all other organizations since.
        match self.catalog.peek(|view| view.find(&invitation::key(who.org, user)).map(|pending| pending.id)) {
            Some(pending) => self.catalog.delete_record(By::System, RecordKind::ORG_MEMBER, pending).await,
            None => Ok(()),
        }
    }

    /// Returns the members to remove. At least one owner must remain.
    fn leaving(&self, who: &Principal, change: &MembershipChange) -> Result<Removal, RecordsError> {
        self.catalog.peek(|view| {
            let mut leaving = change.removed_ids.clone();
            let is_pending = |id: &Uuid| {
                let record = view.get(RecordKind::ORG_MEMBER, *id);
                record.is_some_and(|record| record.org == Some(who.org) && invitation::is_one(record))
            };
            let mut invitations: Vec<Uuid> = leaving.iter().copied().filter(is_pending).collect();
            for email in &change.removed_emails {
                let Some(user) = view.find(&user::email_key(email)).map(|user| user.id) else { continue };
                leaving.push(user);
                invitations.extend(view.find(&invitation::key(who.org, user)).map(|pending| pending.id));
            }
            leaving.retain(|user| view.find(&organization::member_key(who.org, *user)).is_some());
            let organization = (ObjectType::Organization, who.org.0);
            let mut owners = Vec::new();
            for member in organization::members(view, who.org)? {
                if view.rights(who.org, member)?.has_role(organization, role::OWNER) {
                    owners.push(member);
                }
            }
            if !leaving.is_empty() && owners.iter().all(|owner| leaving.contains(owner)) {
                let said = "the organization would have no owner left: give the role Owner to another user first";
                return Err(RecordsError::BadRequest(said.into()));
            }
            Ok(Removal { members: leaving, invitations })
        })
    }

    async fn remove_member(&self, who: &Principal, user: Uuid) -> Result<(), RecordsError> {
        self.take_credentials(who, user).await?;
        for group in self.naming(who.org, &GROUP, |body| {
            assay_node_records::kinds::group::ids(body, "member_users").any(|id| id == user)
        })? {
            self.change_group(By::Caller(who), group, "remove_member_users", user).await?;
        }
        for acl in self.naming(who.org, &ACL, |body| mechanism::id_in(body, "user_id") == Some(user))? {
            self.catalog.delete_record(By::Caller(who), RecordKind::ACL, acl).await?;
        }
        // The membership goes last, so that a removal that was interrupted can be repeated.
        let key = organization::member_key(who.org, user);
        if let Some(member) = self.catalog.peek(|view| view.find(&key).map(|member| member.id)) {
            self.catalog.delete_record(By::Caller(who), RecordKind::ORG_MEMBER, member).await?;
        }
        // The member may have made credentials in the meantime.
        self.take_credentials(who, user).await
    }

    async fn take_credentials(&self, who: &Principal, user: Uuid) -> Result<(), RecordsError> {
        self.take_tokens(By::Caller(who), who.org, user).await?;
        self.take_keys(who, user).await?;
        self.close_logins(By::Caller(who), who.org, user).await
    }

    /// Returns the records of a kind with a matching body.
    fn naming(&self, org: OrgId, kind: &Kind, says: impl Fn(&Body) -> bool) -> Result<Vec<Uuid>, RecordsError> {
        let (mut walk, mut found) = (Walk::from_newest(kind, org), Vec::new());
        while !walk.is_over() {
            for record in self.catalog.peek(|view| walk.step(view, |_| true))? {
                if says(&mechanism::read_body(&record)?) {
                    found.push(record.id);
                }
            }
        }
        Ok(found)
    }

    /// Deletes the API keys of a leaving user. A key for all organizations remains valid for the others.
    async fn take_keys(&self, who: &Principal, user: Uuid) -> Result<(), RecordsError> {
        for key in self.naming(who.org, &API_KEY, |body| mechanism::id_in(body, "user_id") == Some(user))? {
            self.catalog.delete_record(By::Caller(who), RecordKind::API_KEY, key).await?;
        }
        let is_theirs = |key: &&Arc<Record>| {
            mechanism::mentions(key, EVERY_ORG)
                && mechanism::read_body(key).is_ok_and(|body| mechanism::id_in(&body, "user_id") == Some(user))
        };
        let every: Vec<_> =
            self.catalog.peek(|view| view.all(RecordKind::API_KEY).filter(is_theirs).cloned().collect());
        for key in every {
            self.close_key(key.id, who.org).await?;
        }
        Ok(())
    }

    async fn close_key(&self, key: Uuid, org: OrgId) -> Result<(), RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(record) = self.catalog.peek(|view| view.get(RecordKind::API_KEY, key).cloned()) else {
                return Ok(());
            };
            let mut body = mechanism::read_body(&record)?;
            let mut closed: Vec<Uuid> = assay_node_records::kinds::group::ids(&body, CLOSED_ORGS).collect();
            if closed.contains(&org.0) {
                return Ok(());
            }
            closed.push(org.0);
            body.insert(CLOSED_ORGS.into(), json!(closed));
            let put = mechanism::replaced(&API_KEY, &record, &body);
            match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return Ok(()),
                CatalogOutcome::Stale { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("concurrent changes to an API key prevented the request: try again".into()))
    }

    /// Adds a user to a group or removes it, without a permission check. A missing group is no error.
    pub(crate) async fn change_group(
        &self,
        by: By<'_>,
        group: Uuid,
        change: &str,
        user: Uuid,
    ) -> Result<(), RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(record) = self.catalog.peek(|view| view.get(RecordKind::GROUP, group).cloned()) else {
                return Ok(());
            };
            let sent = Body::from_iter([(change.to_owned(), json!([user.to_string()]))]);
            let Some(put) = mechanism::patched(&GROUP, &record, sent)? else { return Ok(()) };
            match self.catalog.propose_one(by, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return Ok(()),
                CatalogOutcome::Stale { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("concurrent changes to a group prevented the request: try again".into()))
    }
}

impl MembershipChange {
    fn read(mut body: Map<String, Value>) -> Result<MembershipChange, RecordsError> {
        let mut part = |name: &str| match body.remove(name) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(fields)) => Ok(fields),
            Some(_) => Err(RecordsError::BadRequest(format!("`{name}` has to be an object"))),
        };
        let (invite, remove) = (part("invite_users")?, part("remove_users")?);
        let mut change = MembershipChange {
            ids: ids(&invite, "invite_users", "ids")?,
            emails: texts(&invite, "invite_users", "emails")?,
            accounts: accounts(&invite)?,
            groups: ids(&invite, "invite_users", "group_ids")?,
            group_names: texts(&invite, "invite_users", "group_names")?,
            removed_ids: ids(&remove, "remove_users", "ids")?,
            removed_emails: texts(&remove, "remove_users", "emails")?,
            sends_mail: invite.get("send_invite_emails").is_none_or(|said| said != &Value::Bool(false)),
        };
        change.groups.extend(mechanism::uuid_of(&invite, "group_id")?);
        change.group_names.extend(mechanism::text_of(&invite, "group_name")?.map(str::to_owned));
        for email in &change.emails {
            user::check_email(email)?;
        }
        let coming = change.ids.len() + change.emails.len() + change.accounts.len();
        let count = coming + change.removed_ids.len() + change.removed_emails.len();
        if count > MEMBERS_AT_ONCE_MAX {
            let said = format!("a request can invite and remove at most {MEMBERS_AT_ONCE_MAX} users");
            return Err(RecordsError::BadRequest(said));
        }
        Ok(change)
    }

    fn comes(&self) -> bool {
        !self.ids.is_empty() || !self.emails.is_empty() || !self.accounts.is_empty()
    }

    fn goes(&self) -> bool {
        !self.removed_ids.is_empty() || !self.removed_emails.is_empty()
    }
}

/// Returns whether a principal may invite users to its organization.
pub(crate) fn may_invite(who: &Principal) -> bool {
    may(who, Permission::Create)
}

fn may(who: &Principal, permission: Permission) -> bool {
    let members = Target::of_organization(ObjectType::OrgMember, who.org);
    decide(who, permission, &members) == Decision::Allowed
}

fn texts(fields: &Map<String, Value>, within: &str, name: &str) -> Result<Vec<String>, RecordsError> {
    let wrong = || RecordsError::BadRequest(format!("`{within}.{name}` has to be a list of strings"));
    match fields.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Reads requested accounts. An empty token name counts as absent.
fn accounts(fields: &Map<String, Value>) -> Result<Vec<WantedAccount>, RecordsError> {
    const PATH: &str = "invite_users.service_accounts";
    let wrong = |path: String, what: &str| RecordsError::BadRequest(format!("`{path}` has to be {what}"));
    let items = match fields.get("service_accounts") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong(PATH.into(), "a list of objects, each with a `name`")),
    };
    let read = |(place, item): (usize, &Value)| {
        let path = |name: &str| format!("{PATH}[{place}]{name}");
        let account = item.as_object().ok_or_else(|| wrong(path(""), "an object with a `name`"))?;
        let text = |name: &str| match account.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(path(&format!(".{name}")), "a string")),
        };
        let name = text("name")?;
        let name = name.ok_or_else(|| RecordsError::BadRequest(format!("`{}` is missing", path(".name"))))?;
        check_name(&path(".name"), &name)?;
        let token_name = text("token_name")?.filter(|name| !name.is_empty());
        token_name.as_deref().map(|token| check_name(&path(".token_name"), token)).transpose()?;
        Ok(WantedAccount { name, token_name })
    };
    items.iter().enumerate().map(read).collect()
}

fn ids(fields: &Map<String, Value>, within: &str, name: &str) -> Result<Vec<Uuid>, RecordsError> {
    let wrong = |_| RecordsError::BadRequest(format!("`{within}.{name}` has to be a list of UUIDs"));
    texts(fields, within, name)?.iter().map(|text| Uuid::parse_str(text).map_err(wrong)).collect()
}

/// Returns whether a record matches the filters. Several values of one filter are alternatives.
fn keeps(request: &ListRequest, record: &Record) -> bool {
    let Ok(body) = mechanism::read_body(record) else { return true };
    let is = |field: &str| {
        let mut wanted = request.filters.iter().filter(|(name, value)| name == field && !value.is_empty()).peekable();
        wanted.peek().is_none() || wanted.any(|(_, value)| text_in(&body, field) == *value)
    };
    (request.ids.is_empty() || request.ids.contains(&record.id)) && user::FIELDS[..3].iter().all(|field| is(field))
}

fn shown(record: &Record) -> Result<Value, RecordsError> {
    let mut body = mechanism::read_body(record)?;
    let mut object = Body::from_iter([("id".to_owned(), Value::from(record.id.to_string()))]);
    for field in user::FIELDS {
        object.insert(field.into(), body.remove(field).unwrap_or(Value::Null));
    }
    object.insert("created".into(), format_micros(record.created).into());
    Ok(Value::Object(object))
}
