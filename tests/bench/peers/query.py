"""DuckDB or chDB, for the bench `query`: loads rows from files of JSON lines, and answers questions.

    python query.py ENGINE DIRECTORY

reads one task a line from stdin, as JSON, and says what came of it in one line on stdout:

    {"load": {"spans": FILE, "trials": [FILE, FILE], "events": FILE}}     {"seconds": ...}
    {"ask": [SQL, ...], "runs": [LEAST, MOST], "seconds": ...}            {"ms": [...], "answers": [{columns, rows}, ...]}
    {"write": SQL, "file": FILE, "runs": ...}                             {"ms": [...]}
    {"version": null}                                                     {"version": ...}

and in place of an engine, with `parquet`, what files of an export hold:

    {"look": [FILE, ...]}                                                 {"columns": [...], "rows": [[...]]}

Each engine is set up as its documentation recommends today; why is said at its tables. A question is asked in turn with
each of its texts. The clock stops when the engine has handed over the whole answer as Arrow.
"""

import argparse
import datetime
import decimal
import itertools
import json
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

# What one of these holds as text is JSON, but for texts that do not begin like a list or an object.
JSON_COLUMNS = {"input", "output", "error", "metadata", "metrics", "scores"}
# What one of these holds as a number is seconds: ClickHouse's times without fractions come as such.
TIME_COLUMNS = {"day", "hour"}


class Engine(Protocol):
    def load(self, spans: str, trials: list[str], events: str) -> None: ...

    def ask(self, sql: str) -> pa.Table: ...

    def write(self, sql: str) -> None: ...

    def version(self) -> str: ...


class DuckDB:
    """One file.

    - Types: the most restrictive ones ("Schema", Performance Guide); VARIANT for what has no fixed structure and whose
      members are asked for ("Variant Type": better compression and performance than JSON); JSON for documents that are
      searched as text or handed out whole.
    - Rows are loaded in the order of their time, which is what min-max indexes want ("Indexing").
    - No keys; one index, made after loading, on what very selective questions ask for ("Indexing").
    """

    SPAN = {
        "id": "VARCHAR",
        "span_id": "VARCHAR",
        "root_span_id": "VARCHAR",
        "span_parents": "VARCHAR[]",
        "created": "TIMESTAMP",
        "span_attributes": "STRUCT(name VARCHAR, type VARCHAR)",
        "input": "JSON",
        "output": "JSON",
        "error": "JSON",
        "metadata": "VARIANT",
        "metrics": "VARIANT",
        "scores": "VARIANT",
        "tags": "VARCHAR[]",
    }

    def __init__(self, directory: Path) -> None:
        import duckdb

        directory.mkdir(parents=True, exist_ok=True)
        self.duckdb = duckdb
        self.connection = duckdb.connect(str(directory / "bench.duckdb"))

    def load(self, spans: str, trials: list[str], events: str) -> None:
        run = self.connection.execute
        run(f"CREATE TABLE spans AS {self.rows_of(spans)}")
        first, second = (self.rows_of(path) for path in trials)
        run(f"CREATE TABLE trials AS SELECT 'a' AS experiment_id, * FROM ({first})")
        run(f"INSERT INTO trials SELECT 'b', * FROM ({second})")
        run(f"CREATE TABLE events AS SELECT json::VARIANT AS data FROM read_ndjson_objects('{events}')")
        run("CREATE INDEX spans_by_trace ON spans (root_span_id)")
        run("CHECKPOINT")

    def rows_of(self, path: str) -> str:
        # The reader knows no VARIANT: it reads JSON, which is cast.
        columns = {name: "JSON" if kind == "VARIANT" else kind for name, kind in self.SPAN.items()}
        picked = [f"{name}::VARIANT AS {name}" if kind == "VARIANT" else name for name, kind in self.SPAN.items()]
        at = picked.index("span_attributes")
        picked[at : at + 1] = ["span_attributes.name AS name", "span_attributes.type AS type"]
        return (
            f"SELECT {', '.join(picked)}, span_parents IS NULL AS is_root"
            f" FROM read_ndjson('{path}', columns = {columns})"
        )

    def ask(self, sql: str) -> pa.Table:
        return self.connection.sql(sql).to_arrow_table()

    def write(self, sql: str) -> None:
        self.connection.execute(sql)

    def version(self) -> str:
        return self.duckdb.__version__


