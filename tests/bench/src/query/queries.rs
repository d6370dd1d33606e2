//! Measured queries: one table, each query in our language and in those of DuckDB and of ClickHouse.
//!
//! In the texts `$LOG`, `$EVENTS`, `$BASE` and `$CHANGED` are the ids of our objects, `$TRACE` is a trace (another one
//! in each run), `$BIG` the trace of 3,000 spans, `$FILE` a new file. Columns have the same names in all three. If rows
//! are limited, their order is defined, so that every engine must return the same ones.

/// Allowed growth of a query with the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Its answer lies in few places, wherever they are.
    Lookup,
    /// It is about all rows.
    Scan,
}

#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub name: &'static str,
    pub growth: Growth,
    /// Promised of ours at a million spans: milliseconds, p50.
    pub ms_max: Option<f64>,
    /// Whether rows have an order; otherwise they are compared in any.
    pub is_ordered: bool,
    pub ours: &'static str,
    pub duckdb: &'static str,
    pub clickhouse: &'static str,
}

/// The one whose answer is a file.
pub const EXPORT: &str = "full export to Parquet";

const PLAIN: Question =
    Question { name: "", growth: Growth::Scan, ms_max: None, is_ordered: true, ours: "", duckdb: "", clickhouse: "" };

/// Queries over traces of AI applications.
pub const TRACES: [Question; 18] = [
    Question {
        name: "trace by id",
        growth: Growth::Lookup,
        ms_max: Some(10.0),
        is_ordered: false,
        ours: "SELECT id, span_id, root_span_id, span_parents, created, span_attributes.name AS name,
                span_attributes.type AS type, input, output, error, metadata, metrics, scores, tags
            FROM project_logs('$LOG') WHERE root_span_id = '$TRACE'",
        duckdb: "SELECT id, span_id, root_span_id, span_parents, created, name, type, input, output, error,
                metadata::JSON AS metadata, metrics::JSON AS metrics, scores::JSON AS scores, tags
            FROM spans WHERE root_span_id = '$TRACE'",
        clickhouse: "SELECT id, span_id, root_span_id, span_parents, created, name, type, input, output, error,
                metadata, metrics, scores, tags
            FROM spans WHERE root_span_id = '$TRACE'",
    },
    Question {
        name: "latest 50 roots by model and error",
        growth: Growth::Lookup,
        ms_max: Some(10.0),
        ours: "SELECT id, root_span_id, created, span_attributes.name AS name, metadata.user_id AS user_id, error
            FROM project_logs('$LOG') WHERE is_root AND metadata.model = 'swift-3' AND error IS NOT NULL
            ORDER BY created DESC LIMIT 50",
        duckdb: "SELECT id, root_span_id, created, name, metadata.user_id::VARCHAR AS user_id, error
            FROM spans WHERE is_root AND metadata.model::VARCHAR = 'swift-3' AND error IS NOT NULL
            ORDER BY created DESC LIMIT 50",
        clickhouse: "SELECT id, root_span_id, created, name, metadata.user_id AS user_id, error
            FROM spans WHERE is_root AND metadata.model = 'swift-3' AND error IS NOT NULL
            ORDER BY created DESC LIMIT 50",
        ..PLAIN
    },
    Question {
        name: "count and mean score by model by hour",
        is_ordered: false,
        ours: "SELECT metadata.model AS model, hour(created) AS hour, count(1) AS spans, avg(scores.factuality) AS mean
            FROM project_logs('$LOG') GROUP BY 1, 2",
        duckdb: "SELECT metadata.model::VARCHAR AS model, date_trunc('hour', created) AS hour, count(*) AS spans,
                avg(scores.factuality::DOUBLE) AS mean
            FROM spans GROUP BY 1, 2",
        clickhouse: "SELECT metadata.model AS model, toStartOfHour(created) AS hour, count() AS spans,
                avg(scores.factuality) AS mean
            FROM spans GROUP BY 1, 2",
        ..PLAIN
    },
    Question {
        name: "p95 latency by name",
        is_ordered: false,
        ours: "SELECT span_attributes.name AS name, percentile(metrics.duration, 0.95) AS p95
            FROM project_logs('$LOG') GROUP BY 1",
        duckdb: "SELECT name, quantile_cont(metrics.end::DOUBLE - metrics.start::DOUBLE, 0.95) AS p95
            FROM spans GROUP BY 1",
        clickhouse: "SELECT name, quantileExactInclusive(0.95)(metrics.end - metrics.start) AS p95
            FROM spans GROUP BY 1",
        ..PLAIN
    },
    Question {
        name: "tokens and cost by user",
        ours: "SELECT metadata.user_id AS user_id, sum(metrics.tokens) AS tokens, sum(estimated_cost()) AS usd
            FROM project_logs('$LOG') GROUP BY 1 ORDER BY tokens DESC, user_id LIMIT 100",
        duckdb: "SELECT metadata.user_id::VARCHAR AS user_id, sum(metrics.tokens::BIGINT) AS tokens,
                sum(metrics.estimated_cost::DOUBLE) AS usd
            FROM spans GROUP BY 1 ORDER BY tokens DESC, user_id LIMIT 100",
        clickhouse:
            "SELECT metadata.user_id AS user_id, sum(metrics.tokens) AS tokens, sum(metrics.estimated_cost) AS usd
            FROM spans GROUP BY 1 ORDER BY tokens DESC, user_id LIMIT 100",
        ..PLAIN
    },
    Question {
        name: "token search, a rare word",
        growth: Growth::Lookup,
        ms_max: Some(50.0),
        ours: "SELECT id, created, span_attributes.type AS type
            FROM project_logs('$LOG') WHERE input MATCH 'quetzalcoatlus' ORDER BY created DESC LIMIT 50",
        duckdb: "SELECT id, created, type
            FROM spans WHERE input::VARCHAR ILIKE '%quetzalcoatlus%'
                AND regexp_matches(input::VARCHAR, '(?i)\\bquetzalcoatlus\\b') ORDER BY created DESC LIMIT 50",
        clickhouse: "SELECT id, created, type
            FROM spans WHERE hasAllTokens(input, 'quetzalcoatlus') ORDER BY created DESC LIMIT 50",
        ..PLAIN
    },
    Question {
        name: "token search, the newest with two common words",
        growth: Growth::Lookup,
        ms_max: Some(50.0),
        ours: "SELECT id, created, span_attributes.type AS type
            FROM project_logs('$LOG') WHERE input MATCH 'refund invoice' ORDER BY created DESC LIMIT 50",
        duckdb: "SELECT id, created, type
            FROM spans
            WHERE input::VARCHAR ILIKE '%refund%' AND input::VARCHAR ILIKE '%invoice%'
                AND regexp_matches(input::VARCHAR, '(?i)\\brefund\\b')
                AND regexp_matches(input::VARCHAR, '(?i)\\binvoice\\b')
            ORDER BY created DESC LIMIT 50",
        clickhouse: "SELECT id, created, type
            FROM spans WHERE hasAllTokens(input, 'refund invoice') ORDER BY created DESC LIMIT 50",
        ..PLAIN
    },
    Question {
        name: "count of two common words by day",
        ours: "SELECT day(created) AS day, count(1) AS spans
            FROM project_logs('$LOG') WHERE input MATCH 'refund invoice' GROUP BY 1 ORDER BY 1",
        duckdb: "SELECT date_trunc('day', created) AS day, count(*) AS spans
            FROM spans
            WHERE input::VARCHAR ILIKE '%refund%' AND input::VARCHAR ILIKE '%invoice%'
                AND regexp_matches(input::VARCHAR, '(?i)\\brefund\\b')
                AND regexp_matches(input::VARCHAR, '(?i)\\binvoice\\b')
            GROUP BY 1 ORDER BY 1",
        clickhouse: "SELECT toStartOfDay(created) AS day, count() AS spans
            FROM spans WHERE hasAllTokens(input, 'refund invoice') GROUP BY 1 ORDER BY 1",
        ..PLAIN
    },
    Question {
        name: "substring search",
        ours: "SELECT id, created, span_attributes.type AS type
            FROM project_logs('$LOG') WHERE input ILIKE '%zalcoat%' ORDER BY created DESC LIMIT 50",
        duckdb: "SELECT id, created, type
            FROM spans WHERE input::VARCHAR ILIKE '%zalcoat%' ORDER BY created DESC LIMIT 50",
        clickhouse: "SELECT id, created, type
            FROM spans WHERE input ILIKE '%zalcoat%' ORDER BY created DESC LIMIT 50",
        ..PLAIN
    },
    Question {
        name: "distinct users per day",
        ours: "SELECT day(created) AS day, count(DISTINCT metadata.user_id) AS users
            FROM project_logs('$LOG') GROUP BY 1 ORDER BY 1",
        duckdb: "SELECT date_trunc('day', created) AS day, count(DISTINCT metadata.user_id::VARCHAR) AS users
            FROM spans GROUP BY 1 ORDER BY 1",
        clickhouse: "SELECT toStartOfDay(created) AS day, uniqExact(metadata.user_id) AS users
            FROM spans GROUP BY 1 ORDER BY 1",
        ..PLAIN
    },
    SUMMARY,
    Question {
        name: "whole trace of 3,000 spans",
        growth: Growth::Lookup,
        is_ordered: false,
        ours: "SELECT id, span_id, root_span_id, span_parents, created, span_attributes.name AS name,
                span_attributes.type AS type, input, output, error, metadata, metrics, scores, tags
            FROM project_logs('$LOG') WHERE root_span_id = '$BIG' LIMIT 10000",
        duckdb: "SELECT id, span_id, root_span_id, span_parents, created, name, type, input, output, error,
                metadata::JSON AS metadata, metrics::JSON AS metrics, scores::JSON AS scores, tags
            FROM spans WHERE root_span_id = '$BIG' LIMIT 10000",
        clickhouse: "SELECT id, span_id, root_span_id, span_parents, created, name, type, input, output, error,
                metadata, metrics, scores, tags
            FROM spans WHERE root_span_id = '$BIG' LIMIT 10000",
        ..PLAIN
    },
    COMPARISON,
    PIVOT,
    Question {
        name: EXPORT,
        is_ordered: false,
        ours: "SELECT id, span_id, root_span_id, is_root, span_parents, created, span_attributes.name AS name,
                span_attributes.type AS type, input, output, error, metadata, metrics, scores, tags
            FROM project_logs('$LOG')",
        duckdb: "COPY spans TO '$FILE' (FORMAT parquet)",
        clickhouse: "INSERT INTO FUNCTION file('$FILE', Parquet) SELECT * FROM spans",
        ..PLAIN
    },
    Question {
        name: "count over everything",
        ms_max: Some(10.0),
        ours: "SELECT count(1) AS spans FROM project_logs('$LOG')",
        duckdb: "SELECT count(*) AS spans FROM spans",
        clickhouse: "SELECT count() AS spans FROM spans",
        ..PLAIN
    },
    Question {
        name: "filter on a rare metadata key",
        growth: Growth::Lookup,
        ours: "SELECT id, created, metadata.incident AS incident
            FROM project_logs('$LOG') WHERE metadata.incident IS NOT NULL ORDER BY created DESC LIMIT 10",
        duckdb: "SELECT id, created, metadata.incident::VARCHAR AS incident
            FROM spans WHERE metadata.incident::VARCHAR IS NOT NULL ORDER BY created DESC LIMIT 10",
        clickhouse: "SELECT id, created, metadata.incident::Nullable(String) AS incident
            FROM spans WHERE metadata.incident IS NOT NULL ORDER BY created DESC LIMIT 10",
        ..PLAIN
    },
    Question {
        name: "count of one model",
        ours: "SELECT count(1) AS spans FROM project_logs('$LOG') WHERE metadata.model = 'reasoner-1'",
        duckdb: "SELECT count(*) AS spans FROM spans WHERE metadata.model::VARCHAR = 'reasoner-1'",
        clickhouse: "SELECT count() AS spans FROM spans WHERE metadata.model = 'reasoner-1'",
        ..PLAIN
    },
];

