//! Loop over the log of one project, on the leader of its shard.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use assay_node_objects::{ObjectWrite, Patience};
use assay_node_online_scoring::{
    CONTROL_FIELD, CapLimits, CapRefusal, ExcludedSpans, ExecutorRecord, OnlineRule, OpenTrigger, OpenTriggers,
    RuleCounts, RuleInForce, RunCaps, RunReservation, ScoringControl, TriggerEvent, TriggerPhase, TriggerSource,
};
use assay_storage_model::event::SentItem;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_shard::Row;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use crate::Executor;
use crate::counters::ScoringCounters;
use crate::executor_store::{self, StoreError, StoredRecord};
use crate::refused::RefusedRun;
use crate::row_condition::{LoggedRow, RowCondition};
use crate::rules::ProjectRules;
use crate::run::{Run, RunEnd, now_ms};
use crate::silence::WaitingTraces;
use crate::status::{LogStatus, NotedError, RuleStatus};

/// Interval of looks at a log without new writes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval in which a changed position is stored.
const STORE_EVERY: Duration = Duration::from_secs(5);
/// Shortest time between two reads of a log of which the first found all.
const READ_EVERY: Duration = Duration::from_millis(25);
/// Shortest time between two reports of the state, which read all open triggers.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
/// Attempts at a record that has to be stored before runs start.
const STORE_ATTEMPTS_MAX: usize = 5;
/// Interval in which the authors of rules are checked, and filters compiled for the present time.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// Pause after an error of storage.
const ERROR_PAUSE: Duration = Duration::from_secs(1);
/// Runs of one log at the same time.
const LOG_RUNS_MAX: usize = 32;
/// Rows in one write of triggers.
const WRITE_ROWS_MAX: usize = 200;
/// Reservations for runs that have not begun. More are forgotten, and count as runs.
pub(crate) const RESERVATIONS_MAX: usize = 50_000;
const MILLIS_PER_SECOND: u64 = 1000;

/// Reason why a follower stops or pauses.
#[derive(Debug)]
pub(crate) enum FollowError {
    /// Another node follows the log.
    Lost,
    Unavailable(String),
}

impl From<StoreError> for FollowError {
    fn from(error: StoreError) -> FollowError {
        match error {
            StoreError::Overtaken => FollowError::Lost,
            StoreError::Unavailable(why) => FollowError::Unavailable(why),
        }
    }
}

impl From<String> for FollowError {
    fn from(why: String) -> FollowError {
        FollowError::Unavailable(why)
    }
}

/// Row and key of a run.
pub(crate) type RunName = (String, Option<String>);

/// Follower of one log.
pub(crate) struct Follower {
    pub(crate) executor: Arc<Executor>,
    pub(crate) object: ObjectKey,
    pub(crate) stored: StoredRecord,
    /// Newest write of the log that was read.
    pub(crate) read_xact: u64,
    pub(crate) open: OpenTriggers,
    pub(crate) excluded: ExcludedSpans,
    /// Traces and groups that wait for silence, by rules.
    pub(crate) waiting: BTreeMap<Uuid, WaitingTraces>,
    /// Rules whose functions run.
    pub(crate) active: Vec<Arc<OnlineRule>>,
    table: Option<Arc<ProjectRules>>,
    conditions: HashMap<Uuid, RowCondition>,
    checked_at: Option<Instant>,
    /// Places of runs under the caps, before the runs and during them.
    reservations: HashMap<RunName, RunReservation>,
    running: JoinSet<RunEnd>,
    /// Requests that caps refused, and whose results are looked for next.
    pub(crate) refused: Vec<RefusedRun>,
    /// Runs that only write an earlier result again, so that no cap counts them.
    pub(crate) repeated: HashSet<RunName>,
    /// Runs of the part of the log that is read now which caps refused.
    pub(crate) skipped: BTreeMap<Uuid, u64>,
    status: BTreeMap<Uuid, RuleStatus>,
    published_at: Option<Instant>,
    read_at: Option<Instant>,
    stored_at: Instant,
    /// Whether reservations have to be stored before their runs start.
    has_counted: bool,
}

