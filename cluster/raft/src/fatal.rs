//! End of the process for a replica that must not continue.
//!
//! The reason is a failed write or fsync, damage, or a panic in the write path. The outcome of an unacknowledged write
//! is then unknown to its writer, and nothing acknowledged is lost (decision 11).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, panic, process, thread};

use assay_storage_model::{GroupId, ReplicaId};
use parking_lot::Mutex;

use crate::apply::apply_thread::others_of;
use crate::apply::machine::{Machine, MachineError};

/// Prefix of the threads of the consensus runtime, including its blocking threads.
pub const CONSENSUS_THREAD: &str = "assay-consensus";
/// Prefix of the apply threads. The number of the shard, or `cat`, follows.
pub const APPLY_THREAD: &str = "assay-apply-";
pub const SEAL_THREAD: &str = "assay-seal";
pub const COMPACTION_THREAD: &str = "assay-compact";
pub const UPKEEP_THREAD: &str = "assay-upkeep";
/// Name of the thread that writes the log, set by its own crate.
pub const LOG_THREAD: &str = "assay-log";
/// Prefix of the threads that run the actors of objects, set by their own crate. A number follows.
pub const ACTOR_THREAD: &str = "assay-objects";

/// Prefixes of the threads on which a panic ends the process.
const THREADS_THAT_END_IT: [&str; 7] =
    [CONSENSUS_THREAD, APPLY_THREAD, SEAL_THREAD, COMPACTION_THREAD, UPKEEP_THREAD, LOG_THREAD, ACTOR_THREAD];

/// Reaction when this node must stop at once. It is reported once, and by default the process aborts.
///
/// A replica with damaged files need not end the node: see [`OnFatal::close_damaged`].
#[derive(Clone)]
pub struct OnFatal {
    hook: Arc<dyn Fn(String) + Send + Sync>,
    reported: Arc<AtomicBool>,
    close_damaged: Option<Arc<dyn Fn(GroupId, ReplicaId) + Send + Sync>>,
    damaged: Arc<Mutex<BTreeSet<(GroupId, ReplicaId)>>>,
}

impl OnFatal {
    /// Calls `hook` instead of ending the process. For tests.
    pub fn call(hook: impl Fn(String) + Send + Sync + 'static) -> OnFatal {
        let reported = Arc::new(AtomicBool::new(false));
        OnFatal { hook: Arc::new(hook), reported, close_damaged: None, damaged: Arc::default() }
    }

    /// Calls `close` with a damaged replica, whose consensus ends at the same time. Without this, the node stops.
    pub fn close_damaged(self, close: impl Fn(GroupId, ReplicaId) + Send + Sync + 'static) -> OnFatal {
        OnFatal { close_damaged: Some(Arc::new(close)), ..self }
    }

    /// Ends the node, or only the replica if its own files are damaged and other replicas have its data.
    pub(crate) fn report_failure(
        &self,
        (group, replica): (GroupId, ReplicaId),
        machine: &dyn Machine,
        doing: &str,
        error: &MachineError,
    ) {
        let has_others = others_of(machine, replica).is_ok_and(|others| !others.is_empty());
        if error.is_damage() && has_others {
            self.report_damage(group, replica, format_args!("{doing}: {error}"));
        } else {
            self.report(format_args!("group {group}, {doing}: {error}"));
        }
    }

    /// Reports that a replica has damaged files and cannot continue.
    pub fn report_damage(&self, group: GroupId, replica: ReplicaId, why: impl fmt::Display) {
        let Some(close) = &self.close_damaged else {
            return self.report(format_args!("replica {replica} of group {group}: {why}"));
        };
        if self.damaged.lock().insert((group, replica)) {
            tracing::error!(%group, %replica, %why, "a replica found damage in its files and stops");
            close(group, replica);
        }
    }

    /// Returns whether damage of this replica was reported.
    pub fn is_damaged(&self, group: GroupId, replica: ReplicaId) -> bool {
        self.damaged.lock().contains(&(group, replica))
    }

    pub fn report(&self, why: impl fmt::Display) {
        let why = why.to_string();
        if self.reported.swap(true, Ordering::SeqCst) {
            tracing::error!("after the first fatal error: {why}");
            return;
        }
        tracing::error!("this node stops: {why}");
        (self.hook)(why);
    }

    /// Returns whether an error was reported. Observable only if the hook returned.
    pub fn was_reported(&self) -> bool {
        self.reported.load(Ordering::SeqCst)
    }
}

impl Default for OnFatal {
    fn default() -> Self {
        OnFatal::call(|why| {
            // The line must also be visible without a tracing subscriber.
            eprintln!("assay stops: {why}");
            process::abort()
        })
    }
}

impl fmt::Debug for OnFatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnFatal").field("reported", &self.was_reported()).finish_non_exhaustive()
    }
}

/// Makes a panic in consensus, the log, apply or upkeep end the process, after the previous panic hook ran.
///
/// The program calls it once. Panics on other threads keep their usual effect.
pub fn install_abort_hook() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        before(info);
        let current = thread::current();
        let name = current.name().unwrap_or_default();
        if ends_the_process(name) {
            eprintln!("assay stops: thread {name} panicked");
            process::abort();
        }
    }));
}

fn ends_the_process(thread: &str) -> bool {
    THREADS_THAT_END_IT.iter().any(|prefix| thread.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_where_order_is_made_end_the_process_and_others_do_not() {
        assert!(
            ends_the_process("assay-apply-7") && ends_the_process("assay-log") && ends_the_process("assay-consensus")
        );
        assert!(!ends_the_process("assay-http-1") && !ends_the_process("") && !ends_the_process("main"));
    }

    #[test]
    fn the_first_fatal_error_is_the_one_reported() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let fatal = OnFatal::call({
            let heard = Arc::clone(&heard);
            move |why| heard.lock().push(why)
        });
        fatal.report("first");
        fatal.clone().report("second");
        assert_eq!(*heard.lock(), ["first"]);
        assert!(fatal.was_reported());
    }

    #[test]
    fn damage_of_one_replica_is_fatal_only_where_nobody_closes_it() {
        let [heard, closed] = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
        let fatal = OnFatal::call({
            let heard = Arc::clone(&heard);
            move |why| heard.lock().push(why)
        });
        let closing = fatal.clone().close_damaged({
            let closed = Arc::clone(&closed);
            move |group, replica| closed.lock().push(format!("{replica} of {group}"))
        });
        let (group, replica) = (GroupId(16), ReplicaId(3));
        closing.report_damage(group, replica, "a flipped bit");
        closing.report_damage(group, replica, "a flipped bit");
        assert_eq!(*closed.lock(), ["3 of 16"], "it is closed once");
        assert!(closing.is_damaged(group, replica) && !closing.is_damaged(group, ReplicaId(4)));
        assert!(!fatal.was_reported());
        fatal.report_damage(group, replica, "a flipped bit");
        assert_eq!(*heard.lock(), ["replica 3 of group 16: a flipped bit"]);
    }
}
