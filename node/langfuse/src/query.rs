//! Queries for rows as trees, and pages of their results.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::fields::{BadField, shown};
use crate::metadata::OWN;
use assay_storage_model::event::{format_micros, parse_created};

/// Upper bound of the rows up to the end of a page, because pages have numbers.
pub const PAGE_ROWS_MAX: u64 = 10_000;
/// Upper bound of the rows of one page.
const LIMIT_MAX: u64 = 1_000;
const LIMIT_DEFAULT: u64 = 50;
/// Upper bound of the conditions of a request.
const CONDITIONS_MAX: usize = 50;

/// Page with a number, as version 1 of the API has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedPage {
    pub page: u64,
    pub limit: u64,
}

fn parameter<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
}

impl NumberedPage {
    pub fn of(pairs: &[(String, String)]) -> Result<NumberedPage, BadField> {
        let number = |name: &str, default: u64, max: u64| match parameter(pairs, name) {
            None => Ok(default),
            Some(text) => match text.parse::<u64>() {
                Ok(number) if (1..=max).contains(&number) => Ok(number),
                _ => Err(BadField(format!("`{name}` is `{}`; it has to be a number from 1 to {max}", shown(text)))),
            },
        };
        let page =
            NumberedPage { page: number("page", 1, u64::MAX)?, limit: number("limit", LIMIT_DEFAULT, LIMIT_MAX)? };
        match page.page.saturating_mul(page.limit) {
            end if end > PAGE_ROWS_MAX => Err(BadField(format!(
                "pages end at row {PAGE_ROWS_MAX}: narrow the request, such as by `fromTimestamp` and `toTimestamp`"
            ))),
            _ => Ok(page),
        }
    }

    /// Returns the number of rows up to the end of the page.
    pub fn end(&self) -> u64 {
        self.page.saturating_mul(self.limit)
    }

    /// Returns the items of the page from all items up to its end.
    pub fn of_items<T>(&self, items: Vec<T>) -> Vec<T> {
        let first = usize::try_from(self.end() - self.limit).unwrap_or(usize::MAX);
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        items.into_iter().skip(first).take(limit).collect()
    }
}

/// Returns the metadata of a page.
pub fn page_meta(page: NumberedPage, total: u64) -> Value {
    json!({"page": page.page, "limit": page.limit, "totalItems": total, "totalPages": total.div_ceil(page.limit)})
}

/// Conditions on rows, all of which have to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFilter(Vec<Value>);

/// Path of the parent of a span, whose last step is an index.
const PARENT: &[&str] = &["span_parents", "[0]"];

fn ident(path: &[&str]) -> Value {
    let steps: Vec<Value> = path.iter().map(|step| if *step == PARENT[1] { json!(0) } else { json!(step) }).collect();
    json!({"op": "ident", "name": steps})
}

fn compare(op: &str, path: &[&str], value: impl Into<Value>) -> Value {
    json!({"op": op, "left": ident(path), "right": {"op": "literal", "value": value.into()}})
}

fn any(children: Vec<Value>) -> Value {
    json!({"op": "or", "children": children})
}

/// Returns the conditions for a value of a field, one of which has to hold. A missing field has its default.
fn matches_of(path: &[&str], value: &str) -> Vec<Value> {
    let is_default = matches!((path.last(), value), (Some(&"environment"), "default") | (Some(&"level"), "DEFAULT"));
    let missing = is_default.then(|| json!({"op": "isnull", "expr": ident(path)}));
    [compare("eq", path, value)].into_iter().chain(missing).collect()
}

const KIND: [&str; 3] = ["metadata", OWN, "kind"];

/// Returns the condition that a row comes from another SDK.
fn of_others() -> Value {
    json!({"op": "isnull", "expr": ident(&["metadata", OWN])})
}

impl RowFilter {
    /// Selects traces, also those of other SDKs: the roots of traces that are no scores.
    pub fn traces() -> RowFilter {
        let is_trace = any(vec![compare("eq", &KIND, "trace"), of_others()]);
        RowFilter(vec![json!({"op": "isnull", "expr": ident(&["span_parents"])}), is_trace])
    }

