//! Lines of the log on stderr. Routine lines are held for a moment and written together; others are written at once.
//!
//! A model call takes less time than a write to a pipe or a file, and each leaves a line.

use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Time for which a routine line is held.
const HELD_MAX: Duration = Duration::from_millis(20);
/// Bytes of the lines that are held. Beyond that, they are written at once.
const HELD_BYTES_MAX: usize = 64 << 10;
/// Time that a panic waits for a thread that is writing lines.
const PANIC_WAIT: Duration = Duration::from_millis(100);

/// Writer of the log. Clones share everything.
#[derive(Debug)]
pub struct LogLines<W>(Arc<HeldLines<W>>);

impl<W> Clone for LogLines<W> {
    fn clone(&self) -> LogLines<W> {
        LogLines(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct HeldLines<W> {
    lines: Mutex<Lines<W>>,
    has_some: Condvar,
}

#[derive(Debug)]
struct Lines<W> {
    held: Vec<u8>,
    out: W,
}

impl<W: Write> Lines<W> {
    fn write_out(&mut self) -> io::Result<()> {
        let held = mem::take(&mut self.held);
        let written = self.out.write_all(&held);
        // keeps the memory, unless it is that of a long line
        if held.capacity() <= 2 * HELD_BYTES_MAX {
            self.held = held;
            self.held.clear();
        }
        written
    }
}

impl<W: Write + Send + 'static> LogLines<W> {
    /// Starts the thread that writes held lines.
    pub fn start(out: W) -> io::Result<LogLines<W>> {
        let lines = Mutex::new(Lines { held: Vec::new(), out });
        let lines = LogLines(Arc::new(HeldLines { lines, has_some: Condvar::new() }));
        let writer = lines.clone();
        thread::Builder::new().name("assay-log-lines".into()).spawn(move || writer.keep_writing())?;
        Ok(lines)
    }

    fn keep_writing(&self) {
        loop {
            let mut lines = self.0.lines.lock();
            self.0.has_some.wait_while(&mut lines, |lines| lines.held.is_empty());
            drop(lines);
            thread::sleep(HELD_MAX);
            self.flush();
        }
    }

    /// Writes the lines that are held.
    pub fn flush(&self) {
        // Nobody is left to be told of a log that cannot be written.
        drop(self.0.lines.lock().write_out());
    }

    /// Writes the lines that are held before what a panic says.
    pub fn flush_on_panic(&self)
    where
        W: Sync,
    {
        let (lines, say) = (self.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(mut held) = lines.0.lines.try_lock_for(PANIC_WAIT) {
                drop(held.write_out());
            }
            say(panic);
        }));
    }
}

impl<'a, W: Write + 'a> MakeWriter<'a> for LogLines<W> {
    type Writer = LogLine<'a, W>;

    fn make_writer(&'a self) -> LogLine<'a, W> {
        LogLine { lines: &self.0, is_routine: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> LogLine<'a, W> {
        LogLine { lines: &self.0, is_routine: *meta.level() >= Level::INFO }
    }
}

/// Writer of one line.
#[derive(Debug)]
pub struct LogLine<'a, W> {
    lines: &'a HeldLines<W>,
    is_routine: bool,
}

impl<W: Write> Write for LogLine<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = self.lines.lines.lock();
        let was_empty = lines.held.is_empty();
        lines.held.extend_from_slice(line);
        if !self.is_routine || lines.held.len() > HELD_BYTES_MAX {
            lines.write_out()?;
        } else if was_empty {
            self.lines.has_some.notify_one();
        }
        Ok(line.len())
    }

    /// Does nothing: the lines that are held are written soon.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<Vec<String>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !bytes.is_empty() {
                self.0.lock().push(String::from_utf8_lossy(bytes).into_owned());
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(written: &Written, log: impl FnOnce()) {
        let lines = LogLines::start(written.clone()).expect("a thread");
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_target(false);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer.with_writer(lines)), log);
    }

    #[test]
    fn routine_lines_are_written_together_and_soon() {
        let written = Written::default();
        logged(&written, || (1..4).for_each(|number| tracing::info!("{number}")));
        let deadline = Instant::now() + Duration::from_secs(20);
        let all = || written.0.lock().concat();
        while all() != " INFO 1\n INFO 2\n INFO 3\n" {
            assert!(Instant::now() < deadline, "{:?}", all());
            thread::sleep(HELD_MAX);
        }
    }

    #[test]
    fn a_warning_is_written_at_once_behind_the_lines_before_it() {
        let written = Written::default();
        logged(&written, || {
            tracing::info!("1");
            tracing::warn!("2");
            assert!(written.0.lock().concat().ends_with(" INFO 1\n WARN 2\n"));
        });
    }

    #[test]
    fn many_lines_are_not_held() {
        let written = Written::default();
        let line = "x".repeat(1 << 10);
        logged(&written, || {
            (0..100).for_each(|_| tracing::info!("{line}"));
            assert!(written.0.lock().concat().len() > HELD_BYTES_MAX);
        });
    }
}
