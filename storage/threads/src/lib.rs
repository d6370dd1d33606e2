//! Priorities of threads, so that work that can wait leaves the processor, and with it the disk, to what is waited for.

use std::cell::Cell;

/// What a thread does that has a lower priority than a usual one.
///
/// The difference decides only while more threads want a processor than there are. No thread is ever starved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundWork {
    /// Large requests and seals. A thread gets a fifth of the share of a usual one.
    Bulk,
    /// Work that no client waits for. A thread gets a third of the share of one that does bulk work.
    Maintenance,
}

impl BackgroundWork {
    #[cfg(target_os = "linux")]
    const fn niceness(self) -> i32 {
        match self {
            BackgroundWork::Bulk => 7,
            BackgroundWork::Maintenance => 12,
        }
    }
}

thread_local! {
    static LOWERED: Cell<bool> = const { Cell::new(false) };
}

/// Lowers the priority of the calling thread. Further calls on the same thread change nothing.
///
/// A thread without privileges cannot raise its priority again, so only threads that do nothing urgent may call this. It
/// does nothing on systems other than Linux, where a process has one priority for all its threads.
pub fn lower_thread_priority(work: BackgroundWork) {
    if LOWERED.replace(true) {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(work.niceness()) {
        tracing::warn!(%error, ?work, "the priority of a background thread could not be lowered");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = work;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{BackgroundWork, lower_thread_priority};

    #[test]
    fn the_priority_of_the_calling_thread_alone_is_lowered_once() {
        let own = || rustix::process::getpriority_process(None).expect("a priority");
        let before = own();
        for work in [BackgroundWork::Bulk, BackgroundWork::Maintenance] {
            let background = std::thread::spawn(move || {
                lower_thread_priority(work);
                lower_thread_priority(work);
                own()
            });
            let lowered = background.join().expect("the thread ends");
            assert_eq!(lowered, (before + work.niceness()).min(19));
        }
        assert_eq!(own(), before);
    }
}
