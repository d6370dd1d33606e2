//! Metrics of the process, storage and actors for `/metrics`, in Prometheus text format. HTTP adds its own.

use std::fmt::Write;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use assay_cluster::{Cluster, GroupReading, PeerCounts};
use assay_node_backups::Backups;
use assay_node_budgets::Budgets;
use assay_node_code_forwarding::CodeForwarding;
use assay_node_egress::EgressClient;
use assay_node_metrics::{ProcessReading, family_head};
use assay_node_objects::Objects;
use assay_node_query::Queries;
use assay_node_runner::CodeHost;
use assay_storage_model::ShardId;

/// One family: name, help, type, value.
struct Gauge(&'static str, &'static str, &'static str, f64);

pub fn source(
    cluster: &Arc<Cluster>,
    (objects, queries): (&Objects, &Queries),
    (outbound, budgets): (&EgressClient, &Budgets),
    (code, forwarding): (&CodeHost, &CodeForwarding),
    backups: &Option<Backups>,
) -> Arc<dyn Fn() -> String + Send + Sync> {
    let (cluster, objects, queries) = (Arc::clone(cluster), objects.clone(), queries.clone());
    let (outbound, budgets) = (outbound.clone(), budgets.clone());
    let (code, forwarding, backups) = (code.clone(), forwarding.clone(), backups.clone());
    Arc::new(move || {
        let mut text = build() + &ProcessReading::now().text();
        let families = disk_space(&cluster).into_iter().flatten().chain(store(&cluster));
        let families = families.chain(certificate(&cluster)).chain(actors(&objects));
        let families = families.chain(of_queries(&queries)).chain(of_outbound(&outbound)).chain(of_code(&code));
        let families = families.chain(of_forwarding(&forwarding));
        let families = families.chain(backups.iter().flat_map(of_backups));
        for Gauge(name, help, kind, value) in families {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        groups(&cluster, &mut text);
        peers(&cluster, &mut text);
        text.push_str(&objects.metrics_text());
        text.push_str(&queries.metrics_text());
        text.push_str(&budgets.metrics_text());
        text
    })
}

/// Returns the version of the program as a label of a constant.
fn build() -> String {
    const NAME: &str = "assay_build_info";
    let version = env!("CARGO_PKG_VERSION");
    format!("{}{NAME}{{version=\"{version}\"}} 1\n", family_head(NAME, "Version of the program.", "gauge"))
}

/// Returns the space of the file system with the data directory.
fn disk_space(cluster: &Cluster) -> Option<[Gauge; 2]> {
    let space = cluster.disk().space(cluster.data_dir()).ok()?;
    let gauge = |name, help, bytes: u64| Gauge(name, help, "gauge", bytes as f64);
    Some([
        gauge("assay_disk_free_bytes", "Free space of the data directory's file system.", space.free),
        gauge("assay_disk_total_bytes", "Size of the data directory's file system.", space.total),
    ])
}

fn of_queries(queries: &Queries) -> [Gauge; 8] {
    let counts = queries.counts();
    let gauge = |name, help, value: usize| Gauge(name, help, "gauge", value as f64);
    [
        gauge("assay_queries_running", "Queries that are running.", counts.running),
        gauge("assay_queries_waiting", "Queries that are waiting to start.", counts.waiting),
        gauge("assay_query_memory_bytes", "Memory that running queries hold.", counts.memory_bytes),
        gauge("assay_query_cache_bytes", "Bytes of columns cached for later queries.", counts.cache_bytes),
        gauge("assay_queries_later_running", "Asynchronous queries that are running.", counts.jobs.running),
        gauge("assay_queries_later_waiting", "Asynchronous queries that are waiting to start.", counts.jobs.waiting),
        gauge(
            "assay_queries_later_kept",
            "Asynchronous queries stored on this node, including ended ones.",
            counts.jobs.kept,
        ),
        Gauge(
            "assay_queries_later_bytes",
            "Bytes of results of asynchronous queries on disk.",
            "gauge",
            counts.jobs.bytes as f64,
        ),
    ]
}

/// Returns the counts of code functions, which are 0 before the first one runs.
fn of_code(code: &CodeHost) -> [Gauge; 4] {
    let counts = code.runner_if_ready().map(|runner| runner.reading()).unwrap_or_default();
    let counter = |name, help, value: u64| Gauge(name, help, "counter", value as f64);
    [
        counter("assay_function_calls_total", "Calls of code functions that got a slot.", counts.calls),
        counter("assay_function_failures_total", "Calls of code functions without a value.", counts.failures),
        counter("assay_function_starts_total", "Sandboxes that were started for code functions.", counts.starts),
        Gauge("assay_function_idle_workers", "Workers that wait for another call.", "gauge", counts.idle as f64),
    ]
}

/// Returns the counts of calls of code between this node and others.
fn of_forwarding(forwarding: &CodeForwarding) -> [Gauge; 3] {
    let counts = forwarding.reading();
    let counter = |name, help, value: u64| Gauge(name, help, "counter", value as f64);
    [
        counter("assay_function_forwarded_total", "Calls of code functions that another node ran.", counts.forwarded),
        counter(
            "assay_function_forwarded_lost_total",
            "Forwarded calls of code functions whose node stopped responding.",
            counts.lost,
        ),
        counter(
            "assay_function_executed_for_others_total",
            "Calls of code functions that were run for other nodes.",
            counts.executed,
        ),
    ]
}

/// Returns the counts of the backup. Its age is known only where the catalog is led.
fn of_backups(backups: &Backups) -> Vec<Gauge> {
    let (counts, status) = (backups.counts(), backups.status());
    let counter = |name, help, value: u64| Gauge(name, help, "counter", value as f64);
    let mut gauges = vec![
        counter("assay_backup_stored_bytes_total", "Bytes that this node wrote to the backup.", counts.stored_bytes),
        counter("assay_backup_bases_total", "States of groups that this node wrote to the backup.", counts.bases),
        counter("assay_backup_failures_total", "Steps of the backup that failed and are repeated.", counts.failures),
        Gauge(
            "assay_backup_has_problem",
            "Whether the last step of the backup on this node failed.",
            "gauge",
            f64::from(u8::from(status.problem.is_some())),
        ),
    ];
    gauges.extend(status.newest_point.map(|at| {
        let help = "Age of the newest state that can be restored, where this node leads the catalog.";
        let age = assay_node_backups::now().0.saturating_sub(at.0) as f64 / 1000.0;
        Gauge("assay_backup_point_age_seconds", help, "gauge", age)
    }));
    gauges
}

fn of_outbound(outbound: &EgressClient) -> [Gauge; 3] {
    let counts = outbound.counts();
    let gauge = |name, help, value: usize| Gauge(name, help, "gauge", value as f64);
    [
        gauge("assay_egress_calls", "Outbound calls whose responses have not ended.", counts.calls),
        gauge("assay_egress_idle_connections", "Outbound connections kept for later calls.", counts.idle),
        gauge(
            "assay_egress_origins",
            "Pairs of an organization and an origin with outbound calls or idle connections.",
            counts.origins,
        ),
    ]
}

/// A family with one value a group, each as `reading` has it; those without one are left out.
struct OfGroups(&'static str, &'static str, &'static str, fn(&GroupReading) -> Option<u64>);

const OF_GROUPS: [OfGroups; 8] = [
    OfGroups(
        "assay_group_leads",
        "Whether this node leads the group and a majority confirmed it recently.",
        "gauge",
        |group| Some(group.leads.into()),
    ),
    OfGroups(
        "assay_group_has_leader",
        "Whether the group's replica here knows a reachable leader.",
        "gauge",
        |group| Some(group.has_leader.into()),
    ),
    OfGroups("assay_group_term", "Term of the group's consensus.", "counter", |group| Some(group.term)),
    OfGroups("assay_group_last_index", "Newest entry in the log here.", "counter", |group| group.last),
    OfGroups("assay_group_applied_index", "Newest entry applied here.", "counter", |group| group.applied),
    OfGroups("assay_group_behind_entries", "Entries that the slowest member lacks; at the leader.", "gauge", |group| {
        group.behind
    }),
    OfGroups("assay_group_waiting_commands", "Commands that wait to become entries.", "gauge", |group| {
        Some(group.waiting)
    }),
    OfGroups(
        "assay_group_unapplied_bytes",
        "Bytes of entries in the log that are not applied yet.",
        "gauge",
        |group| Some(group.unapplied_bytes),
    ),
];

fn groups(cluster: &Cluster, text: &mut String) {
    let readings = cluster.readings();
    for OfGroups(name, help, kind, reading) in OF_GROUPS {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for group in &readings {
            if let Some(value) = reading(group) {
                let label = group.shard.map_or_else(|| "catalog".to_owned(), |shard| shard.to_string());
                let _ = writeln!(text, "{name}{{shard=\"{label}\"}} {value}");
            }
        }
    }
}

/// Name, help, type and value of a family with one value a peer.
type OfPeers = (&'static str, &'static str, &'static str, fn(&PeerCounts) -> u64);

fn peers(cluster: &Cluster, text: &mut String) {
    let peers = cluster.peer_counts();
    let families: [OfPeers; 4] = [
        ("assay_peer_connected", "Whether there is a connection to the node.", "gauge", |peer| peer.connected.into()),
        ("assay_peer_calls_total", "Calls to the node.", "counter", |peer| peer.calls),
        ("assay_peer_failures_total", "Calls to the node that failed.", "counter", |peer| peer.failures),
        ("assay_peer_sent_bytes_total", "Bytes sent to the node.", "counter", |peer| peer.bytes_out),
    ];
    for (name, help, kind, reading) in families {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (node, counts) in &peers {
            let _ = writeln!(text, "{name}{{node=\"{node}\"}} {}", reading(counts));
        }
    }
}

fn store(cluster: &Cluster) -> Vec<Gauge> {
    let shards = (0..cluster.shards()).filter_map(|shard| cluster.shard(ShardId(shard)));
    let sizes: Vec<_> = shards.map(|shard| shard.size()).collect();
    let sum = |of: &dyn Fn(&assay_storage_shard::ShardSize) -> f64| sizes.iter().map(of).sum::<f64>();
    let counts = cluster.counts();
    let upkeep = cluster.upkeep_counts();
    let syncs = cluster.log_syncs();
    vec![
        Gauge(
            "assay_memory_table_bytes",
            "Rows in memory that a seal would write.",
            "gauge",
            sum(&|size| size.memory_bytes as f64),
        ),
        Gauge("assay_memory_table_rows", "Row versions in memory.", "gauge", sum(&|size| size.memory_rows as f64)),
        Gauge("assay_segments", "Segments on disk.", "gauge", sum(&|size| size.segments as f64)),
        Gauge(
            "assay_segments_whole",
            "Segments that compaction has not made columnar yet.",
            "gauge",
            sum(&|size| size.whole_segments as f64),
        ),
        Gauge("assay_segment_rows", "Row versions in segments.", "gauge", sum(&|size| size.segment_rows as f64)),
        Gauge("assay_segment_bytes", "Bytes of segments on disk.", "gauge", sum(&|size| size.segment_bytes as f64)),
        Gauge("assay_log_bytes", "Bytes of the log on disk.", "gauge", cluster.log_bytes() as f64),
        Gauge("assay_log_syncs_total", "Syncs of the log.", "counter", syncs.count as f64),
        Gauge("assay_log_sync_seconds_total", "Time spent in syncs of the log.", "counter", syncs.seconds),
        Gauge("assay_entries_total", "Entries handed to consensus.", "counter", counts.entries as f64),
        Gauge("assay_commands_total", "Commands that were applied.", "counter", counts.commands as f64),
        Gauge("assay_entry_bytes_total", "Bytes of entries handed to consensus.", "counter", counts.bytes as f64),
        Gauge("assay_large_writes_total", "Writes that went through a blob.", "counter", counts.large as f64),
        Gauge("assay_writes_busy_total", "Writes refused because too many waited.", "counter", counts.busy as f64),
        Gauge("assay_writes_unknown_total", "Writes whose outcome is not known.", "counter", counts.unknown as f64),
        Gauge(
            "assay_snapshots_installed_total",
            "Snapshots installed from other nodes.",
            "counter",
            counts.snapshots as f64,
        ),
        Gauge("assay_handovers_total", "Leads handed over on purpose.", "counter", counts.handovers as f64),
        Gauge("assay_seals_total", "Seals that ended.", "counter", upkeep.seals as f64),
        Gauge(
            "assay_seals_without_room_total",
            "Seals that found no room on the disk.",
            "counter",
            upkeep.seals_without_space as f64,
        ),
        Gauge("assay_compactions_total", "Steps of compaction.", "counter", upkeep.compactions as f64),
        Gauge("assay_sealing", "Seals requested and not completed.", "gauge", upkeep.sealing as f64),
    ]
}

fn certificate(cluster: &Cluster) -> Option<Gauge> {
    let since = cluster.certificate_runs_out()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Gauge(
        "assay_certificate_expiry_seconds",
        "Time at which this node's certificate for other nodes expires, in seconds since 1970.",
        "gauge",
        since.as_secs_f64(),
    ))
}

fn actors(objects: &Objects) -> Vec<Gauge> {
    let counts = objects.counts();
    vec![
        Gauge("assay_actors", "Actors of objects.", "gauge", counts.active as f64),
        Gauge("assay_waiting_writes", "Writes accepted and not yet answered.", "gauge", counts.waiting_writes as f64),
        Gauge("assay_waiting_bytes", "Bytes of those writes.", "gauge", counts.waiting_bytes as f64),
        Gauge(
            "assay_write_queue_calls",
            "Requests that wait for reservations for their writes.",
            "gauge",
            counts.queued_calls as f64,
        ),
        Gauge("assay_write_queue_bytes", "Bytes of those writes.", "gauge", counts.queued_bytes as f64),
        Gauge("assay_write_waits_total", "Requests that had to wait for reservations.", "counter", counts.waits as f64),
        Gauge(
            "assay_write_wait_seconds_total",
            "Time that requests waited for reservations.",
            "counter",
            counts.wait_seconds,
        ),
        Gauge("assay_object_writes_total", "Writes to objects.", "counter", counts.writes as f64),
        Gauge("assay_rows_total", "Rows written.", "counter", counts.rows as f64),
        Gauge("assay_duplicates_total", "Repeated requests that were recognized.", "counter", counts.duplicates as f64),
        Gauge(
            "assay_mailbox_full_total",
            "Writes refused because they got no reservation before their deadline.",
            "counter",
            counts.busy as f64,
        ),
        Gauge("assay_object_unknown_total", "Writes whose outcome is not known.", "counter", counts.unknown as f64),
        Gauge("assay_pages_total", "Pages of rows read.", "counter", counts.pages as f64),
        Gauge("assay_rows_read_total", "Rows read.", "counter", counts.rows_read as f64),
    ]
}
