//! All jobs of a node as plain data: who may add one, whose turn it is, and what becomes of each. Pure: the time comes in,
//! and what is to be done goes out; files, threads and queries are somebody else's.
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
use super::record::Owner;
use super::{LaterLimits, Status};

/// Results are kept so long (D-18); and what has none after as long a time never will.
pub(crate) const KEPT_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// Between two tries of a job whose needs are not there: doubled each time, up to the second.
const PAUSE_MICROS: i64 = 500_000;
const PAUSE_MICROS_MAX: i64 = 30_000_000;

#[derive(Debug)]
pub(crate) struct Line {
    limits: LaterLimits,
    jobs: BTreeMap<Uuid, Job>,
    /// Counts jobs and turns, for their order.
    count: u64,
    /// When each organization had its last turn.
    turns: BTreeMap<OrgId, u64>,
}

#[derive(Debug)]
pub(crate) struct Job {
    /// None of one whose record is damaged: nobody knows whose it was.
    pub owner: Option<Arc<Owner>>,
    pub batch: Option<u64>,
    made: i64,
    number: u64,
    pub state: State,
}

#[derive(Debug)]
pub(crate) enum State {
    Queued { not_before: i64, tries: u32 },
    Running { pages: Pages, tries: u32 },
    Succeeded { at: i64, pages: Pages },
    Failed { at: i64, why: String },
}

/// Why a job is not taken in, or not more of its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Full(pub String);

/// What there is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaterCounts {
    pub waiting: usize,
    pub running: usize,
    pub kept: usize,
    pub bytes: u64,
}

impl Job {
    pub fn new(owner: Option<Arc<Owner>>, batch: Option<u64>, made: i64, state: State) -> Job {
        Job { owner, batch, made, number: 0, state }
    }

    pub fn status(&self) -> Status {
        match self.state {
            State::Queued { .. } => Status::Queued,
            State::Running { .. } => Status::Running,
            State::Succeeded { .. } => Status::Succeeded,
            State::Failed { .. } => Status::Failed,
        }
    }

    fn org(&self) -> Option<OrgId> {
        self.owner.as_ref().map(|owner| owner.org)
    }

    fn bytes(&self) -> u64 {
        match &self.state {
            State::Running { pages, .. } | State::Succeeded { pages, .. } => pages.bytes(),
            State::Queued { .. } | State::Failed { .. } => 0,
        }
    }

    fn gone_at(&self) -> Option<i64> {
        match self.state {
            State::Succeeded { at, .. } | State::Failed { at, .. } => Some(at.saturating_add(KEPT_MICROS)),
            State::Queued { .. } | State::Running { .. } => None,
        }
    }
}

impl State {
    pub fn queued() -> State {
        State::Queued { not_before: i64::MIN, tries: 0 }
    }
}

impl Line {
    pub fn new(limits: LaterLimits) -> Line {
        Line { limits, jobs: BTreeMap::new(), count: 0, turns: BTreeMap::new() }
    }

    pub fn counts(&self) -> LaterCounts {
        let of = |status| self.jobs.values().filter(|job| job.status() == status).count();
        LaterCounts {
            waiting: of(Status::Queued),
            running: of(Status::Running),
            kept: self.jobs.len(),
            bytes: self.jobs.values().map(Job::bytes).sum(),
        }
    }

    pub fn get(&self, name: Uuid) -> Option<&Job> {
        self.jobs.get(&name)
    }

