//! Queue of a node's jobs: admission, order of execution, and the state of each job. The module is pure: it performs no
//! I/O, and time is an argument.
//!
//! ```text
//!            next            page ...        succeed
//!   queued ────────> running ────────────────────────> succeeded ─┐ a day later
//!      ^                │  └───────────────────────────> failed ──┴───────────> gone
//!      └────────────────┘  fail, or too many bytes
//!        again: what it needs is not there just now
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_storage_model::OrgId;
use uuid::Uuid;

use super::pages::{PAGES_MAX, Page, Pages};
use super::record::JobOwner;
use super::{JobLimits, JobStatus};

/// Time for which results are kept (D-18), and for which a job may wait.
pub(crate) const KEPT_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// Delay before the first retry of a job with missing resources. It doubles each time, up to `PAUSE_MICROS_MAX`.
const PAUSE_MICROS: i64 = 500_000;
const PAUSE_MICROS_MAX: i64 = 30_000_000;

#[derive(Debug)]
pub(crate) struct JobQueue {
    limits: JobLimits,
    jobs: BTreeMap<Uuid, Job>,
    /// Counter that numbers jobs and turns.
    count: u64,
    /// Number of the last turn of each organization.
    turns: BTreeMap<OrgId, u64>,
}

#[derive(Debug)]
pub(crate) struct Job {
    /// Owner, or `None` if the record is damaged.
    pub owner: Option<Arc<JobOwner>>,
    pub batch: Option<u64>,
    made: i64,
    number: u64,
    pub state: JobState,
}

#[derive(Debug)]
pub(crate) enum JobState {
    Queued { not_before: i64, tries: u32 },
    Running { pages: Pages, tries: u32 },
    Succeeded { at: i64, pages: Pages },
    Failed { at: i64, why: String },
}

/// Reason to refuse a job or more of its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull(pub String);

/// Numbers of jobs at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    pub waiting: usize,
    pub running: usize,
    pub kept: usize,
    pub bytes: u64,
}

impl Job {
    pub fn new(owner: Option<Arc<JobOwner>>, batch: Option<u64>, made: i64, state: JobState) -> Job {
        Job { owner, batch, made, number: 0, state }
    }

    pub fn status(&self) -> JobStatus {
        match self.state {
            JobState::Queued { .. } => JobStatus::Queued,
            JobState::Running { .. } => JobStatus::Running,
            JobState::Succeeded { .. } => JobStatus::Succeeded,
            JobState::Failed { .. } => JobStatus::Failed,
        }
    }

    fn org(&self) -> Option<OrgId> {
        self.owner.as_ref().map(|owner| owner.org)
    }

    fn bytes(&self) -> u64 {
        match &self.state {
            JobState::Running { pages, .. } | JobState::Succeeded { pages, .. } => pages.bytes(),
            JobState::Queued { .. } | JobState::Failed { .. } => 0,
        }
    }

    fn gone_at(&self) -> Option<i64> {
        match self.state {
            JobState::Succeeded { at, .. } | JobState::Failed { at, .. } => Some(at.saturating_add(KEPT_MICROS)),
            JobState::Queued { .. } | JobState::Running { .. } => None,
        }
    }
}

impl JobState {
    pub fn queued() -> JobState {
        JobState::Queued { not_before: i64::MIN, tries: 0 }
    }
}

impl JobQueue {
    pub fn new(limits: JobLimits) -> JobQueue {
        JobQueue { limits, jobs: BTreeMap::new(), count: 0, turns: BTreeMap::new() }
    }

    pub fn counts(&self) -> JobCounts {
        let of = |status| self.jobs.values().filter(|job| job.status() == status).count();
        JobCounts {
            waiting: of(JobStatus::Queued),
            running: of(JobStatus::Running),
            kept: self.jobs.len(),
            bytes: self.jobs.values().map(Job::bytes).sum(),
        }
    }

    pub fn get(&self, name: Uuid) -> Option<&Job> {
        self.jobs.get(&name)
    }

