//! Counters of a node's groups since its start, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)+
        }

        /// Reads all counters at nearly the same time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counters {
            pub fn read(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Commands that were acknowledged.
    commands,
    /// Proposed entries, of one or more commands.
    entries,
    /// Bytes of proposed commands.
    bytes,
    /// Entries whose commands were stored as a blob.
    large,
    /// Commands refused because of a full queue or exhausted memory.
    busy,
    /// Proposals with an unknown outcome.
    unknown,
    /// Reads that requested a fence.
    fences,
    /// Rounds that served these fences.
    fence_rounds,
    /// Successful seals.
    seals,
    /// Installed snapshots of other replicas.
    snapshots,
    /// Leaderships that were handed over on purpose.
    handovers,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}
