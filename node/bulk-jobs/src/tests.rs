//! Tests of the job table and of job ids.

use assay_storage_model::{NodeId, OrgId};
use uuid::Uuid;

use crate::table::{BulkJob, JobOwner, JobState, JobTable, TooManyJobs};
use crate::{job_id, node_of};

fn owner(user: u128) -> JobOwner {
    JobOwner { org: OrgId(Uuid::from_u128(1)), user: Uuid::from_u128(user) }
}

fn job(number: u128, user: u128) -> BulkJob {
    BulkJob::new(Uuid::from_u128(number), owner(user), "tag".into(), i64::try_from(number).expect("small"))
}

#[test]
fn an_id_names_its_node() {
    let id = job_id(NodeId(7), Uuid::from_u128(u128::MAX));
    assert_eq!(node_of(id), Some(NodeId(7)));
    assert_eq!(node_of(Uuid::nil()), None);
}

#[test]
fn a_user_and_a_node_run_a_bounded_number_of_jobs() {
    let mut table = JobTable::default();
    for number in 0..4 {
        table.begin(job(number, 1)).expect("room");
    }
    assert_eq!(table.begin(job(4, 1)), Err(TooManyJobs::OfUser));
    for number in 5..17 {
        table.begin(job(number, number)).expect("room");
    }
    assert_eq!(table.begin(job(17, 17)), Err(TooManyJobs::OfNode));
    table.end(Uuid::from_u128(0), Ok(()), 9);
    table.begin(job(18, 1)).expect("one has ended");
}

#[test]
fn old_jobs_make_room() {
    let mut table = JobTable::default();
    for number in 0..600 {
        table.begin(job(number, 1)).expect("room");
        table.end(Uuid::from_u128(number), Ok(()), 9);
    }
    let kept = table.answer(&owner(1), None, false);
    assert_eq!((kept.len(), kept[0].started), (500, 100));
}

#[test]
fn a_job_is_seen_and_cancelled_by_its_owner_only() {
    let mut table = JobTable::default();
    let id = Uuid::from_u128(3);
    table.begin(job(3, 1)).expect("room");
    assert_eq!(table.answer(&owner(2), Some(id), true), []);
    assert!(!table.is_cancelled(id));
    table.answer(&owner(1), None, true);
    assert!(!table.is_cancelled(id), "all at once are not cancelled");
    assert_eq!(table.answer(&owner(1), Some(id), true)[0].state, JobState::Running);
    assert!(table.is_cancelled(id));
    table.end(id, Ok(()), 5);
    assert_eq!(table.answer(&owner(1), Some(id), false)[0].state, JobState::Cancelled);
}

#[test]
fn a_job_without_its_runner_has_failed_and_an_ended_one_has_not() {
    let mut table = JobTable::default();
    table.begin(job(1, 1)).expect("room");
    table.begin(job(2, 1)).expect("room");
    table.end(Uuid::from_u128(1), Ok(()), 9);
    for number in 1..=2 {
        table.abandon(Uuid::from_u128(number), 11);
    }
    let jobs = table.answer(&owner(1), None, false);
    let ends: Vec<(JobState, Option<i64>)> = jobs.iter().map(|job| (job.state, job.ended)).collect();
    assert_eq!(ends, [(JobState::Done, Some(9)), (JobState::Failed, Some(11))]);
}
