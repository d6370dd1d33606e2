//! Tests of service accounts, their tokens, and JWTs: authentication, identity and revocation.

use std::sync::Arc;

use assay_node_auth::{Credential, JwtKeys, JwtRules, ObjectType, Permission, Principal, Secret};
use assay_node_identity::{Identity, Jwts};
use assay_node_records::kinds::{API_KEY, PROJECT, SERVICE_TOKEN};
use assay_node_records::{ListRequest, RecordsError};
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{KEY, World, bad, body, id_of, missing, world};

/// JWT for the issuer and audience of these tests, signed by HS256 with this secret and valid until 2100.
const SHARED: &str = "a-secret-of-the-tests-of-32-bytes-and-more";
const HEAD: &str =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoiYXNzYXkiLCJleHAiOj";
const OF_OWNER: &str =
    "QxMDI0NDQ4MDAsImVtYWlsIjoib3duZXJAZXhhbXBsZS5jb20ifQ._vXd0u9DokerPk-5oQW4J5itiNI4pVp2JQT9RxMc-a8";
const OF_ANN: &str = "QxMDI0NDQ4MDAsImVtYWlsIjoiQW5uQGV4YW1wbGUuY29tIn0.3Tw8U453PLUPiSJDwV110WUqFdFrSyHMgwQtN2nNmMs";
const OF_NOBODY: &str =
    "QxMDI0NDQ4MDAsImVtYWlsIjoibm9ib2R5QGV4YW1wbGUuY29tIn0.Xl9HH2FQj074FJ-2ThMNQXh5PUP4cdl0urcqeVbE6ug";
/// JWT of the owner, valid until 2017.
const EXPIRED: &str =
    "E1MDAwMDAwMDAsImVtYWlsIjoib3duZXJAZXhhbXBsZS5jb20ifQ.377D5PTvhTn68c-GFbmS47C6PLJx6NN6nSmSkKHrxAs";
/// JWT of a user whose first letter is the kelvin sign, which is a `k` in lower case.
const OF_KELVIN: &str =
    "QxMDI0NDQ4MDAsImVtYWlsIjoi4oSqZW5AZXhhbXBsZS5jb20ifQ.7Bd8VtpSJFxfyapTR0hOjS_tZG-CESDGZTj0uhyLix8";

fn jwt(rest: &str) -> String {
    format!("{HEAD}{rest}")
}

impl World {
    /// Creates a service account as an administrator, and returns its token.
    async fn robot(&self) -> (Principal, String) {
        let made = self.identity.admin_create_service_account("acme", "robot").await.expect("makes");
        let token = made["service_token"].as_str().expect("a token").to_owned();
        (self.identity.authenticate(&token, None).await.expect("is known"), token)
    }

    async fn accounts(&self, who: &Principal, accounts: Value) -> Result<Value, RecordsError> {
        self.identity.change_members(who, body(json!({"invite_users": {"service_accounts": accounts}}))).await
    }

    async fn jwt_taker(&self) -> Identity {
        let rules = JwtRules { issuer: "https://issuer.example".into(), audience: "assay".into() };
        let keys = JwtKeys::of_secret(&Secret::new(SHARED.into())).expect("a secret");
        self.identity.clone().trusting(Arc::new(Jwts::with_keys(rules, keys)))
    }
}

#[track_caller]
fn forbidden(outcome: Result<impl std::fmt::Debug, RecordsError>, says: &str) {
    assert!(matches!(&outcome, Err(RecordsError::Forbidden(said)) if said.contains(says)), "{says}: {outcome:?}");
}

#[track_caller]
fn unknown(outcome: Result<impl std::fmt::Debug, RecordsError>) {
    assert!(matches!(&outcome, Err(RecordsError::Unauthenticated(said)) if !said.contains("bt-st-")), "{outcome:?}");
}

async fn list(world: &World, who: &Principal, query: &[(&str, &str)]) -> Vec<Value> {
    let pairs = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let request = ListRequest::from_query(pairs).expect("a query");
    world.records.list(who, &SERVICE_TOKEN, &request).await.expect("lists")
}

