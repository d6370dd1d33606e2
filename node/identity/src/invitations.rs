//! Invitations: users who belong to another organization decide whether they join.
//!
//! ```text
//! PATCH members -> a pending invitation without rights           accept  -> a membership, and the named groups
//!                                                                decline or withdrawal -> deletion
//! ```
//! Before acceptance, the invitation gives no rights to the person and the organization learns nothing about them.

use std::sync::Arc;

use assay_node_auth::{IdTokenClaims, Principal};
use assay_node_records::kinds::invitation::{self, GROUPS_MAX, Invitation};
use assay_node_records::kinds::{organization, user};
use assay_node_records::mechanism::{self, Body, By, CatalogView, Walk, still_known, unexpected};
use assay_node_records::{ListRequest, RecordsError};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, Record, RecordKind,
};
use assay_storage_model::event::format_micros;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Identity;
use crate::authentication::person;
use crate::members::may_invite;

/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;

/// Rule for invited people who belong to another organization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Invitations {
    /// Users join when they accept.
    #[default]
    Accept,
    /// Users join at once.
    Join,
}

/// Field of a membership with the groups of its invitation that are not joined yet.
const INVITED_GROUPS: &str = "invited_groups";

/// Pending invitation, as login pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingInvitation {
    pub id: Uuid,
    pub organization: String,
    pub invited_by: String,
}

/// Reply of a person to an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvitationReply {
    Accept,
    Decline,
}

impl Identity {
    /// Returns the pending invitations of the caller from all organizations.
    pub async fn invitations(&self, who: &Principal) -> Result<Vec<Value>, RecordsError> {
        check_self(who)?;
        self.catalog.fresh().await?;
        self.catalog
            .look(|view| {
                still_known(view, who)?;
                invitation::of_user(view, who.user).iter().map(|record| shown_to_person(view, record)).collect()
            })
            .await
    }

    /// Accepts or declines an invitation of the caller.
    pub async fn reply_to_invitation(
        &self,
        who: &Principal,
        id: Uuid,
        reply: InvitationReply,
    ) -> Result<Value, RecordsError> {
        check_self(who)?;
        self.catalog.fresh().await?;
        self.catalog.look(|view| still_known(view, who)).await?;
        self.replied(By::Invited, id, Some(who.user), reply).await
    }

    /// Returns the pending invitations of a person who has logged in with the provider.
    pub async fn pending_invitations(&self, who: &IdTokenClaims) -> Result<Vec<PendingInvitation>, RecordsError> {
        if !who.is_verified {
            return Ok(Vec::new());
        }
        self.catalog.fresh().await?;
        self.catalog.peek(|view| {
            let Some(user) = person(view, &who.email) else { return Ok(Vec::new()) };
            let pending = |record: &Arc<Record>| {
                let organization = organization_of(view, record)?.1;
                Ok(PendingInvitation { id: record.id, organization, invited_by: invitation::read(record)?.invited_by })
            };
            invitation::of_user(view, user.id).iter().map(pending).collect()
        })
    }

