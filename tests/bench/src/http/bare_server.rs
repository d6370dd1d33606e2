//! Server of `bare`: the minimum of any durable server. The product's HTTP library reads a body, the product's parser
//! parses it once, its bytes are appended to one file, and all waiting requests share one fdatasync.
//!
//! It has no order, index or names, and no reads: `ingest` measures what a server does beyond this.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use actix_web::dev::Server;
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Context;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::client_threads::spawn;

/// A body of a hundred rows has 200 KB; a larger one than this is refused by the library.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Requests that may wait for the file; the next ones wait for a place.
const WAITING_MAX: usize = 1024;
/// The file in the directory it is given.
const FILE: &str = "bare.log";

#[derive(Clone, Debug)]
pub struct BareServerOptions {
    pub listen: SocketAddr,
    pub dir: PathBuf,
    /// Threads that serve; as many as processors if none, as the library has it.
    pub workers: Option<usize>,
}

/// A body on its way to the file.
struct Waiting {
    body: Bytes,
    durable: oneshot::Sender<()>,
}

/// The one file, behind the thread that writes it.
#[derive(Clone, Debug)]
struct SharedLog(mpsc::Sender<Waiting>);

/// Serves until it is interrupted.
pub fn run(options: &BareServerOptions) -> anyhow::Result<()> {
    actix_web::rt::System::new().block_on(async {
        let (server, address) = serve(options)?;
        println!("Bare is ready at http://{address}");
        server.await.context("serving")
    })
}

fn serve(options: &BareServerOptions) -> anyhow::Result<(Server, SocketAddr)> {
    let log = SharedLog::open(&options.dir)?;
    let mut server = HttpServer::new(move || {
        App::new()
            .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
            .app_data(web::Data::new(log.clone()))
            .route("/v1/project", web::post().to(project))
            .route("/v1/project_logs/{project}/insert", web::post().to(insert))
    });
    if let Some(workers) = options.workers {
        server = server.workers(workers);
    }
    let server = server.bind(options.listen).with_context(|| format!("listening at {}", options.listen))?;
    let address = *server.addrs().first().context("an address to listen at")?;
    Ok((server.run(), address))
}

/// Returns the one project: the client sends this server the same requests as the other.
async fn project() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "id": uuid::Uuid::nil() }))
}

async fn insert(body: Bytes, log: web::Data<SharedLog>) -> HttpResponse {
    let answer = match answer_to(&body) {
        Ok(answer) => answer,
        Err(error) => return HttpResponse::BadRequest().body(error),
    };
    match log.append(body).await {
        true => HttpResponse::Ok().json(answer),
        false => HttpResponse::InternalServerError().body("the file takes nothing more"),
    }
}

/// Parses the body, once.
fn answer_to(body: &[u8]) -> Result<Value, String> {
    let parsed: Value = serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))?;
    let events = parsed["events"].as_array().ok_or("no list of events")?;
    Ok(json!({ "row_ids": events.iter().map(|event| &event["id"]).collect::<Vec<_>>() }))
}

impl SharedLog {
    fn open(dir: &Path) -> anyhow::Result<SharedLog> {
        let path = dir.join(FILE);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        spawn("bare-log", move || write_all(file, receiver))?;
        Ok(SharedLog(sender))
    }

    /// Appends the body; returns whether it is durable, which is false once the file has failed.
    async fn append(&self, body: Bytes) -> bool {
        let (durable, told) = oneshot::channel();
        self.0.send(Waiting { body, durable }).await.is_ok() && told.await.is_ok()
    }
}

/// Takes one, takes what else is waiting, syncs once.
fn write_all(mut file: File, mut queue: mpsc::Receiver<Waiting>) -> anyhow::Result<()> {
    let mut batch = Vec::with_capacity(WAITING_MAX);
    while let Some(first) = queue.blocking_recv() {
        batch.push(first);
        while batch.len() < WAITING_MAX
            && let Ok(more) = queue.try_recv()
        {
            batch.push(more);
        }
        let written = batch.iter().try_for_each(|waiting| file.write_all(&waiting.body));
        if let Err(error) = written.and_then(|()| file.sync_data()) {
            // Nobody joins this thread; those who wait are told by what is dropped here.
            eprintln!("the bare file failed: {error}");
            return Err(error.into());
        }
        for waiting in batch.drain(..) {
            // A client that went away has its bytes written all the same.
            let _ = waiting.durable.send(());
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::super::client::{Connection, Target};
    use super::*;

    /// Serves from a thread of its own until the test's process ends.
    pub fn started(dir: &Path) -> Target {
        let options =
            BareServerOptions { listen: "127.0.0.1:0".parse().expect("an address"), dir: dir.into(), workers: Some(1) };
        let (told, address) = std::sync::mpsc::channel();
        spawn("bare", move || {
            actix_web::rt::System::new().block_on(async {
                let (server, address) = serve(&options)?;
                told.send(address)?;
                Ok(server.await?)
            })
        })
        .expect("a thread");
        Target { address: address.recv().expect("a server that started"), key: None }
    }

    pub fn written(dir: &Path) -> Vec<u8> {
        std::fs::read(dir.join(FILE)).expect("the file")
    }

    #[tokio::test]
    async fn what_was_answered_is_in_the_file_and_what_was_refused_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = started(dir.path());
        let mut connection = Connection::new(&target);
        let path = "/v1/project_logs/p/insert";
        for (body, status) in [("{", 400), ("[1]", 400), (r#"{"events":[{"id":"a"},{"id":"b"}]}"#, 200)] {
            let answer = connection.post(path, &Bytes::from_static(body.as_bytes())).await.expect("an answer");
            assert_eq!(answer.status, status, "{body}");
            if status == 200 {
                assert_eq!(answer.body, br#"{"row_ids":["a","b"]}"#);
                assert_eq!(written(dir.path()), body.as_bytes());
            }
        }
        assert_eq!(connection.get(path).await.expect("an answer").status, 404);
    }
}
