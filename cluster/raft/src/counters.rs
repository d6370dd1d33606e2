//! Counters of a node's groups since its start, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)+
        }

        /// Every counter at about one moment.
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
    /// Entries that were proposed, of one or many commands.
    entries,
    /// Bytes of commands that were proposed.
    bytes,
    /// Entries whose commands travelled as a blob.
    large,
    /// Commands refused because a queue was full or memory ran out.
    busy,
    /// Proposals whose outcome is not known.
    unknown,
    /// Reads that requested a fence.
    fences,
    /// Rounds that answered them.
    fence_rounds,
    /// Seals that ended well.
    seals,
    /// Snapshots of other replicas that were taken over.
    snapshots,
    /// Leads that were handed over on purpose.
    handovers,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}