    /// Whether the organization may add one. It has at most half of all places, so that there is one for another.
    pub fn admit(&self, org: OrgId) -> Result<(), Full> {
        let own: Vec<&Job> = self.jobs.values().filter(|job| job.org() == Some(org)).collect();
        let (kept_max, waiting_max) = (self.limits.kept_max, self.limits.waiting_max);
        let waiting = own.iter().filter(|job| job.status() == Status::Queued).count();
        if waiting >= waiting_max {
            let why = format!("{waiting} queries of this organization wait already, and at most {waiting_max} may");
            return Err(Full(format!("{why}; ask again when one of them has run")));
        }
        if self.jobs.len() >= kept_max || own.len() >= kept_max.div_ceil(2) {
            let (all, own) = (self.jobs.len(), own.len());
            let why = format!("this node keeps {all} queries and their results, {own} of them of this organization");
            return Err(Full(format!(
                "{why}; at most {kept_max} are kept, half of them of one; each goes after a day"
            )));
        }
        Ok(())
    }

    /// Also what was there before a start, whatever the limits are by now.
    pub fn add(&mut self, name: Uuid, mut job: Job) {
        self.count += 1;
        job.number = self.count;
        self.jobs.insert(name, job);
    }

    pub fn remove(&mut self, name: Uuid) {
        let org = self.jobs.remove(&name).and_then(|job| job.org());
        self.turns.retain(|other, _| Some(*other) != org || self.jobs.values().any(|job| job.org() == org));
    }

    /// Who runs next, if there is room: of the organizations that wait the one whose last turn is longest ago, and its
    /// oldest job. It runs from here on.
    pub fn next(&mut self, now: i64) -> Option<Uuid> {
        if self.counts().running >= self.limits.running_max.max(1) {
            return None;
        }
        let ready = self.jobs.iter().filter(
            |(_, job)| matches!(job.state, State::Queued { not_before, .. } if not_before <= now && !is_stale(job, now)),
        );
        let turn = |job: &Job| job.org().and_then(|org| self.turns.get(&org)).copied();
        let (name, org) = ready.min_by_key(|(_, job)| (turn(job), job.number)).map(|(name, job)| (*name, job.org()))?;
        self.count += 1;
        self.turns.extend(org.map(|org| (org, self.count)));
        let job = self.jobs.get_mut(&name)?;
        let tries = if let State::Queued { tries, .. } = job.state { tries } else { 0 };
        job.state = State::Running { pages: Pages::default(), tries };
        Some(name)
    }

    /// When a job that waits for a time may run, if that is what is waited for.
    pub fn wakes_at(&self) -> Option<i64> {
        let times = self.jobs.values().filter_map(|job| match job.state {
            State::Queued { not_before, .. } if not_before > i64::MIN && not_before < i64::MAX => Some(not_before),
            _ => None,
        });
        times.min()
    }

    /// Whether a running job may have this page too.
    pub fn may_grow(&self, name: Uuid, bytes: usize) -> Result<(), Full> {
        let LaterLimits { job_bytes_max, bytes_max, .. } = self.limits;
        let Some(Job { state: State::Running { pages, .. }, owner, .. }) = self.jobs.get(&name) else {
            return Err(Full("the query does not run any more".into()));
        };
        let (bytes, org) = (bytes as u64, owner.as_ref().map(|owner| owner.org));
        if pages.bytes() + bytes > job_bytes_max || pages.len() >= PAGES_MAX {
            let (rows, mib) = (pages.rows(), job_bytes_max >> 20);
            let why = format!("the results are larger than a query may keep ({mib} MiB), behind {rows} rows");
            return Err(Full(format!("{why}: select less of each row, filter, or set a limit")));
        }
        let all: u64 = self.jobs.values().map(Job::bytes).sum();
        let own: u64 = self.jobs.values().filter(|job| job.org() == org).map(Job::bytes).sum();
        if all + bytes > bytes_max || own + bytes > bytes_max.div_ceil(2) {
            let (mib, own) = (bytes_max >> 20, own >> 20);
            let why =
                format!("this node has no room for more results of queries ({mib} MiB for all, half of it for one)");
            return Err(Full(format!("{why}: those of this organization take {own} MiB, and go after a day")));
        }
        Ok(())
    }

    /// A job that was added before it might run may run now.
    pub fn ready(&mut self, name: Uuid) {
        if let Some(job) = self.jobs.get_mut(&name) {
            job.state = State::queued();
        }
    }

