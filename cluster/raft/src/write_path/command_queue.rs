//! Queue of commands that wait to become an entry, with its bounds and the selection for the next entry.
//!
//! Q1: entries hold commands in the order in which they were submitted.
//! Q2: an entry has at most `ENTRY_BYTES_MAX` bytes. A command that is stored as a blob has an entry of its own.
//! Q3: a command whose deadline passes while it waits for memory is refused, and is in no entry.

use std::collections::VecDeque;

use assay_storage_model::entry::ENTRY_BYTES_MAX;
use assay_storage_model::{NotWritten, WriteOutcome};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::write_path::large_writes::{LargeError, LargeWrite};

/// Upper bound of the waiting commands of one group.
pub const COMMANDS_WAITING_MAX: usize = 4096;
/// Upper bound of their bytes. A single larger command is accepted when none waits.
pub const COMMAND_BYTES_WAITING_MAX: usize = 16 << 20;
/// Bytes of the length in front of each command in an entry.
const COMMAND_FRAME_BYTES: usize = 4;
/// Bytes of an entry before its first command.
const ENTRY_FRAME_BYTES: usize = 5;

pub(crate) type OutcomeSender = oneshot::Sender<WriteOutcome>;

#[derive(Debug)]
pub(crate) enum Payload {
    Inline(Bytes),
    /// Large write. Its blob is being written since its submission.
    Large {
        bytes: usize,
        blob: oneshot::Receiver<Result<LargeWrite, LargeError>>,
    },
}

impl Payload {
    pub fn bytes(&self) -> usize {
        match self {
            Payload::Inline(command) => command.len(),
            Payload::Large { bytes, .. } => *bytes,
        }
    }
}

#[derive(Debug)]
pub(crate) struct WaitingCommand {
    pub payload: Payload,
    /// Deadline of the wait.
    pub until: Instant,
    pub answer: OutcomeSender,
}

/// Commands that become one entry.
#[derive(Debug)]
pub(crate) enum EntryBatch {
    Inline { commands: Vec<Bytes>, answers: Vec<OutcomeSender> },
    Large { blob: oneshot::Receiver<Result<LargeWrite, LargeError>>, answer: OutcomeSender },
}

#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    waiting: VecDeque<WaitingCommand>,
    bytes: usize,
    closed: bool,
}

impl CommandQueue {
    pub fn check(&self, bytes: usize) -> Result<(), NotWritten> {
        if self.closed {
            return Err(NotWritten::Closing);
        }
        let too_many = self.waiting.len() >= COMMANDS_WAITING_MAX;
        if too_many || (self.bytes > 0 && self.bytes + bytes > COMMAND_BYTES_WAITING_MAX) {
            return Err(NotWritten::busy("too many writes wait for this shard"));
        }
        Ok(())
    }

    pub fn push(&mut self, waiting: WaitingCommand) {
        self.bytes += waiting.payload.bytes();
        self.waiting.push_back(waiting);
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns an upper bound of the command bytes in the next entry.
    pub fn next_bytes(&self) -> usize {
        match self.waiting.front().map(|first| &first.payload) {
            None => 0,
            Some(Payload::Large { bytes, .. }) => *bytes,
            Some(Payload::Inline(_)) => self.bytes.min(ENTRY_BYTES_MAX),
        }
    }

    /// Takes the commands of the next entry.
    pub fn take(&mut self) -> Option<EntryBatch> {
        let (mut commands, mut answers) = (Vec::new(), Vec::new());
        let mut entry_bytes = ENTRY_FRAME_BYTES;
        while let Some(next) = self.waiting.front() {
            let grown = entry_bytes + COMMAND_FRAME_BYTES + next.payload.bytes();
            let fits = matches!(next.payload, Payload::Inline(_)) && grown <= ENTRY_BYTES_MAX;
            if !commands.is_empty() && !fits {
                break; // Q1, Q2
            }
            let WaitingCommand { payload, answer, .. } = self.waiting.pop_front()?;
            self.bytes -= payload.bytes();
            match payload {
                Payload::Large { blob, .. } => return Some(EntryBatch::Large { blob, answer }),
                Payload::Inline(command) => {
                    entry_bytes = grown;
                    commands.push(command);
                    answers.push(answer);
                }
            }
        }
        (!commands.is_empty()).then_some(EntryBatch::Inline { commands, answers })
    }

    /// Returns the earliest deadline of a waiting command.
    pub fn first_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }

