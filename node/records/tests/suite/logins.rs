//! Tests of logins: validity, reuse and expiry of codes and refresh tokens.

use assay_node_auth::{Credential, IdTokenClaims, LoginAsked, LoginRules, challenge_of};
use assay_node_identity::{GrantRefusal, Identity, LoginTokens};
use assay_node_records::kinds::{API_KEY, PROJECT};
use assay_node_records::{ListRequest, Records, RecordsError};
use assay_node_secrets::Keyring;
use assay_storage_model::catalog::RecordKind;
use serde_json::{Value, json};

use super::{World, body, master, missing, world};

const VERIFIER: &str = "a-verifier-of-the-tests-that-is-long-enough-0";
const OTHER: &str = "a-verifier-of-the-tests-that-is-long-enough-1";
const BACK: &str = "http://127.0.0.1:5000/callback";
const CLI: &str = "cli";

fn rules() -> LoginRules {
    LoginRules {
        provider: "login.example".into(),
        origin: "https://assay.example".into(),
        clients: Vec::new(),
        redirect_uris: Vec::new(),
        is_registration_open: true,
        access_seconds: 600,
        login_seconds: 3600,
    }
}

pub(super) fn asked() -> LoginAsked {
    LoginAsked {
        session: None,
        registered: None,
        client_id: CLI.into(),
        redirect_uri: BACK.into(),
        state: Some("s".into()),
        challenge: challenge_of(VERIFIER),
        scope: "mcp".into(),
    }
}

pub(super) fn named(email: &str) -> IdTokenClaims {
    IdTokenClaims { email: email.into(), is_verified: true }
}

/// Test setup with logins.
pub(super) async fn open_to_people() -> (World, Identity) {
    let world = world().await;
    world.records.secrets().master_key().await.expect("is written down");
    let identity = world.identity.clone().with_logins(rules());
    (world, identity)
}

async fn code(identity: &Identity, email: &str) -> String {
    identity.finish_login(&asked(), &named(email)).await.expect("a code")
}

async fn redeem(identity: &Identity, code: &str) -> Result<LoginTokens, GrantRefusal> {
    identity.redeem_code(code, CLI, BACK, VERIFIER).await
}

pub(super) async fn log_in(identity: &Identity, email: &str) -> LoginTokens {
    redeem(identity, &code(identity, email).await).await.expect("tokens")
}

#[track_caller]
fn invalid(outcome: Result<LoginTokens, GrantRefusal>, says: &str) {
    assert!(matches!(&outcome, Err(GrantRefusal::Invalid(why)) if why.contains(says)), "{says}: {outcome:?}");
}

pub(super) async fn is_open(identity: &Identity, tokens: &LoginTokens) -> bool {
    match identity.authenticate(tokens.access.expose(), None).await {
        Ok(_) => true,
        Err(RecordsError::Unauthenticated(_)) => false,
        Err(why) => panic!("{why}"),
    }
}

impl World {
    /// Returns the entries about logins since the last call.
    fn logged(&self) -> Vec<(String, Value)> {
        let entries = std::mem::take(&mut *self.kept.entries.lock());
        let about = entries.into_iter().map(|(_, entry)| (entry["action"].as_str().expect("one").to_owned(), entry));
        about.filter(|(action, _)| action.starts_with("log")).map(|(action, entry)| (action, entry.into())).collect()
    }

    fn logins(&self) -> usize {
        self.cluster.catalog().read().all(RecordKind::LOGIN).count()
    }
}

