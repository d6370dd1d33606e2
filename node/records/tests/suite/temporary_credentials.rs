//! Tests of temporary credentials: their use, their issuers, and their end.

use assay_node_auth::{Asker, Credential, LoggingTarget, Principal, Secret, TemporaryLogging, TemporaryTerms};
use assay_node_identity::{Identity, ModelCaller, NewTemporary, TEMPORARY_SECONDS_MAX};
use assay_node_records::RecordsError;
use assay_node_records::kinds::API_KEY;
use assay_node_records::kinds::temporary_credential::{
    TEMPORARY_CREDENTIALS_PER_USER_MAX, TemporaryCredential, index_key,
};
use assay_node_records::mechanism::By;
use assay_storage_model::catalog::{CatalogCommand, Expect, PutRecord, RecordKind};
use serde_json::json;
use uuid::Uuid;

use super::logins::{log_in, open_to_people};
use super::{KEY, World, bad, body, id_of, world};

fn wanted(terms: TemporaryTerms, seconds: u32) -> NewTemporary {
    NewTemporary { terms, seconds }
}

fn any_model() -> NewTemporary {
    wanted(TemporaryTerms::default(), 600)
}

async fn issued(identity: &Identity, who: &Principal) -> Secret {
    identity.issue_temporary(who, any_model()).await.expect("is issued")
}

async fn calls_models(identity: &Identity, token: &Secret) -> Result<ModelCaller, RecordsError> {
    identity.authenticate_model_caller(token.expose(), None, None).await
}

#[track_caller]
fn unknown(outcome: Result<impl std::fmt::Debug, RecordsError>) {
    assert!(matches!(outcome, Err(RecordsError::Unauthenticated(_))), "{outcome:?}");
}

#[track_caller]
fn forbidden(outcome: Result<impl std::fmt::Debug, RecordsError>, says: &str) {
    assert!(matches!(&outcome, Err(RecordsError::Forbidden(why)) if why.contains(says)), "{says}: {outcome:?}");
}

/// Test setup with a known master key, as after every start.
async fn issuing_world() -> World {
    let world = world().await;
    world.records.secrets().master_key().await.expect("is written down");
    world
}

impl World {
    fn temporary_records(&self) -> usize {
        self.cluster.catalog().read().all(RecordKind::TEMPORARY_CREDENTIAL).count()
    }
}

#[tokio::test]
async fn a_temporary_credential_calls_models_for_its_user_and_does_nothing_else() {
    let world = issuing_world().await;
    let identity = &world.identity;
    let logging = TemporaryLogging { target: LoggingTarget::ProjectName("p".into()), compress_audio: true };
    let terms = TemporaryTerms {
        model: Some("gpt-4o".into()),
        logging: Some(logging),
        max_requests: Some(3),
        max_cost: Some(0.5),
    };
    let before = assay_node_records::mechanism::now_micros() / 1_000_000;
    let token = identity.issue_temporary(&world.owner, wanted(terms.clone(), 60)).await.expect("is issued");
    let ModelCaller { principal, temporary } = calls_models(identity, &token).await.expect("is known");
    let grant = temporary.expect("it is temporary");
    assert_eq!(
        (principal.user, principal.org, &principal.rights),
        (world.owner.user, world.owner.org, &world.owner.rights)
    );
    assert_eq!(grant.terms, terms);
    assert!((before + 60..before + 70).contains(&grant.until), "{grant:?}");
    let parent = world.owner.credential.record();
    assert_eq!(principal.credential, Credential::Temporary { id: grant.id, parent });
    assert_eq!(principal.credential.counted_as(), parent);

    forbidden(identity.authenticate(token.expose(), None).await, "can only call models");
    forbidden(identity.authenticate_as(token.expose(), Some("acme"), None).await, "can only call models");
    let in_another = identity.authenticate_model_caller(token.expose(), Some("beta"), None).await;
    assert!(matches!(in_another, Err(RecordsError::NotFound(_))), "{in_another:?}");
    world.member("ann@example.com").await;
    let as_ann = identity.authenticate_model_caller(token.expose(), None, Some("ann@example.com")).await;
    forbidden(as_ann, "not allowed to act as that user");
    let lasting = identity.authenticate_model_caller(KEY, None, None).await.expect("keys call models too");
    assert_eq!((lasting.principal.credential, lasting.temporary), (world.owner.credential, None));
}

#[tokio::test]
async fn issuing_is_put_on_record_before_it_is_done() {
    let world = issuing_world().await;
    world.kept.entries.lock().clear();
    issued(&world.identity, &world.owner).await;
    let entries = std::mem::take(&mut *world.kept.entries.lock());
    let [(org, entry)] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!(*org, world.owner.org);
    assert_eq!((&entry["action"], &entry["object_type"]), (&json!("create"), &json!("temporary_credential")));
    assert_eq!(entry["actor"]["credential_id"], json!(world.owner.credential.record()));
    assert_eq!(entry["details"]["after"]["user_id"], json!(world.owner.user));
    world.kept.fails.store(true, std::sync::atomic::Ordering::Relaxed);
    let unkept = world.identity.issue_temporary(&world.owner, any_model()).await;
    assert!(matches!(unkept, Err(RecordsError::Unavailable(_))), "{unkept:?}");
    assert_eq!(world.temporary_records(), 1);
}

