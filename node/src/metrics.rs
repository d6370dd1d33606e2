//! What `/metrics` says of the store and the actors, in Prometheus' text form. HTTP adds its own requests.

use std::fmt::Write;
use std::sync::Arc;

use assay_cluster::Cluster;
use assay_node_objects::Objects;
use assay_storage_model::ShardId;

/// One family: name, help, type, value.
struct Gauge(&'static str, &'static str, &'static str, f64);

pub fn source(cluster: Arc<Cluster>, objects: Objects) -> Arc<dyn Fn() -> String + Send + Sync> {
    Arc::new(move || {
        let mut text = String::new();
        for Gauge(name, help, kind, value) in store(&cluster).into_iter().chain(actors(&objects)) {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        text
    })
}

fn store(cluster: &Cluster) -> Vec<Gauge> {
    let shards = (0..cluster.shards()).filter_map(|shard| cluster.shard(ShardId(shard)));
    let sizes: Vec<_> = shards.map(|shard| shard.size()).collect();
    let sum = |of: &dyn Fn(&assay_storage_shard::ShardSize) -> f64| sizes.iter().map(of).sum::<f64>();
    let counts = cluster.counts();
    let upkeep = cluster.upkeep_counts();
    vec![
        Gauge(
            "assay_memory_table_bytes",
            "Rows in memory that a seal would write.",
            "gauge",
            sum(&|size| size.memory_bytes as f64),
        ),
        Gauge("assay_memory_table_rows", "Row versions in memory.", "gauge", sum(&|size| size.memory_rows as f64)),
        Gauge("assay_segments", "Segments on disk.", "gauge", sum(&|size| size.segments as f64)),
        Gauge("assay_segment_rows", "Row versions in segments.", "gauge", sum(&|size| size.segment_rows as f64)),
        Gauge("assay_segment_bytes", "Bytes of segments on disk.", "gauge", sum(&|size| size.segment_bytes as f64)),
        Gauge("assay_log_bytes", "Bytes of the log on disk.", "gauge", cluster.log_bytes() as f64),
        Gauge("assay_entries_total", "Entries handed to consensus.", "counter", counts.entries as f64),
        Gauge("assay_commands_total", "Commands that were applied.", "counter", counts.commands as f64),
        Gauge("assay_entry_bytes_total", "Bytes of entries handed to consensus.", "counter", counts.bytes as f64),
        Gauge("assay_large_writes_total", "Writes that went through a blob.", "counter", counts.large as f64),
        Gauge("assay_writes_busy_total", "Writes refused because too many waited.", "counter", counts.busy as f64),
        Gauge("assay_writes_unknown_total", "Writes whose outcome is not known.", "counter", counts.unknown as f64),
        Gauge("assay_seals_total", "Seals that ended.", "counter", upkeep.seals as f64),
        Gauge(
            "assay_seals_without_room_total",
            "Seals that found no room on the disk.",
            "counter",
            upkeep.seals_without_room as f64,
        ),
        Gauge("assay_compactions_total", "Steps of compaction.", "counter", upkeep.compactions as f64),
        Gauge("assay_sealing", "Seals asked for and not ended.", "gauge", upkeep.sealing as f64),
    ]
}

fn actors(objects: &Objects) -> Vec<Gauge> {
    let counts = objects.counts();
    vec![
        Gauge("assay_actors", "Actors of objects.", "gauge", counts.active as f64),
        Gauge("assay_waiting_writes", "Writes taken in and not yet answered.", "gauge", counts.waiting_writes as f64),
        Gauge("assay_waiting_bytes", "Bytes of those writes.", "gauge", counts.waiting_bytes as f64),
        Gauge("assay_object_writes_total", "Writes to objects.", "counter", counts.writes as f64),
        Gauge("assay_rows_total", "Rows written.", "counter", counts.rows as f64),
        Gauge("assay_duplicates_total", "Requests known from before.", "counter", counts.duplicates as f64),
        Gauge("assay_mailbox_full_total", "Writes refused for want of a place.", "counter", counts.busy as f64),
        Gauge("assay_object_unknown_total", "Writes whose outcome is not known.", "counter", counts.unknown as f64),
        Gauge("assay_pages_total", "Pages of rows read.", "counter", counts.pages as f64),
        Gauge("assay_rows_read_total", "Rows read.", "counter", counts.rows_read as f64),
    ]
}