#[tokio::test]
async fn an_account_is_a_user_of_one_organization_that_its_tokens_speak_for() {
    let world = world().await;
    let (robot, token) = world.robot().await;
    assert!(token.starts_with("bt-st-") && token.len() == "bt-st-".len() + 43);
    assert!(matches!(robot.credential, Credential::ServiceToken(_)));
    assert_eq!((robot.org, robot.impersonator), (world.owner.org, None));
    let shown = world.identity.user(&world.owner, robot.user).await.expect("is a user");
    assert_eq!((&shown["given_name"], &shown["email"]), (&json!("robot"), &json!(robot.user_email)));
    assert!(
        robot.user_email.starts_with("robot-")
            && robot.user_email.ends_with(&format!("@service.{}.invalid", robot.org))
    );
    let project = world.project("p").await;
    world.records.object(&robot, ObjectKind::ProjectLogs, project, Permission::Update).await.expect("owns all");
    // The account remains in its organization.
    world.identity.admin_create_organization("beta", "owner@example.com").await.expect("makes");
    let beta = world.identity.authenticate(KEY, Some("beta")).await.expect("owns both");
    for (named, says) in [
        (json!({"ids": [robot.user]}), "no user"),
        (json!({"emails": [robot.user_email]}), "is a service account of another organization"),
    ] {
        let invited = world.identity.change_members(&beta, body(json!({"invite_users": named}))).await;
        bad(invited, says);
    }
    bad(world.identity.admin_create_user("beta", &robot.user_email).await, "service account");
    bad(world.identity.admin_create_organization("gamma", &robot.user_email).await, "service account");
    missing(world.identity.authenticate(&token, Some("beta")).await);
    assert_eq!(world.identity.organizations(&robot).await.expect("lists").len(), 1);
    // The account cannot have API keys.
    forbidden(world.records.create(&robot, &API_KEY, body(json!({"name": "k"}))).await, "POST /v1/service_token");
    let as_robot = world.identity.authenticate_as(KEY, Some("acme"), Some(&robot.user.to_string())).await;
    let as_robot = as_robot.expect("owns all that it is in");
    forbidden(world.records.create(&as_robot, &API_KEY, body(json!({"name": "k"}))).await, "cannot have API keys");
    forbidden(world.identity.admin_create_key("acme", &robot.user_email, "k").await, "cannot have API keys");
}

#[tokio::test]
async fn a_token_is_shown_once_and_listed_by_its_preview() {
    let world = world().await;
    let (robot, first) = world.robot().await;
    let create = async |sent| world.records.create(&robot, &SERVICE_TOKEN, body(sent)).await;
    let sent = || json!({"name": "ci", "service_account_id": robot.user, "org_name": "acme"});
    let made = create(sent()).await.expect("makes");
    let secret = made.secret.expect("a secret");
    assert!(!made.found_existing && !made.object.to_string().contains(secret.expose()));
    let end = &secret.expose()[secret.expose().len() - 4..];
    assert_eq!(made.object["preview_name"], format!("bt-st-***{end}"));
    for (field, value) in [
        ("name", json!("ci")),
        ("service_account_id", json!(robot.user)),
        ("service_account_email", json!(robot.user_email)),
        ("service_account_name", json!("robot")),
        ("org_id", json!(robot.org)),
    ] {
        assert_eq!(made.object[field], value, "{field}");
    }
    assert_eq!(world.identity.authenticate(secret.expose(), None).await.expect("is known").user, robot.user);
    assert_ne!(create(sent()).await.expect("makes").object["id"], made.object["id"], "names are not unique");
    let all = list(&world, &world.owner, &[]).await;
    assert_eq!(super::names(&all), ["ci", "ci", "robot"]);
    let text = Value::from(all.clone()).to_string();
    assert!(!text.contains(secret.expose()) && !text.contains(&first) && !text.contains("fingerprint"));
    assert_eq!(list(&world, &world.owner, &[("service_token_name", "robot")]).await, all[2..]);
    let id = made.object["id"].as_str().expect("an id");
    assert_eq!(list(&world, &world.owner, &[("ids", id)]).await, std::slice::from_ref(&made.object));
    assert_eq!(list(&world, &world.owner, &[("limit", "1"), ("starting_after", id)]).await, all[2..]);
    assert_eq!(list(&world, &world.owner, &[("org_name", "none")]).await, Vec::<Value>::new());
    assert_eq!(world.records.get(&robot, &SERVICE_TOKEN, id_of(&made.object)).await, Ok(made.object));
    assert_eq!(world.listed(&API_KEY, &[]).await, ["owner"], "tokens are no keys");

    bad(create(json!({"name": "x"})).await, "`service_account_id` is missing");
    bad(create(json!({"service_account_id": robot.user})).await, "`name` is missing");
    bad(create(json!({"name": "", "service_account_id": robot.user})).await, "`name` is empty");
    bad(create(json!({"name": "x", "service_account_id": "robot"})).await, "`service_account_id` has to be a UUID");
    for nobody in [world.owner.user, Uuid::from_u128(9)] {
        let sent = json!({"name": "x", "service_account_id": nobody});
        bad(create(sent).await, &format!("no service account {nobody} is in the organization"));
    }
    missing(create(json!({"name": "x", "service_account_id": robot.user, "org_name": "none"})).await);
}

