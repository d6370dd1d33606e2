//! Tests of secrets: their storage, their display, their readers, and their keys.

use std::path::Path;
use std::sync::Arc;

use assay_cluster::Cluster;
use assay_node_auth::Principal;
use assay_node_identity::Identity;
use assay_node_records::kinds::{ACL, AI_SECRET, ENV_VAR, PROJECT};
use assay_node_records::{Kind, ListRequest, Records, RecordsError};
use assay_node_secrets::{Keyring, MasterKey, VaultKey};
use assay_storage_model::GroupId;
use assay_storage_model::catalog::{CatalogCommand, DeleteRecord, Expect, PutRecord, Record, RecordKind, UniqueKey};
use bytes::Bytes;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{KEY, MemoryLedger, World, bad, body, founding, id_of, master, missing, open, world};

const FIRST: &str = "sk-provider-0123456789-first";
const SECOND: &str = "sk-provider-9876543210-other";

impl World {
    async fn make(&self, kind: &'static Kind, sent: Value) -> Value {
        self.records.create(&self.owner, kind, body(sent)).await.expect("creates").object
    }

    async fn put(&self, sent: Value) -> Value {
        self.records.replace(&self.owner, &AI_SECRET, body(sent)).await.expect("replaces")
    }

    async fn patch(&self, kind: &'static Kind, id: Uuid, sent: Value) -> Value {
        self.records.patch(&self.owner, kind, id, body(sent)).await.expect("patches")
    }

    async fn secret(&self, name: &str) -> String {
        self.records.secret_of(&self.owner, name).await.expect("opens").expose().to_owned()
    }

    async fn propose(&self, put: PutRecord) {
        let command = Bytes::from(CatalogCommand::Put(put).encode());
        self.cluster.propose(GroupId::CATALOG, vec![command]).await.expect("writes");
    }

    /// Creates the record of a function, like the crate of functions.
    async fn function(&self, project: Uuid) -> Uuid {
        let id = Uuid::new_v4();
        self.propose(PutRecord {
            kind: RecordKind::PROMPT,
            id,
            org: Some(self.owner.org),
            expect: Expect::Absent,
            keys: vec![UniqueKey::new(format!("prompt.name/{project}"), id.to_string())],
            body: json!({"project_id": project, "name": "f"}).to_string().into_bytes(),
            at: 1,
        })
        .await;
        id
    }
}