    pub fn running(&self) -> Vec<Uuid> {
        self.jobs.iter().filter(|(_, job)| job.status() == Status::Running).map(|(name, _)| *name).collect()
    }

    /// A page of a running job that is written.
    pub fn page(&mut self, name: Uuid, page: Page) {
        if let Some(Job { state: State::Running { pages, .. }, .. }) = self.jobs.get_mut(&name) {
            pages.push(page);
        }
    }

    /// The pages of a running job, all of them.
    pub fn pages(&self, name: Uuid) -> Vec<Page> {
        match self.jobs.get(&name).map(|job| &job.state) {
            Some(State::Running { pages, .. }) => pages.list(),
            _ => Vec::new(),
        }
    }

    /// A running job waits once more, for what it needs was not there; false where it has waited for a day.
    pub fn again(&mut self, name: Uuid, now: i64) -> bool {
        let Some(job) = self.jobs.get_mut(&name) else { return false };
        if is_stale(job, now) {
            return false;
        }
        if let State::Running { tries, .. } = job.state {
            let pause = (PAUSE_MICROS << tries.min(16)).min(PAUSE_MICROS_MAX);
            job.state = State::Queued { not_before: now.saturating_add(pause), tries: tries.saturating_add(1) };
        }
        true
    }

    pub fn succeed(&mut self, name: Uuid, now: i64) {
        if let Some(job) = self.jobs.get_mut(&name)
            && let State::Running { pages, .. } = &mut job.state
        {
            job.state = State::Succeeded { at: now, pages: std::mem::take(pages) };
        }
    }

    /// Whatever it was: also results that are damaged.
    pub fn fail(&mut self, name: Uuid, now: i64, why: &str) {
        if let Some(job) = self.jobs.get_mut(&name) {
            job.state = State::Failed { at: now, why: why.to_owned() };
        }
    }

    /// Jobs whose results were kept long enough.
    pub fn gone(&self, now: i64) -> Vec<Uuid> {
        let is_gone = |job: &Job| job.gone_at().is_some_and(|at| at <= now);
        self.jobs.iter().filter(|(_, job)| is_gone(job)).map(|(name, _)| *name).collect()
    }

    /// Jobs that have waited for a day.
    pub fn stale(&self, now: i64) -> Vec<Uuid> {
        let is_waiting = |job: &Job| job.status() == Status::Queued && is_stale(job, now);
        self.jobs.iter().filter(|(_, job)| is_waiting(job)).map(|(name, _)| *name).collect()
    }
}

