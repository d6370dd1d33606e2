//! Tests of jobs on a separate node with a manual clock.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use assay_cluster::{Cluster, ClusterConfig, DelegatedService, Guard, ObjectAccess};
use assay_storage_disk::{Fault, FaultPlan, FaultyDisk, Operation, RealDisk, SharedDisk};
use assay_storage_model::{NodeId, ObjectKey, ObjectKind, OrgId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::pages::Pages;
use super::queue::{Job, JobState, KEPT_MICROS};
use super::record::tests::record;
use super::record::{JobEnd, JobRecord};
use super::service::JobsService;
use super::{JobLimits, JobRequest, JobStatus, JobView, RESULT_ROWS_MAX, ResultRange, STARTS_MAX};
use crate::{AskError, Home, Masks, Prices, Queries, QueryLimits, Question, packed};

const BEGIN: i64 = 1_790_000_000_000_000;
/// Number of polls and the pause between them: a minute in total, for a busy machine.
const POLLS_MAX: usize = 6_000;
const POLLED_AFTER: Duration = Duration::from_millis(10);

struct Node {
    cluster: Arc<Cluster>,
    queries: Queries,
    now: Arc<AtomicI64>,
    dir: TempDir,
}

fn org(number: u128) -> OrgId {
    OrgId(Uuid::from_u128(number))
}

fn request(number: u128) -> JobRequest {
    let object = ObjectKey::new(org(number), ObjectKind::ProjectLogs, Uuid::from_u128(9));
    JobRequest {
        org: org(number),
        user: Uuid::from_u128(3),
        question: Question {
            query: json!("measures: count(1) as n | from: project_logs('p')"),
            now: BEGIN,
            ..Question::default()
        },
        homes: vec![Home { object, org: org(number), project_id: Uuid::from_u128(9) }],
        masks: Masks::new(),
        after: None,
        seconds: None,
        batch: None,
    }
}

impl Node {
    async fn open(dir: TempDir, limits: JobLimits) -> Node {
        Node::open_on(Arc::new(RealDisk), dir, limits).await
    }

    async fn open_on(disk: SharedDisk, dir: TempDir, limits: JobLimits) -> Node {
        let config = ClusterConfig { data_dir: dir.path().join("data"), shards: 4, disk, ..ClusterConfig::default() };
        let cluster = Arc::new(Cluster::open(config).await.expect("a cluster"));
        let now = Arc::new(AtomicI64::new(BEGIN));
        let clock = Arc::clone(&now);
        let limits = QueryLimits { jobs: limits, ..QueryLimits::default() };
        let clock = Arc::new(move || clock.load(Ordering::Relaxed));
        let queries = Queries::start(Arc::clone(&cluster), limits, Prices::standard().clone(), clock).expect("starts");
        Node { cluster, queries, now, dir }
    }

    async fn close(self) -> TempDir {
        self.queries.close().await;
        self.cluster.shutdown().await.expect("closes");
        self.dir
    }

    async fn again(self) -> Node {
        let dir = self.close().await;
        Node::open(dir, JobLimits::default()).await
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join("data/queries")).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    async fn look(&self, name: Uuid) -> Option<JobView> {
        let wanted = ResultRange { row: 0, limit: Some(RESULT_ROWS_MAX) };
        self.queries.look_at_job(org(1), name, Some(wanted)).await.expect("an answer")
    }

    async fn ended(&self, name: Uuid) -> JobView {
        for _ in 0..POLLS_MAX {
            let seen = self.look(name).await.expect("it is there");
            if !matches!(seen.status, JobStatus::Queued | JobStatus::Running) {
                return seen;
            }
            tokio::time::sleep(POLLED_AFTER).await;
        }
        panic!("it does not end");
    }
}

/// Gives alice permission to read.
#[derive(Debug)]
struct AliceReads;

impl Guard for AliceReads {
    fn check(
        &self,
        principal: Bytes,
        deed: ObjectAccess,
        objects: Vec<ObjectKey>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let may = &principal[..] == b"alice" && deed == ObjectAccess::Read && objects == [request(1).homes[0].object];
        async move { if may { Ok(()) } else { Err("only alice may".to_owned()) } }.boxed()
    }
}

fn write(dir: &Path, name: Uuid, text: &str) {
    let folder = dir.join("data/queries");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(format!("{name}.query")), text).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_gets_a_job_for_whoever_may_read_it() {
    let node = Node::open(tempfile::tempdir().expect("a directory"), JobLimits::default()).await;
    let name = node.queries.submit_job(request(1)).await.expect("made");
    node.ended(name).await;
    node.cluster.guard_with(Arc::new(AliceReads));
    let service = JobsService(Arc::clone(&node.queries.jobs));
    let wanted = ResultRange { row: 0, limit: None };
    let question = json!({"format": 1, "org": org(1), "name": name, "wanted": wanted});
    let question = Bytes::from(question.to_string());
    let asked = async |principal: &'static [u8]| {
        let principal = Some(Bytes::from_static(principal));
        let answer = service.answer_for(principal, NodeId(2), question.clone(), Duration::from_secs(60)).await;
        packed::unpack::<Value>(answer.expect("an answer")).expect("it reads")
    };
    let (head, rows) = asked(b"alice").await;
    assert_eq!((&head["Ok"]["status"], &rows[..]), (&json!(JobStatus::Succeeded), &b"{\"n\":0}\n"[..]));
    assert_eq!(asked(b"mallory").await, (json!({"Ok": null}), Bytes::new()), "as if there were none");
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_answered_kept_for_a_day_and_gone() {
    let node = Node::open(tempfile::tempdir().expect("a directory"), JobLimits::default()).await;
    let name = node.queries.submit_job(request(1)).await.expect("made");
    let seen = node.ended(name).await;
    assert_eq!((seen.status, &seen.lines[..], seen.next), (JobStatus::Succeeded, &b"{\"n\":0}\n"[..], None));
    assert_eq!(seen.homes, request(1).homes);
    assert_eq!(node.queries.look_at_job(org(2), name, None).await, Ok(None));
    let node = node.again().await;
    assert_eq!(node.look(name).await.as_ref(), Some(&seen), "the same behind a start");
    assert_eq!(node.files(), [format!("{name}.query"), format!("{name}.rows")]);
    node.now.fetch_add(KEPT_MICROS, Ordering::Relaxed);
    // Any event that wakes the driver suffices.
    let other = node.queries.submit_job(request(1)).await.expect("made");
    node.ended(other).await;
    assert_eq!(node.look(name).await, None);
    assert_eq!(node.files(), [format!("{other}.query"), format!("{other}.rows")]);
    let counts = node.queries.counts().jobs;
    assert_eq!((counts.kept, counts.bytes, counts.waiting, counts.running), (1, 8, 0, 0));
    let queries = node.queries.clone();
    node.close().await;
    assert!(matches!(queries.submit_job(request(1)).await, Err(AskError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_finds_damaged_or_deadly_has_failed_with_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Node::open(dir, JobLimits::default()).await;
    let own = |random| super::record::name(node.cluster.node(), Uuid::from_u128(random));
    let (damaged, deadly, waiting, cut) = (own(1 << 64), own(2 << 64), own(3 << 64), own(4 << 64));
    let queued = JobRecord { made: BEGIN, end: None, after: None, versions: Vec::new(), ..record(1) };
    let dir = node.close().await;
    write(dir.path(), damaged, &record(1).encode().replace("project_logs", "project_logz"));
    write(dir.path(), deadly, &JobRecord { starts: STARTS_MAX, ..queued.clone() }.encode());
    write(dir.path(), waiting, &JobRecord { starts: STARTS_MAX - 1, ..queued }.encode());
    write(dir.path(), cut, &JobRecord { made: BEGIN, ..record(1) }.encode());
    let node = Node::open(dir, JobLimits::default()).await;
    for (name, words) in [
        (damaged, "do not match their checksum. Start the query again"),
        (deadly, "stopped 5 times while the query ran"),
        (cut, "has 0 bytes, but 10 were written"),
    ] {
        let seen = node.look(name).await.expect("it is there");
        assert_eq!((seen.status, seen.next, seen.lines.len()), (JobStatus::Failed, None, 0), "{seen:?}");
        assert!(seen.error.as_deref().is_some_and(|why| why.contains(words)), "{seen:?}");
    }
    assert_eq!(node.ended(waiting).await.status, JobStatus::Succeeded);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_there_is_room_for_is_refused_and_leaves_nothing() {
    let limits = JobLimits { kept_max: 2, ..JobLimits::default() };
    let node = Node::open(tempfile::tempdir().expect("a directory"), limits).await;
    node.queries.submit_job(request(1)).await.expect("made");
    let refused = node.queries.submit_job(request(1)).await.expect_err("half is one's own");
    assert!(matches!(&refused, AskError::Busy(why) if why.contains("the maximum is 2")), "{refused}");
    let other = node.queries.submit_job(request(2)).await.expect("of another");
    for _ in 0..POLLS_MAX {
        if node.queries.look_at_job(org(2), other, None).await.expect("seen").expect("there").status
            == JobStatus::Succeeded
        {
            break;
        }
        tokio::time::sleep(POLLED_AFTER).await;
    }
    assert_eq!(node.queries.counts().jobs.kept, 2);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_the_disk_fails_to_read_are_kept() {
    let disk = FaultyDisk::new(Arc::new(RealDisk), FaultPlan::none());
    let dir = tempfile::tempdir().expect("a directory");
    let node = Node::open_on(Arc::new(disk.clone()), dir, JobLimits::default()).await;
    let name = node.queries.submit_job(request(1)).await.expect("made");
    let seen = node.ended(name).await;
    let fails_once = |operation, fault| disk.set_plan(FaultPlan::fail(operation, 1, fault).on_path(".rows"));
    for operation in [Operation::Open, Operation::ReadAt] {
        fails_once(operation, Fault::InputOutput);
        let wanted = ResultRange { row: 0, limit: None };
        let refused = node.queries.look_at_job(org(1), name, Some(wanted)).await.expect_err("it cannot be read");
        assert!(matches!(&refused, AskError::Unavailable(why) if why.contains("could not be read")), "{refused}");
        assert_eq!(node.look(name).await.as_ref(), Some(&seen), "the next time");
    }
    fails_once(Operation::ReadAt, Fault::FlippedBit);
    let damaged = node.look(name).await.expect("it is there");
    assert_eq!((damaged.status, damaged.lines.len()), (JobStatus::Failed, 0));
    assert!(damaged.error.is_some_and(|why| why.contains("do not match their checksum")));
    assert_eq!(node.files(), [format!("{name}.query")]);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_end_of_a_job_stays() {
    let node = Node::open(tempfile::tempdir().expect("a directory"), JobLimits::default()).await;
    let own = |random| super::record::name(node.cluster.node(), Uuid::from_u128(random));
    let (failed, succeeded) = (own(1 << 64), own(2 << 64));
    let record = JobRecord { made: BEGIN, end: None, after: None, versions: Vec::new(), ..record(1) };
    let jobs = &node.queries.jobs;
    for name in [failed, succeeded] {
        jobs.directory.put(name, &record).expect("written");
        let running = JobState::Running { pages: Pages::default(), tries: 0 };
        jobs.table.lock().queue.add(name, Job::new(Some(Arc::new(record.owner.clone())), None, BEGIN, running));
    }
    jobs.failed(failed, "first");
    jobs.end(failed, record.clone()).expect("it is not recorded");
    jobs.failed(failed, "second");
    jobs.end(succeeded, record).expect("it is recorded");
    jobs.failed(succeeded, "late");
    let end = |name| jobs.directory.get(name).expect("a record").end;
    assert_eq!(end(failed), Some(JobEnd::Failed { at: BEGIN, why: "first".into() }));
    assert_eq!(end(succeeded), Some(JobEnd::Succeeded { at: BEGIN, pages: Vec::new() }));
    let node = node.again().await;
    for (name, status, error) in [(failed, JobStatus::Failed, Some("first")), (succeeded, JobStatus::Succeeded, None)] {
        let seen = node.look(name).await.expect("it is there");
        assert_eq!((seen.status, seen.error.as_deref()), (status, error));
    }
    node.close().await;
}

/// A read that failed before the run was counted took the count of an earlier run.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_could_not_read_its_record_keeps_the_counts_of_earlier_ones() {
    let disk = FaultyDisk::new(Arc::new(RealDisk), FaultPlan::none());
    let dir = tempfile::tempdir().expect("a directory");
    let node = Node::open_on(Arc::new(disk.clone()), dir, JobLimits::default()).await;
    let name = super::record::name(node.cluster.node(), Uuid::from_u128(1 << 64));
    let record = JobRecord { made: BEGIN, end: None, after: None, versions: Vec::new(), starts: 1, ..record(1) };
    let jobs = &node.queries.jobs;
    jobs.directory.put(name, &record).expect("written");
    let running = JobState::Running { pages: Pages::default(), tries: 0 };
    jobs.table.lock().queue.add(name, Job::new(Some(Arc::new(record.owner.clone())), None, BEGIN, running));
    disk.set_plan(FaultPlan::fail(Operation::ReadAt, 1, Fault::InputOutput).on_path(".query"));
    Arc::clone(jobs).run(name).await;
    assert_eq!(jobs.table.lock().queue.get(name).map(Job::status), Some(JobStatus::Queued), "it waits for the disk");
    assert_eq!(jobs.directory.get(name).expect("a record").starts, 1);
    node.close().await;
}