#[tokio::test]
async fn a_temporary_credential_ends_with_the_key_that_issued_it() {
    let world = issuing_world().await;
    let (records, identity) = (&world.records, &world.identity);
    let made = records.create(&world.owner, &API_KEY, body(json!({"name": "k"}))).await.expect("makes");
    let key = made.secret.expect("a secret");
    let who = identity.authenticate(key.expose(), None).await.expect("is known");
    let token = issued(identity, &who).await;
    let caller = calls_models(identity, &token).await.expect("is known").principal;
    let asker = Asker::from_bytes(&Asker::of(&caller).to_bytes()).expect("other nodes read it");
    let seen = asker.principal().expect("a user");
    let known = |who: &Principal| {
        records
            .catalog()
            .peek(|view| assay_node_records::mechanism::within(view, who, who.org).map(|who| who.is_some()))
    };
    assert_eq!(known(&seen), Ok(true));
    records.delete(&world.owner, &API_KEY, id_of(&made.object)).await.expect("goes");
    unknown(calls_models(identity, &token).await);
    unknown(known(&seen));
    unknown(identity.issue_temporary(&who, any_model()).await);
}

#[tokio::test]
async fn a_temporary_credential_ends_with_the_membership_of_its_user() {
    let world = issuing_world().await;
    let identity = &world.identity;
    let ann = world.member("ann@example.com").await;
    let token = issued(identity, &ann).await;
    calls_models(identity, &token).await.expect("is known");
    let removed = body(json!({"remove_users": {"ids": [ann.user]}}));
    identity.change_members(&world.owner, removed).await.expect("removes");
    unknown(calls_models(identity, &token).await);
    identity.admin_create_user("acme", "ann@example.com").await.expect("is back");
    unknown(calls_models(identity, &token).await);
}

#[tokio::test]
async fn keys_tokens_and_logins_issue_temporary_credentials_and_nothing_else_does() {
    let (world, identity) = open_to_people().await;
    let tokens = log_in(&identity, "owner@example.com").await;
    let person = identity.authenticate(tokens.access.expose(), None).await.expect("is known");
    let long = wanted(TemporaryTerms::default(), TEMPORARY_SECONDS_MAX);
    let by_login = identity.issue_temporary(&person, long).await.expect("is issued");
    let caller = calls_models(&identity, &by_login).await.expect("is known");
    let until = caller.temporary.expect("it is temporary").until;
    let end = assay_node_records::mechanism::now_micros() / 1_000_000 + 3600;
    assert!(until <= end, "the login ends at {end}, and the credential at {until}");

    forbidden(identity.issue_temporary(&caller.principal, any_model()).await, "cannot issue another one");
    let jwt = Principal { credential: Credential::Jwt(person.user), ..person.clone() };
    forbidden(identity.issue_temporary(&jwt, any_model()).await, "a JWT of another issuer");
    world.member("ann@example.com").await;
    let as_ann = identity.authenticate_as(KEY, None, Some("ann@example.com")).await.expect("may");
    forbidden(identity.issue_temporary(&as_ann, any_model()).await, "while acting as another user");

    identity.end_login(tokens.access.expose(), None).await.expect("ends");
    unknown(calls_models(&identity, &by_login).await);
}

#[tokio::test]
async fn expired_temporary_credentials_are_refused_and_swept() {
    let world = issuing_world().await;
    let identity = &world.identity;
    let short = identity.issue_temporary(&world.owner, wanted(TemporaryTerms::default(), 1)).await.expect("is issued");
    let long = issued(identity, &world.owner).await;
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    unknown(calls_models(identity, &short).await);
    assert_eq!(world.temporary_records(), 2);
    identity.sweep_and_say().await;
    assert_eq!(world.temporary_records(), 1);
    calls_models(identity, &long).await.expect("is still known");
}

#[tokio::test]
async fn a_user_has_a_bounded_number_of_valid_credentials() {
    let world = issuing_world().await;
    let (identity, owner) = (&world.identity, &world.owner);
    let now = assay_node_records::mechanism::now_micros();
    let put = |index: u32| {
        let until = if index == 7 { now / 1_000_000 - 1 } else { now / 1_000_000 + 600 };
        let terms = TemporaryTerms::default();
        let record = TemporaryCredential { user_id: owner.user, parent: owner.credential, index, until, terms };
        CatalogCommand::Put(PutRecord {
            kind: RecordKind::TEMPORARY_CREDENTIAL,
            id: Uuid::new_v4(),
            org: Some(owner.org),
            expect: Expect::Absent,
            keys: vec![index_key(owner.org, owner.user, index)],
            body: serde_json::to_vec(&record).expect("JSON"),
            at: now,
        })
    };
    let indexes: Vec<u32> = (0..TEMPORARY_CREDENTIALS_PER_USER_MAX).collect();
    for part in indexes.chunks(100) {
        let puts = part.iter().map(|index| put(*index)).collect();
        world.records.catalog().propose(By::System, puts).await.expect("are put");
    }
    let token = issued(identity, owner).await;
    calls_models(identity, &token).await.expect("it took the index of the one that is over");
    bad(identity.issue_temporary(owner, any_model()).await, "1000 valid temporary credentials");
    let ann = world.member("ann@example.com").await;
    issued(identity, &ann).await;
}