    /// Removes the commands whose deadline has passed.
    pub fn take_late(&mut self, now: Instant) -> Vec<OutcomeSender> {
        let (late, waiting): (VecDeque<WaitingCommand>, VecDeque<WaitingCommand>) =
            self.waiting.drain(..).partition(|waiting| waiting.until <= now);
        self.waiting = waiting;
        self.bytes -= late.iter().map(|waiting| waiting.payload.bytes()).sum::<usize>();
        late.into_iter().map(|waiting| waiting.answer).collect()
    }

    /// Stops accepting commands. Waiting ones may still be taken.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Refuses the waiting commands, which were not passed to consensus.
    pub fn refuse_all(&mut self) {
        self.close();
        self.bytes = 0;
        for waiting in self.waiting.drain(..) {
            let _ = waiting.answer.send(Err(NotWritten::Closing.into())); // possibly nobody waits any more
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: std::time::Duration = std::time::Duration::from_secs(30);

    fn queue_of(sizes: &[usize]) -> CommandQueue {
        let mut queue = CommandQueue::default();
        for size in sizes {
            push(&mut queue, Payload::Inline(Bytes::from(vec![0; *size])));
        }
        queue
    }

    fn push_large(queue: &mut CommandQueue, bytes: usize) {
        let (_, blob) = oneshot::channel();
        push(queue, Payload::Large { bytes, blob });
    }

    fn push(queue: &mut CommandQueue, payload: Payload) {
        queue.push(WaitingCommand { payload, until: Instant::now() + WAIT, answer: oneshot::channel().0 });
    }

    /// Returns the sizes of the commands of each entry, and `large` for a large one.
    fn entries(mut queue: CommandQueue) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(batch) = queue.take() {
            found.push(match batch {
                EntryBatch::Inline { commands, .. } => {
                    format!("{:?}", commands.iter().map(Bytes::len).collect::<Vec<_>>())
                }
                EntryBatch::Large { .. } => "large".into(),
            });
        }
        assert_eq!(queue.bytes, 0);
        found
    }

    #[test]
    fn an_entry_takes_all_that_waits_up_to_its_limit() {
        assert_eq!(entries(queue_of(&[1, 2, 3])), ["[1, 2, 3]"]);
        let half = ENTRY_BYTES_MAX / 2;
        assert_eq!(entries(queue_of(&[half - 10, half - 10, 7])), [format!("[{0}, {0}]", half - 10), "[7]".into()]);
        let most = ENTRY_BYTES_MAX - ENTRY_FRAME_BYTES - COMMAND_FRAME_BYTES;
        assert_eq!(entries(queue_of(&[most, 0])), [format!("[{most}]"), "[0]".into()]);
    }

    #[test]
    fn a_large_write_has_its_own_entry_in_its_place() {
        let mut queue = queue_of(&[1, 2]);
        push_large(&mut queue, 5 << 20);
        push(&mut queue, Payload::Inline(Bytes::from_static(b"abc")));
        assert_eq!(entries(queue), ["[1, 2]", "large", "[3]"]);
    }

    #[test]
    fn a_full_queue_is_busy_and_an_empty_one_takes_any_command() {
        let mut queue = CommandQueue::default();
        assert_eq!(queue.check(60 << 20), Ok(()));
        push_large(&mut queue, 60 << 20);
        assert!(matches!(queue.check(1), Err(NotWritten::Busy(_))));
        let queue = queue_of(&[0; COMMANDS_WAITING_MAX]);
        assert!(matches!(queue.check(1), Err(NotWritten::Busy(_))));
    }

    #[test]
    fn a_command_whose_deadline_passed_is_taken_out_from_between_the_others() {
        let mut queue = queue_of(&[1]);
        let (now, (answer, mut late)) = (Instant::now(), oneshot::channel());
        queue.push(WaitingCommand { payload: Payload::Inline(Bytes::from_static(b"ab")), until: now, answer });
        push(&mut queue, Payload::Inline(Bytes::from_static(b"abc")));
        assert_eq!(queue.first_deadline(), Some(now));
        assert_eq!(queue.take_late(now - WAIT).len(), 0);
        for answer in queue.take_late(now) {
            let _ = answer.send(Err(NotWritten::busy("late").into()));
        }
        assert!(late.try_recv().expect("an answer").is_err());
        assert_eq!(entries(queue), ["[1, 3]"]);
    }

    #[test]
    fn a_closed_queue_gives_out_what_it_has_and_takes_nothing() {
        let mut queue = queue_of(&[1]);
        queue.close();
        assert_eq!(queue.check(1), Err(NotWritten::Closing));
        assert_eq!(entries(queue), ["[1]"]);
    }
}