class ChDB:
    """One directory, with MergeTree tables.

    - Types: the strictest ones, LowCardinality for names of few kinds ("Select data types"); the JSON type for what has
      no fixed structure, with hints for paths that are known ("Use JSON where appropriate"); String for documents that
      are searched as text or handed out whole (the same page).
    - Sorted by time, which most questions limit or group by ("Choosing a primary key").
    - A bloom filter for the trace's id, as its own table for traces has it; a text index for the words of the input, with
      `lower` before it, and one for the paths of the metadata ("Full-text search with text indexes").
    - Events as in JSONBench's own definition for ClickHouse.
    - Parts are merged after loading, so that none is merged while questions are measured.
    """

    SPAN = """
        id String, span_id String, root_span_id String, span_parents Array(String), created DateTime64(6, 'UTC'),
        is_root Bool, name LowCardinality(String), type LowCardinality(String),
        input String, output String, error Nullable(String),
        metadata JSON(model LowCardinality(String), user_id String, environment LowCardinality(String),
            session_id String, build LowCardinality(String), request.region LowCardinality(String)),
        metrics JSON(start Float64, `end` Float64, prompt_tokens Nullable(UInt32), completion_tokens Nullable(UInt32),
            tokens Nullable(UInt32), estimated_cost Nullable(Float64)),
        scores JSON(factuality Nullable(Float64), relevance Nullable(Float64), politeness Nullable(Float64),
            completeness Nullable(Float64), helpfulness Nullable(Float64), exact Nullable(Float64),
            similarity Nullable(Float64)),
        tags Array(LowCardinality(String))"""
    SENT = """
        id String, span_id String, root_span_id String, span_parents Array(String), created DateTime64(6, 'UTC'),
        span_attributes Tuple(name String, type String), input String, output String, error Nullable(String),
        metadata JSON, metrics JSON, scores JSON, tags Array(String)"""
    INDEXES = """,
        INDEX trace root_span_id TYPE bloom_filter(0.001) GRANULARITY 1,
        INDEX words input TYPE text(tokenizer = splitByNonAlpha, preprocessor = lower(input)),
        INDEX paths JSONAllPaths(metadata) TYPE text(tokenizer = array)"""
    EVENTS = """
        CREATE TABLE events (data JSON(max_dynamic_paths = 0, kind LowCardinality(String),
            commit.operation LowCardinality(String), commit.collection LowCardinality(String), did String,
            time_us UInt64) CODEC(ZSTD(1)))
        ENGINE = MergeTree ORDER BY (data.kind, data.commit.operation, data.commit.collection, data.did,
            fromUnixTimestamp64Micro(data.time_us))
        SETTINGS object_serialization_version = 'v3', dynamic_serialization_version = 'v3',
            object_shared_data_serialization_version = 'advanced',
            object_shared_data_serialization_version_for_zero_level_parts = 'map_with_buckets'"""

    def __init__(self, directory: Path) -> None:
        import chdb
        from chdb.session import Session

        self.chdb = chdb
        self.session = Session(str(directory))
        self.session.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        self.session.query("USE bench")

    def load(self, spans: str, trials: list[str], events: str) -> None:
        run = self.session.query
        run(f"CREATE TABLE spans ({self.SPAN}{self.INDEXES}) ENGINE = MergeTree ORDER BY created")
        run(f"INSERT INTO spans {self.rows_of(spans)}")
        run(f"CREATE TABLE trials (experiment_id String, {self.SPAN}) ENGINE = MergeTree ORDER BY (experiment_id, created)")
        for experiment, path in zip("ab", trials, strict=True):
            run(f"INSERT INTO trials SELECT '{experiment}', * FROM ({self.rows_of(path)})")
        run(self.EVENTS)
        run(f"INSERT INTO events SELECT json FROM file('{events}', JSONAsObject, 'json JSON')")
        for table in ("spans", "trials", "events"):
            run(f"OPTIMIZE TABLE {table} FINAL")

    def rows_of(self, path: str) -> str:
        sent = " ".join(self.SENT.split()).replace("'", "\\'")
        return (
            "SELECT id, span_id, root_span_id, span_parents, created, empty(span_parents), span_attributes.name,"
            " span_attributes.type, input, output, error, metadata, metrics, scores, tags"
            f" FROM file('{path}', JSONEachRow, '{sent}')"
        )

    def ask(self, sql: str) -> pa.Table:
        answer = self.session.query(sql, "ArrowStream")
        return pa.ipc.open_stream(answer.bytes()).read_all()

    def write(self, sql: str) -> None:
        self.session.query(sql)

    def version(self) -> str:
        return f"{self.chdb.__version__} (ClickHouse {self.chdb.engine_version})"