fn is_stale(job: &Job, now: i64) -> bool {
    job.made.saturating_add(KEPT_MICROS) <= now
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LaterLimits = LaterLimits {
        running_max: 2,
        waiting_max: 3,
        kept_max: 8,
        seconds_max: 60,
        job_bytes_max: 100,
        bytes_max: 300,
    };

    fn org(number: u128) -> OrgId {
        OrgId(Uuid::from_u128(number))
    }

    fn name(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn job(number: u128) -> Job {
        let owner = Owner { org: org(number), user: Uuid::nil(), homes: Vec::new() };
        Job::new(Some(Arc::new(owner)), None, 0, State::queued())
    }

    /// Jobs of these organizations, named by their places.
    fn line(orgs: &[u128]) -> Line {
        let mut line = Line::new(LIMITS);
        orgs.iter().enumerate().for_each(|(place, org)| line.add(name(place as u128), job(*org)));
        line
    }

    fn page(bytes: u32) -> Page {
        Page { rows: 1, bytes, sum: 0 }
    }

    #[test]
    fn organizations_take_turns_and_so_many_run() {
        let mut line = line(&[1, 1, 1, 2]);
        assert_eq!((line.next(0), line.next(0), line.next(0)), (Some(name(0)), Some(name(3)), None));
        line.succeed(name(0), 1);
        assert_eq!((line.next(0), line.next(0)), (Some(name(1)), None));
        line.fail(name(3), 1, "no");
        assert_eq!(line.next(0), Some(name(2)));
        assert_eq!(line.counts(), LaterCounts { waiting: 0, running: 2, kept: 4, bytes: 0 });
    }

    #[test]
    fn an_organization_that_asks_a_lot_is_refused_and_others_are_not() {
        let mut line = line(&[1, 1, 1]);
        let Full(why) = line.admit(org(1)).expect_err("three wait");
        assert!(why.contains("3 queries of this organization wait already"), "{why}");
        assert_eq!(line.admit(org(2)), Ok(()));
        // What has run counts for what is kept.
        line.next(0);
        assert_eq!(line.admit(org(1)), Ok(()));
        line.add(name(3), job(1));
        line.next(0);
        let Full(why) = line.admit(org(1)).expect_err("four are kept");
        assert!(why.contains("at most 8 are kept"), "{why}");
        assert_eq!(line.admit(org(2)), Ok(()));
    }

    #[test]
    fn results_have_an_end() {
        let mut line = line(&[1, 1, 2]);
        let mut fill = |number: u128, bytes: u32| {
            assert_eq!(line.next(0), Some(name(number)));
            assert_eq!(line.may_grow(name(number), bytes as usize), Ok(()));
            line.page(name(number), page(bytes));
            let why = line.may_grow(name(number), 51).map_err(|Full(why)| why);
            line.succeed(name(number), 1);
            (why, line.counts().bytes)
        };
        let (why, bytes) = fill(0, 100);
        assert!(bytes == 100 && why.expect_err("its own").contains("larger than a query may keep"));
        assert_eq!(fill(2, 10), (Ok(()), 110));
        let (why, bytes) = fill(1, 49);
        assert!(bytes == 159 && why.expect_err("of the organization").contains("take 0 MiB"));
        line.fail(name(0), 2, "damaged");
        assert_eq!(line.counts().bytes, 59);
        assert!(line.may_grow(name(0), 1).is_err());
    }

    #[test]
    fn what_is_not_there_is_waited_for_longer_and_longer_and_no_more_than_a_day() {
        let mut line = line(&[1]);
        let (mut now, mut pauses) = (0, Vec::new());
        loop {
            assert_eq!(line.next(now), Some(name(0)));
            line.page(name(0), page(5));
            if !line.again(name(0), now) {
                break;
            }
            assert_eq!((line.next(now), line.counts().bytes), (None, 0), "its results go");
            let wakes = line.wakes_at().expect("a time");
            pauses.push(wakes - now);
            now = if pauses.len() < 20 { wakes } else { KEPT_MICROS - 1 };
            if pauses.len() == 21 {
                assert!(line.stale(now).is_empty());
                assert_eq!(line.stale(KEPT_MICROS), [name(0)]);
                assert_eq!(line.next(KEPT_MICROS), None);
                break;
            }
        }
        assert_eq!((pauses[0], pauses[1], pauses[19]), (PAUSE_MICROS, 2 * PAUSE_MICROS, PAUSE_MICROS_MAX));
    }

    #[test]
    fn what_ended_is_kept_for_a_day() {
        let mut line = line(&[1, 1, 2]);
        line.next(0);
        line.next(0);
        line.succeed(name(0), 10);
        line.fail(name(2), 20, "no");
        assert!(line.gone(KEPT_MICROS + 9).is_empty());
        assert_eq!(line.gone(KEPT_MICROS + 10), [name(0)]);
        assert_eq!(line.gone(KEPT_MICROS + 20), [name(0), name(2)], "one that waits is not gone");
        line.remove(name(2));
        assert!(line.get(name(2)).is_none() && line.counts().kept == 2);
        assert!(!line.turns.contains_key(&org(2)) && line.turns.contains_key(&org(1)));
    }
}
