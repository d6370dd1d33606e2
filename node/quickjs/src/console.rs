//! Console output of code to the standard streams.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;

/// Upper bound of the console output of a load or a call. What follows is dropped.
pub const CONSOLE_BYTES_MAX: usize = 1 << 20;
const DROPPED: &str = "(further console output of this call is dropped)";

/// Standard stream of a console method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleStream {
    Output,
    Error,
}

/// Destination of console output.
pub(crate) trait ConsoleSink: fmt::Debug {
    fn write_line(&self, stream: ConsoleStream, line: &str);
}

/// Standard output and error of the process.
#[derive(Debug)]
pub(crate) struct StandardStreams;

impl ConsoleSink for StandardStreams {
    fn write_line(&self, stream: ConsoleStream, line: &str) {
        // A closed console is no reason for a function to fail.
        let _ = match stream {
            ConsoleStream::Output => writeln!(io::stdout().lock(), "{line}"),
            ConsoleStream::Error => writeln!(io::stderr().lock(), "{line}"),
        };
    }
}

/// Console of one load or call, up to [`CONSOLE_BYTES_MAX`].
#[derive(Debug)]
pub(crate) struct BoundedConsole {
    sink: Rc<dyn ConsoleSink>,
    /// Bytes that are left, or nothing once a line was dropped.
    left: Cell<Option<usize>>,
}

impl BoundedConsole {
    pub fn new(sink: Rc<dyn ConsoleSink>) -> Self {
        Self { sink, left: Cell::new(Some(CONSOLE_BYTES_MAX)) }
    }

    pub fn write_line(&self, stream: ConsoleStream, line: &str) {
        let Some(left) = self.left.get() else { return };
        self.left.set(left.checked_sub(line.len() + 1));
        self.sink.write_line(stream, if self.left.get().is_some() { line } else { DROPPED });
    }
}
