//! `assay admin export-organization` and `import-organization`: the file is read and written by who gives the command, with
//! their rights, and what goes through the node's socket is its bytes.
//!
//! The node speaks first and the other side does what it says, so that each waits for the other and neither holds more than
//! a part of the file:
//!
//! | the node | the other side |
//! |---|---|
//! | how far it is | shows it |
//! | bytes, so many of them behind the line | puts them at the end of the file |
//! | wants the first part of the file, or the next | sends it behind its length; an empty one is the end |
//! | its answer | ends |

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use assay_node_transfer::{Place, export, import};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::admin::{AdminCommand, Answer, Request, connect, on_directory};
use crate::out;

/// Of the file, as it goes through the socket.
const PART_BYTES: usize = 1 << 20;
/// How long the node waits for who reads or writes the file.
const STALLED: Duration = Duration::from_secs(300);
/// A line of the node: an answer names what it left out.
const LINE_BYTES_MAX: u64 = 8 << 20;
/// What becomes the file once it is whole.
const PARTIAL: &str = "partial";

/// One at a time on a node: each takes what the node has left.
static UNDER_WAY: Mutex<()> = Mutex::new(());

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Said(String),
    Bytes(usize),
    First,
    Next,
    Answer(Answer),
}

/// Whether a command is one of these two.
pub fn is_one(command: &AdminCommand) -> bool {
    matches!(command, AdminCommand::ExportOrganization { .. } | AdminCommand::ImportOrganization { .. })
}

/// What the node does; blocks.
pub fn serve(stream: UnixStream, place: &Place, command: &AdminCommand) -> anyhow::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STALLED))?;
    stream.set_write_timeout(Some(STALLED))?;
    let answer = match UNDER_WAY.try_lock() {
        Some(_alone) => carry_out(&stream, place, command),
        None => Answer::Refused("another export or import is under way on this node: try again later".into()),
    };
    tell(&stream, &Told::Answer(answer))?;
    Ok(())
}

fn carry_out(stream: &UnixStream, place: &Place, command: &AdminCommand) -> Answer {
    let mut say = |said: &str| {
        if let Err(error) = tell(stream, &Told::Said(said.to_owned())) {
            tracing::debug!(%error, "nobody hears how far it is"); // the next part of the file ends it
        }
    };
    let done = match command {
        AdminCommand::ExportOrganization { name, .. } => {
            let out = BufWriter::with_capacity(PART_BYTES, Outgoing(stream));
            export(place, name, out, &mut say).map(|footer| {
                json!({
                    "organization": name, "records": footer.records, "objects": footer.objects,
                    "operations": footer.operations, "sha256": footer.sha256,
                })
            })
        }
        AdminCommand::ImportOrganization { name, .. } => {
            let mut open = || Ok(BufReader::with_capacity(PART_BYTES, Incoming::start(stream)));
            import(place, name.as_deref(), &mut open, &mut say).map(|done| {
                json!({
                    "id": done.organization.to_string(), "organization": done.name,
                    "records": done.footer.records, "operations": done.footer.operations,
                    "records_written": done.records, "operations_written": done.operations,
                    "sha256": done.footer.sha256, "to_be_set_anew": done.without_secret,
                    "to_be_set_anew_count": done.without_secret_count,
                })
            })
        }
        _ => return Answer::Refused("this is neither an export nor an import".into()),
    };
    done.map_or_else(|why| Answer::Refused(why.to_string()), Answer::Done)
}

fn tell(mut stream: &UnixStream, told: &Told) -> io::Result<()> {
    let mut line = serde_json::to_vec(told)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The file as it is written.
struct Outgoing<'s>(&'s UnixStream);

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(PART_BYTES)];
        if !part.is_empty() {
            tell(self.0, &Told::Bytes(part.len()))?;
            self.0.write_all(part)?;
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file as it is read.
struct Incoming<'s> {
    stream: &'s UnixStream,
    is_first: bool,
    /// Of the part that is being read.
    left: usize,
    is_over: bool,
}

impl Incoming<'_> {
    fn start(stream: &UnixStream) -> Incoming<'_> {
        Incoming { stream, is_first: true, left: 0, is_over: false }
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over || into.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            tell(self.stream, if self.is_first { &Told::First } else { &Told::Next })?;
            self.is_first = false;
            let mut length = [0; 4];
            self.stream.read_exact(&mut length)?;
            self.left = u32::from_le_bytes(length) as usize;
            if self.left > PART_BYTES {
                return Err(io::Error::other("a part of the file is larger than parts are"));
            }
            self.is_over = self.left == 0;
        }
        let count = self.left.min(into.len());
        self.stream.read_exact(&mut into[..count])?;
        self.left -= count;
        Ok(count)
    }
}

