//! Tests of people in several organizations, returning members, and delegated rights.

use assay_node_auth::{ObjectType, Permission, Principal};
use assay_node_identity::{InvitationReply, Invitations, SetupState};
use assay_node_records::kinds::{ACL, API_KEY, GROUP, PROJECT, PROJECT_GROUP, ROLE};
use assay_node_records::{Kind, ListRequest, RecordRules, Records, RecordsError};
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};
use uuid::Uuid;

use super::logins::{asked, is_open, log_in, named, open_to_people};
use super::{KEY, World, bad, body, id_of, missing, world};

const ZED: &str = "zed@zeta.example";

/// Returns the owner of another organization, which is younger than the first one.
async fn zed(world: &World) -> Principal {
    let made = world.identity.admin_create_organization("zeta", ZED).await.expect("makes");
    world.identity.authenticate(made["api_key"].as_str().expect("a key"), None).await.expect("is known")
}

async fn members(world: &World, by: &Principal, what: Value) -> Result<Value, RecordsError> {
    world.identity.change_members(by, body(what)).await
}

async fn invite_zed(world: &World) -> Uuid {
    let invited = json!({"invite_users": {"emails": [ZED], "group_names": ["Engineers"]}});
    let answer = members(world, &world.owner, invited).await.expect("invites");
    assert_eq!((&answer["status"], &answer["added_users"][0]["email"]), (&json!("success"), &json!(ZED)));
    id_of(&answer["added_users"][0])
}

fn actions(world: &World) -> Vec<String> {
    let entries = std::mem::take(&mut *world.kept.entries.lock());
    let acme = entries.into_iter().filter(|(org, _)| *org == world.owner.org);
    acme.map(|(_, entry)| entry["action"].as_str().expect("one").to_owned())
        .filter(|one| one.contains("invit"))
        .collect()
}

#[track_caller]
fn forbidden(outcome: Result<impl std::fmt::Debug, RecordsError>, says: &str) {
    assert!(matches!(&outcome, Err(RecordsError::Forbidden(why)) if why.contains(says)), "{says}: {outcome:?}");
}

#[tokio::test]
async fn a_person_of_another_organization_joins_when_they_accept() {
    let (world, identity) = open_to_people().await;
    let zed = zed(&world).await;
    let tokens = log_in(&identity, ZED).await;
    let at_login = async || identity.authenticate(tokens.access.expose(), None).await.expect("is known");
    let invitation = invite_zed(&world).await;

    // The pending invitation has no effect and reveals nothing.
    assert_ne!(invitation, zed.user);
    assert_eq!(at_login().await.org, zed.org);
    missing(identity.authenticate(tokens.access.expose(), Some("acme")).await);
    assert_eq!(identity.users(&world.owner, &ListRequest::default()).await.expect("lists").len(), 1);
    missing(identity.user(&world.owner, zed.user).await);
    for id in [zed.user, Uuid::from_u128(7)] {
        let said = members(&world, &world.owner, json!({"invite_users": {"ids": [id]}})).await;
        let Err(RecordsError::BadRequest(said)) = said else { panic!("{said:?}") };
        assert!(said.contains("no user") && !said.contains(ZED), "{said}");
    }
    let grant =
        json!({"object_type": "organization", "object_id": world.owner.org, "user_id": zed.user, "permission": "read"});
    bad(identity.records().create(&world.owner, &ACL, body(grant)).await, "no user");
    let as_zed = async || identity.authenticate_as(KEY, Some("acme"), Some(ZED)).await;
    forbidden(as_zed().await, "not allowed to act");

    // Both sides see the invitation, and nobody else can answer it.
    let seen = identity.invitations(&zed).await.expect("lists");
    assert_eq!((id_of(&seen[0]), &seen[0]["org_name"]), (invitation, &json!("acme")));
    let sent = identity.invitations_of_organization(&world.owner, &ListRequest::default()).await.expect("lists");
    assert_eq!((id_of(&sent[0]), &sent[0]["email"]), (invitation, &json!(ZED)));
    assert!(!format!("{sent:?}").contains(&zed.user.to_string()));
    missing(identity.reply_to_invitation(&world.owner, invitation, InvitationReply::Accept).await);
    assert_eq!(invite_zed(&world).await, invitation, "once at a time");

    let accepted = identity.reply_to_invitation(&zed, invitation, InvitationReply::Accept).await.expect("accepts");
    assert_eq!((&accepted["status"], &accepted["org_name"]), (&json!("accepted"), &json!("acme")));
    assert_eq!(at_login().await.org, zed.org, "the default is the one joined first, though the other is older");
    let there = identity.authenticate(tokens.access.expose(), Some("acme")).await.expect("is in it");
    identity
        .records()
        .create(&there, &PROJECT, body(json!({"name": "p"})))
        .await
        .expect("is in the group that was named");
    assert_eq!(identity.invitations(&zed).await.expect("lists"), Vec::<Value>::new());
    missing(identity.reply_to_invitation(&zed, invitation, InvitationReply::Decline).await);
    assert_eq!(actions(&world), ["invite", "accept_invitation"]);
}

