//! Recording of a run: events, their log, the index that checkers read, and the final reads.

pub(super) mod event_log;
pub(super) mod events;
pub(super) mod final_reads;
pub(super) mod indexed_history;
