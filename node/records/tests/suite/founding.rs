//! Tests of the first start, later starts, and administration.

use std::sync::Arc;

use assay_node_identity::Identity;
use assay_node_records::{Founding, Records, RecordsError};
use serde_json::json;

use super::{KEY, MemoryLedger, founding, open, world};

#[tokio::test]
async fn the_first_start_shows_a_key_once_and_a_later_one_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = open(dir.path()).await;
    let records = Records::new(Arc::clone(&cluster), Arc::new(MemoryLedger::default()));
    let identity = Identity::new(records.clone());
    let early = identity.authenticate("sk-any", None).await;
    assert!(matches!(early, Err(RecordsError::Unavailable(_))), "{early:?}");
    let key = records.found(founding(None)).await.expect("founds").expect("a key");
    assert!(key.expose().starts_with("sk-"));
    let owner = identity.authenticate(key.expose(), None).await.expect("the owner");
    assert_eq!((owner.org_name.as_str(), owner.user_email.as_str()), ("acme", "owner@example.com"));
    assert!(records.found(founding(None)).await.expect("founds again").is_none());
    let other = Founding { org_name: "other".into(), ..founding(Some(KEY)) };
    assert!(records.found(other).await.expect("founds again").is_none());
    assert!(identity.authenticate(KEY, None).await.is_err(), "a key that comes too late is none");
    cluster.shutdown().await.expect("shuts down");
    drop((records, identity, cluster));

    // The key remains valid after a restart.
    let cluster = open(dir.path()).await;
    let records = Records::new(Arc::clone(&cluster), Arc::new(MemoryLedger::default()));
    let identity = Identity::new(records.clone());
    assert!(records.found(founding(None)).await.expect("founds again").is_none());
    assert_eq!(identity.authenticate(key.expose(), None).await.expect("the owner"), owner);
    assert_eq!(identity.admin_organizations().await.expect("lists").as_array().map(Vec::len), Some(1));
    cluster.shutdown().await.expect("shuts down");
}

#[tokio::test]
async fn a_founding_that_breaks_a_rule_makes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = open(dir.path()).await;
    let records = Records::new(Arc::clone(&cluster), Arc::new(MemoryLedger::default()));
    let identity = Identity::new(records.clone());
    for wrong in [
        founding(Some("sk-short")),
        founding(Some("sk-with a space in it")),
        Founding { org_name: String::new(), ..founding(None) },
        Founding { owner_email: "nobody".into(), ..founding(None) },
    ] {
        assert!(matches!(records.found(wrong).await, Err(RecordsError::BadRequest(_))));
    }
    assert_eq!(identity.admin_organizations().await, Ok(json!([])));
    assert!(records.found(founding(None)).await.expect("founds").is_some());
}

#[tokio::test]
async fn a_credential_is_told_by_its_fingerprint() {
    let world = world().await;
    for unknown in ["", "sk-", "sk-the-owners-very-own-kez", &KEY.to_uppercase(), "🔑", &"x".repeat(100_000)] {
        let refused = world.identity.authenticate(unknown, None).await;
        assert!(matches!(refused, Err(RecordsError::Unauthenticated(_))), "{unknown}: {refused:?}");
    }
    let empty_name = world.identity.authenticate(KEY, Some("")).await;
    assert_eq!(empty_name.expect("empty means not given"), world.owner);
}

#[tokio::test]
async fn a_name_picks_among_the_organizations_of_a_user() {
    let world = world().await;
    let identity = &world.identity;
    let made = identity.admin_create_organization("beta", "Owner@example.com").await.expect("creates");
    let bound = made["api_key"].as_str().expect("a key").to_owned();

    let first = identity.authenticate(KEY, None).await.expect("the oldest");
    let named = identity.authenticate(KEY, Some("beta")).await.expect("the other");
    assert_eq!((first.org_name.as_str(), named.org_name.as_str()), ("acme", "beta"));
    assert_eq!((first.user, first.credential), (named.user, named.credential));
    let orgs = identity.organizations(&named).await.expect("lists");
    assert_eq!(orgs.iter().map(|org| org.name.as_str()).collect::<Vec<_>>(), ["acme", "beta"]);

    // A key for one organization is invalid for the others of its user.
    assert_eq!(identity.authenticate(&bound, None).await.expect("beta").org_name, "beta");
    super::missing(identity.authenticate(&bound, Some("acme")).await);
    super::missing(identity.authenticate(KEY, Some("gamma")).await);
    super::missing(identity.authenticate(KEY, Some("Beta")).await);
}

#[tokio::test]
async fn an_administrator_makes_organizations_users_and_keys() {
    let world = world().await;
    let identity = &world.identity;
    let taken = identity.admin_create_organization("acme", "a@example.com").await;
    assert!(matches!(taken, Err(RecordsError::Taken(_))), "{taken:?}");
    let user = identity.admin_create_user("acme", "second@example.com").await.expect("creates");
    assert_eq!(identity.admin_create_user("acme", "second@example.com").await, Ok(user.clone()));
    let users = identity.admin_users("acme").await.expect("lists");
    let emails: Vec<_> = users.as_array().expect("a list").iter().map(|user| user["email"].clone()).collect();
    assert_eq!(emails, ["owner@example.com", "second@example.com"]);

    let made = identity.admin_create_key("acme", "second@example.com", "ci").await.expect("creates");
    let secret = made["api_key"].as_str().expect("a key").to_owned();
    let who = identity.authenticate(&secret, None).await.expect("the user");
    assert_eq!(Some(who.user.to_string().as_str()), user["id"].as_str());
    let keys = identity.admin_keys("acme").await.expect("lists");
    assert_eq!(keys[0]["name"], "ci");
    assert_eq!(keys[0]["user_email"], "second@example.com");
    assert!(!keys.to_string().contains(&secret));

    identity.admin_delete_key(who.credential.record()).await.expect("deletes");
    assert!(matches!(identity.authenticate(&secret, None).await, Err(RecordsError::Unauthenticated(_))));
    super::missing(identity.admin_delete_key(who.credential.record()).await);
    super::missing(identity.admin_users("nowhere").await);
    super::missing(identity.admin_create_key("acme", "third@example.com", "x").await);
    super::bad(identity.admin_create_user("acme", "nobody").await, "email address");
    super::bad(identity.admin_create_key("acme", "second@example.com", "").await, "`name`");
}
