//! Registry of running queries: their list, and the signal that cancels one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use uuid::Uuid;

use crate::progress::{QueryPhase, QueryProgress};

/// Upper bound of the queries in the registry of a node. Further ones run unlisted.
pub const RUNNING_LISTED_MAX: usize = 4096;
/// Upper bound of the queries in an answer, which has the oldest ones.
pub const RUNNING_ANSWERED_MAX: usize = 500;
/// Upper bound of the objects that are listed for one query.
const OBJECTS_LISTED_MAX: usize = 10;

/// Organization and user on whose behalf a query runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryOwner {
    pub organization: Uuid,
    /// User, or nil for a query of the server itself.
    pub user: Uuid,
}

/// Origin of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryKind {
    /// Request of a client for rows.
    #[default]
    Direct,
    /// Query that the server runs to serve another request or a background job.
    Internal,
    /// Asynchronous query, which continues after its request.
    Job,
}

impl QueryKind {
    pub const ALL: [QueryKind; 3] = [QueryKind::Direct, QueryKind::Internal, QueryKind::Job];

    /// Returns the name in metrics, logs and lists.
    pub fn name(self) -> &'static str {
        match self {
            QueryKind::Direct => "direct",
            QueryKind::Internal => "internal",
            QueryKind::Job => "job",
        }
    }
}

/// Description of a query that begins.
#[derive(Clone, Debug, Default)]
pub struct QueryDescription {
    pub owner: QueryOwner,
    pub kind: QueryKind,
    /// Objects whose rows it reads, of which the first few are listed.
    pub objects: Vec<String>,
    /// Text without literals.
    pub text: Arc<str>,
    /// Time of the start, in microseconds since 1970.
    pub started: i64,
}

/// Running query in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningQuery {
    pub id: Uuid,
    pub owner: QueryOwner,
    pub kind: QueryKind,
    pub objects: Vec<String>,
    /// Text without literals.
    pub text: String,
    /// Time of the start, in microseconds since 1970.
    pub started: i64,
    pub phase: QueryPhase,
    pub rows_scanned: u64,
    pub memory_bytes: u64,
    pub is_cancelled: bool,
}

/// Request for running queries, which may also cancel them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningQuestion {
    pub organization: Uuid,
    /// User whose queries are meant, or `None` for those of the whole organization.
    pub user: Option<Uuid>,
    /// Id of one query, or `None` for all.
    pub id: Option<Uuid>,
    /// Whether the query is cancelled. Only a question about one query may cancel.
    pub cancel: bool,
}

impl RunningQuestion {
    fn is_about(&self, id: Uuid, owner: &QueryOwner) -> bool {
        owner.organization == self.organization
            && self.user.is_none_or(|user| user == owner.user)
            && self.id.is_none_or(|wanted| wanted == id)
    }
}

/// Queries that run on this node. Clones share the registry.
#[derive(Clone, Debug, Default)]
pub struct RunningQueries(Arc<Mutex<BTreeMap<Uuid, RegisteredQuery>>>);

struct RegisteredQuery {
    description: QueryDescription,
    progress: Arc<QueryProgress>,
    cancel: watch::Sender<bool>,
}

impl fmt::Debug for RegisteredQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredQuery").field("description", &self.description).finish_non_exhaustive()
    }
}

impl RegisteredQuery {
    fn view(&self, id: Uuid) -> RunningQuery {
        let QueryDescription { owner, kind, ref objects, ref text, started } = self.description;
        let usage = self.progress.usage();
        RunningQuery {
            id,
            owner,
            kind,
            objects: objects.clone(),
            text: text.to_string(),
            started,
            phase: self.progress.phase(),
            rows_scanned: usage.rows_scanned,
            memory_bytes: usage.memory_bytes,
            is_cancelled: *self.cancel.borrow(),
        }
    }
}

/// Ticket of a running query, which leaves the registry when it is dropped.
#[derive(Debug)]
pub struct QueryTicket {
    id: Uuid,
    registry: RunningQueries,
    progress: Arc<QueryProgress>,
    cancelled: watch::Receiver<bool>,
}

impl RunningQueries {
    /// Registers a query. `id` must be unique.
    pub fn begin(&self, id: Uuid, mut description: QueryDescription) -> QueryTicket {
        description.objects.truncate(OBJECTS_LISTED_MAX);
        let (cancel, cancelled) = watch::channel(false);
        let progress = Arc::new(QueryProgress::default());
        let mut queries = self.0.lock();
        if queries.len() < RUNNING_LISTED_MAX {
            queries.insert(id, RegisteredQuery { description, progress: Arc::clone(&progress), cancel });
        }
        drop(queries);
        QueryTicket { id, registry: self.clone(), progress, cancelled }
    }

    /// Returns the queries that a question is about, oldest first, and cancels one if the question says so.
    pub fn answer(&self, question: &RunningQuestion) -> Vec<RunningQuery> {
        let queries = self.0.lock();
        let meant = queries.iter().filter(|(id, query)| question.is_about(**id, &query.description.owner));
        let mut found: Vec<RunningQuery> = meant
            .map(|(id, query)| {
                if question.cancel && question.id.is_some() {
                    query.cancel.send_replace(true);
                }
                query.view(*id)
            })
            .collect();
        found.sort_by_key(|query| (query.started, query.id));
        found.truncate(RUNNING_ANSWERED_MAX);
        found
    }
}

impl QueryTicket {
    pub fn id(&self) -> Uuid {
        self.id
    }