/// The traces with a tool that failed, the newest fifty, each as one row about all of its spans.
const SUMMARY: Question = Question {
    name: "summary of 50 traces with a failed tool",
    ours: "SELECT root_span_id, created, scores.helpfulness AS helpfulness, scores.factuality AS factuality,
            metrics.duration AS duration, metrics.total_tokens AS tokens, metrics.estimated_cost AS usd,
            metrics.llm_calls AS llm_calls, metrics.tool_calls AS tool_calls, metrics.errors AS errors
        FROM project_logs('$LOG', shape => 'summary')
        WHERE span_attributes.type = 'tool' AND error IS NOT NULL AND metadata.environment = 'production'
        ORDER BY created DESC LIMIT 50",
    duckdb: "WITH failed AS (SELECT DISTINCT root_span_id FROM spans
            WHERE type = 'tool' AND error IS NOT NULL AND metadata.environment::VARCHAR = 'production'),
        newest AS (SELECT root_span_id FROM spans
            WHERE is_root AND root_span_id IN (SELECT root_span_id FROM failed) ORDER BY created DESC LIMIT 50)
        SELECT root_span_id, min(s.created) FILTER (is_root) AS created, avg(scores.helpfulness::DOUBLE) AS helpfulness,
            avg(scores.factuality::DOUBLE) AS factuality,
            max(metrics.end::DOUBLE) - min(metrics.start::DOUBLE) AS duration, sum(metrics.tokens::BIGINT) AS tokens,
            sum(metrics.estimated_cost::DOUBLE) AS usd, count(*) FILTER (type = 'llm') AS llm_calls,
            count(*) FILTER (type = 'tool') AS tool_calls,
            count(*) FILTER (type IN ('llm', 'tool') AND error IS NOT NULL) AS errors
        FROM spans s WHERE root_span_id IN (SELECT root_span_id FROM newest)
        GROUP BY root_span_id ORDER BY 2 DESC",
    clickhouse: "WITH newest AS (SELECT root_span_id, created FROM spans
            WHERE is_root AND root_span_id IN (SELECT root_span_id FROM spans
                WHERE type = 'tool' AND error IS NOT NULL AND metadata.environment = 'production')
            ORDER BY created DESC LIMIT 50)
        SELECT root_span_id, minIf(s.created, s.is_root) AS created, avg(scores.helpfulness) AS helpfulness,
            avg(scores.factuality) AS factuality, max(metrics.end) - min(metrics.start) AS duration,
            sum(metrics.tokens) AS tokens, sum(metrics.estimated_cost) AS usd, countIf(type = 'llm') AS llm_calls,
            countIf(type = 'tool') AS tool_calls, countIf(type IN ('llm', 'tool') AND error IS NOT NULL) AS errors
        FROM spans s WHERE root_span_id IN (SELECT root_span_id FROM newest)
        GROUP BY root_span_id ORDER BY created DESC",
    ..PLAIN
};