    /// Checks whether an organization may add a job. It may have at most half of all jobs, which leaves room for
    /// others.
    pub fn admit(&self, org: OrgId) -> Result<(), QueueFull> {
        let own: Vec<&Job> = self.jobs.values().filter(|job| job.org() == Some(org)).collect();
        let (kept_max, waiting_max) = (self.limits.kept_max, self.limits.waiting_max);
        let waiting = own.iter().filter(|job| job.status() == JobStatus::Queued).count();
        if waiting >= waiting_max {
            let why =
                format!("{waiting} queries of this organization are waiting, which is the maximum of {waiting_max}");
            return Err(QueueFull(format!("{why}; retry when one of them has run")));
        }
        if self.jobs.len() >= kept_max || own.len() >= kept_max.div_ceil(2) {
            let (all, own) = (self.jobs.len(), own.len());
            let why = format!("this node stores {all} queries and their results, {own} of them from this organization");
            return Err(QueueFull(format!(
                "{why}; the maximum is {kept_max}, and half of it for one organization. Each is deleted after a day"
            )));
        }
        Ok(())
    }

    /// Adds a job without a check of the limits, since jobs from before a restart must be kept.
    pub fn add(&mut self, name: Uuid, mut job: Job) {
        self.count += 1;
        job.number = self.count;
        self.jobs.insert(name, job);
    }

    pub fn remove(&mut self, name: Uuid) {
        let org = self.jobs.remove(&name).and_then(|job| job.org());
        self.turns.retain(|other, _| Some(*other) != org || self.jobs.values().any(|job| job.org() == org));
    }

    /// Starts the next job, if the limit of running jobs allows it.
    ///
    /// The job is the oldest one of the waiting organization whose last turn is longest ago.
    pub fn next(&mut self, now: i64) -> Option<Uuid> {
        if self.counts().running >= self.limits.running_max.max(1) {
            return None;
        }
        let ready = self.jobs.iter().filter(
            |(_, job)| matches!(job.state, JobState::Queued { not_before, .. } if not_before <= now && !is_stale(job, now)),
        );
        let turn = |job: &Job| job.org().and_then(|org| self.turns.get(&org)).copied();
        let (name, org) = ready.min_by_key(|(_, job)| (turn(job), job.number)).map(|(name, job)| (*name, job.org()))?;
        self.count += 1;
        self.turns.extend(org.map(|org| (org, self.count)));
        let job = self.jobs.get_mut(&name)?;
        let tries = if let JobState::Queued { tries, .. } = job.state { tries } else { 0 };
        job.state = JobState::Running { pages: Pages::default(), tries };
        Some(name)
    }

    /// Returns the time at which the first delayed job may run.
    pub fn wakes_at(&self) -> Option<i64> {
        let times = self.jobs.values().filter_map(|job| match job.state {
            JobState::Queued { not_before, .. } if not_before > i64::MIN && not_before < i64::MAX => Some(not_before),
            _ => None,
        });
        times.min()
    }

    /// Checks whether a running job may have one more page.
    pub fn may_grow(&self, name: Uuid, bytes: usize) -> Result<(), QueueFull> {
        let JobLimits { job_bytes_max, bytes_max, .. } = self.limits;
        let Some(Job { state: JobState::Running { pages, .. }, owner, .. }) = self.jobs.get(&name) else {
            return Err(QueueFull("the query is no longer running".into()));
        };
        let (bytes, org) = (bytes as u64, owner.as_ref().map(|owner| owner.org));
        if pages.bytes() + bytes > job_bytes_max || pages.len() >= PAGES_MAX {
            let (rows, mib) = (pages.rows(), job_bytes_max >> 20);
            let why = format!("the results exceed the maximum of a query ({mib} MiB) after {rows} rows");
            return Err(QueueFull(format!("{why}: select fewer columns, filter, or set a limit")));
        }
        let all: u64 = self.jobs.values().map(Job::bytes).sum();
        let own: u64 = self.jobs.values().filter(|job| job.org() == org).map(Job::bytes).sum();
        if all + bytes > bytes_max || own + bytes > bytes_max.div_ceil(2) {
            let (mib, own) = (bytes_max >> 20, own >> 20);
            let why = format!(
                "this node has no room for more query results ({mib} MiB in total, half of it for one organization)"
            );
            return Err(QueueFull(format!(
                "{why}: this organization uses {own} MiB, and results are deleted after a day"
            )));
        }
        Ok(())
    }