    /// Selects observations, also those of other SDKs.
    pub fn observations() -> RowFilter {
        RowFilter(vec![any(vec![compare("eq", &KIND, "observation"), of_others()])])
    }

    pub fn scores() -> RowFilter {
        RowFilter(vec![compare("eq", &KIND, "score")])
    }

    /// Selects all rows of traces.
    pub fn of_traces(ids: &[String]) -> RowFilter {
        RowFilter::default().and(compare("in", &["root_span_id"], json!(ids)))
    }

    /// Selects rows by their ids.
    pub fn of_ids(ids: &[String]) -> RowFilter {
        RowFilter::default().and(compare("in", &["id"], json!(ids)))
    }

    fn and(mut self, condition: Value) -> RowFilter {
        self.0.push(condition);
        self
    }

    /// Adds the condition that a field has a value, or one of several.
    fn is(self, path: &[&str], values: &[&str]) -> RowFilter {
        match values {
            [] => self,
            values => self.and(any(values.iter().flat_map(|value| matches_of(path, value)).collect())),
        }
    }

    pub fn session(self, id: &str) -> RowFilter {
        self.is(&["metadata", "session_id"], &[id])
    }

    pub fn span(self, id: &str) -> RowFilter {
        self.is(&["span_id"], &[id])
    }

    pub fn only_scores(self) -> RowFilter {
        self.and(compare("eq", &KIND, "score"))
    }

    /// Adds the conditions of the parameters of a list, by the table of its fields.
    fn with(
        mut self,
        pairs: &[(String, String)],
        fields: &[(&str, &[&str])],
        times: (&str, &str),
    ) -> Result<RowFilter, BadField> {
        for (name, path) in fields {
            let values: Vec<&str> = pairs
                .iter()
                .filter(|(given, value)| given == name && !value.is_empty())
                .map(|(_, value)| value.as_str())
                .collect();
            self = self.is(path, &values);
        }
        for (name, op) in [(times.0, "ge"), (times.1, "lt")] {
            if let Some(text) = parameter(pairs, name) {
                let micros = parse_created(text)
                    .ok_or_else(|| BadField(format!("`{name}` is `{}`; it has to be an ISO 8601 time", shown(text))))?;
                self = self.and(compare(op, &["created"], format_micros(micros)));
            }
        }
        self.bounded()
    }

    fn bounded(self) -> Result<RowFilter, BadField> {
        let alternatives = |one: &Value| one["children"].as_array().map_or(1, Vec::len);
        match self.0.iter().map(alternatives).sum::<usize>() > CONDITIONS_MAX {
            true => Err(BadField(format!("the request has more than {CONDITIONS_MAX} conditions"))),
            false => Ok(self),
        }
    }

    /// Adds the parameters of a list of traces.
    pub fn with_trace_parameters(self, pairs: &[(String, String)]) -> Result<RowFilter, BadField> {
        refuse_others(
            pairs,
            &[
                "page",
                "limit",
                "fields",
                "orderBy",
                "userId",
                "name",
                "sessionId",
                "tags",
                "version",
                "release",
                "environment",
                "fromTimestamp",
                "toTimestamp",
            ],
        )?;
        if let Some(order) = parameter(pairs, "orderBy").filter(|order| *order != "timestamp.desc") {
            return Err(BadField(format!("`orderBy` is `{}`; traces are ordered by timestamp.desc", shown(order))));
        }
        let mut filter = self.with(
            pairs,
            &[
                ("userId", &["metadata", "user_id"]),
                ("sessionId", &["metadata", "session_id"]),
                ("name", &["span_attributes", "name"]),
                ("version", &["metadata", OWN, "version"]),
                ("release", &["metadata", OWN, "release"]),
                ("environment", &["metadata", OWN, "environment"]),
            ],
            ("fromTimestamp", "toTimestamp"),
        )?;
        for (_, tag) in pairs.iter().filter(|(name, tag)| name == "tags" && !tag.is_empty()) {
            let needle = json!({"op": "literal", "value": [tag]});
            filter = filter.and(json!({"op": "includes", "haystack": ident(&["tags"]), "needle": needle}));
        }
        filter.bounded()
    }