/// Returns all records of the catalog.
pub(super) fn all(cluster: &Cluster) -> Vec<Arc<Record>> {
    let state = cluster.catalog().read();
    RecordKind::ALL.iter().flat_map(|kind| state.all(*kind).cloned().collect::<Vec<_>>()).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn files_that_hold(dir: &Path, text: &str) -> usize {
    let entries = std::fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry").path());
    let counts = entries.map(|path| match path.is_dir() {
        true => files_that_hold(&path, text),
        false => usize::from(holds(&std::fs::read(&path).unwrap_or_default(), text)),
    });
    counts.sum()
}

/// Opens a directory with these master keys.
async fn reopened(dir: &Path, ring: Option<(VaultKey, Vec<VaultKey>)>) -> (Arc<Cluster>, Records, Principal) {
    let cluster = open(dir).await;
    let records = Records::new(Arc::clone(&cluster), Arc::new(MemoryLedger::default()));
    if let Some((current, old)) = ring {
        records.secrets().give_keys(Keyring::new(current, old));
    }
    records.found(founding(Some(KEY))).await.expect("is founded");
    let owner = Identity::new(records.clone()).authenticate(KEY, None).await.expect("the owner");
    (cluster, records, owner)
}

/// Shuts a cluster down. The last holder of a cluster releases its directory.
async fn closed(cluster: Arc<Cluster>, records: Records) {
    drop(records);
    cluster.shutdown().await.expect("closes");
}

#[track_caller]
fn unavailable<T: std::fmt::Debug>(result: Result<T, RecordsError>, names: &str) {
    match result {
        Err(RecordsError::Unavailable(said)) => assert!(said.contains(names), "{said} does not name {names}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_kept_of_a_secret_is_encrypted_everywhere() {
    let world = world().await;
    let project = world.project("p").await;
    let function = world.function(project).await;
    let mut texts = vec![FIRST.to_owned(), SECOND.to_owned()];
    let made = world.make(&AI_SECRET, json!({"name": "openai", "secret": FIRST})).await;
    world.patch(&AI_SECRET, id_of(&made), json!({"secret": SECOND})).await;
    for (place, (object, id)) in
        [("organization", world.owner.org.0), ("project", project), ("function", function)].into_iter().enumerate()
    {
        let values = [1, 2].map(|which| format!("value-{place}-{which}-{}", Uuid::new_v4()));
        let sent = json!({"object_type": object, "object_id": id, "name": "TOKEN", "value": values[0]});
        let made = world.make(&ENV_VAR, sent).await;
        assert_eq!(opened(&world, id_of(&made)).await.as_ref(), Some(&values[0]));
        let sent = json!({"object_type": object, "object_id": id, "name": "TOKEN", "value": values[1]});
        let put = world.records.replace(&world.owner, &ENV_VAR, body(sent)).await.expect("replaces");
        assert_eq!(
            (put["id"].clone(), opened(&world, id_of(&put)).await),
            (made["id"].clone(), Some(values[1].clone()))
        );
        texts.extend(values);
    }
    for record in all(&world.cluster) {
        for text in &texts {
            assert!(!holds(&record.encode(), text), "{} {} shows {text}", record.kind, record.id);
        }
    }
    let dir = world.dir.path().to_owned();
    world.cluster.shutdown().await.expect("closes");
    assert!(files_that_hold(&dir, "openai") > 0, "what is no secret is found, so that the search sees");
    for text in &texts {
        assert_eq!(files_that_hold(&dir, text), 0, "{text}");
    }
}

async fn opened(world: &World, id: Uuid) -> Option<String> {
    let secret = world.records.secret_in(&world.owner, &ENV_VAR, id).await.expect("opens");
    secret.map(|secret| secret.expose().to_owned())
}

#[tokio::test]
async fn answers_show_the_end_of_a_secret_and_who_gave_it() {
    let world = world().await;
    let metadata = json!({"api_base": "https://models.example.com"});
    let sent = json!({"name": "s", "type": "openai", "secret": FIRST, "metadata": metadata});
    let made = world.make(&AI_SECRET, sent).await;
    let (id, user) = (id_of(&made), world.owner.user.to_string());
    let mut fields: Vec<&str> = made.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "created",
            "id",
            "metadata",
            "name",
            "org_id",
            "preview_secret",
            "secret_updated_at",
            "secret_updated_by_user_id",
            "type",
            "updated_at"
        ]
    );
    assert_eq!((&made["preview_secret"], &made["secret_updated_by_user_id"]), (&json!("sk-***irst"), &json!(user)));
    assert_eq!((&made["secret_updated_at"], &made["updated_at"]), (&made["created"], &made["created"]));

    let again = world.records.create(&world.owner, &AI_SECRET, body(json!({"name": "s", "secret": SECOND}))).await;
    let again = again.expect("is there");
    assert!(again.found_existing && again.object == made, "made or got, unmodified");
    assert_eq!(world.secret("s").await, FIRST);

    let patched = world.patch(&AI_SECRET, id, json!({"type": "azure", "secret": null})).await;
    assert_eq!((&patched["type"], &patched["metadata"]), (&json!("azure"), &metadata));
    assert_eq!(patched["secret_updated_at"], made["secret_updated_at"], "the secret stays with its server");
    assert!(patched["updated_at"].as_str() > made["updated_at"].as_str());
    assert_eq!(world.secret("s").await, FIRST);
    let patched = world.patch(&AI_SECRET, id, json!({"secret": SECOND, "name": "t"})).await;
    assert_eq!((&patched["preview_secret"], &patched["name"]), (&json!("sk-***ther"), &json!("t")));
    assert!(patched["secret_updated_at"].as_str() > made["secret_updated_at"].as_str());
    assert_eq!(world.secret("t").await, SECOND, "also under another name");

    let put = world.put(json!({"name": "t", "secret": "short"})).await;
    assert_eq!((&put["id"], &put["preview_secret"], &put["type"]), (&made["id"], &json!("***"), &Value::Null));
    assert_eq!(put["created"], made["created"]);
    assert_eq!(world.secret("t").await, "short");
    let without = world.put(json!({"name": "t"})).await;
    assert_eq!((&without["preview_secret"], &without["secret_updated_by_user_id"]), (&Value::Null, &json!(user)));
    missing(world.records.secret_of(&world.owner, "t").await);
    world.patch(&AI_SECRET, id, json!({"secret": FIRST})).await;
    assert_eq!(world.secret("t").await, FIRST);
    let got = world.records.get(&world.owner, &AI_SECRET, id).await.expect("gets");
    assert_eq!(world.list(&AI_SECRET, &[]).await.expect("lists"), [got]);
}

#[tokio::test]
async fn a_variable_is_unique_on_what_it_is_on() {
    let world = world().await;
    let (p, q) = (world.project("p").await, world.project("q").await);
    let on =
        |project: Uuid, name: &str| json!({"object_type": "project", "object_id": project, "name": name, "value": "v"});
    let made = world.make(&ENV_VAR, on(p, "A")).await;
    assert_eq!(
        (&made["secret_category"], &made["used"], &made["preview_secret"]),
        (&json!("env_var"), &Value::Null, &json!("***"))
    );
    assert!(made.get("value").is_none() && made.get("org_id").is_none());
    assert_eq!(world.make(&ENV_VAR, on(p, "A")).await, made);
    world.make(&ENV_VAR, on(q, "A")).await;
    world.make(&ENV_VAR, on(p, "B")).await;
    let taken = world.records.patch(&world.owner, &ENV_VAR, id_of(&made), body(json!({"name": "B"}))).await;
    assert!(matches!(taken, Err(RecordsError::Taken(_))), "{taken:?}");
    let p = p.to_string();
    assert_eq!(world.listed(&ENV_VAR, &[("object_type", "project"), ("object_id", &p)]).await, ["B", "A"]);
    assert_eq!(world.listed(&ENV_VAR, &[("env_var_name", "A")]).await.len(), 2);
    world.make(&ENV_VAR, json!({"object_type": "organization", "object_id": world.owner.org, "name": "A"})).await;
    for (object, id) in [("project", Uuid::new_v4()), ("function", Uuid::new_v4()), ("organization", Uuid::new_v4())] {
        let sent = json!({"object_type": object, "object_id": id, "name": "A"});
        let refused = world.records.create(&world.owner, &ENV_VAR, body(sent)).await.expect_err("is not there");
        assert!(matches!(&refused, RecordsError::NotFound(said) if said.contains(object)), "{refused:?}");
    }
    bad(
        world
            .records
            .create(&world.owner, &ENV_VAR, body(json!({"object_type": "dataset", "object_id": p, "name": "A"})))
            .await,
        "`object_type`",
    );
}

#[tokio::test]
async fn what_is_refused_is_not_repeated() {
    let world = world().await;
    let make = async |sent: Value| world.records.create(&world.owner, &AI_SECRET, body(sent)).await;
    bad(make(json!({"name": "s", "secret": {"key": FIRST}})).await, "`secret` has to be a string, not an object");
    let long = format!("{FIRST}{}", "x".repeat(64 << 10));
    let refused = make(json!({"name": "s", "secret": long})).await.expect_err("is too long").to_string();
    assert!(refused.contains("the maximum is 65536") && !refused.contains(FIRST), "{refused}");
    bad(make(json!({"secret": FIRST})).await, "`name` is missing");
}

#[tokio::test]
async fn secrets_are_opened_for_who_may_read_them() {
    let world = world().await;
    let id = id_of(&world.make(&AI_SECRET, json!({"name": "s", "secret": FIRST})).await);
    let ann = world.member("ann@example.com").await;
    missing(world.records.secret_of(&ann, "s").await);
    missing(world.records.secret_in(&ann, &AI_SECRET, id).await);
    assert_eq!(world.records.ai_secrets(&ann, &body(json!({}))).await, Ok(Vec::new()));
    missing(world.records.delete_named(&ann, &AI_SECRET, &body(json!({"name": "s"}))).await);
    let grant = json!({"object_type": "ai_secret", "object_id": id, "user_id": ann.user, "permission": "read"});
    world.records.create(&world.owner, &ACL, body(grant)).await.expect("grants");
    assert_eq!(world.records.secret_of(&ann, "s").await.expect("opens").expose(), FIRST);
    let refused = world.records.delete_named(&ann, &AI_SECRET, &body(json!({"name": "s"}))).await;
    assert!(matches!(refused, Err(RecordsError::Forbidden(_))), "{refused:?}");
    missing(world.records.secret_of(&ann, "other").await);
}

#[tokio::test]
async fn variables_of_a_function_are_granted_as_the_prompts_of_its_project() {
    let world = world().await;
    let ann = world.member("ann@example.com").await;
    let project = world.project("p").await;
    let function = world.function(project).await;
    let on = |object: &str, id: Uuid| json!({"object_type": object, "object_id": id, "name": "A", "value": FIRST});
    let of_project = id_of(&world.make(&ENV_VAR, on("project", project)).await);
    let of_function = id_of(&world.make(&ENV_VAR, on("function", function)).await);
    let get = async |id| world.records.get(&ann, &ENV_VAR, id).await.map(drop);
    let grant = async |permission: &str| {
        let sent = json!({
            "object_type": "project", "object_id": project, "user_id": ann.user,
            "permission": permission, "restrict_object_type": "prompt",
        });
        world.records.create(&world.owner, &ACL, body(sent)).await.expect("grants");
    };
    missing(get(of_function).await);
    missing(world.records.create(&ann, &ENV_VAR, body(on("function", function))).await);
    grant("read").await;
    assert_eq!(get(of_function).await, Ok(()));
    missing(get(of_project).await);
    let opened = world.records.secret_in(&ann, &ENV_VAR, of_function).await.expect("opens").expect("has one");
    assert_eq!(opened.expose(), FIRST);
    let change = async || {
        world
            .records
            .patch(&ann, &ENV_VAR, of_function, body(json!({"name": "OF_FUNCTION", "value": SECOND})))
            .await
            .map(drop)
    };
    assert!(matches!(change().await, Err(RecordsError::Forbidden(_))));
    grant("update").await;
    assert_eq!(change().await, Ok(()));
    world.records.delete(&ann, &ENV_VAR, of_function).await.expect("may");
    world.records.create(&ann, &ENV_VAR, body(on("function", function))).await.expect("may");
}

#[tokio::test]
async fn a_secret_is_deleted_and_listed_by_names_and_organizations() {
    let world = world().await;
    for (name, kind) in [("a", "openai"), ("b", "azure"), ("c", "bedrock")] {
        world.make(&AI_SECRET, json!({"name": name, "type": kind})).await;
    }
    assert_eq!(
        world.listed(&AI_SECRET, &[("ai_secret_type", "openai"), ("ai_secret_type", "bedrock")]).await,
        ["c", "a"]
    );
    assert_eq!(world.listed(&AI_SECRET, &[("ai_secret_name", "b")]).await, ["b"]);
    let beta = world.identity.admin_create_organization("beta", "owner@example.com").await.expect("creates");
    let make = json!({"name": "a", "org_name": "beta", "secret": FIRST});
    let other = world.make(&AI_SECRET, make).await;
    assert_eq!(other["org_id"], beta["id"]);
    let of_beta = world.records.ai_secrets(&world.owner, &body(json!({"org_id": beta["id"]}))).await.expect("lists");
    assert_eq!(of_beta, std::slice::from_ref(&other));
    missing(world.records.ai_secrets(&world.owner, &body(json!({"org_id": Uuid::new_v4()}))).await);
    let named = async |sent: Value| world.records.delete_named(&world.owner, &AI_SECRET, &body(sent)).await;
    assert_eq!(named(json!({"name": "a", "org_name": "beta"})).await.expect("deletes")["id"], other["id"]);
    missing(named(json!({"name": "a", "org_name": "beta"})).await);
    missing(named(json!({"name": "a", "org_name": "gamma"})).await);
    bad(named(json!({"org_name": "beta"})).await, "`name` is missing");
    assert_eq!(named(json!({"name": "a"})).await.expect("deletes")["name"], "a");
    assert_eq!(world.listed(&AI_SECRET, &[]).await, ["c", "b"]);
}

#[tokio::test]
async fn variables_go_with_what_they_are_on() {
    let world = world().await;
    let (p, stays) = (world.project("p").await, world.project("stays").await);
    let functions = [world.function(p).await, world.function(stays).await];
    let org = world.owner.org.0;
    for (object, id) in [
        ("project", p),
        ("project", stays),
        ("function", functions[0]),
        ("function", functions[1]),
        ("organization", org),
    ] {
        world.make(&ENV_VAR, json!({"object_type": object, "object_id": id, "name": "A", "value": "v"})).await;
    }
    let left = || world.cluster.catalog().read().all(RecordKind::ENV_VAR).count();
    assert_eq!(left(), 5);
    world.records.delete(&world.owner, &PROJECT, p).await.expect("deletes");
    assert_eq!(left(), 3, "what is on the project and on its function");
    assert_eq!(world.records.sweep().await.expect("sweeps").records, 0);
    let gone = world.records.get(&world.owner, &PROJECT, p).await;
    missing(gone);
    let function = world.cluster.catalog().read().get(RecordKind::PROMPT, functions[1]).cloned().expect("is there");
    let delete = DeleteRecord { kind: function.kind, id: function.id, expect: Expect::Any };
    let command = Bytes::from(CatalogCommand::Delete(delete).encode());
    world.cluster.propose(GroupId::CATALOG, vec![command]).await.expect("deletes");
    let on = functions[1].to_string();
    assert_eq!(world.listed(&ENV_VAR, &[("object_id", &on)]).await, Vec::<String>::new());
    assert_eq!(world.records.sweep().await.expect("sweeps").records, 1);
    assert_eq!(left(), 2);
}

#[tokio::test]
async fn what_was_moved_to_another_record_does_not_open() {
    let world = world().await;
    let ids = [("a", FIRST), ("b", SECOND)].map(|(name, secret)| json!({"name": name, "secret": secret}));
    let [a, b] = ids;
    let (a, b) = (id_of(&world.make(&AI_SECRET, a).await), id_of(&world.make(&AI_SECRET, b).await));
    let record = |id| world.cluster.catalog().read().get(RecordKind::AI_SECRET, id).cloned().expect("is there");
    let put = |record: &Record, body: Vec<u8>| PutRecord {
        kind: record.kind,
        id: record.id,
        org: record.org,
        expect: Expect::Any,
        keys: record.keys.clone(),
        body,
        at: 2,
    };
    let first = record(a);
    world.propose(put(&record(b), first.body.clone())).await;
    let refused = world.records.secret_of(&world.owner, "b").await.expect_err("is the other's");
    assert!(
        matches!(&refused, RecordsError::Internal(said) if said.contains("belongs to another place")),
        "{refused:?}"
    );
    // The previous secret with the version of the last one.
    world.patch(&AI_SECRET, a, json!({"secret": SECOND})).await;
    let old: Value = serde_json::from_slice(&first.body).expect("JSON");
    let mut new: Value = serde_json::from_slice(&record(a).body).expect("JSON");
    assert_eq!((&old["sealed_version"], &new["sealed_version"]), (&json!(1), &json!(2)));
    new["sealed"] = old["sealed"].clone();
    world.propose(put(&first, new.to_string().into_bytes())).await;
    assert!(matches!(world.records.secret_of(&world.owner, "a").await, Err(RecordsError::Internal(_))));
}

#[tokio::test]
async fn a_rotation_wraps_every_data_key_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let (cluster, records, owner) = reopened(dir.path(), Some((master(1), Vec::new()))).await;
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::Known(master(1).id())));
    Identity::new(records.clone()).admin_create_organization("beta", "owner@example.com").await.expect("creates");
    for org in ["acme", "beta"] {
        let sent = body(json!({"name": org, "org_name": org, "secret": format!("{FIRST} {org}")}));
        records.create(&owner, &AI_SECRET, sent).await.expect("creates");
    }
    let opens = async |records: &Records| {
        for org in ["acme", "beta"] {
            let who = Identity::new(records.clone()).authenticate(KEY, Some(org)).await.expect("is known");
            assert_eq!(records.secret_of(&who, org).await.expect("opens").expose(), format!("{FIRST} {org}"));
        }
    };
    opens(&records).await;
    let wrapped = |cluster: &Cluster| {
        let state = cluster.catalog().read();
        let mut bodies: Vec<_> = state.all(RecordKind::DATA_KEY).map(|record| record.body.clone()).collect();
        bodies.sort();
        bodies
    };
    let before = wrapped(&cluster);
    closed(cluster, records).await;

    let (old, new) = (master(1), master(2));
    let (cluster, records, _) = reopened(dir.path(), Some((new.clone(), vec![old.clone()]))).await;
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::ToRotate { from: old.id(), to: new.id() }));
    opens(&records).await;
    let said = records.secrets().rotate_master_key().await.expect("rotates");
    let (key, old_key) = (new.id().to_string(), old.id().to_string());
    let expected = json!({
        "master_key": key, "before": old_key, "data_keys": 2, "wrapped_again": 2, "cluster_keys_wrapped_again": 1,
    });
    assert_eq!(said, expected);
    assert!(wrapped(&cluster).iter().all(|body| !before.contains(body) && holds(body, &new.id().to_string())));
    opens(&records).await;
    assert_eq!(records.secrets().rotate_master_key().await.expect("rotates")["wrapped_again"], 0);
    closed(cluster, records).await;

    let (cluster, records, _) = reopened(dir.path(), Some((new.clone(), Vec::new()))).await;
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::Known(new.id())));
    opens(&records).await;
    closed(cluster, records).await;

    let (cluster, records, owner) = reopened(dir.path(), Some((old.clone(), Vec::new()))).await;
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::Missing(new.id())));
    unavailable(records.secret_of(&owner, "acme").await, &new.id().to_string());
    unavailable(records.secrets().rotate_master_key().await, &new.id().to_string());
    assert_eq!(
        records.secrets().master_key().await,
        Ok(MasterKey::Missing(new.id())),
        "what is refused changes nothing"
    );
    closed(cluster, records).await;
}