/// What is done where the command is given.
pub fn run(data_dir: &Path, command: AdminCommand) -> anyhow::Result<()> {
    let disk = match &command {
        AdminCommand::ExportOrganization { to, .. } => OnDisk::new(to)?,
        AdminCommand::ImportOrganization { from, .. } => {
            OnDisk::Source(File::open(from).with_context(|| format!("opening {}", from.display()))?)
        }
        _ => anyhow::bail!("this is neither an export nor an import"),
    };
    let done = match connect(data_dir)? {
        Some(stream) => {
            writeln!(&stream, "{}", serde_json::to_string(&Request::Admin(command))?)?;
            listen(stream, disk)?
        }
        None => on_directory(data_dir, async move |records, objects| {
            let (ours, theirs) = UnixStream::pair()?;
            let place = Place { records, objects, runtime: tokio::runtime::Handle::current() };
            let node = tokio::task::spawn_blocking(move || serve(theirs, &place, &command));
            let done = tokio::task::spawn_blocking(move || listen(ours, disk)).await?;
            node.await??;
            done
        })?,
    };
    out::json(&done)?;
    Ok(())
}

/// The file on the side of who gives the command.
enum OnDisk {
    Source(File),
    Target { file: BufWriter<File>, partial: PathBuf, to: PathBuf },
}

impl OnDisk {
    /// It has its name only when it is whole, and takes no other's.
    fn new(to: &Path) -> anyhow::Result<OnDisk> {
        anyhow::ensure!(!to.try_exists()?, "{} is there already: name another file", to.display());
        let mut partial = to.as_os_str().to_owned();
        partial.push(format!(".{PARTIAL}"));
        let partial = PathBuf::from(partial);
        // All that an organization has: for its owner alone.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
        let file = made.with_context(|| format!("making {}", partial.display()))?;
        Ok(OnDisk::Target { file: BufWriter::new(file), partial, to: to.to_owned() })
    }

    fn put(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let OnDisk::Target { file, partial, .. } = self else { anyhow::bail!("the node sent a file nobody asked for") };
        file.write_all(bytes).with_context(|| format!("writing {}", partial.display()))
    }

    fn part(&mut self, from_start: bool) -> anyhow::Result<Vec<u8>> {
        let OnDisk::Source(file) = self else { anyhow::bail!("the node wants a file that there is not") };
        if from_start {
            file.rewind()?;
        }
        let mut part = Vec::new();
        file.take(PART_BYTES as u64).read_to_end(&mut part).context("reading the file")?;
        Ok(part)
    }

    /// After the node's answer.
    fn settle(self, is_done: bool) -> anyhow::Result<()> {
        let OnDisk::Target { file, partial, to } = self else { return Ok(()) };
        if !is_done {
            drop(file);
            return std::fs::remove_file(&partial).with_context(|| format!("removing {}", partial.display()));
        }
        let doing = || format!("writing {}", to.display());
        file.into_inner().map_err(|error| error.into_error()).with_context(doing)?.sync_all().with_context(doing)?;
        // Unlike a rename it takes no file away that came there meanwhile.
        std::fs::hard_link(&partial, &to).with_context(doing)?;
        std::fs::remove_file(&partial).with_context(doing)?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).with_context(doing)
    }
}

/// Does what the node says, up to its answer.
fn listen(stream: UnixStream, mut disk: OnDisk) -> anyhow::Result<Value> {
    let mut read = BufReader::with_capacity(PART_BYTES, &stream);
    let answer = heard(&stream, &mut read, &mut disk);
    let settled = disk.settle(matches!(answer, Ok(Answer::Done(_))));
    let answer = answer?;
    settled?;
    match answer {
        Answer::Done(value) => Ok(value),
        Answer::Refused(why) => anyhow::bail!(why),
    }
}

fn heard(mut stream: &UnixStream, read: &mut impl BufRead, disk: &mut OnDisk) -> anyhow::Result<Answer> {
    let mut part = Vec::new();
    loop {
        let mut line = String::new();
        read.by_ref().take(LINE_BYTES_MAX).read_line(&mut line).context("waiting for the node")?;
        anyhow::ensure!(line.ends_with('\n'), "the node ended before it answered");
        // A node of an earlier version answers at once that it does not understand.
        if let Ok(answer) = serde_json::from_str::<Answer>(&line) {
            return Ok(answer);
        }
        match serde_json::from_str(&line).context("the node said something else than how an export or import goes")? {
            Told::Said(said) => eprintln!("{said}"),
            Told::Bytes(count) => {
                anyhow::ensure!(count <= PART_BYTES, "the node sent more at once than it may");
                part.resize(count, 0);
                read.read_exact(&mut part).context("waiting for the node")?;
                disk.put(&part)?;
            }
            told @ (Told::First | Told::Next) => {
                let part = disk.part(matches!(told, Told::First))?;
                let length = u32::try_from(part.len()).context("a part of the file that is too large")?;
                stream.write_all(&length.to_le_bytes())?;
                stream.write_all(&part)?;
            }
            Told::Answer(answer) => return Ok(answer),
        }
    }
}