#[tokio::test]
async fn tokens_are_made_with_the_token_of_an_owner_alone() {
    let world = world().await;
    let (robot, token) = world.robot().await;
    let says = "only the service token of an owner can create service tokens, not a user's credential";
    let sent = || body(json!({"name": "t", "service_account_id": robot.user}));
    forbidden(world.records.create(&world.owner, &SERVICE_TOKEN, sent()).await, says);
    let as_robot = world.identity.authenticate_as(KEY, None, Some(&robot.user_email)).await.expect("may");
    forbidden(world.records.create(&as_robot, &SERVICE_TOKEN, sent()).await, says);
    let before = world.identity.users(&world.owner, &ListRequest::default()).await.expect("lists").len();
    forbidden(world.accounts(&world.owner, json!([{"name": "a", "token_name": "t"}])).await, says);
    let after = world.identity.users(&world.owner, &ListRequest::default()).await.expect("lists").len();
    assert_eq!(before, after, "nothing was made");

    // An account without a token only requires permission to invite. It joins the named groups.
    let made = world.accounts(&world.owner, json!([{"name": "reader"}, {"name": "reader", "token_name": ""}])).await;
    let made = made.expect("makes");
    let [one, two] = made["added_users"].as_array().expect("a list").as_slice() else { panic!("two: {made}") };
    assert!(one["id"] != two["id"] && one["email"] != two["email"]);
    assert_eq!((&one["api_key"], &one["token_name"]), (&Value::Null, &Value::Null));
    let sent = json!({"invite_users": {
        "service_accounts": [{"name": "viewer", "token_name": "of viewer"}, {"name": "bare"}], "group_name": "Viewers",
    }});
    let made = world.identity.change_members(&robot, body(sent)).await.expect("makes");
    let [viewer, bare] = made["added_users"].as_array().expect("a list").as_slice() else { panic!("two: {made}") };
    assert_eq!((&viewer["token_name"], &bare["api_key"]), (&json!("of viewer"), &Value::Null));
    let viewer = viewer["api_key"].as_str().expect("a token");
    let viewer = world.identity.authenticate(viewer, None).await.expect("is known");
    let project = world.project("p").await;
    world.records.get(&viewer, &PROJECT, project).await.expect("views");
    let sent = body(json!({"name": "t", "service_account_id": viewer.user}));
    forbidden(world.records.create(&viewer, &SERVICE_TOKEN, sent).await, "the role Owner");
    // A token can impersonate users, and then has their rights.
    let as_viewer = world.identity.authenticate_as(&token, None, Some(&viewer.user_email)).await.expect("may");
    let sent = body(json!({"name": "t", "service_account_id": viewer.user}));
    forbidden(world.records.create(&as_viewer, &SERVICE_TOKEN, sent).await, "the role Owner");

    for (wrong, says) in [
        (json!({}), "`invite_users.service_accounts` has to be a list"),
        (json!(["a"]), "`invite_users.service_accounts[0]` has to be an object"),
        (json!([{"name": "a"}, {"token_name": "t"}]), "`invite_users.service_accounts[1].name` is missing"),
        (json!([{"name": ""}]), "`invite_users.service_accounts[0].name` is empty"),
        (json!([{"name": "a", "token_name": 5}]), "`invite_users.service_accounts[0].token_name` has to be a string"),
        (json!(vec![json!({"name": "a"}); 1001]), "at most 1000 users"),
    ] {
        bad(world.accounts(&robot, wrong).await, says);
    }
}