#[tokio::test]
async fn a_login_speaks_for_its_user_and_goes_on_until_it_is_ended() {
    let (world, identity) = open_to_people().await;
    let begun = identity.begin_login(asked()).expect("begins");
    let pending = identity.pending_login(&begun.state).expect("opens").expect("is ours");
    assert_eq!((&pending.asked, &pending.nonce), (&asked(), &begun.nonce));
    assert_eq!(challenge_of(&pending.verifier), begun.challenge);
    assert_eq!(identity.pending_login("x").expect("is looked at"), None);
    assert_eq!(world.logins(), 0, "nothing is kept of who only asks");

    let tokens = log_in(&identity, "OWNER@example.com").await;
    assert_eq!((tokens.expires_in, tokens.scope.as_str()), (600, "mcp"));
    let owner = identity.authenticate(tokens.access.expose(), Some("acme")).await.expect("is known");
    assert_eq!((owner.user, owner.org), (world.owner.user, world.owner.org));
    assert!(matches!(owner.credential, Credential::Login(_)), "{owner:?}");
    identity.records().create(&owner, &API_KEY, body(json!({"name": "mine"}))).await.expect("does what its user may");
    assert!(!is_open(&world.identity, &tokens).await, "where nobody logs in");
    for not_shown in [tokens.refresh.expose(), &code(&identity, "owner@example.com").await] {
        assert!(matches!(identity.authenticate(not_shown, None).await, Err(RecordsError::Unauthenticated(_))));
    }

    let next = identity.refresh_login(tokens.refresh.expose(), CLI).await.expect("goes on");
    assert!(next.refresh != tokens.refresh && next.access != tokens.access);
    assert!(is_open(&identity, &next).await);
    let said: Vec<_> = world.logged().into_iter().map(|(action, entry)| (action, entry["actor"].clone())).collect();
    let actions: Vec<_> = said.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(actions, ["login", "login"], "who refreshes is who logged in");
    assert_eq!(said[0].1["user_id"], json!(owner.user));
    assert_eq!(said[0].1["credential"], "login");
    assert_eq!(said[0].1["credential_id"], json!(owner.credential.record()));

    identity.end_login(next.refresh.expose(), Some(CLI)).await.expect("ends");
    assert!(!is_open(&identity, &next).await && !is_open(&identity, &tokens).await);
    missing_or_unknown(identity.records().list(&owner, &PROJECT, &ListRequest::default()).await);
    invalid(identity.refresh_login(next.refresh.expose(), CLI).await, "its login has ended");
    assert_eq!(world.logged()[0].0, "logout");
    identity.end_login(next.refresh.expose(), None).await.expect("is ended");
    identity.end_login("nonsense", None).await.expect("is nothing");
    let by_access = log_in(&identity, "owner@example.com").await;
    let others = identity.end_login(by_access.access.expose(), Some("other")).await;
    assert!(matches!(others, Err(GrantRefusal::Invalid(_))) && is_open(&identity, &by_access).await);
    identity.end_login(by_access.access.expose(), None).await.expect("ends");
    assert!(!is_open(&identity, &by_access).await);
}