/// An acceptance that was interrupted before the groups left a member without them, for whom nothing was pending.
#[tokio::test]
async fn an_interrupted_acceptance_can_be_repeated() {
    let (world, identity) = open_to_people().await;
    let zed = zed(&world).await;
    let tokens = log_in(&identity, ZED).await;
    let invitation = invite_zed(&world).await;
    *world.kept.fails_on.lock() = Some("group");
    let accept = async || identity.reply_to_invitation(&zed, invitation, InvitationReply::Accept).await;
    assert!(matches!(accept().await, Err(RecordsError::Unavailable(_))), "the group cannot be changed");
    let there = identity.authenticate(tokens.access.expose(), Some("acme")).await.expect("is a member");
    let project = async |name: &str| identity.records().create(&there, &PROJECT, body(json!({"name": name}))).await;
    assert!(project("p").await.is_err(), "is in no group");
    *world.kept.fails_on.lock() = None;
    missing(identity.reply_to_invitation(&world.owner, invitation, InvitationReply::Accept).await);
    missing(identity.reply_to_invitation(&zed, invitation, InvitationReply::Decline).await);
    assert_eq!(accept().await.expect("continues")["status"], "accepted");
    let there = identity.authenticate(tokens.access.expose(), Some("acme")).await.expect("is a member");
    identity.records().create(&there, &PROJECT, body(json!({"name": "q"}))).await.expect("is in the group");
    missing(accept().await);
    assert_eq!(actions(&world), ["invite", "accept_invitation"]);
}

#[tokio::test]
async fn an_invitation_is_declined_or_withdrawn() {
    let (world, identity) = open_to_people().await;
    let zed = zed(&world).await;
    let id = invite_zed(&world).await;
    let declined = identity.reply_to_invitation(&zed, id, InvitationReply::Decline).await.expect("declines");
    assert_eq!(declined["status"], "declined");
    for by_id in [false, true] {
        let id = invite_zed(&world).await;
        let withdrawn = if by_id { json!({"ids": [id]}) } else { json!({"emails": [ZED]}) };
        members(&world, &world.owner, json!({ "remove_users": withdrawn })).await.expect("withdraws");
        assert_eq!(identity.invitations(&zed).await.expect("lists"), Vec::<Value>::new());
    }
    // Answers by a person at a login, and by an operator.
    let id = invite_zed(&world).await;
    let unverified = assay_node_auth::IdTokenClaims { is_verified: false, ..named(ZED) };
    assert_eq!(identity.pending_invitations(&unverified).await.expect("lists"), []);
    missing(identity.reply_at_login(&unverified, id, InvitationReply::Accept).await);
    let pending = identity.pending_invitations(&named(ZED)).await.expect("lists");
    assert_eq!((pending[0].id, pending[0].organization.as_str()), (id, "acme"));
    identity.reply_at_login(&named(ZED), id, InvitationReply::Decline).await.expect("declines");
    let id = invite_zed(&world).await;
    let listed = identity.admin_invitations(Some("acme"), Some(ZED)).await.expect("lists");
    assert_eq!(id_of(&listed[0]), id);
    identity.admin_reply_to_invitation(id, InvitationReply::Accept).await.expect("accepts");
    assert_eq!(identity.organizations(&world.owner).await.expect("lists").len(), 1);
    assert_eq!(identity.users(&world.owner, &ListRequest::default()).await.expect("lists").len(), 2);
    let [.., declined, _, accepted] = &actions(&world)[..] else { panic!("entries") };
    assert_eq!((declined.as_str(), accepted.as_str()), ("decline_invitation", "accept_invitation"));
}

