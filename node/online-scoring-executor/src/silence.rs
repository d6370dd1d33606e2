//! Traces and groups that wait for silence, and their selection once they are silent.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use assay_node_http::requests::caller::Caller;
use assay_node_online_scoring::{
    GroupPath, IdleTraces, InputDigest, OnlineRule, RuleInForce, RuleScope, ScoringState, SilentInput, SilentTrace,
    TriggerScope, is_root, is_scoring_span, select_silent, trigger_row,
};
use assay_storage_model::Xact;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::follower::{FollowError, Follower};
use crate::groups::roots_of_group;
use crate::inputs::{ParsedRow, read_trace};
use crate::log_reading::RowChange;
use crate::run::{QUEUE_WAIT_MAX, now_ms};
use crate::selecting::NoRoom;

/// Traces whose groups are remembered. The oldest ones are read again.
const KNOWN_GROUPS_MAX: usize = 50_000;
/// Silent traces of a rule that are judged in one round.
const JUDGED_MAX: usize = 200;
/// Time until another attempt at a trace that could not be judged.
const POSTPONED_MS: u64 = 5_000;

/// Traces or groups of one rule that wait for silence.
#[derive(Debug)]
pub(crate) struct WaitingTraces {
    scope: RuleScope,
    traces: IdleTraces,
    /// Groups of traces, by their root spans.
    groups: HashMap<String, Option<String>>,
    /// Writes to traces whose groups are not known yet.
    unresolved: BTreeMap<String, (u64, u64)>,
}

impl WaitingTraces {
    fn of(rule: &OnlineRule) -> Option<WaitingTraces> {
        let traces = match &rule.config.scope {
            RuleScope::Span(_) => return None,
            RuleScope::Trace { idle_ms } => IdleTraces::new(*idle_ms, 0),
            RuleScope::Group(group) => IdleTraces::new(group.idle_ms, group.interval_ms),
        };
        let scope = rule.config.scope.clone();
        Some(WaitingTraces { scope, traces, groups: HashMap::new(), unresolved: BTreeMap::new() })
    }

    pub fn safe_position(&self, read_xact: u64) -> u64 {
        self.traces.safe_position(read_xact)
    }

    fn group_by(&self) -> Option<&GroupPath> {
        match &self.scope {
            RuleScope::Group(group) => Some(&group.group_by),
            RuleScope::Span(_) | RuleScope::Trace { .. } => None,
        }
    }

    fn remember(&mut self, root_span_id: &str, group: Option<String>) {
        if self.groups.len() >= KNOWN_GROUPS_MAX {
            self.groups.clear();
        }
        self.groups.insert(root_span_id.to_owned(), group);
    }
}

impl Follower {
    /// Keeps the waiting traces of the active rules. A rule with another scope begins again at the stored position.
    pub(crate) fn fit_waiting(&mut self) {
        let mut waiting = BTreeMap::new();
        for rule in &self.active {
            let known = self.waiting.remove(&rule.id);
            let is_changed = known.as_ref().is_some_and(|known| known.scope != rule.config.scope);
            if is_changed && let Some(known) = &known {
                self.read_xact = self.read_xact.min(known.safe_position(self.read_xact));
            }
            if let Some(traces) = known.filter(|_| !is_changed).or_else(|| WaitingTraces::of(rule)) {
                waiting.insert(rule.id, traces);
            }
        }
        self.waiting = waiting;
    }

    /// Starts the idle time of the trace of a row again, for the rules that sample it.
    pub(crate) fn note_activity(&mut self, change: &RowChange) -> Result<(), NoRoom> {
        let Some((xact, at_ms)) = change.activity.filter(|_| !change.root_span_id.is_empty()) else { return Ok(()) };
        let members = change.row.as_ref().map(|row| &row.members);
        if members.is_some_and(is_scoring_span) {
            return Ok(());
        }
        for rule in self.active.iter().filter(|rule| xact > rule.active_since_xact) {
            let Some(waiting) = self.waiting.get_mut(&rule.id) else { continue };
            let root = change.root_span_id.as_str();
            let key = match waiting.group_by().cloned() {
                None => Some(root.to_owned()),
                Some(path) => {
                    if let Some(members) = members.filter(|members| is_root(members)) {
                        let group = path.value(members);
                        waiting.remember(root, group);
                    }
                    match waiting.groups.get(root) {
                        Some(group) => group.clone(),
                        None => {
                            let known = waiting.unresolved.entry(root.to_owned()).or_insert((xact, at_ms));
                            *known = (known.0.max(xact), known.1.max(at_ms));
                            None
                        }
                    }
                }
            };
            let sampled = key.filter(|key| rule.config.sampling_rate.selects(rule.id, key));
            if let Some(key) = sampled {
                waiting.traces.write(&key, xact, at_ms).map_err(|_| NoRoom)?;
            }
        }
        Ok(())
    }