#[tokio::test]
async fn a_token_that_goes_opens_nothing_more() {
    let world = world().await;
    let (records, identity) = (&world.records, &world.identity);
    let (robot, token) = world.robot().await;
    let project = world.project("p").await;
    let made = identity.admin_create_service_token("acme", &robot.user_email, "second").await.expect("makes");
    let second = made["service_token"].as_str().expect("a token").to_owned();
    assert_eq!(made["preview_name"].as_str().map(str::len), Some("bt-st-***".len() + 4));
    records.get(&robot, &PROJECT, project).await.expect("reads");
    records.delete(&world.owner, &SERVICE_TOKEN, robot.credential.record()).await.expect("the owner may");
    unknown(identity.authenticate(&token, None).await);
    // A recently authenticated caller is unknown as well.
    unknown(records.get(&robot, &PROJECT, project).await);
    unknown(records.get(&robot, &PROJECT, Uuid::from_u128(9)).await);
    unknown(records.create(&robot, &SERVICE_TOKEN, body(json!({"name": "t", "service_account_id": robot.user}))).await);
    unknown(records.object(&robot, ObjectKind::ProjectLogs, project, Permission::Update).await);
    missing(records.get(&world.owner, &SERVICE_TOKEN, robot.credential.record()).await);

    let robot = identity.authenticate(&second, None).await.expect("goes on");
    let removed = || body(json!({"remove_users": {"ids": [robot.user]}}));
    identity.change_members(&world.owner, removed()).await.expect("removes");
    unknown(identity.authenticate(&second, None).await);
    unknown(records.get(&robot, &PROJECT, project).await);
    assert_eq!(list(&world, &world.owner, &[]).await, Vec::<Value>::new(), "its tokens went with it");
    let back = body(json!({"invite_users": {"ids": [robot.user]}}));
    identity.change_members(&world.owner, back).await.expect("comes back");
    unknown(identity.authenticate(&second, None).await);
    assert_eq!(identity.admin_service_tokens("acme").await, Ok(json!([])));
    missing(identity.admin_create_service_token("acme", "owner@example.com", "t").await);
    missing(identity.admin_delete_service_token(robot.credential.record()).await);
}

/// Each case has a grant to Ann on the members, and whether she can read and delete a token.
#[tokio::test]
async fn tokens_are_seen_by_who_manages_members() {
    let world = world().await;
    let (robot, _) = world.robot().await;
    let members = (ObjectType::OrgMember, world.owner.org.0);
    for (grants, sees, deletes) in [
        (&[][..], false, false),
        (&[Permission::Read, Permission::Delete], false, false),
        (&[Permission::ReadAcls], true, false),
        (&[Permission::ReadAcls, Permission::Delete], true, true),
    ] {
        let words: Vec<_> = grants.iter().map(|grant| grant.word()).collect();
        let ann = world.member(&format!("ann-{}@example.com", words.join("-"))).await;
        for grant in grants {
            world.grant(members, json!({"user_id": ann.user}), json!({"permission": grant.word()})).await;
        }
        let made = world.identity.admin_create_service_token("acme", &robot.user_email, "t").await.expect("makes");
        let id = id_of(&made);
        assert_eq!(world.records.get(&ann, &SERVICE_TOKEN, id).await.is_ok(), sees, "{grants:?}");
        assert_eq!(list(&world, &ann, &[]).await.is_empty(), !sees, "{grants:?}");
        match world.records.delete(&ann, &SERVICE_TOKEN, id).await {
            Ok(_) => assert!(deletes, "{grants:?}"),
            Err(RecordsError::Forbidden(_)) => assert!(sees && !deletes, "{grants:?}"),
            Err(why) => assert!(!sees && matches!(why, RecordsError::NotFound(_)), "{grants:?}: {why}"),
        }
    }
    // An account can read and delete its own tokens without a grant.
    let made = world.accounts(&robot, json!([{"name": "bare", "token_name": "own"}])).await.expect("makes");
    let token = made["added_users"][0]["api_key"].as_str().expect("a token");
    let bare = world.identity.authenticate(token, None).await.expect("is known");
    assert_eq!(super::names(&list(&world, &bare, &[]).await), ["own"]);
    missing(world.records.get(&bare, &SERVICE_TOKEN, robot.credential.record()).await);
    world.records.delete(&bare, &SERVICE_TOKEN, bare.credential.record()).await.expect("its own");
    unknown(world.identity.authenticate(token, None).await);
}