impl Follower {
    pub fn new(executor: Arc<Executor>, object: ObjectKey) -> Follower {
        let record = ExecutorRecord { writer: Uuid::new_v4(), ..ExecutorRecord::default() };
        Follower {
            executor,
            object,
            stored: StoredRecord { record, revision: None },
            read_xact: 0,
            open: OpenTriggers::default(),
            excluded: ExcludedSpans::default(),
            waiting: BTreeMap::new(),
            active: Vec::new(),
            table: None,
            conditions: HashMap::new(),
            checked_at: None,
            reservations: HashMap::new(),
            running: JoinSet::new(),
            refused: Vec::new(),
            repeated: HashSet::new(),
            skipped: BTreeMap::new(),
            status: BTreeMap::new(),
            published_at: None,
            read_at: None,
            stored_at: Instant::now(),
            has_counted: false,
        }
    }

    /// Follows the log until another node does.
    pub async fn follow(mut self) {
        loop {
            let Err(error) = self.work().await;
            match error {
                FollowError::Lost => return,
                FollowError::Unavailable(why) => {
                    tracing::warn!(object = %self.object, why, "online scoring pauses");
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
        }
    }

    async fn work(&mut self) -> Result<Infallible, FollowError> {
        loop {
            if !self.executor.leads(&self.object) {
                return Err(FollowError::Lost);
            }
            if self.stored.revision.is_none() {
                self.claim().await?;
            }
            self.check_rules().await?;
            let has_more = self.read_log_if_due().await?;
            self.judge_silence().await?;
            self.start_runs().await?;
            self.store_if_due().await?;
            self.publish_if_due();
            if !has_more && self.is_idle() {
                return self.end().await;
            }
            match has_more {
                true => self.settle_ended(),
                false => self.wait().await,
            }
        }
    }

    /// Reads the log, but not for each of the writes of this executor. Returns whether there is more.
    async fn read_log_if_due(&mut self) -> Result<bool, FollowError> {
        if self.read_at.is_some_and(|read| read.elapsed() < READ_EVERY) {
            return Ok(false);
        }
        let has_more = self.read_log().await?;
        self.read_at = (!has_more).then(Instant::now);
        Ok(has_more)
    }

    /// Returns whether nothing is left to do in a log without rules.
    fn is_idle(&self) -> bool {
        let is_demanded = self.stored.record.is_demanded(now_ms());
        self.table.is_none() && !is_demanded && self.open.is_empty() && self.running.is_empty()
    }

    /// Stops to follow the log, until it has rules or a client demands runs.
    async fn end(&mut self) -> Result<Infallible, FollowError> {
        self.stored.record.has_work = false;
        self.store().await?;
        Err(FollowError::Lost)
    }

    /// Waits for the end of a run, or for the next look at the log.
    async fn wait(&mut self) {
        tokio::select! {
            Some(end) = self.running.join_next() => {
                self.settle(end);
                self.settle_ended();
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }

    fn settle_ended(&mut self) {
        while let Some(end) = self.running.try_join_next() {
            self.settle(end);
        }
    }

    /// Takes over the record of the log, and begins at its position.
    async fn claim(&mut self) -> Result<(), FollowError> {
        let catalog = self.executor.edge.records.catalog();
        let found = executor_store::load(catalog, &self.object).await?;
        let since = self.executor.rules_of(self.object.id);
        let since = since.iter().flat_map(|rules| &rules.rules).map(|rule| rule.active_since_xact).min();
        let writer = self.stored.record.writer;
        let mut stored = found.unwrap_or_else(|| {
            let last = self.executor.cluster.shard(self.executor.cluster.locate(&self.object));
            let position = since.or_else(|| last.map(|shard| shard.last().0)).unwrap_or_default();
            StoredRecord { record: ExecutorRecord { position, ..ExecutorRecord::default() }, revision: None }
        });
        let record = &mut stored.record;
        record.writer = writer;
        record.caps = RunCaps::resume(std::mem::take(&mut record.caps));
        if !record.is_followed(now_ms()) {
            // no trigger is open, and no rule judges older writes
            record.position = record.position.max(since.unwrap_or_default());
        }
        record.has_work = true;
        executor_store::store(catalog, &self.object, &mut stored).await?;
        self.read_xact = stored.record.position;
        self.stored = stored;
        Ok(())
    }

    /// Follows changes of the rules: cancels the triggers of those that do not run any more.
    async fn check_rules(&mut self) -> Result<(), FollowError> {
        let table = self.executor.rules_of(self.object.id);
        let is_same = match (&table, &self.table) {
            (Some(new), Some(known)) => Arc::ptr_eq(new, known),
            (None, None) => true,
            _ => false,
        };
        if is_same && self.checked_at.is_some_and(|checked| checked.elapsed() < CHECK_EVERY) {
            return Ok(());
        }
        let mut active = Vec::new();
        for rule in table.iter().flat_map(|rules| &rules.rules) {
            let paused = self.pause_of(rule).await;
            let status = self.status.entry(rule.id).or_default();
            status.paused.clone_from(&paused);
            if paused.is_none() {
                active.push(Arc::clone(rule));
            }
        }
        self.compile(&active);
        let still: HashSet<Uuid> = active.iter().map(|rule| rule.id).collect();
        let ended: Vec<Uuid> = self.active.iter().map(|rule| rule.id).filter(|id| !still.contains(id)).collect();
        self.active = active;
        self.table = table;
        self.checked_at = Some(Instant::now());
        self.fit_waiting();
        self.status.retain(|id, _| self.table.iter().flat_map(|table| &table.rules).any(|rule| rule.id == *id));
        let mut rows = Vec::new();
        for rule in ended {
            let control = ScoringControl::CancelTriggers { rules: vec![rule] }.to_json();
            let cancelled = self.open.cancel_rule(rule).into_iter();
            rows.extend(cancelled.map(|id| json!({"id": id, "_is_merge": true, CONTROL_FIELD: control})));
        }
        self.write_rows(rows).await
    }

    /// Returns why an active rule does not run: its author is gone, or its filter is not valid any more.
    async fn pause_of(&self, rule: &OnlineRule) -> Option<String> {
        let Some(user) = rule.run_as else {
            return Some("the rule has no author: save it again".to_owned());
        };
        let author = self.executor.author(&self.object, user).await;
        author
            .err()
            .filter(|error| error.cause == assay_node_online_scoring::RunFailureCause::Permanent)
            .map(|error| error.message)
    }

    fn compile(&mut self, active: &[Arc<OnlineRule>]) {
        let now_micros = i64::try_from(now_ms().saturating_mul(MILLIS_PER_SECOND)).unwrap_or(i64::MAX);
        self.conditions.clear();
        for rule in active {
            let Some(filter) = &rule.config.filter else { continue };
            match RowCondition::compile(filter, now_micros) {
                Ok(condition) => {
                    self.conditions.insert(rule.id, condition);
                }
                Err(why) => tracing::warn!(rule = %rule.id, why, "a filter of online scoring cannot be compiled"),
            }
        }
    }

    /// Returns whether the filter of a rule holds for a row.
    pub(crate) fn passes(&self, rule: &OnlineRule, row: &Row) -> bool {
        match (&rule.config.filter, self.conditions.get(&rule.id)) {
            (None, _) => true,
            (Some(_), Some(condition)) => condition.holds(LoggedRow { object: &self.object, row }),
            (Some(_), None) => false,
        }
    }

    pub(crate) fn in_force(&self) -> Vec<RuleInForce<'_>> {
        self.active.iter().map(|rule| RuleInForce { rule, since_xact: rule.active_since_xact }).collect()
    }

    pub(crate) fn is_active(&self, rule: Uuid) -> bool {
        self.active.iter().any(|active| active.id == rule)
    }

    /// Reserves a run under the caps of a rule. Returns the end of the cap's window if there is no place.
    pub(crate) fn reserve(&mut self, rule: Uuid, name: RunName) -> Result<(), u64> {
        if self.reservations.contains_key(&name) {
            return Ok(());
        }
        let found = self.active.iter().find(|active| active.id == rule);
        let limits = found.map(|rule| rule.config.caps.or(self.executor.default_caps())).unwrap_or_default();
        match self.stored.record.caps.reserve(rule, limits, 0, now_ms()) {
            Ok(reservation) => {
                if self.reservations.len() >= RESERVATIONS_MAX {
                    self.reservations.clear();
                }
                self.reservations.insert(name, reservation);
                self.has_counted |= limits != CapLimits::default();
                Ok(())
            }
            Err(CapRefusal::Reached { cap, until_ms, tells_owner, .. }) => {
                if tells_owner {
                    let message = format!("the rule has reached its cap {cap:?} and skips runs until the window ends");
                    tracing::warn!(%rule, object = %self.object, "{message}");
                    self.note(rule, NotedError { at_ms: now_ms(), row_id: None, function: None, message });
                }
                Err(until_ms)
            }
            Err(CapRefusal::TooManyRules) => Err(now_ms().saturating_add(60 * MILLIS_PER_SECOND)),
        }
    }

    /// Drops the reservation of a run that did not start in its minute: it counts in the minute in which it starts.
    fn drop_past(&mut self, name: &RunName) {
        if self.reservations.get(name).is_some_and(|reservation| reservation.is_past(now_ms()))
            && let Some(reservation) = self.reservations.remove(name)
        {
            self.stored.record.caps.release(reservation);
        }
    }

    /// Counts a run that a cap refused. One of a part of the log counts once the part is read.
    pub(crate) fn skip(&mut self, rule: Uuid, caused_by: Option<u64>) {
        match caused_by {
            Some(xact) if xact > self.stored.record.skipped_xact => *self.skipped.entry(rule).or_default() += 1,
            Some(_) => {}
            None => self.count_skipped(rule, 1),
        }
    }

    /// Counts the refused runs of a part of the log that was read.
    pub(crate) fn count_part(&mut self, read_xact: u64) {
        for (rule, count) in std::mem::take(&mut self.skipped) {
            self.count_skipped(rule, count);
        }
        let record = &mut self.stored.record;
        record.skipped_xact = record.skipped_xact.max(read_xact);
    }

    fn count_skipped(&mut self, rule: Uuid, count: u64) {
        let totals = self.stored.record.totals.entry(rule).or_default();
        totals.skipped = totals.skipped.saturating_add(count);
        ScoringCounters::add(&self.executor.counters.skipped, count);
    }

    fn note(&mut self, rule: Uuid, error: NotedError) {
        self.status.entry(rule).or_default().note(error);
    }

    /// Stores reservations before the runs that they are for.
    pub(crate) async fn store_counted(&mut self) -> Result<(), FollowError> {
        for _ in 0..STORE_ATTEMPTS_MAX {
            if !self.has_counted {
                return Ok(());
            }
            match self.store().await {
                Err(FollowError::Unavailable(why)) => {
                    tracing::debug!(why, "the caps of online scoring are stored again")
                }
                stored => return stored,
            }
        }
        Err(FollowError::Unavailable("the usage of caps cannot be stored".into()))
    }

    async fn store_if_due(&mut self) -> Result<(), FollowError> {
        if self.stored_at.elapsed() < STORE_EVERY {
            return Ok(());
        }
        self.stored_at = Instant::now();
        let position = self.safe_position();
        if position > self.stored.record.position || self.has_counted {
            self.store().await?;
        }
        Ok(())
    }

    async fn store(&mut self) -> Result<(), FollowError> {
        self.stored.record.position = self.safe_position().max(self.stored.record.position);
        executor_store::store(self.executor.edge.records.catalog(), &self.object, &mut self.stored).await?;
        self.has_counted = false;
        Ok(())
    }

    /// Returns the position later than which all work is found that is not done.
    fn safe_position(&self) -> u64 {
        let waiting = self.waiting.values().map(|waiting| waiting.safe_position(self.read_xact));
        waiting.min().unwrap_or(self.read_xact).min(self.open.safe_position(self.read_xact))
    }

    /// Writes controls of rows.
    pub(crate) async fn write_rows(&mut self, rows: Vec<Value>) -> Result<(), FollowError> {
        self.store_counted().await?;
        for rows in rows.chunks(WRITE_ROWS_MAX) {
            let rows = rows.iter().cloned().map(SentItem::from).collect();
            let write = ObjectWrite { object: self.object, rows, request: None };
            let written = self.executor.edge.objects.write_scoring(write, Patience::usual()).await;
            written.map_err(|why| FollowError::Unavailable(why.to_string()))?;
        }
        Ok(())
    }

    /// Starts the runs that are due, as far as there is room.
    async fn start_runs(&mut self) -> Result<(), FollowError> {
        let mut runs = Vec::new();
        while self.running.len() + runs.len() < LOG_RUNS_MAX
            && let Some(trigger) = self.open.next_ready(now_ms()).cloned()
        {
            let name = name_of(&trigger);
            self.drop_past(&name);
            let payer = trigger.payer().filter(|_| !self.repeated.contains(&name));
            let event = match payer.map(|rule| self.reserve(rule, name)) {
                Some(Err(until_ms)) => TriggerEvent::Postpone { until_ms },
                Some(Ok(())) | None => TriggerEvent::Start,
            };
            self.apply(&trigger, event);
            if event == TriggerEvent::Start {
                let user = self.user_of(&trigger);
                runs.push(Run { object: self.object, trigger, user });
            }
        }
        self.store_counted().await?;
        for run in runs {
            self.running.spawn(run.happen(Arc::clone(&self.executor)));
        }
        Ok(())
    }

    /// Returns the user with whose rights a function runs: the author of the rule, or whoever demanded the run.
    fn user_of(&self, trigger: &OpenTrigger) -> Option<Uuid> {
        let wanting = trigger.rules.iter().find_map(|id| self.active.iter().find(|rule| rule.id == *id));
        let author = wanting.and_then(|rule| rule.run_as);
        match trigger.source {
            TriggerSource::Manual => trigger.requested_by.or(author),
            TriggerSource::Online | TriggerSource::Backfill => author,
        }
    }

    fn apply(&mut self, trigger: &OpenTrigger, event: TriggerEvent) -> Option<TriggerPhase> {
        let applied = self.open.apply(&trigger.place, trigger.run_key.as_deref(), event, now_ms());
        applied.ok().map(|progress| progress.phase) // a trigger may have been replaced or cancelled meanwhile
    }

    fn settle(&mut self, end: Result<RunEnd, tokio::task::JoinError>) {
        let Ok(RunEnd { trigger, event, cost_nano_usd, error, was_called }) = end else {
            tracing::error!(object = %self.object, "a run of online scoring ended by a panic; the log is read again");
            self.read_xact = self.safe_position();
            self.open = OpenTriggers::default();
            return;
        };
        self.repeated.remove(&name_of(&trigger));
        if let Some(reservation) = self.reservations.remove(&name_of(&trigger)) {
            match was_called {
                true => self.stored.record.caps.settle(reservation, cost_nano_usd),
                false => self.stored.record.caps.release(reservation),
            }
            self.has_counted |= cost_nano_usd > 0;
        }
        let phase = self.apply(&trigger, event);
        let has_failed = matches!(event, TriggerEvent::Fail(_));
        ScoringCounters::add(&self.executor.counters.runs, u64::from(was_called));
        ScoringCounters::add(&self.executor.counters.failures, u64::from(has_failed));
        for rule in &trigger.rules {
            let totals = self.stored.record.totals.entry(*rule).or_default();
            totals.runs = totals.runs.saturating_add(u64::from(was_called));
            totals.failures = totals.failures.saturating_add(u64::from(has_failed));
            totals.failed = totals.failed.saturating_add(u64::from(phase == Some(TriggerPhase::Failed)));
        }
        if let Some(message) = error {
            let (row_id, function) = (Some(trigger.place.row_id.clone()), Some(trigger.function.key()));
            for rule in &trigger.rules {
                let error = NotedError {
                    at_ms: now_ms(),
                    row_id: row_id.clone(),
                    function: function.clone(),
                    message: message.clone(),
                };
                self.note(*rule, error);
            }
        }
    }

    fn publish_if_due(&mut self) {
        if self.published_at.is_none_or(|published| published.elapsed() >= PUBLISH_EVERY) {
            self.published_at = Some(Instant::now());
            self.publish();
        }
    }

    /// Publishes the state of the log for the nodes.
    fn publish(&mut self) {
        let now_ms = now_ms();
        let age = |xact: u64| now_ms.saturating_sub(u64::from(Xact(xact).seconds()) * MILLIS_PER_SECOND);
        let mut counts: BTreeMap<Uuid, RuleCounts> = BTreeMap::new();
        let (mut running, mut lag_ms) = (0, 0);
        for trigger in self.open.iter() {
            let phase = trigger.progress.phase;
            running += u64::from(matches!(phase, TriggerPhase::Running { .. }));
            lag_ms = lag_ms.max(age(trigger.seen_xact));
            for rule in &trigger.rules {
                let count = counts.entry(*rule).or_default();
                count.count(phase);
                count.lag_ms = count.lag_ms.max(age(trigger.seen_xact));
            }
        }
        for (id, status) in &mut self.status {
            let totals = self.stored.record.totals.get(id).copied().unwrap_or_default();
            status.counts = RuleCounts {
                failed: totals.failed,
                skipped: totals.skipped,
                cost_nano_usd: self.stored.record.caps.spent_nano_usd(*id, now_ms),
                ..counts.get(id).copied().unwrap_or_default()
            };
        }
        let log = LogStatus { rules: self.status.clone(), open: self.open.len() as u64, running, lag_ms };
        self.executor.logs.lock().insert(self.object.id, log);
    }
}

pub(crate) fn name_of(trigger: &OpenTrigger) -> RunName {
    (trigger.place.row_id.clone(), trigger.run_key.clone())
}