#[tokio::test]
async fn an_operator_may_have_everybody_join_at_once() {
    let world = world().await;
    let zed = zed(&world).await;
    let joining = world.identity.clone().with_invitations(Invitations::Join);
    let answer = joining.change_members(&world.owner, body(json!({"invite_users": {"ids": [zed.user]}}))).await;
    assert_eq!(id_of(&answer.expect("joins")["added_users"][0]), zed.user);
    joining.user(&world.owner, zed.user).await.expect("is a member");
}

/// Changes in one organization do not affect the memberships in others.
#[tokio::test]
async fn a_person_who_leaves_one_organization_stays_in_the_other() {
    let (world, identity) = open_to_people().await;
    let zed = zed(&world).await;
    let invitation = invite_zed(&world).await;
    identity.reply_to_invitation(&zed, invitation, InvitationReply::Accept).await.expect("accepts");
    let tokens = log_in(&identity, ZED).await;
    let made = identity.admin_create_key("acme", ZED, "of acme").await.expect("a key");
    let of_acme = made["api_key"].as_str().expect("a key");
    identity.authenticate(of_acme, None).await.expect("is known");
    identity.check_ticket(world.owner.org, zed.user, None, seconds()).await.expect("is a member");

    members(&world, &world.owner, json!({"remove_users": {"emails": [ZED]}})).await.expect("removes");
    assert!(is_open(&identity, &tokens).await, "its login goes on elsewhere");
    missing(identity.authenticate(tokens.access.expose(), Some("acme")).await);
    unauthenticated(identity.authenticate(of_acme, None).await);
    unauthenticated(identity.check_ticket(world.owner.org, zed.user, None, seconds()).await);
    identity.records().get(&zed, &API_KEY, zed.credential.record()).await.expect("its key of the other one is there");

    // Old credentials and grants stay invalid after a return.
    let invitation = invite_zed(&world).await;
    identity.reply_to_invitation(&zed, invitation, InvitationReply::Accept).await.expect("accepts");
    unauthenticated(identity.authenticate(of_acme, None).await);
    missing(identity.authenticate(tokens.access.expose(), Some("acme")).await);
    let next = identity.refresh_login(tokens.refresh.expose(), "cli").await.expect("goes on");
    missing(identity.authenticate(next.access.expose(), Some("acme")).await);
    unauthenticated(identity.check_ticket(world.owner.org, zed.user, None, seconds() - 3000).await);
    let anew = log_in(&identity, ZED).await;
    identity.authenticate(anew.access.expose(), Some("acme")).await.expect("a new login opens it");
}

fn seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("behind 1970").as_secs()
}

#[track_caller]
fn unauthenticated(outcome: Result<impl std::fmt::Debug, RecordsError>) {
    assert!(matches!(&outcome, Err(RecordsError::Unauthenticated(_))), "{outcome:?}");
}

#[tokio::test]
async fn nobody_makes_a_key_while_acting_as_another() {
    let world = world().await;
    let ann = world.member("ann@example.com").await;
    let as_ann = world.identity.authenticate_as(KEY, None, Some("ann@example.com")).await.expect("may");
    forbidden(world.records.create(&as_ann, &API_KEY, body(json!({"name": "left-behind"}))).await, "acting as another");
    forbidden(world.identity.invitations(&as_ann).await, "only the invited user");
    world.records.create(&ann, &API_KEY, body(json!({"name": "own"}))).await.expect("as herself");
    let org = world.owner.org;
    let check = async |other| world.identity.check_ticket(org, ann.user, Some(other), seconds()).await;
    check(world.owner.user).await.expect("owns it");
    unauthenticated(check(ann.user).await);
}

#[tokio::test]
async fn a_setup_of_a_program_gives_one_key() {
    let (world, identity) = open_to_people().await;
    let setup = identity.begin_setup().expect("begins");
    let ticket = identity.setup(&setup.session).expect("is read").expect("is ours");
    let asked =
        assay_node_auth::LoginAsked { session: Some(ticket.session), challenge: ticket.challenge.clone(), ..asked() };
    let owner = named("owner@example.com");
    identity.finish_login(&asked, &owner).await.expect("lets it in");
    let poll = async || identity.poll_setup(&ticket, setup.token.expose(), "Global").await.expect("is told");
    assert!(matches!(poll().await, SetupState::Complete { .. }));
    let keys = world.listed(&API_KEY, &[]).await.len();
    forbidden(identity.finish_login(&asked, &owner).await, "already has access");
    assert!(matches!(poll().await, SetupState::Claimed));
    assert_eq!(world.listed(&API_KEY, &[]).await.len(), keys);
}