    /// Makes a job ready to run after its record is written.
    pub fn ready(&mut self, name: Uuid) {
        if let Some(job) = self.jobs.get_mut(&name) {
            job.state = JobState::queued();
        }
    }

    pub fn running(&self) -> Vec<Uuid> {
        self.jobs.iter().filter(|(_, job)| job.status() == JobStatus::Running).map(|(name, _)| *name).collect()
    }

    /// Adds a written page to a running job.
    pub fn page(&mut self, name: Uuid, page: Page) {
        if let Some(Job { state: JobState::Running { pages, .. }, .. }) = self.jobs.get_mut(&name) {
            pages.push(page);
        }
    }

    /// Returns all pages of a job, or `None` if it is not running.
    pub fn pages(&self, name: Uuid) -> Option<Vec<Page>> {
        match self.jobs.get(&name).map(|job| &job.state) {
            Some(JobState::Running { pages, .. }) => Some(pages.list()),
            _ => None,
        }
    }

    /// Puts a job back into the queue because resources are missing. Returns `false` if the job has waited for a day.
    pub fn again(&mut self, name: Uuid, now: i64) -> bool {
        let Some(job) = self.jobs.get_mut(&name) else { return false };
        if is_stale(job, now) {
            return false;
        }
        if let JobState::Running { tries, .. } = job.state {
            let pause = (PAUSE_MICROS << tries.min(16)).min(PAUSE_MICROS_MAX);
            job.state = JobState::Queued { not_before: now.saturating_add(pause), tries: tries.saturating_add(1) };
        }
        true
    }

    pub fn succeed(&mut self, name: Uuid, now: i64) {
        if let Some(job) = self.jobs.get_mut(&name)
            && let JobState::Running { pages, .. } = &mut job.state
        {
            job.state = JobState::Succeeded { at: now, pages: std::mem::take(pages) };
        }
    }

    /// Marks a job as failed in any state, for example a succeeded job with damaged results.
    pub fn fail(&mut self, name: Uuid, now: i64, why: &str) {
        if let Some(job) = self.jobs.get_mut(&name) {
            job.state = JobState::Failed { at: now, why: why.to_owned() };
        }
    }

    /// Returns the jobs whose results have expired.
    pub fn gone(&self, now: i64) -> Vec<Uuid> {
        let is_gone = |job: &Job| job.gone_at().is_some_and(|at| at <= now);
        self.jobs.iter().filter(|(_, job)| is_gone(job)).map(|(name, _)| *name).collect()
    }

    /// Returns the jobs that have waited for a day.
    pub fn stale(&self, now: i64) -> Vec<Uuid> {
        let is_waiting = |job: &Job| job.status() == JobStatus::Queued && is_stale(job, now);
        self.jobs.iter().filter(|(_, job)| is_waiting(job)).map(|(name, _)| *name).collect()
    }
}

