//! Tests of the second check of rights at the node with the rows, and of signing keys.

use assay_cluster::ObjectAccess;
use assay_node_auth::{Asker, Job, ObjectType, Pepper, Permission};
use assay_node_records::RecordsError;
use assay_storage_model::catalog::UniqueKey;
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{World, world};

impl World {
    async fn rechecked(&self, asker: &Asker, deed: ObjectAccess, object: ObjectKey) -> bool {
        match self.records.recheck(asker, deed, &[object]).await {
            Ok(()) => true,
            Err(RecordsError::NotFound(_) | RecordsError::Forbidden(_) | RecordsError::Unauthenticated(_)) => false,
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_right_is_checked_again_where_the_rows_are() {
    let world = world().await;
    let project = world.project("p").await;
    let org = world.owner.org;
    let logs = ObjectKey::new(org, ObjectKind::ProjectLogs, project);
    let dataset = world.dataset(project, "d").await;
    let dataset = ObjectKey::new(org, ObjectKind::Dataset, super::id_of(&dataset));
    let (owner, member) = (Asker::of(&world.owner), world.member("m@example.com").await);
    let member_asks = Asker::of(&member);
    for object in [logs, dataset] {
        for deed in [ObjectAccess::Read, ObjectAccess::Write] {
            assert!(world.rechecked(&owner, deed, object).await, "{object} {deed:?}");
            assert!(!world.rechecked(&member_asks, deed, object).await, "{object} {deed:?}");
        }
    }
    let to = json!({"user_id": member.user.to_string()});
    world.grant((ObjectType::Dataset, dataset.id), to, json!({"permission": Permission::Read.word()})).await;
    assert!(world.rechecked(&member_asks, ObjectAccess::Read, dataset).await);
    assert!(!world.rechecked(&member_asks, ObjectAccess::Write, dataset).await, "to read is not to write");

    // The object claims another organization than its record has.
    let elsewhere = ObjectKey::new(OrgId(Uuid::from_u128(9)), ObjectKind::Dataset, dataset.id);
    assert!(!world.rechecked(&owner, ObjectAccess::Read, elsewhere).await);
    let Asker::User { org, user, impersonator, .. } = owner.clone() else { panic!("a user") };
    let credential = assay_node_auth::Credential::ApiKey(Uuid::from_u128(7));
    let gone = Asker::User { org, user, credential, impersonator };
    assert!(!world.rechecked(&gone, ObjectAccess::Read, dataset).await, "a credential that is not there");

    let log = ObjectKey::new(org, ObjectKind::AuditLog, org.0);
    assert!(
        world.rechecked(&owner, ObjectAccess::Read, log).await
            && !world.rechecked(&member_asks, ObjectAccess::Read, log).await
    );
    assert!(!world.rechecked(&owner, ObjectAccess::Write, log).await, "nobody writes it");
    assert!(world.rechecked(&Asker::Job(Job::Audit), ObjectAccess::Write, log).await);
    assert!(!world.rechecked(&Asker::Job(Job::Audit), ObjectAccess::Read, dataset).await);
    assert!(world.rechecked(&Asker::Job(Job::Retention), ObjectAccess::Write, dataset).await);
}

/// Signatures with the legacy key must not stay valid forever, because every copy of a directory has that key.
#[tokio::test]
async fn nothing_that_a_copy_of_the_catalog_can_sign_is_believed() {
    let world = world().await;
    let record = {
        let state = world.cluster.catalog().read();
        state.find(&UniqueKey::new("cluster_setting", "api_key_pepper")).cloned().expect("it is kept")
    };
    let body: Value = serde_json::from_slice(&record.body).expect("JSON");
    let pepper = Pepper::from_hex(body["value"].as_str().expect("text")).expect("reads");
    let secrets = world.records.secrets().signing_secrets("a purpose").expect("signs");
    assert!(secrets.accepted().all(|secret| *secret != pepper.derive("a purpose")));
    assert_ne!(secrets.sign, world.records.secrets().signing_secrets("another purpose").expect("signs").sign);
    for record in super::secrets::all(&world.cluster) {
        let body = String::from_utf8_lossy(&record.body).into_owned();
        let hex: String = secrets.sign.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!body.contains(&hex), "{} {}", record.kind, record.id);
    }
}