#[tokio::test]
async fn a_node_without_the_key_serves_everything_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let (cluster, records, owner) = reopened(dir.path(), None).await;
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::ToMake));
    let make = |name: &str, secret: Option<&str>| body(json!({"name": name, "secret": secret}));
    unavailable(records.create(&owner, &AI_SECRET, make("s", Some(FIRST))).await, "`secrets.master_key_file`");
    unavailable(records.secrets().rotate_master_key().await, "`secrets.master_key_file`");
    assert_eq!(records.list(&owner, &AI_SECRET, &ListRequest::default()).await, Ok(Vec::new()));
    records.secrets().give_keys(Keyring::new(master(1), Vec::new()));
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::Known(master(1).id())));
    records.create(&owner, &AI_SECRET, make("s", Some(FIRST))).await.expect("creates");
    closed(cluster, records).await;

    let id = master(1).id();
    for ring in [None, Some((master(3), vec![master(4)]))] {
        let (cluster, records, owner) = reopened(dir.path(), ring).await;
        assert_eq!(records.secrets().master_key().await, Ok(MasterKey::Missing(id)));
        let named = id.to_string();
        unavailable(records.secret_of(&owner, "s").await, &named);
        unavailable(records.replace(&owner, &AI_SECRET, make("s", Some(SECOND))).await, &named);
        unavailable(records.create(&owner, &AI_SECRET, make("t", Some(SECOND))).await, &named);
        let listed = records.list(&owner, &AI_SECRET, &ListRequest::default()).await.expect("lists");
        let listed = id_of(&listed[0]);
        unavailable(records.patch(&owner, &AI_SECRET, listed, make("s", Some(SECOND))).await, &named);
        let patched =
            records.patch(&owner, &AI_SECRET, listed, body(json!({"metadata": {"a": 1}}))).await.expect("patches");
        assert_eq!(patched["preview_secret"], "sk-***irst");
        let bare = records.create(&owner, &AI_SECRET, make("bare", None)).await.expect("needs no key");
        records.delete(&owner, &AI_SECRET, id_of(&bare.object)).await.expect("deletes");
        closed(cluster, records).await;
    }
    let (_cluster, records, owner) = reopened(dir.path(), Some((master(3), vec![master(1)]))).await;
    assert_eq!(records.secret_of(&owner, "s").await.expect("opens").expose(), FIRST);
}