    /// Adds the parameters of a list of observations, of both versions.
    pub fn with_observation_parameters(self, pairs: &[(String, String)]) -> Result<RowFilter, BadField> {
        refuse_others(
            pairs,
            &[
                "page",
                "limit",
                "cursor",
                "fields",
                "expandMetadata",
                "parseIoAsJson",
                "name",
                "userId",
                "sessionId",
                "type",
                "traceId",
                "level",
                "parentObservationId",
                "environment",
                "fromStartTime",
                "toStartTime",
                "version",
            ],
        )?;
        if parameter(pairs, "parseIoAsJson") == Some("true") {
            return Err(BadField("`parseIoAsJson` is not supported: inputs and outputs are texts".into()));
        }
        self.with(
            pairs,
            &[
                ("name", &["span_attributes", "name"]),
                ("userId", &["metadata", "user_id"]),
                ("sessionId", &["metadata", "session_id"]),
                ("type", &["metadata", OWN, "type"]),
                ("traceId", &["root_span_id"]),
                ("level", &["metadata", OWN, "level"]),
                ("environment", &["metadata", OWN, "environment"]),
                ("version", &["metadata", OWN, "version"]),
                ("parentObservationId", PARENT),
            ],
            ("fromStartTime", "toStartTime"),
        )
    }

    /// Adds the parameters of a list of scores, of all versions.
    pub fn with_score_parameters(self, pairs: &[(String, String)]) -> Result<RowFilter, BadField> {
        refuse_others(
            pairs,
            &[
                "page",
                "limit",
                "cursor",
                "fields",
                "id",
                "scoreIds",
                "name",
                "source",
                "dataType",
                "environment",
                "configId",
                "queueId",
                "traceId",
                "sessionId",
                "observationId",
                "datasetRunId",
                "experimentId",
                "fromTimestamp",
                "toTimestamp",
            ],
        )?;
        let own = |name: &'static str| [KIND[0], OWN, name];
        let split = |name: &str| -> Vec<(String, String)> {
            let texts = pairs.iter().filter(|(given, _)| given == name).flat_map(|(_, value)| value.split(','));
            texts.map(|text| (name.to_owned(), text.trim().to_owned())).collect()
        };
        // Parameters of version 3 have several values with commas between them.
        let names = [
            "id",
            "scoreIds",
            "name",
            "source",
            "dataType",
            "environment",
            "configId",
            "queueId",
            "traceId",
            "sessionId",
            "observationId",
            "datasetRunId",
            "experimentId",
        ];
        let mut all: Vec<(String, String)> = names.iter().flat_map(|name| split(name)).collect();
        all.extend(pairs.iter().filter(|(name, _)| name.ends_with("Timestamp")).cloned());
        self.with(
            &all,
            &[
                ("id", &own("score_id")),
                ("scoreIds", &own("score_id")),
                ("name", &own("name")),
                ("source", &own("source")),
                ("dataType", &own("data_type")),
                ("environment", &own("environment")),
                ("configId", &own("config_id")),
                ("queueId", &own("queue_id")),
                ("traceId", &own("trace_id")),
                ("sessionId", &own("session_id")),
                ("observationId", &own("observation_id")),
                ("datasetRunId", &own("run_id")),
                ("experimentId", &own("run_id")),
            ],
            ("fromTimestamp", "toTimestamp"),
        )
    }

    /// Adds the parameters of a list of dataset items.
    pub fn with_item_parameters(self, pairs: &[(String, String)]) -> Result<RowFilter, BadField> {
        let fields: [(&str, &[&str]); 2] = [
            ("sourceTraceId", &["metadata", OWN, "source_trace_id"]),
            ("sourceObservationId", &["metadata", OWN, "source_observation_id"]),
        ];
        self.with(pairs, &fields, ("", ""))
    }

    /// Returns the query for whole rows of objects.
    pub fn rows(&self, source: &str, objects: &[Uuid], limit: u64) -> Value {
        self.query(source, objects, json!([{"op": "star"}]), limit)
    }

    /// Returns the query for rows without their inputs and outputs.
    pub fn light(&self, source: &str, objects: &[Uuid], limit: u64) -> Value {
        let columns =
            ["id", "span_id", "root_span_id", "span_parents", "created", "span_attributes", "metrics", "metadata"];
        let columns: Vec<Value> = columns.iter().map(|name| json!({"alias": name, "expr": ident(&[name])})).collect();
        self.query(source, objects, Value::Array(columns), limit)
    }

