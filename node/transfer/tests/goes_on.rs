//! Tests that an interrupted import continues, with the same result as an uninterrupted one.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{Cluster, ClusterConfig};
use assay_node_identity::Identity;
use assay_node_objects::{
    AuditLog, HistoryOp, HistoryPosition, ObjectLimits, ObjectWrite, Objects, Patience, node_clock,
};
use assay_node_records::kinds::{DATASET, PROJECT};
use assay_node_records::{Founding, Records};
use assay_node_transfer::{TransferContext, TransferError, export, import};
use assay_storage_model::event::SentItem;
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use uuid::Uuid;

struct Node {
    place: TransferContext,
    cluster: Arc<Cluster>,
    runtime: Runtime,
    _dir: tempfile::TempDir,
}

impl Node {
    fn start(org_name: &str) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let runtime = Runtime::new().expect("a runtime");
        let config = ClusterConfig { data_dir: dir.path().to_owned(), shards: 4, ..ClusterConfig::default() };
        let cluster = Arc::new(runtime.block_on(Cluster::open(config)).expect("opens"));
        let objects = Objects::start(Arc::clone(&cluster), ObjectLimits::default(), node_clock(&cluster));
        let records = Records::new(Arc::clone(&cluster), Arc::new(AuditLog::new(objects.clone())));
        let founding =
            Founding { org_name: org_name.into(), owner_email: format!("owner@{org_name}.example"), api_key: None };
        runtime.block_on(records.found(founding)).expect("founds");
        Node {
            place: TransferContext { records, objects, runtime: runtime.handle().clone() },
            cluster,
            runtime,
            _dir: dir,
        }
    }

    fn write(&self, object: ObjectKey, rows: Vec<Value>) {
        let rows = rows.into_iter().map(SentItem::from).collect();
        let write = ObjectWrite { object, rows, request: None };
        self.runtime.block_on(self.place.objects.write(vec![write], Patience::usual())).expect("writes");
    }

    /// Returns the operations without their transactions, and the number of transactions.
    fn written(&self, object: ObjectKey) -> (Vec<String>, usize) {
        let past = self.place.objects.past(object, HistoryPosition::default(), None);
        let page = self.runtime.block_on(past).expect("reads");
        assert_eq!(page.next, None, "all on one page");
        let ops: Vec<HistoryOp> = page.lines.iter().map(|line| HistoryOp::parse(line).expect("reads")).collect();
        let transactions = ops.chunk_by(|a, b| a.xact == b.xact).count();
        (ops.into_iter().map(|op| format!("{:?}", op.row)).collect(), transactions)
    }

    fn import(&self, file: &[u8], stops_at: Option<usize>) -> Result<(u64, u64), TransferError> {
        let mut readings = 0;
        let mut open = || {
            readings += 1;
            let end = stops_at.filter(|_| readings == 2).unwrap_or(file.len());
            Ok(io::BufReader::with_capacity(16, Cursor::new(&file[..end]).chain(Broken(end < file.len()))))
        };
        import(&self.place, None, &mut open, &mut |_| {}).map(|done| (done.records, done.operations))
    }

    fn stop(self) {
        self.runtime.block_on(async {
            self.place.objects.shutdown().await;
            self.cluster.shutdown().await.expect("closes");
        });
        self.runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

/// Reader that fails with an error of the disk, or ends.
struct Broken(bool);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        if self.0 { Err(io::Error::other("the disk is gone")) } else { Ok(0) }
    }
}

struct ExportedOrganization {
    objects: Vec<ObjectKey>,
    file: Vec<u8>,
}