async fn make(records: &Records, who: &Principal, kind: &'static Kind, sent: Value) -> Result<Uuid, RecordsError> {
    records.create(who, kind, body(sent)).await.map(|made| id_of(&made.object))
}

async fn named_of(records: &Records, who: &Principal, kind: &'static Kind, name: &str) -> Uuid {
    let all = records.list(who, kind, &ListRequest::default()).await.expect("lists");
    id_of(all.iter().find(|one| one["name"] == name).expect("is there"))
}

/// Delegated rights in each form of a request.
#[tokio::test]
async fn nobody_passes_on_more_than_they_have() {
    let world = world().await;
    let (records, owner) = (&world.records, &world.owner);
    let identity = &world.identity;
    let ann = world.member("ann@example.com").await;
    let project = world.project("p").await;
    let to_ann = || json!({"user_id": ann.user});
    let org = (ObjectType::Organization, owner.org.0);
    let owner_role = named_of(records, owner, &ROLE, "Owner").await;

    // A grant.
    world.grant((ObjectType::Project, project), to_ann(), json!({"permission": "create_acls"})).await;
    let on_project = |gift: Value| {
        let mut sent = body(json!({"object_type": "project", "object_id": project, "user_id": ann.user}));
        sent.extend(body(gift));
        sent
    };
    for gift in [json!({"permission": "read"}), json!({ "role_id": owner_role })] {
        forbidden(records.create(&ann, &ACL, on_project(gift.clone())).await, "only grant its own rights");
        let many = json!({ "add_acls": [on_project(gift)] });
        forbidden(records.update_acls(&ann, body(many)).await, "only grant its own rights");
    }
    let held = json!({"permission": "create_acls", "restrict_object_type": "dataset"});
    records.create(&ann, &ACL, on_project(held)).await.expect("has it");

    // A role.
    let role =
        make(records, owner, &ROLE, json!({"name": "r", "member_permissions": [{"permission": "create_acls"}]})).await;
    let role = role.expect("makes");
    world.grant((ObjectType::Role, role), to_ann(), json!({"permission": "update"})).await;
    world.grant((ObjectType::Project, project), to_ann(), json!({"role_id": role})).await;
    for more in [json!({"add_member_permissions": [{"permission": "read"}]}), json!({"add_member_roles": [owner_role]})]
    {
        forbidden(records.patch(&ann, &ROLE, role, body(more)).await, "only grant its own rights");
    }
    let replaced = json!({"name": "r", "member_permissions": [{"permission": "read"}]});
    forbidden(records.replace(&ann, &ROLE, body(replaced)).await, "only grant its own rights");
    records.patch(&ann, &ROLE, role, body(json!({"description": "d"}))).await.expect("gives nothing");

    // A group.
    let owners = named_of(records, owner, &GROUP, "Owners").await;
    world.grant((ObjectType::Group, owners), to_ann(), json!({"permission": "update"})).await;
    let mine = make(records, owner, &GROUP, json!({"name": "mine", "member_users": [ann.user]})).await.expect("makes");
    for more in [json!({"add_member_users": [ann.user]}), json!({"add_member_groups": [mine]})] {
        forbidden(records.patch(&ann, &GROUP, owners, body(more)).await, "only grant its own rights");
    }
    let replaced = json!({"name": "Owners", "member_users": [owner.user, ann.user]});
    forbidden(records.replace(&ann, &GROUP, body(replaced)).await, "only grant its own rights");
    world.grant((ObjectType::OrgMember, org.1), to_ann(), json!({"permission": "create"})).await;
    let invited = json!({"invite_users": {"emails": ["ben@example.com"], "group_ids": [owners]}});
    forbidden(members(&world, &ann, invited).await, "only grant its own rights");
    assert_eq!(identity.users(owner, &ListRequest::default()).await.expect("lists").len(), 2, "nobody was added");
}