def asked(engine: Engine, texts: list[str], runs: list[int], seconds: float) -> dict[str, Any]:
    """Each text once, which warms and gives the answers; then in turn until the time is over, within the bounds."""
    answers = [answer_of(engine.ask(text)) for text in texts]
    ms: list[float] = []
    began = time.perf_counter()
    for text in itertools.cycle(texts):
        if len(ms) >= runs[1] or (len(ms) >= runs[0] and time.perf_counter() - began > seconds):
            break
        before = time.perf_counter()
        engine.ask(text)
        ms.append((time.perf_counter() - before) * 1e3)
    return {"ms": ms, "answers": answers}


def written(engine: Engine, sql: str, file: str, runs: list[int]) -> dict[str, Any]:
    ms = []
    for _ in range(runs[0]):
        Path(file).unlink(missing_ok=True)
        before = time.perf_counter()
        engine.write(sql)
        ms.append((time.perf_counter() - before) * 1e3)
    return {"ms": ms}


def answer_of(table: pa.Table) -> dict[str, Any]:
    names = table.column_names
    columns = [[plain(value, name) for value in table[name].to_pylist()] for name in names]
    return {"columns": names, "rows": [list(row) for row in zip(*columns, strict=True)]}


def plain(value: Any, column: str) -> Any:
    if column in TIME_COLUMNS and isinstance(value, int):
        value = datetime.datetime.fromtimestamp(value, datetime.UTC)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    if column in JSON_COLUMNS and isinstance(value, str) and value[:1] in ("{", "[", '"'):
        return json.loads(value)
    return value


def looked(files: list[str]) -> dict[str, Any]:
    """The rows of all files: how many, and sums in which each row's id, trace, name and time has its part."""
    rows = ids = traces = names = times = 0
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(columns=["id", "root_span_id", "name", "created"]):
            rows += batch.num_rows
            ids += sums(batch["id"])
            traces += sums(batch["root_span_id"])
            names += sums(batch["name"])
            times += sum(batch["created"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist())
    return {"columns": ["rows", "ids", "traces", "names", "times"], "rows": [[rows, ids, traces, names, str(times)]]}


def sums(values: pa.Array) -> int:
    return sum(zlib.crc32(told(text).encode()) for text in values.to_pylist())


def told(text: str | bytes) -> str:
    """A text as it is. Ours writes members of JSON columns as JSON: in quotes."""
    text = text.decode() if isinstance(text, bytes) else text
    return json.loads(text) if text.startswith('"') else text


def tasks() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def done(engine: Engine, task: dict[str, Any]) -> dict[str, Any]:
    if files := task.get("load"):
        began = time.perf_counter()
        engine.load(**files)
        return {"seconds": time.perf_counter() - began}
    if texts := task.get("ask"):
        return asked(engine, texts, task["runs"], task["seconds"])
    if sql := task.get("write"):
        return written(engine, sql, task["file"], task["runs"])
    return {"version": engine.version()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["duckdb", "chdb", "parquet"])
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    engine: Engine | None = None
    if options.engine != "parquet":
        engine = (DuckDB if options.engine == "duckdb" else ChDB)(options.directory)
    for task in tasks():
        said = done(engine, task) if engine else looked(task["look"])
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