fn is_stale(job: &Job, now: i64) -> bool {
    job.made.saturating_add(KEPT_MICROS) <= now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Masks;

    const LIMITS: JobLimits =
        JobLimits { running_max: 2, waiting_max: 3, kept_max: 8, seconds_max: 60, job_bytes_max: 100, bytes_max: 300 };

    fn org(number: u128) -> OrgId {
        OrgId(Uuid::from_u128(number))
    }

    fn name(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn job(number: u128) -> Job {
        let owner = JobOwner { org: org(number), user: Uuid::nil(), homes: Vec::new(), masks: Masks::new() };
        Job::new(Some(Arc::new(owner)), None, 0, JobState::queued())
    }

    /// Returns a queue with one job for each organization, named by its index.
    fn queue(orgs: &[u128]) -> JobQueue {
        let mut queue = JobQueue::new(LIMITS);
        orgs.iter().enumerate().for_each(|(place, org)| queue.add(name(place as u128), job(*org)));
        queue
    }

    fn page(bytes: u32) -> Page {
        Page { rows: 1, bytes, sum: 0 }
    }

    #[test]
    fn organizations_take_turns_and_so_many_run() {
        let mut queue = queue(&[1, 1, 1, 2]);
        assert_eq!((queue.next(0), queue.next(0), queue.next(0)), (Some(name(0)), Some(name(3)), None));
        queue.succeed(name(0), 1);
        assert_eq!((queue.next(0), queue.next(0)), (Some(name(1)), None));
        queue.fail(name(3), 1, "no");
        assert_eq!(queue.next(0), Some(name(2)));
        assert_eq!(queue.counts(), JobCounts { waiting: 0, running: 2, kept: 4, bytes: 0 });
    }

    #[test]
    fn an_organization_that_asks_a_lot_is_refused_and_others_are_not() {
        let mut queue = queue(&[1, 1, 1]);
        let QueueFull(why) = queue.admit(org(1)).expect_err("three wait");
        assert!(why.contains("3 queries of this organization are waiting"), "{why}");
        assert_eq!(queue.admit(org(2)), Ok(()));
        // Jobs that have run count towards the limit of kept jobs.
        queue.next(0);
        assert_eq!(queue.admit(org(1)), Ok(()));
        queue.add(name(3), job(1));
        queue.next(0);
        let QueueFull(why) = queue.admit(org(1)).expect_err("four are kept");
        assert!(why.contains("the maximum is 8"), "{why}");
        assert_eq!(queue.admit(org(2)), Ok(()));
    }

    #[test]
    fn results_have_an_end() {
        let mut queue = queue(&[1, 1, 2]);
        let mut fill = |number: u128, bytes: u32| {
            assert_eq!(queue.next(0), Some(name(number)));
            assert_eq!(queue.may_grow(name(number), bytes as usize), Ok(()));
            queue.page(name(number), page(bytes));
            let why = queue.may_grow(name(number), 51).map_err(|QueueFull(why)| why);
            queue.succeed(name(number), 1);
            (why, queue.counts().bytes)
        };
        let (why, bytes) = fill(0, 100);
        assert!(bytes == 100 && why.expect_err("its own").contains("exceed the maximum of a query"));
        assert_eq!(fill(2, 10), (Ok(()), 110));
        let (why, bytes) = fill(1, 49);
        assert!(bytes == 159 && why.expect_err("of the organization").contains("uses 0 MiB"));
        queue.fail(name(0), 2, "damaged");
        assert_eq!(queue.counts().bytes, 59);
        assert!(queue.may_grow(name(0), 1).is_err());
    }

    #[test]
    fn what_is_not_there_is_waited_for_longer_and_longer_and_no_more_than_a_day() {
        let mut queue = queue(&[1]);
        let (mut now, mut pauses) = (0, Vec::new());
        loop {
            assert_eq!(queue.next(now), Some(name(0)));
            queue.page(name(0), page(5));
            if !queue.again(name(0), now) {
                break;
            }
            assert_eq!((queue.next(now), queue.counts().bytes), (None, 0), "its results go");
            let wakes = queue.wakes_at().expect("a time");
            pauses.push(wakes - now);
            now = if pauses.len() < 20 { wakes } else { KEPT_MICROS - 1 };
            if pauses.len() == 21 {
                assert!(queue.stale(now).is_empty());
                assert_eq!(queue.stale(KEPT_MICROS), [name(0)]);
                assert_eq!(queue.next(KEPT_MICROS), None);
                break;
            }
        }
        assert_eq!((pauses[0], pauses[1], pauses[19]), (PAUSE_MICROS, 2 * PAUSE_MICROS, PAUSE_MICROS_MAX));
    }

    #[test]
    fn what_ended_is_kept_for_a_day() {
        let mut queue = queue(&[1, 1, 2]);
        queue.next(0);
        queue.next(0);
        queue.succeed(name(0), 10);
        queue.fail(name(2), 20, "no");
        assert!(queue.gone(KEPT_MICROS + 9).is_empty());
        assert_eq!(queue.gone(KEPT_MICROS + 10), [name(0)]);
        assert_eq!(queue.gone(KEPT_MICROS + 20), [name(0), name(2)], "one that waits is not gone");
        queue.remove(name(2));
        assert!(queue.get(name(2)).is_none() && queue.counts().kept == 2);
        assert!(!queue.turns.contains_key(&org(2)) && queue.turns.contains_key(&org(1)));
    }
}