/// Another node creates the key at the moment of the rotation.
#[tokio::test]
async fn a_data_key_that_a_rotation_left_is_told_and_taken_by_the_next() {
    let dir = tempfile::tempdir().expect("a directory");
    let (old, new) = (master(1), master(2));
    let (cluster, records, owner) = reopened(dir.path(), Some((old.clone(), Vec::new()))).await;
    records.create(&owner, &AI_SECRET, body(json!({"name": "s", "secret": FIRST}))).await.expect("creates");
    let key = cluster.catalog().read().all(RecordKind::DATA_KEY).next().cloned().expect("is made");
    closed(cluster, records).await;

    let both = || Some((new.clone(), vec![old.clone()]));
    let (cluster, records, _) = reopened(dir.path(), both()).await;
    records.secrets().rotate_master_key().await.expect("rotates");
    let Record { kind, id, org, keys, body, .. } = (*key).clone();
    let put = PutRecord { kind, id, org, expect: Expect::Any, keys, body, at: 2 };
    let command = Bytes::from(CatalogCommand::Put(put).encode());
    cluster.propose(GroupId::CATALOG, vec![command]).await.expect("writes");
    closed(cluster, records).await;

    let (cluster, records, owner) = reopened(dir.path(), Some((new.clone(), Vec::new()))).await;
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::Missing(old.id())));
    unavailable(records.secret_of(&owner, "s").await, &old.id().to_string());
    unavailable(records.secrets().rotate_master_key().await, &old.id().to_string());
    closed(cluster, records).await;

    let (_cluster, records, owner) = reopened(dir.path(), both()).await;
    assert_eq!(records.secret_of(&owner, "s").await.expect("opens").expose(), FIRST);
    assert_eq!(records.secrets().rotate_master_key().await.expect("rotates")["wrapped_again"], 1);
    assert_eq!(records.secrets().master_key().await, Ok(MasterKey::Known(new.id())));
    assert_eq!(records.secret_of(&owner, "s").await.expect("opens").expose(), FIRST);
}