#[tokio::test]
async fn groups_of_projects_and_the_role_owner_are_passed_on_by_who_has_them() {
    let world = world().await;
    let (records, owner) = (&world.records, &world.owner);
    let ann = world.member("ann@example.com").await;
    let project = world.project("p").await;
    let to_ann = || json!({"user_id": ann.user});
    let org = (ObjectType::Organization, owner.org.0);
    let (owner_role, owners) =
        (named_of(records, owner, &ROLE, "Owner").await, named_of(records, owner, &GROUP, "Owners").await);
    world.grant((ObjectType::Project, project), to_ann(), json!({"permission": "create_acls"})).await;
    world.grant((ObjectType::Group, owners), to_ann(), json!({"permission": "update"})).await;

    // A group of projects.
    let group = make(records, owner, &PROJECT_GROUP, json!({"name": "pg"})).await.expect("makes");
    world.grant((ObjectType::ProjectGroup, group), to_ann(), json!({"permission": "update"})).await;
    let more = || body(json!({"add_member_projects": [project]}));
    forbidden(records.patch(&ann, &PROJECT_GROUP, group, more()).await, "only grant its own rights");
    records.patch(owner, &PROJECT_GROUP, group, more()).await.expect("an owner does all of it");

    // All permissions together are not the role Owner.
    let all: Vec<Value> =
        assay_node_auth::Permission::ALL.iter().map(|one| json!({"permission": one.word()})).collect();
    let all = make(records, owner, &ROLE, json!({"name": "all", "member_permissions": all})).await.expect("makes");
    world.grant(org, to_ann(), json!({"role_id": all})).await;
    let itself = json!({"object_type": "organization", "object_id": org.1, "user_id": ann.user, "role_id": owner_role});
    forbidden(records.create(&ann, &ACL, body(itself.clone())).await, "the role Owner itself");
    forbidden(
        records.patch(&ann, &GROUP, owners, body(json!({"add_member_users": [ann.user]}))).await,
        "the role Owner",
    );
    let on_project =
        json!({"object_type": "project", "object_id": project, "user_id": ann.user, "role_id": owner_role});
    records.create(&ann, &ACL, body(on_project)).await.expect("holds all of it there");
    records.create(owner, &ACL, body(itself)).await.expect("an owner has it");
}

#[tokio::test]
async fn keys_and_records_are_not_without_number() {
    let world = world().await;
    let rules = RecordRules { keys_per_user_max: 3, per_organization_max: 4, ..RecordRules::default() };
    let records = world.records.clone().with_rules(rules);
    let key = async || records.create(&world.owner, &API_KEY, body(json!({"name": "k"}))).await;
    for _ in 0..2 {
        key().await.expect("the founding made the first");
    }
    bad(key().await, "`records.keys_per_user_max`");
    let ann = world.member("ann@example.com").await;
    records.create(&ann, &API_KEY, body(json!({"name": "k"}))).await.expect("others have their own number");
    let project = async |name: &str| records.create(&world.owner, &PROJECT, body(json!({ "name": name }))).await;
    for name in ["a", "b", "c", "d"] {
        project(name).await.expect("makes");
    }
    bad(project("e").await, "`records.per_organization_max`");
    project("a").await.expect("is there");
    let id = id_of(&project("a").await.expect("is there").object);
    records.delete(&world.owner, &PROJECT, id).await.expect("deletes");
    project("e").await.expect("there is room again");
    let id = id_of(&project("e").await.expect("is there").object);
    let home = records.object(&world.owner, ObjectKind::ProjectPrompts, id, Permission::Update).await.expect("a home");
    let prompt = async |id: u128, slug: &str| records.take_slug_as(&home, Uuid::from_u128(id), slug).await;
    for (id, slug) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        prompt(id, slug).await.expect("takes");
    }
    bad(prompt(5, "e").await, "`records.per_organization_max`");
    assert_eq!(prompt(4, "d2").await.expect("is there").slug, "d2");
}

#[tokio::test]
async fn a_group_and_a_role_never_include_themselves() {
    let world = world().await;
    let (records, owner) = (&world.records, &world.owner);
    for (kind, list) in [(&GROUP, "member_groups"), (&ROLE, "member_roles")] {
        let make = |name: &str, members: &[Uuid]| make(records, owner, kind, json!({"name": name, (list): members}));
        let inner = make("inner", &[]).await.expect("makes");
        let between = make("between", &[inner]).await.expect("makes");
        let outer = make("outer", &[between, inner]).await.expect("includes one twice, and no circle");
        for member in [inner, between, outer] {
            bad(records.patch(owner, kind, inner, body(json!({(format!("add_{list}")): [member]}))).await, list);
            let replaced = json!({"name": "inner", (list): [member]});
            bad(records.replace(owner, kind, body(replaced)).await, list);
        }
        let kept = records.patch(owner, kind, outer, body(json!({"description": "d"}))).await.expect("changes");
        assert_eq!(kept[list], json!([between, inner]));
    }
}