#[tokio::test]
async fn an_owners_token_acts_as_members_and_nobody_elses_does() {
    let world = world().await;
    let identity = &world.identity;
    let (robot, token) = world.robot().await;
    let ann = world.member("ann@example.com").await;
    let who = identity.authenticate_as(&token, None, Some("ann@example.com")).await.expect("owns all");
    assert_eq!((who.user, who.impersonator, who.credential), (ann.user, Some(robot.user), robot.credential));
    identity.admin_create_organization("beta", "other@example.com").await.expect("makes");
    identity.admin_create_user("beta", "ann@example.com").await.expect("joins");
    let refused = identity.authenticate_as(&token, None, Some("ann@example.com")).await;
    forbidden(refused, "Owner in every organization");
    let made = world.accounts(&robot, json!([{"name": "bare", "token_name": "t"}])).await.expect("makes");
    let bare = made["added_users"][0]["api_key"].as_str().expect("a token");
    forbidden(identity.authenticate_as(bare, None, Some("owner@example.com")).await, "Owner in every organization");
}

#[tokio::test]
async fn a_jwt_speaks_for_the_user_of_its_address_wherever_they_are_now() {
    let world = world().await;
    let identity = world.jwt_taker().await;
    let records = identity.records();
    unknown(world.identity.authenticate(&jwt(OF_OWNER), None).await);
    let owner = identity.authenticate(&jwt(OF_OWNER), None).await.expect("is taken");
    assert_eq!((owner.user, owner.org), (world.owner.user, world.owner.org));
    assert_eq!(owner.credential, Credential::Jwt(world.owner.user));
    assert_eq!(identity.authenticate(KEY, None).await.expect("keys too").credential, world.owner.credential);
    for wrong in [jwt(EXPIRED), jwt(OF_NOBODY), jwt(OF_ANN), jwt(&OF_OWNER.replace("_vXd", "_vXe")), "a.b.c".into()] {
        unknown(identity.authenticate(&wrong, None).await);
    }
    world.member("ken@example.com").await;
    unknown(identity.authenticate(&jwt(OF_KELVIN), None).await);
    let says = "not a user's credential";
    let (robot, _) = world.robot().await;
    let sent = body(json!({"name": "t", "service_account_id": robot.user}));
    forbidden(records.create(&owner, &SERVICE_TOKEN, sent).await, says);
    records.create(&owner, &API_KEY, body(json!({"name": "mine"}))).await.expect("keys are users'");

    let ann = world.member("ann@example.com").await;
    let project = world.project("p").await;
    let by_jwt = identity.authenticate(&jwt(OF_ANN), None).await.expect("is a user now, in any case of letters");
    assert_eq!(by_jwt.user, ann.user);
    missing(records.get(&by_jwt, &PROJECT, project).await);
    world.grant((ObjectType::Project, project), json!({"user_id": ann.user}), json!({"permission": "read"})).await;
    records.get(&by_jwt, &PROJECT, project).await.expect("was granted");
    forbidden(identity.authenticate_as(&jwt(OF_ANN), None, Some("owner@example.com")).await, "Owner in every");
    let acting = identity.authenticate_as(&jwt(OF_OWNER), None, Some("ann@example.com")).await.expect("owns all");
    assert_eq!((acting.user, acting.impersonator), (ann.user, Some(world.owner.user)));

    identity.admin_create_organization("beta", "owner@example.com").await.expect("makes");
    missing(identity.authenticate(&jwt(OF_ANN), Some("beta")).await);
    identity.admin_create_user("beta", "ann@example.com").await.expect("joins");
    assert_eq!(identity.authenticate(&jwt(OF_ANN), Some("beta")).await.expect("is in it").org_name, "beta");
    assert_eq!(identity.organizations(&by_jwt).await.expect("lists").len(), 2);
    let removed = body(json!({"remove_users": {"ids": [ann.user]}}));
    identity.change_members(&world.owner, removed).await.expect("removes");
    missing(records.get(&by_jwt, &PROJECT, project).await);
    missing(identity.authenticate(&jwt(OF_ANN), Some("acme")).await);
    assert_eq!(identity.authenticate(&jwt(OF_ANN), None).await.expect("is in the other").org_name, "beta");
}
