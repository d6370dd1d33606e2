//! Deliberate faults of the product, each of which the chaos tests have to detect.
//!
//! A release build has none: [`is`] is a constant `false`, its uses compile to nothing, and no variable is read. In a
//! debug build the variable `ASSAY_SABOTAGE` names the one fault of the process; if it is not set, the process behaves
//! correctly. The decision is chaos/decisions/0006.

/// Whether faults can be enabled in this program.
pub const BUILT: bool = cfg!(debug_assertions);
/// Environment variable that names the fault.
pub const VARIABLE: &str = "ASSAY_SABOTAGE";
/// Warning that a process with a fault prints.
const WARNING: &str = "SABOTAGED: THIS PROCESS CAN LOSE AND FALSIFY DATA. FOR CHAOS TESTS ONLY";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A leader takes for written what a majority has not answered for in time.
    AckBeforeQuorum,
    /// The log reports a sync without doing it.
    SkipFsync,
    /// A follower answers for entries that it has in memory only.
    AckOnLeaderOnly,
    /// A supposed leader answers reads without asking the others.
    StaleRead,
    /// The sealed state lacks the ids of requests.
    ForgetRequests,
    /// The sealed state claims one entry more than it has.
    SnapshotOffByOne,
    /// A write with a merge is applied a second time, as the next write.
    MergeTwice,
    /// A log is cut wherever it does not read.
    TruncateAtBadChecksum,
    /// Nodes do not compare their starts, so a directory that was put back from an older copy votes.
    BelieveOldCopies,
    /// A node on an empty directory bootstraps a cluster, whatever its settings.
    EmptyDirectoryFounds,
    /// A node that can open no more files does not wait for one to be closed.
    FilesRunOutIsFatal,
    /// No call is relayed through a third node.
    NoRelay,
    /// A node does not announce its new address.
    NoIntroduction,
    /// Damage ends the process once compaction finds it, and other readers do not report it.
    RotInCompactionIsFatal,
    /// A node never takes its disk for slow, so it keeps what it leads.
    KeepLeadsOnSlowDisk,
}

use Sabotage::*;

/// All of them, with their names.
pub const ALL: [(Sabotage, &str); 15] = [
    (AckBeforeQuorum, "ack-before-quorum"),
    (SkipFsync, "skip-fsync"),
    (AckOnLeaderOnly, "ack-on-leader-only"),
    (StaleRead, "stale-read"),
    (ForgetRequests, "forget-requests"),
    (SnapshotOffByOne, "snapshot-off-by-one"),
    (MergeTwice, "merge-twice"),
    (TruncateAtBadChecksum, "truncate-at-bad-checksum"),
    (BelieveOldCopies, "believe-old-copies"),
    (EmptyDirectoryFounds, "empty-directory-founds"),
    (FilesRunOutIsFatal, "files-run-out-is-fatal"),
    (NoRelay, "no-relay"),
    (NoIntroduction, "no-introduction"),
    (RotInCompactionIsFatal, "rot-in-compaction-is-fatal"),
    (KeepLeadsOnSlowDisk, "keep-leads-on-slow-disk"),
];

/// Returns whether this process has the fault.
#[cfg(not(debug_assertions))]
pub const fn is(_: Sabotage) -> bool {
    false
}

/// Returns whether this process has the fault. An unknown name ends the process, since a missing fault cannot be
/// detected.
#[cfg(debug_assertions)]
pub fn is(what: Sabotage) -> bool {
    chosen().is_some_and(|(chosen, _)| *chosen == what)
}

/// Returns the warning for the log of this process, if a fault is enabled.
pub fn confession() -> Option<String> {
    chosen().map(|(_, name)| format!("{WARNING}. {VARIABLE} SAYS: {name}"))
}

/// Returns the version as printed by the program.
pub fn version(plain: &'static str) -> &'static str {
    static SAID: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    if chosen().is_some() { SAID.get_or_init(|| format!("{plain}\n{WARNING}")) } else { plain }
}

#[cfg(not(debug_assertions))]
const fn chosen() -> Option<&'static (Sabotage, &'static str)> {
    None
}

#[cfg(debug_assertions)]
fn chosen() -> Option<&'static (Sabotage, &'static str)> {
    static CHOSEN: std::sync::OnceLock<Option<&'static (Sabotage, &'static str)>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let told = std::env::var_os(VARIABLE)?;
        let found = named(&told.to_string_lossy());
        Some(found.unwrap_or_else(|known| panic!("{VARIABLE}={}: there are {known}", told.display())))
    })
}

/// The fault of this name; otherwise the names that there are.
#[cfg(any(debug_assertions, test))]
fn named(told: &str) -> Result<&'static (Sabotage, &'static str), String> {
    let names = || ALL.map(|(_, name)| name).join(", ");
    ALL.iter().find(|(_, name)| *name == told).ok_or_else(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_fault_and_another_word_none() {
        for (place, (what, name)) in ALL.iter().enumerate() {
            assert_eq!((*what as usize, named(name)), (place, Ok(&ALL[place])));
        }
        assert!(named("skip-fsynk").is_err_and(|known| known.contains("skip-fsync, ack-on-leader-only")));
    }

    /// The variable is not set in a test's process.
    #[test]
    fn a_process_that_is_told_nothing_is_honest() {
        assert!(ALL.iter().all(|(what, _)| !is(*what)));
        assert_eq!((confession(), version("1.0")), (None, "1.0"));
    }

    #[cfg(not(debug_assertions))]
    #[test]
    fn a_release_build_has_no_faults_when_compiled() {
        const { assert!(!is(SkipFsync)) };
    }
}