/// Finds where the second experiment did worst compared with the first. We have no join: rows are paired by their
/// inputs in a group.
const COMPARISON: Question = Question {
    name: "comparison of two experiments by input",
    growth: Growth::Lookup,
    ours: "SELECT input, base, changed FROM (
            SELECT input, avg(CASE WHEN experiment_id = '$BASE' THEN scores.similarity END) AS base,
                avg(CASE WHEN experiment_id = '$CHANGED' THEN scores.similarity END) AS changed
            FROM experiment('$BASE', '$CHANGED') WHERE is_root GROUP BY input)
        WHERE changed < base ORDER BY changed - base LIMIT 50",
    duckdb: "SELECT a.input AS input, a.scores.similarity::DOUBLE AS base, b.scores.similarity::DOUBLE AS changed
        FROM trials a JOIN trials b ON a.input = b.input
        WHERE a.experiment_id = 'a' AND b.experiment_id = 'b' AND a.is_root AND b.is_root AND changed < base
        ORDER BY changed - base LIMIT 50",
    clickhouse: "SELECT a.input AS input, a.scores.similarity AS base, b.scores.similarity AS changed
        FROM trials a JOIN trials b ON a.input = b.input
        WHERE a.experiment_id = 'a' AND b.experiment_id = 'b' AND a.is_root AND b.is_root AND changed < base
        ORDER BY changed - base LIMIT 50",
    ..PLAIN
};