/// Returns a document that does not compress, so that any cut of the file lies within documents.
fn noise(n: u64) -> String {
    (0..40).map(|part| format!("{:016x}", (n * 41 + part + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect()
}

fn make(node: &Node) -> ExportedOrganization {
    let identity = Identity::new(node.place.records.clone());
    let founded = node.runtime.block_on(identity.admin_organizations()).expect("lists");
    let id = |value: &Value| -> Uuid { value.as_str().and_then(|id| id.parse().ok()).expect("an id") };
    let org = OrgId(id(&founded[0]["id"]));
    let key = node.runtime.block_on(identity.admin_create_key("there", "owner@there.example", "k"));
    let key = key.expect("makes")["api_key"].as_str().expect("a key").to_owned();
    let owner = node.runtime.block_on(identity.authenticate(&key, None)).expect("is known");
    drop(identity);
    let body = |value: Value| -> Map<String, Value> { value.as_object().cloned().expect("an object") };
    let create = |kind, value: Value| {
        let made = node.runtime.block_on(node.place.records.create(&owner, kind, body(value))).expect("creates");
        id(&made.object["id"])
    };
    let project = create(&PROJECT, json!({"name": "p"}));
    let dataset = create(&DATASET, json!({"name": "d", "project_id": project}));
    let objects = vec![
        ObjectKey::new(org, ObjectKind::Dataset, dataset),
        ObjectKey::new(org, ObjectKind::ProjectLogs, project),
        ObjectKey::new(org, ObjectKind::ProjectPrompts, project),
    ];
    for n in 0..30_u64 {
        let row = |id: u64| json!({"id": format!("r{id}"), "input": noise(n * 7 + id), "_is_merge": n % 3 == 2});
        node.write(objects[0], vec![row(n % 5), row(n)]);
        node.write(
            objects[1],
            vec![row(n), json!({"id": format!("r{}", n / 2), "_object_delete": n % 4 == 3, "output": n})],
        );
    }
    node.write(objects[2], vec![json!({"id": Uuid::from_u128(5).to_string(), "name": "f", "slug": "f"})]);
    let mut file = Vec::new();
    export(&node.place, "there", &mut file, &mut |_| {}).expect("exports");
    ExportedOrganization { objects, file }
}

#[test]
fn an_import_that_stops_anywhere_goes_on() {
    let there = Node::start("there");
    let ExportedOrganization { objects, file } = make(&there);
    let expected: Vec<_> = objects.iter().map(|object| there.written(*object)).collect();
    assert!(expected.iter().all(|(ops, _)| !ops.is_empty()));

    let here = Node::start("here");
    let mut steps = 0;
    let mut done_before = 0;
    for part in 1..16 {
        let stopped = here.import(&file, Some(file.len() * part / 16));
        assert!(matches!(stopped, Err(TransferError::Io(_))), "{stopped:?}");
        let done: usize = objects.iter().map(|object| here.written(*object).0.len()).sum();
        assert!(done >= done_before, "what was written stays");
        steps += usize::from(done > done_before);
        done_before = done;
    }
    assert!(steps >= 4, "only {steps} of the stops came in the midst of rows");
    let (_, operations) = here.import(&file, None).expect("imports");
    let all: usize = expected.iter().map(|(ops, _)| ops.len()).sum();
    assert_eq!(operations as usize + done_before, all, "nothing is written twice");
    for (object, (ops, transactions)) in objects.iter().zip(&expected) {
        let mut found = here.written(*object);
        let mut ops = ops.clone();
        if object.kind == ObjectKind::ProjectLogs {
            // The operations were written together, so they are in the order of the rows.
            ops.sort();
            found.0.sort();
        } else {
            assert_eq!(found.1, *transactions, "a version each: {object}");
        }
        assert_eq!(found.0, ops, "{object}");
    }
    assert_eq!(here.import(&file, None).expect("imports"), (0, 0), "all of it is here");

    let mut other = Vec::new();
    export(&there.place, "there", &mut other, &mut |_| {}).expect("exports");
    let refused = here.import(&other, None).expect_err("another file of the same organization");
    assert!(refused.to_string().contains("another file"), "{refused}");
    here.stop();
    there.stop();
}

#[test]
fn rows_of_somebody_else_are_not_mixed_with_those_of_a_file() {
    let there = Node::start("there");
    let ExportedOrganization { objects, file } = make(&there);
    let here = Node::start("here");
    let stopped = here.import(&file, Some(file.len() / 8));
    assert!(matches!(stopped, Err(TransferError::Io(_))), "{stopped:?}");
    here.write(objects[1], vec![json!({"id": "mine", "input": 1})]);
    let refused = here.import(&file, None);
    assert!(matches!(&refused, Err(TransferError::Differs(object)) if *object == objects[1]), "{refused:?}");
    here.stop();
    there.stop();
}