    /// Returns the query for the ids of rows, newest first.
    pub fn ids(&self, source: &str, objects: &[Uuid], limit: u64) -> Value {
        let mut query = self.query(source, objects, json!([{"alias": "id", "expr": ident(&["id"])}]), limit);
        query["sort"] = json!([{"expr": ident(&["created"]), "dir": "desc"}]);
        query
    }

    /// Returns the query for the number of rows.
    pub fn count(&self, source: &str, objects: &[Uuid]) -> Value {
        let count = json!({"op": "function", "name": ident(&["count"]), "args": [{"op": "literal", "value": 1}]});
        let mut query = self.query(source, objects, Value::Null, 1);
        query["measures"] = json!([{"alias": "n", "expr": count}]);
        query
    }

    fn query(&self, source: &str, objects: &[Uuid], select: Value, limit: u64) -> Value {
        let args: Vec<Value> = objects.iter().map(|id| json!({"op": "literal", "value": id})).collect();
        let mut query = Map::from_iter([
            ("from".to_owned(), json!({"op": "function", "name": ident(&[source]), "args": args})),
            ("limit".to_owned(), limit.into()),
            // Values of applications are read back as they were sent.
            ("preview_length".to_owned(), json!(-1)),
        ]);
        if !select.is_null() {
            query.insert("select".into(), select);
        }
        if !self.0.is_empty() {
            query.insert("filter".into(), json!({"op": "and", "children": self.0}));
        }
        Value::Object(query)
    }
}

/// Refuses parameters that would otherwise be ignored, so that no list has more than was asked for.
fn refuse_others(pairs: &[(String, String)], known: &[&str]) -> Result<(), BadField> {
    match pairs.iter().find(|(name, value)| !value.is_empty() && !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => Err(BadField(format!("the parameter `{}` is not supported by this server", shown(name)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_page_has_a_number_and_an_end() {
        let page = NumberedPage::of(&pairs(&[("page", "2"), ("limit", "3")])).expect("a page");
        assert_eq!((page.end(), page.of_items(vec![1, 2, 3, 4, 5])), (6, vec![4, 5]));
        assert_eq!(page_meta(page, 7)["totalPages"], 3);
        assert_eq!(NumberedPage::of(&[]).expect("the first"), NumberedPage { page: 1, limit: 50 });
        for wrong in
            [[("page", "0"), ("limit", "1")], [("page", "x"), ("limit", "1")], [("page", "11"), ("limit", "1000")]]
        {
            assert!(NumberedPage::of(&pairs(&wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn parameters_are_conditions_and_unknown_ones_are_refused() {
        let filter = RowFilter::traces().with_trace_parameters(&pairs(&[
            ("userId", "u"),
            ("tags", "a"),
            ("fromTimestamp", "2026-01-01"),
        ]));
        assert_eq!(filter.expect("conditions").0.len(), 5);
        for (name, value) in [("filter", "[]"), ("orderBy", "name.asc"), ("fromTimestamp", "soon")] {
            assert!(RowFilter::traces().with_trace_parameters(&pairs(&[(name, value)])).is_err(), "{name}");
        }
        let many: Vec<_> = (0..=CONDITIONS_MAX).map(|_| ("tags", "a")).collect();
        assert!(RowFilter::traces().with_trace_parameters(&pairs(&many)).is_err(), "conditions are bounded");
    }

    #[test]
    fn a_score_may_be_one_of_several() {
        let filter = RowFilter::scores().with_score_parameters(&pairs(&[("name", "a,b")])).expect("conditions");
        assert_eq!(filter.0[1]["children"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_query_reads_whole_values() {
        let query = RowFilter::of_ids(&["a".into()]).ids("project_logs", &[Uuid::nil()], 5);
        assert_eq!((&query["preview_length"], &query["limit"]), (&json!(-1), &json!(5)));
        assert_eq!(query["filter"]["children"][0]["op"], "in");
        assert!(RowFilter::default().count("dataset", &[]).get("filter").is_none());
    }
}