    pub fn progress(&self) -> &Arc<QueryProgress> {
        &self.progress
    }

    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Returns a future that ends when the query is cancelled.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut cancelled = self.cancelled.clone();
        async move {
            // An unlisted query has no sender, so nobody can cancel it.
            if cancelled.wait_for(|is_cancelled| *is_cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for QueryTicket {
    fn drop(&mut self) {
        self.registry.0.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn begin(registry: &RunningQueries, id: u128, organization: u128, user: u128) -> QueryTicket {
        let owner = QueryOwner { organization: Uuid::from_u128(organization), user: Uuid::from_u128(user) };
        let started = i64::try_from(id).expect("a small number");
        registry.begin(Uuid::from_u128(id), QueryDescription { owner, started, ..QueryDescription::default() })
    }

    fn about(organization: u128, user: Option<u128>) -> RunningQuestion {
        let user = user.map(Uuid::from_u128);
        RunningQuestion { organization: Uuid::from_u128(organization), user, id: None, cancel: false }
    }

    fn ids(queries: &[RunningQuery]) -> Vec<u128> {
        queries.iter().map(|query| query.id.as_u128()).collect()
    }

    #[test]
    fn a_list_has_the_queries_of_its_user_or_organization_until_they_end() {
        let registry = RunningQueries::default();
        let tickets =
            [(3, 1, 1), (1, 1, 2), (2, 2, 1)].map(|(id, organization, user)| begin(&registry, id, organization, user));
        assert_eq!(ids(&registry.answer(&about(1, None))), [1, 3]);
        assert_eq!(ids(&registry.answer(&about(1, Some(1)))), [3]);
        assert!(registry.answer(&about(3, None)).is_empty());
        drop(tickets);
        assert!(registry.answer(&about(1, None)).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancel_reaches_the_query_of_its_owner_alone() {
        let registry = RunningQueries::default();
        let (own, other) = (begin(&registry, 1, 1, 1), begin(&registry, 2, 1, 2));
        let cancel = |id, user| {
            let id = Some(Uuid::from_u128(id));
            registry.answer(&RunningQuestion { id, cancel: true, ..about(1, Some(user)) })
        };
        assert!(cancel(2, 1).is_empty() && !other.is_cancelled(), "a query of somebody else");
        assert!(cancel(1, 1)[0].is_cancelled && own.is_cancelled());
        own.cancelled().await;
        let waited = tokio::time::timeout(Duration::from_secs(60), other.cancelled()).await;
        assert!(waited.is_err() && !other.is_cancelled());
    }

    #[test]
    fn a_question_about_all_queries_cancels_none() {
        let registry = RunningQueries::default();
        let ticket = begin(&registry, 1, 1, 1);
        assert_eq!(registry.answer(&RunningQuestion { cancel: true, ..about(1, None) }).len(), 1);
        assert!(!ticket.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn queries_beyond_the_limit_run_unlisted() {
        let registry = RunningQueries::default();
        let tickets: Vec<QueryTicket> =
            (0..RUNNING_LISTED_MAX as u128 + 1).map(|id| begin(&registry, id, 1, 1)).collect();
        assert_eq!(registry.0.lock().len(), RUNNING_LISTED_MAX);
        assert_eq!(registry.answer(&about(1, None)).len(), RUNNING_ANSWERED_MAX);
        let last = tickets.last().expect("a ticket");
        assert!(tokio::time::timeout(Duration::from_secs(60), last.cancelled()).await.is_err(), "it goes on");
        drop(tickets);
        assert!(registry.answer(&about(1, None)).is_empty());
    }

    #[test]
    fn a_list_shows_progress_and_few_objects() {
        let registry = RunningQueries::default();
        let objects = (0..50).map(|number| number.to_string()).collect();
        let description = QueryDescription { objects, text: "SELECT ?".into(), ..QueryDescription::default() };
        let ticket = registry.begin(Uuid::from_u128(1), description);
        ticket.progress().scanned(9);
        ticket.progress().holds(4);
        ticket.progress().enter(QueryPhase::Running);
        let found = registry.answer(&about(0, None)).remove(0);
        assert_eq!((found.rows_scanned, found.memory_bytes, found.phase), (9, 4, QueryPhase::Running));
        assert_eq!((found.objects.len(), found.text.as_str()), (OBJECTS_LISTED_MAX, "SELECT ?"));
    }

    proptest! {
        /// The registry agrees with a list of the queries that have begun and not ended.
        #[test]
        fn the_list_is_what_began_and_did_not_end(
            steps in proptest::collection::vec((0_u128..12, 0_u128..3, 0_u128..3, any::<bool>()), 0..60)
        ) {
            let registry = RunningQueries::default();
            let mut model: BTreeMap<u128, (u128, u128, QueryTicket)> = BTreeMap::new();
            for (id, organization, user, begins) in steps {
                if begins && !model.contains_key(&id) {
                    model.insert(id, (organization, user, begin(&registry, id, organization, user)));
                } else {
                    model.remove(&id);
                }
                for organization in 0..3 {
                    for user in [None, Some(0), Some(1)] {
                        let is_meant = |(of, by, _): &(u128, u128, QueryTicket)| {
                            *of == organization && user.is_none_or(|user| user == *by)
                        };
                        let expected: Vec<u128> =
                            model.iter().filter(|(_, query)| is_meant(query)).map(|(id, _)| *id).collect();
                        prop_assert_eq!(ids(&registry.answer(&about(organization, user))), expected);
                    }
                }
            }
        }
    }
}