    /// Finds the groups of traces whose roots were written earlier.
    pub(crate) async fn resolve_groups(&mut self) -> Result<(), FollowError> {
        for rule in self.active.clone() {
            let Some(waiting) = self.waiting.get_mut(&rule.id) else { continue };
            let Some(path) = waiting.group_by().cloned() else { continue };
            for (root, (xact, at_ms)) in std::mem::take(&mut waiting.unresolved) {
                let (object, key) = (self.object, root.clone());
                let trace = self.executor.read(object, move |view| read_trace(view, &object, &key, Xact::MAX)).await?;
                let Some(waiting) = self.waiting.get_mut(&rule.id) else { continue };
                // a root that comes later is a write of its own
                let Some(trace) = trace else { continue };
                let group = path.value(&trace.root.members);
                waiting.remember(&root, group.clone());
                let sampled = group.filter(|group| rule.config.sampling_rate.selects(rule.id, group));
                if let Some(group) = sampled
                    && waiting.traces.write(&group, xact, at_ms).is_err()
                {
                    return Err(FollowError::Unavailable("too many groups wait for silence".into()));
                }
            }
        }
        Ok(())
    }

    /// Selects the traces and groups that are silent.
    pub(crate) async fn judge_silence(&mut self) -> Result<(), FollowError> {
        for rule in self.active.clone() {
            let Some(waiting) = self.waiting.get_mut(&rule.id) else { continue };
            let silent = waiting.traces.silent(now_ms());
            for silent in silent.chunks(JUDGED_MAX) {
                self.judge(&rule, silent).await?;
            }
        }
        Ok(())
    }

    async fn judge(&mut self, rule: &Arc<OnlineRule>, silent: &[SilentTrace]) -> Result<(), FollowError> {
        let (mut rows, mut judged): (Vec<Value>, Vec<&str>) = (Vec::new(), Vec::new());
        for trace in silent {
            match self.silent_input(rule, trace).await {
                Ok(Some(found)) => {
                    rows.extend(self.select_silent(rule, trace, found));
                    judged.push(&trace.key);
                }
                Ok(None) => judged.push(&trace.key),
                Err(why) => {
                    tracing::warn!(object = %self.object, why, "a silent trace cannot be judged; it is judged later");
                    self.postpone(rule.id, &trace.key);
                }
            }
        }
        rows.extend(self.admit_refused().await?);
        let written = self.write_rows(rows).await;
        for key in judged {
            match &written {
                Ok(()) => {
                    if let Some(waiting) = self.waiting.get_mut(&rule.id) {
                        waiting.traces.judged(key, now_ms());
                    }
                }
                Err(_) => self.postpone(rule.id, key),
            }
        }
        written
    }

    fn postpone(&mut self, rule: Uuid, key: &str) {
        if let Some(waiting) = self.waiting.get_mut(&rule) {
            waiting.traces.postpone(key, now_ms().saturating_add(POSTPONED_MS));
        }
    }

    /// Reads a silent trace, or the traces of a silent group. One without a root has no place for a score.
    async fn silent_input(&self, rule: &OnlineRule, silent: &SilentTrace) -> Result<Option<FoundSilent>, String> {
        let object = self.object;
        let RuleScope::Group(group) = &rule.config.scope else {
            let key = silent.key.clone();
            let found = self
                .executor
                .read(object, move |view| Ok((view.version(), read_trace(view, &object, &key, Xact::MAX)?)));
            let (version, trace) = found.await?;
            return Ok(trace.map(|trace| FoundSilent {
                root: trace.root,
                scope: TriggerScope::Trace,
                version,
                digest: trace.digest,
            }));
        };
        let user = rule.run_as.ok_or("the rule has no author")?;
        let author = self.executor.author(&object, user).await.map_err(|error| error.message)?;
        let caller = Caller::of_background(self.executor.edge.clone(), author, Instant::now() + QUEUE_WAIT_MAX);
        let (path, value) = (group.group_by.text().to_owned(), silent.key.clone());
        let roots = roots_of_group(&caller, &object, (&path, &value), group.traces_max).await?;
        let found = self.executor.read(object, move |view| {
            let mut traces = Vec::with_capacity(roots.len());
            for root in roots {
                if let Some(trace) = read_trace(view, &object, &root, Xact::MAX)? {
                    traces.push((root, trace));
                }
            }
            Ok((view.version(), traces))
        });
        let (version, traces) = found.await?;
        let digest = InputDigest::of_group(traces.iter().map(|(root, trace)| (root.as_str(), trace.digest)));
        let scope = TriggerScope::Group { key: path, value };
        let first = traces.into_iter().next();
        Ok(first.map(|(_, trace)| FoundSilent { root: trace.root, scope, version, digest }))
    }

    fn select_silent(&mut self, rule: &Arc<OnlineRule>, silent: &SilentTrace, found: FoundSilent) -> Option<Value> {
        let FoundSilent { root, scope, version, digest } = found;
        let state = ScoringState::of_row(&root.members).ok()?;
        let input = SilentInput {
            root: &root.members,
            scope,
            changed_xact: silent.changed_xact,
            version_xact: version.0,
            digest,
        };
        let in_force = RuleInForce { rule, since_xact: rule.active_since_xact };
        let requests = select_silent(&in_force, &input, &state, |rule| self.passes(rule, &root.stored));
        let id = root.stored.id.as_str().to_owned();
        trigger_row(&root.members, self.admit(requests, &state, (&id, None)))
    }
}

/// Silent trace or group as it was read.
struct FoundSilent {
    root: ParsedRow,
    scope: TriggerScope,
    version: Xact,
    digest: InputDigest,
}