/// The others are given the scores' names, which we find in the rows.
const PIVOT: Question = Question {
    name: "pivot of scores by model",
    is_ordered: false,
    ours: "dimensions: metadata.model as model, score | measures: avg(value) as mean
        | from: project_logs('$LOG') | unpivot: scores as (score, value) | pivot: mean",
    duckdb: "SELECT metadata.model::VARCHAR AS model, avg(scores.completeness::DOUBLE) AS completeness_mean,
            avg(scores.factuality::DOUBLE) AS factuality_mean, avg(scores.helpfulness::DOUBLE) AS helpfulness_mean,
            avg(scores.politeness::DOUBLE) AS politeness_mean, avg(scores.relevance::DOUBLE) AS relevance_mean
        FROM spans GROUP BY 1",
    clickhouse: "SELECT metadata.model AS model, avg(scores.completeness) AS completeness_mean,
            avg(scores.factuality) AS factuality_mean, avg(scores.helpfulness) AS helpfulness_mean,
            avg(scores.politeness) AS politeness_mean, avg(scores.relevance) AS relevance_mean
        FROM spans GROUP BY 1",
    ..PLAIN
};

/// The five of JSONBench. Times are answered as the microseconds they are stored as, by all.
pub const EVENTS: [Question; 5] = [
    Question {
        name: "JSONBench 1: events by collection",
        is_ordered: false,
        ours: "SELECT metadata.commit.collection AS event, count(1) AS events
            FROM project_logs('$EVENTS') GROUP BY 1 ORDER BY events DESC",
        duckdb: "SELECT data.commit.collection::VARCHAR AS event, count(*) AS events
            FROM events GROUP BY 1 ORDER BY events DESC",
        clickhouse: "SELECT nullIf(data.commit.collection, '') AS event, count() AS events
            FROM events GROUP BY 1 ORDER BY events DESC",
        ..PLAIN
    },
    Question {
        name: "JSONBench 2: and distinct users",
        is_ordered: false,
        ours: "SELECT metadata.commit.collection AS event, count(1) AS events, count(DISTINCT metadata.did) AS users
            FROM project_logs('$EVENTS') WHERE metadata.kind = 'commit' AND metadata.commit.operation = 'create'
            GROUP BY 1 ORDER BY events DESC",
        // Without the query within, members are taken out of whole documents, which takes a hundred times as long.
        duckdb: "SELECT event, count(*) AS events, count(DISTINCT did) AS users FROM (
                SELECT data.commit.collection::VARCHAR AS event, data.did::VARCHAR AS did
                FROM events WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create')
            GROUP BY 1 ORDER BY events DESC",
        clickhouse: "SELECT data.commit.collection AS event, count() AS events, uniqExact(data.did) AS users
            FROM events WHERE data.kind = 'commit' AND data.commit.operation = 'create'
            GROUP BY 1 ORDER BY events DESC",
        ..PLAIN
    },
    Question {
        name: "JSONBench 3: by hour of the day",
        ours: "SELECT metadata.commit.collection AS event, floor(metadata.time_us / 3600000000) % 24 AS hour_of_day,
                count(1) AS events
            FROM project_logs('$EVENTS') WHERE metadata.kind = 'commit' AND metadata.commit.operation = 'create'
                AND metadata.commit.collection IN ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')
            GROUP BY 1, 2 ORDER BY hour_of_day, event",
        duckdb: "SELECT data.commit.collection::VARCHAR AS event,
                hour(make_timestamp(data.time_us::BIGINT)) AS hour_of_day, count(*) AS events
            FROM events WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create'
                AND data.commit.collection::VARCHAR IN ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')
            GROUP BY 1, 2 ORDER BY hour_of_day, event",
        clickhouse: "SELECT data.commit.collection AS event, toHour(fromUnixTimestamp64Micro(data.time_us, 'UTC')) AS hour_of_day,
                count() AS events
            FROM events WHERE data.kind = 'commit' AND data.commit.operation = 'create'
                AND data.commit.collection IN ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')
            GROUP BY 1, 2 ORDER BY hour_of_day, event",
        ..PLAIN
    },
    Question {
        name: "JSONBench 4: who posted first",
        ours: "SELECT metadata.did AS user_id, min(metadata.time_us) AS first_post
            FROM project_logs('$EVENTS') WHERE metadata.kind = 'commit' AND metadata.commit.operation = 'create'
                AND metadata.commit.collection = 'app.bsky.feed.post'
            GROUP BY 1 ORDER BY first_post LIMIT 3",
        duckdb: "SELECT data.did::VARCHAR AS user_id, min(data.time_us::BIGINT) AS first_post
            FROM events WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create'
                AND data.commit.collection::VARCHAR = 'app.bsky.feed.post'
            GROUP BY 1 ORDER BY first_post LIMIT 3",
        clickhouse: "SELECT data.did AS user_id, min(data.time_us) AS first_post
            FROM events WHERE data.kind = 'commit' AND data.commit.operation = 'create'
                AND data.commit.collection = 'app.bsky.feed.post'
            GROUP BY 1 ORDER BY first_post LIMIT 3",
        ..PLAIN
    },
    Question {
        name: "JSONBench 5: who posted the longest",
        ours: "SELECT metadata.did AS user_id, max(metadata.time_us) - min(metadata.time_us) AS span_us
            FROM project_logs('$EVENTS') WHERE metadata.kind = 'commit' AND metadata.commit.operation = 'create'
                AND metadata.commit.collection = 'app.bsky.feed.post'
            GROUP BY 1 ORDER BY span_us DESC LIMIT 3",
        duckdb: "SELECT data.did::VARCHAR AS user_id, max(data.time_us::BIGINT) - min(data.time_us::BIGINT) AS span_us
            FROM events WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create'
                AND data.commit.collection::VARCHAR = 'app.bsky.feed.post'
            GROUP BY 1 ORDER BY span_us DESC LIMIT 3",
        clickhouse: "SELECT data.did AS user_id, max(data.time_us) - min(data.time_us) AS span_us
            FROM events WHERE data.kind = 'commit' AND data.commit.operation = 'create'
                AND data.commit.collection = 'app.bsky.feed.post'
            GROUP BY 1 ORDER BY span_us DESC LIMIT 3",
        ..PLAIN
    },
];
