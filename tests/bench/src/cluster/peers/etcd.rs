//! etcd's side: three members; each put is synced to two of three logs before its response.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::runtime::Runtime;

use super::putters::{Putter, Values, drive};
use super::tool::{Running, free_ports, program, version};
use super::{PeerLoad, PeerSide};
use crate::http::client::{Connection, Target};
use crate::http::grpc::{Channel, put_bytes};

const READY_WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);
const PUT: &str = "/etcdserverpb.KV/Put";

pub fn measure(runtime: &Runtime, load: &PeerLoad, dir: &Path) -> anyhow::Result<PeerSide> {
    let etcd = program("etcd", "etcd-server", &dir.join("package"))?;
    let name = format!("etcd {}", version(&etcd)?);
    let [c1, c2, c3, p1, p2, p3] = free_ports::<6>()?;
    let (clients, peers) = ([c1, c2, c3], [p1, p2, p3]);
    let mut members = Vec::new();
    for (at, client) in clients.iter().enumerate() {
        members.push(start(&etcd, at, *client, &peers, dir).with_context(|| format!("member {}", at + 1))?);
    }
    runtime.block_on(ready(&clients)).with_context(|| members[0].said())?;
    let mut putters = Vec::new();
    for client in 0..load.clients {
        let channel = runtime.block_on(Channel::connect(clients[client % clients.len()]))?;
        putters.push(EtcdClient { channel, values: Arc::clone(&load.values) });
    }
    let processes: Vec<_> = members.iter().map(Running::process).collect();
    let measured = drive(runtime, putters, load.time, &processes)?;
    eprintln!("{name}: {:.2} MB/s", measured.mb_per_second());
    Ok(PeerSide { name, durability: "two of three logs synced before the answer", measured })
}

fn start(etcd: &Path, at: usize, client: SocketAddr, peers: &[SocketAddr; 3], dir: &Path) -> anyhow::Result<Running> {
    let name = |at: usize| format!("member-{}", at + 1);
    let data_dir = dir.join(name(at));
    std::fs::create_dir_all(&data_dir).with_context(|| format!("creating {}", data_dir.display()))?;
    let (client, peer) = (format!("http://{client}"), format!("http://{}", peers[at]));
    let all: Vec<String> = peers.iter().enumerate().map(|(at, peer)| format!("{}=http://{peer}", name(at))).collect();
    let mut command = Command::new(etcd);
    command.args(["--name", &name(at), "--initial-cluster-token", "assay-bench", "--initial-cluster-state", "new"]);
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &all.join(","), "--logger", "zap", "--log-outputs", "stderr"]);
    command.arg("--data-dir").arg(&data_dir);
    Running::start(&mut command, &data_dir.with_extension("stderr"))
}

async fn ready(clients: &[SocketAddr]) -> anyhow::Result<()> {
    let began = Instant::now();
    for address in clients {
        let mut connection = Connection::new(&Target { address: *address, key: None });
        while !connection.get("/health").await.is_ok_and(|answer| answer.status == 200) {
            if began.elapsed() > READY_WAIT_MAX {
                bail!("etcd is not ready after {} s", READY_WAIT_MAX.as_secs());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(())
}

struct EtcdClient {
    channel: Channel,
    values: Arc<Values>,
}

impl Putter for EtcdClient {
    async fn put(&mut self, number: u64) -> anyhow::Result<u64> {
        let value = self.values.value(number);
        let mut message = Vec::with_capacity(value.len() + 32);
        put_bytes(&mut message, 1, format!("{number:016x}").as_bytes());
        put_bytes(&mut message, 2, value);
        self.channel.call(PUT, &[], &message).await?;
        Ok(1)
    }
}