#[track_caller]
fn missing_or_unknown(outcome: Result<Vec<Value>, RecordsError>) {
    assert!(matches!(outcome, Err(RecordsError::Unauthenticated(_) | RecordsError::NotFound(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_code_is_redeemed_once_by_whom_it_is_for() {
    let (world, identity) = open_to_people().await;
    for (client, back, verifier, says) in [
        ("other", BACK, VERIFIER, "belongs to another client"),
        (CLI, "http://127.0.0.1:5001/callback", VERIFIER, "`redirect_uri`"),
        (CLI, BACK, OTHER, "`code_verifier`"),
        (CLI, BACK, "", "`code_verifier`"),
    ] {
        let code = code(&identity, "owner@example.com").await;
        invalid(identity.redeem_code(&code, client, back, verifier).await, says);
        invalid(redeem(&identity, &code).await, "is unknown, was used");
    }
    assert_eq!(world.logins(), 0);
    invalid(redeem(&identity, "nonsense").await, "is unknown");
    let replayed = code(&identity, "owner@example.com").await;
    let tokens = redeem(&identity, &replayed).await.expect("tokens");
    invalid(identity.redeem_code(tokens.refresh.expose(), CLI, BACK, VERIFIER).await, "is unknown");
    world.logged();
    invalid(redeem(&identity, &replayed).await, "was already used");
    assert!(!is_open(&identity, &tokens).await, "somebody else saw the code");
    assert_eq!(world.logged()[0].0, "login_code_reused");

    // One of two concurrent requests succeeds, and then the login ends for both.
    let code = code(&identity, "owner@example.com").await;
    let (one, two) = tokio::join!(redeem(&identity, &code), redeem(&identity, &code));
    let won: Vec<_> = [one, two].into_iter().filter_map(Result::ok).collect();
    assert_eq!(won.len(), 1);
    assert!(!is_open(&identity, &won[0]).await);
}

#[tokio::test]
async fn a_refresh_token_from_before_ends_the_login() {
    let (world, identity) = open_to_people().await;
    let first = log_in(&identity, "owner@example.com").await;
    let second = identity.refresh_login(first.refresh.expose(), CLI).await.expect("goes on");
    let third = identity.refresh_login(second.refresh.expose(), CLI).await.expect("goes on");
    invalid(identity.refresh_login(third.refresh.expose(), "other").await, "belongs to another client");
    assert!(is_open(&identity, &first).await && is_open(&identity, &third).await);
    let other = log_in(&identity, "owner@example.com").await;
    world.logged();
    invalid(identity.refresh_login(first.refresh.expose(), CLI).await, "was already used");
    assert!(!is_open(&identity, &first).await && !is_open(&identity, &third).await);
    invalid(identity.refresh_login(third.refresh.expose(), CLI).await, "its login has ended");
    assert!(is_open(&identity, &other).await, "another login of the same user goes on");
    assert_eq!(world.logged().iter().map(|(action, _)| action.as_str()).collect::<Vec<_>>(), ["login_refresh_reused"]);
    let (one, two) = tokio::join!(
        identity.refresh_login(other.refresh.expose(), CLI),
        identity.refresh_login(other.refresh.expose(), CLI)
    );
    assert_eq!([one.is_ok(), two.is_ok()].into_iter().filter(|ok| *ok).count(), 1);
}

#[track_caller]
fn forbidden(outcome: Result<String, RecordsError>, says: &str) {
    assert!(matches!(&outcome, Err(RecordsError::Forbidden(why)) if why.contains(says)), "{says}: {outcome:?}");
}

#[tokio::test]
async fn only_verified_people_who_are_here_log_in() {
    let (world, identity) = open_to_people().await;
    forbidden(identity.finish_login(&asked(), &named("nobody@example.com")).await, "nobody@example.com");
    let made = identity.admin_create_service_account("acme", "robot").await.expect("makes");
    forbidden(
        identity.finish_login(&asked(), &named(made["email"].as_str().expect("one"))).await,
        "No member of an organization",
    );
    assert_eq!(world.logged(), [], "they are nobody's");
    let unverified = IdTokenClaims { email: "owner@example.com".into(), is_verified: false };
    for _ in 0..3 {
        forbidden(identity.finish_login(&asked(), &unverified).await, "verified");
    }
    let logged = world.logged();
    assert_eq!(logged.len(), 1, "once in a while: {logged:?}");
    assert_eq!((logged[0].0.as_str(), &logged[0].1["actor"]["type"]), ("login_refused", &json!("unauthenticated")));
    world.kept.fails.store(true, std::sync::atomic::Ordering::Relaxed);
    let unkept = identity.finish_login(&asked(), &named("owner@example.com")).await;
    assert!(matches!(unkept, Err(RecordsError::Unavailable(_))), "{unkept:?}");
    assert_eq!(world.logins(), 0);
}

#[tokio::test]
async fn who_leaves_is_logged_out_and_stays_so() {
    let (world, identity) = open_to_people().await;
    let ann = world.member("ann@example.com").await;
    let tokens = log_in(&identity, "ann@example.com").await;
    let code = code(&identity, "ann@example.com").await;
    assert!(is_open(&identity, &tokens).await);
    let members = |what: Value| identity.change_members(&world.owner, body(what));
    members(json!({"remove_users": {"ids": [ann.user]}})).await.expect("goes");
    assert!(!is_open(&identity, &tokens).await);
    assert_eq!(world.logins(), 0);
    members(json!({"invite_users": {"emails": ["ann@example.com"]}})).await.expect("comes back");
    assert!(!is_open(&identity, &tokens).await, "what was before is over");
    invalid(identity.refresh_login(tokens.refresh.expose(), CLI).await, "its login has ended");
    invalid(redeem(&identity, &code).await, "is unknown");
    let tokens = log_in(&identity, "ann@example.com").await;
    let by_login = identity.authenticate(tokens.access.expose(), None).await.expect("is back");
    let project = world.project("p").await;
    missing(identity.records().get(&by_login, &PROJECT, project).await);
}

#[tokio::test]
async fn a_user_has_so_many_logins_and_no_more() {
    let (world, identity) = open_to_people().await;
    let first = log_in(&identity, "owner@example.com").await;
    let second = log_in(&identity, "owner@example.com").await;
    let first = identity.refresh_login(first.refresh.expose(), CLI).await.expect("goes on");
    for _ in 2..20 {
        log_in(&identity, "owner@example.com").await;
    }
    assert_eq!(world.logins(), 20);
    assert!(is_open(&identity, &second).await);
    log_in(&identity, "owner@example.com").await;
    assert_eq!(world.logins(), 20);
    assert!(
        is_open(&identity, &first).await && !is_open(&identity, &second).await,
        "the one that was used least lately"
    );
    let over = identity.clone().with_logins(LoginRules { login_seconds: 0, ..rules() });
    let code = code(&over, "owner@example.com").await;
    let ended = redeem(&over, &code).await.expect("tokens");
    assert_eq!(ended.expires_in, 0);
    assert!(!is_open(&over, &ended).await);
    invalid(over.refresh_login(ended.refresh.expose(), CLI).await, "its login has ended");
    assert_eq!(identity.sweep().await, Ok(1));
    assert_eq!(world.logins(), 19);
}

/// No record contains a token or code of a client.
#[tokio::test]
async fn no_secret_of_a_login_is_kept_and_a_node_without_the_key_says_so() {
    let (world, identity) = open_to_people().await;
    let code = code(&identity, "owner@example.com").await;
    let tokens = redeem(&identity, &code).await.expect("tokens");
    let shown = [code.as_str(), tokens.access.expose(), tokens.refresh.expose(), VERIFIER];
    let parts: Vec<&str> = shown.iter().flat_map(|text| text.split('.')).filter(|part| part.len() > 24).collect();
    for record in world.cluster.catalog().read().all(RecordKind::LOGIN) {
        let body = String::from_utf8_lossy(&record.body);
        assert!(body.contains(CLI) && parts.iter().all(|part| !body.contains(part)), "{body}");
    }
    let ledger = || std::sync::Arc::clone(&world.kept) as std::sync::Arc<dyn assay_node_auth::Ledger>;
    let without = Identity::new(Records::new(std::sync::Arc::clone(&world.cluster), ledger())).with_logins(rules());
    for refused in [
        without.begin_login(asked()).map(drop),
        without.authenticate(tokens.access.expose(), None).await.map(drop),
        without.finish_login(&asked(), &named("owner@example.com")).await.map(drop),
    ] {
        let named = master(1).id().to_string();
        assert!(matches!(&refused, Err(RecordsError::Unavailable(why)) if why.contains(&named)), "{refused:?}");
    }
    assert!(matches!(redeem(&without, &code).await, Err(GrantRefusal::Failed(RecordsError::Unavailable(_)))));
    // After a rotation, older tokens stay valid as long as a node has the old key.
    let rotated = Identity::new(Records::new(std::sync::Arc::clone(&world.cluster), ledger())).with_logins(rules());
    rotated.records().secrets().give_keys(Keyring::new(master(2), vec![master(1)]));
    rotated.records().secrets().rotate_master_key().await.expect("rotates");
    assert!(is_open(&rotated, &tokens).await);
    let next = rotated.refresh_login(tokens.refresh.expose(), CLI).await.expect("goes on");
    let later = Identity::new(Records::new(std::sync::Arc::clone(&world.cluster), ledger())).with_logins(rules());
    later.records().secrets().give_keys(Keyring::new(master(2), Vec::new()));
    assert!(is_open(&later, &next).await && !is_open(&later, &tokens).await);
}