    /// Accepts or declines an invitation for a person who has logged in with the provider. A missing invitation is no
    /// error.
    pub async fn reply_at_login(
        &self,
        who: &IdTokenClaims,
        id: Uuid,
        reply: InvitationReply,
    ) -> Result<(), RecordsError> {
        let user = self.catalog.peek(|view| person(view, &who.email).map(|user| user.id)).filter(|_| who.is_verified);
        let user = user.ok_or_else(|| missing(id))?;
        match self.replied(By::Invited, id, Some(user), reply).await {
            Ok(_) | Err(RecordsError::NotFound(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Returns the pending invitations of an organization, for principals who may invite.
    pub async fn invitations_of_organization(
        &self,
        who: &Principal,
        request: &ListRequest,
    ) -> Result<Vec<Value>, RecordsError> {
        self.catalog.fresh().await?;
        let lister = self.records.lister(who, request.organization()).await?;
        if !may_invite(&lister) {
            let said = "this credential is not granted `create` on the members of the organization";
            return Err(RecordsError::Forbidden(said.into()));
        }
        self.catalog.peek(|view| of_organization(view, lister.org)?.iter().map(shown_to_inviter).collect())
    }

    /// Returns the pending invitations of an organization or a user, or all invitations.
    pub async fn admin_invitations(
        &self,
        organization: Option<&str>,
        email: Option<&str>,
    ) -> Result<Value, RecordsError> {
        let org = match organization {
            Some(name) => Some(self.records.organization_named(name).await?),
            None => None,
        };
        self.catalog.fence().await?;
        self.catalog.peek(|view| {
            let user = email.map(|email| {
                let missing = || RecordsError::NotFound(format!("there is no user `{email}`"));
                view.find(&user::email_key(email)).map(|user| user.id).ok_or_else(missing)
            });
            let user = user.transpose()?;
            let is_wanted = |record: &&Arc<Record>| {
                let of_user =
                    || invitation::read(record).is_ok_and(|one| user.is_none_or(|user| one.invited_user_id == user));
                invitation::is_one(record) && org.is_none_or(|org| record.org == Some(org)) && of_user()
            };
            let found: Vec<_> = view.all(RecordKind::ORG_MEMBER).filter(is_wanted).cloned().collect();
            let shown = |record: &Arc<Record>| {
                let mut shown = shown_to_person(view, record)?;
                shown["email"] = invitation::read(record)?.email.into();
                Ok(shown)
            };
            found.iter().map(shown).collect::<Result<_, _>>().map(Value::Array)
        })
    }

    /// Replies to an invitation on behalf of its person.
    pub async fn admin_reply_to_invitation(&self, id: Uuid, reply: InvitationReply) -> Result<Value, RecordsError> {
        self.catalog.fence().await?;
        self.replied(By::Operator, id, None, reply).await
    }

    /// Accepts or declines an invitation. `user` restricts the operation to invitations of one person.
    ///
    /// An interrupted acceptance can be repeated. The membership has the groups of the invitation until they are joined.
    async fn replied(
        &self,
        by: By<'_>,
        id: Uuid,
        user: Option<Uuid>,
        reply: InvitationReply,
    ) -> Result<Value, RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let (record, org, name) = self.catalog.peek(|view| {
                let record = view.get(RecordKind::ORG_MEMBER, id).ok_or_else(|| missing(id))?;
                let (org, name) = organization_of(view, record)?;
                Ok::<_, RecordsError>((Arc::clone(record), org, name))
            })?;
            let replied = ReplyTo::read(&record, reply)?.filter(|to| user.is_none_or(|user| user == to.user));
            let ReplyTo { user: person, groups, is_pending } = replied.ok_or_else(|| missing(id))?;
            let status = match is_pending {
                true => self.reply_once(by, &record, org, (person, &groups), reply).await?,
                false => Some("accepted"),
            };
            let Some(status) = status else {
                self.catalog.fence().await?;
                continue;
            };
            if reply == InvitationReply::Accept {
                self.join_groups(by, id, person, groups).await?;
            }
            return Ok(json!({ "id": id.to_string(), "org_id": org.to_string(), "org_name": name, "status": status }));
        }
        Err(RecordsError::Busy("concurrent changes to this invitation prevented the request: try again".into()))
    }

    /// Turns a pending invitation into a membership, or deletes it. Returns the new status; `None` if the invitation
    /// has changed.
    async fn reply_once(
        &self,
        by: By<'_>,
        record: &Record,
        org: OrgId,
        (user, groups): (Uuid, &[Uuid]),
        reply: InvitationReply,
    ) -> Result<Option<&'static str>, RecordsError> {
        let (kind, id, expect) = (record.kind, record.id, Expect::Revision(record.revision));
        let command = match reply {
            InvitationReply::Accept => {
                let put = invitation::accepted(record, org, user, mechanism::now_micros());
                CatalogCommand::Put(PutRecord { body: with_groups(&put.body, groups)?, ..put })
            }
            InvitationReply::Decline => CatalogCommand::Delete(DeleteRecord { kind, id, expect }),
        };
        match self.catalog.propose_one(by, command).await? {
            CatalogOutcome::Put { .. } => Ok(Some("accepted")),
            CatalogOutcome::Deleted { .. } => Ok(Some("declined")),
            // The person has become a member in another way. The invitation is deleted when the groups are joined.
            CatalogOutcome::Taken { .. } => Ok(Some("accepted")),
            CatalogOutcome::Stale { .. } => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// Adds a person to the groups of an accepted invitation, and then removes the groups from its record.
    async fn join_groups(&self, by: By<'_>, id: Uuid, user: Uuid, groups: Vec<Uuid>) -> Result<(), RecordsError> {
        for group in groups {
            self.change_group(by, group, "add_member_users", user).await?;
        }
        for _ in 0..ATTEMPTS_MAX {
            self.catalog.fence().await?;
            let record = self.catalog.peek(|view| view.get(RecordKind::ORG_MEMBER, id).cloned());
            let Some(record) = record else { return Ok(()) };
            if invitation::is_one(&record) {
                return self.catalog.delete_record(by, RecordKind::ORG_MEMBER, id).await;
            }
            if groups_of(&mechanism::read_body(&record)?).is_empty() {
                return Ok(());
            }
            let put = PutRecord {
                kind: record.kind,
                id,
                org: record.org,
                expect: Expect::Revision(record.revision),
                keys: record.keys.clone(),
                body: with_groups(&record.body, &[])?,
                at: mechanism::now_micros(),
            };
            match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return Ok(()),
                CatalogOutcome::Stale { .. } => {}
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("concurrent changes to this membership prevented the request: try again".into()))
    }

    /// Invites a person, or adds groups to the pending invitation. Returns its id.
    pub(crate) async fn invite(
        &self,
        there: &Principal,
        user: Uuid,
        email: &str,
        groups: &[Uuid],
    ) -> Result<Uuid, RecordsError> {
        let key = invitation::key(there.org, user);
        for _ in 0..ATTEMPTS_MAX {
            let pending = self.catalog.peek(|view| view.find(&key).cloned());
            let (id, expect, mut wanted) = match &pending {
                Some(record) => (record.id, Expect::Revision(record.revision), invitation::read(record)?),
                None => {
                    self.records.check_record_count(RecordKind::ORG_MEMBER, there.org)?;
                    let (email, invited_by) = (email.to_owned(), there.user_email.clone());
                    let wanted = Invitation { invited_user_id: user, email, invited_by, groups: Vec::new() };
                    (mechanism::new_id(), Expect::Absent, wanted)
                }
            };
            let before = wanted.groups.len();
            groups.iter().for_each(|group| {
                if !wanted.groups.contains(group) {
                    wanted.groups.push(*group);
                }
            });
            if wanted.groups.len() > GROUPS_MAX {
                let said = format!("an invitation names at most {GROUPS_MAX} groups");
                return Err(RecordsError::BadRequest(said));
            }
            if pending.is_some() && wanted.groups.len() == before {
                return Ok(id);
            }
            let put = invitation::put(id, there.org, expect, &wanted, mechanism::now_micros())?;
            match self.catalog.propose_one(By::Caller(there), CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return Ok(id),
                CatalogOutcome::Taken { .. } | CatalogOutcome::Stale { .. } => {
                    self.catalog.fence().await?;
                }
                other => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("concurrent changes to this invitation prevented the request: try again".into()))
    }

    /// Withdraws an invitation.
    pub(crate) async fn withdraw(&self, there: &Principal, invitation: Uuid) -> Result<(), RecordsError> {
        let is_one = |view: &CatalogView<'_>| {
            view.get(RecordKind::ORG_MEMBER, invitation).is_some_and(|one| invitation::is_one(one))
        };
        match self.catalog.peek(is_one) {
            true => self.catalog.delete_record(By::Caller(there), RecordKind::ORG_MEMBER, invitation).await,
            false => Ok(()),
        }
    }
}

/// Invitation that can be answered, or whose acceptance can be continued.
#[derive(Debug)]
struct ReplyTo {
    user: Uuid,
    groups: Vec<Uuid>,
    is_pending: bool,
}

impl ReplyTo {
    /// Reads a record; `None` if it allows no such reply.
    fn read(record: &Record, reply: InvitationReply) -> Result<Option<ReplyTo>, RecordsError> {
        if invitation::is_one(record) {
            let Invitation { invited_user_id: user, groups, .. } = invitation::read(record)?;
            return Ok(Some(ReplyTo { user, groups, is_pending: true }));
        }
        let body = mechanism::read_body(record)?;
        let groups = groups_of(&body);
        let user =
            mechanism::id_in(&body, "user_id").filter(|_| reply == InvitationReply::Accept && !groups.is_empty());
        Ok(user.map(|user| ReplyTo { user, groups, is_pending: false }))
    }
}

/// Returns the groups of an accepted invitation that are not joined yet.
fn groups_of(membership: &Body) -> Vec<Uuid> {
    let groups = membership.get(INVITED_GROUPS).and_then(Value::as_array).into_iter().flatten();
    groups.filter_map(|group| Uuid::parse_str(group.as_str()?).ok()).collect()
}

/// Returns the body of a membership with these groups of its invitation.
fn with_groups(membership: &[u8], groups: &[Uuid]) -> Result<Vec<u8>, RecordsError> {
    let damaged = |why| RecordsError::Internal(format!("a membership cannot be decoded: {why}"));
    let mut body: Body = serde_json::from_slice(membership).map_err(damaged)?;
    match groups {
        [] => drop(body.remove(INVITED_GROUPS)),
        groups => drop(body.insert(INVITED_GROUPS.into(), json!(groups))),
    }
    Ok(Value::Object(body).to_string().into_bytes())
}

/// Refuses a reply on behalf of another user.
fn check_self(who: &Principal) -> Result<(), RecordsError> {
    match who.impersonator {
        None => Ok(()),
        Some(_) => Err(RecordsError::Forbidden(
            "only the invited user can read, accept and decline invitations: do not act as another user".into(),
        )),
    }
}

fn missing(id: Uuid) -> RecordsError {
    RecordsError::NotFound(format!("no invitation with the id {id} is pending for this credential"))
}

fn organization_of(view: &CatalogView<'_>, record: &Record) -> Result<(OrgId, String), RecordsError> {
    let org = record.org.and_then(|org| view.get(RecordKind::ORGANIZATION, org.0)).ok_or_else(|| missing(record.id))?;
    Ok((OrgId(org.id), organization::name_of(org)?))
}

pub(crate) fn of_organization(view: &CatalogView<'_>, org: OrgId) -> Result<Vec<Arc<Record>>, RecordsError> {
    let (mut walk, mut found) = (Walk::of(RecordKind::ORG_MEMBER, org), Vec::new());
    while !walk.is_over() {
        found.extend(walk.step(view, invitation::is_one)?);
    }
    Ok(found)
}

fn shown_to_person(view: &CatalogView<'_>, record: &Record) -> Result<Value, RecordsError> {
    let (org, name) = organization_of(view, record)?;
    let invited = invitation::read(record)?;
    Ok(json!({
        "id": record.id.to_string(), "org_id": org.to_string(), "org_name": name, "invited_by": invited.invited_by,
        "created": format_micros(record.created),
    }))
}

fn shown_to_inviter(record: &Arc<Record>) -> Result<Value, RecordsError> {
    let invited = invitation::read(record)?;
    let groups: Vec<String> = invited.groups.iter().map(Uuid::to_string).collect();
    Ok(json!({
        "id": record.id.to_string(), "email": invited.email, "group_ids": groups, "invited_by": invited.invited_by,
        "created": format_micros(record.created),
    }))
}
