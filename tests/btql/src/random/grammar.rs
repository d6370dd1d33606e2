//! Random expressions: each kind of value has sentences, in which `$kind` is replaced by another sentence.

use assay_node_btql::ast::Expr;
use assay_node_btql::parse_expression;

use super::dice::Dice;

struct Rule {
    kind: &'static str,
    /// Sentences without others in them.
    leaves: &'static [&'static str],
    sentences: &'static [&'static str],
}

const RULES: [Rule; 8] = [
    Rule { kind: "truth", leaves: TRUTHS, sentences: CONDITIONS },
    Rule { kind: "number", leaves: NUMBERS, sentences: ARITHMETIC },
    Rule { kind: "text", leaves: TEXTS, sentences: OF_TEXTS },
    Rule { kind: "time", leaves: TIMES, sentences: OF_TIMES },
    Rule { kind: "json", leaves: JSON, sentences: OF_JSON },
    Rule { kind: "aggregate", leaves: &["count(1)", "count(*)"], sentences: AGGREGATES },
    Rule { kind: "having", leaves: &["count(1) > 1", "count(*) >= 2"], sentences: OF_GROUPS },
    Rule { kind: "spans", leaves: &["any_span(is_root)", "any_span(error IS NOT NULL)"], sentences: OF_SPANS },
];

const TRUTHS: &[&str] = &[
    "is_root",
    "NOT is_root",
    "true",
    "error IS NOT NULL",
    "span_attributes.type = 'llm'",
    "name != 'chat'",
    "tags INCLUDES 'prod'",
    "NOT tags INCLUDES 'beta'",
    "tags IN ('prod', 'beta')",
    "metadata.v IS NULL",
    "metadata.v = null",
    "created >= '2026-05-02'",
    "created BETWEEN '2026-05-01T12:00:00Z' AND '2026-05-03'",
    "search('refund')",
    "contains(tags, 'prod')",
];
const CONDITIONS: &[&str] = &[
    "$truth AND $truth",
    "$truth OR $truth",
    "NOT $truth",
    "$truth ? $truth : $truth",
    "$number = $number",
    "$number != $number",
    "$number < $number",
    "$number >= $number",
    "$number BETWEEN $number AND $number",
    "$number IN (1, 2, 0.5, null)",
    "$number NOT IN (1, '2')",
    "$text = $text",
    "$text > $text",
    "$text IN ('a', 'prod', 'chat')",
    "$text LIKE '%a_%'",
    "$text NOT LIKE 'p%'",
    "$text ILIKE '%R%'",
    "$text ~ '^[a-m].*'",
    "$text !~ 'o'",
    "$text ~* 'CHAT|prod'",
    "$text !~* '^E.'",
    "starts_with($text, 'p')",
    "ends_with($text, $text)",
    "$json LIKE '%\"a\"%'",
    "$json MATCH 'order'",
    "$json NOT MATCH ['refund', 'late']",
    "$json INCLUDES 'a'",
    "$json INCLUDES $json",
    "$json = $json",
    "$json <=> $json",
    "$json <!=> $json",
    "$json < $json",
    "$json IS NULL",
    "$json IS NOT NULL",
    "ISNULL $json",
    "$json = {'a': 1}",
    "$json IN [1, 'a', true, null, [1]]",
    "$time > $time",
    "$time <= '2026-05-03T04:00:00Z'",
    "$time IN ('2026-05-01', '2026-05-02')",
    "to_boolean($json)",
    "$number",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-2",
    "0.5",
    "50%",
    "9007199254740993",
    "metrics.tokens",
    "metrics.prompt_tokens",
    "metrics.duration",
    "metrics.total_tokens",
    "completion_tokens",
    "scores.Quality",
    "scores['Tone of voice']",
    "metadata.n",
    "metadata.list[0]",
    "metadata.deep.x",
    "estimated_cost()",
];
const ARITHMETIC: &[&str] = &[
    "$number + $number",
    "$number - $number",
    "$number * $number",
    "$number / $number",
    "$number % 3",
    "-$number",
    "is_root + $number",
    "round($number, 1)",
    "round($number)",
    "abs($number)",
    "floor($number)",
    "ceil($number)",
    "sqrt(abs($number))",
    "pow($number, 2)",
    "length($text)",
    "len($json)",
    "levenshtein($text, 'chat')",
    "coalesce($number, 0)",
    "ifnull($number, -1)",
    "nullif($number, 1)",
    "least($number, $number)",
    "greatest($number, 1)",
    "to_number($json)",
    "to_integer($json)",
    "$text::number",
    "CAST($json AS integer)",
    "CASE WHEN $truth THEN $number WHEN $truth THEN 7 ELSE $number END",
    "$truth ? $number : null",
    "date_part('hour', $time)",
    "extract(dow from $time)",
    "to_unixtime($time)",
    "date_diff('day', $time, $time)",
    "date_diff('month', $time, $text)",
    "date_diff('hours', created, $time)",
    "date_diff($text, $time, $json)",
    "$time - $time",
];
const TEXTS: &[&str] = &[
    "'a'",
    "''",
    "'prod'",
    "'2026-05-02'",
    "id",
    "root_span_id",
    "name",
    "span_attributes.type",
    "metadata.env",
    "metadata.model",
    "metadata.when",
    "tags[0]",
    "input.messages[-1].content",
];
const OF_TEXTS: &[&str] = &[
    "lower($text)",
    "upper($text)",
    "trim(' ' || $text)",
    "concat($text, '-', $text)",
    "$text || $text",
    "substring($text, 2, 3)",
    "substring($text, 2)",
    "left($text, 2)",
    "right($text, 2)",
    "replace($text, 'o', '0')",
    "split_part($text, '-', 1)",
    "regexp_extract($text, '[a-m]+')",
    "regexp_extract($json, '\"(\\w+)\":\\s*(\\d*)', 2)",
    "regexp_extract($text, $text, $number)",
    "coalesce($text, 'none')",
    "nullif($text, 'prod')",
    "typeof($json)",
    "to_string($json)",
    "$number::string",
    "metadata ->> 'env'",
    "json_extract(metadata.config, 'a.b')",
    "CASE WHEN $truth THEN $text END",
];
const TIMES: &[&str] =
    &["created", "now()", "current_date()", "to_datetime('2026-05-02T10:00:00Z')", "date '2026-05-03'"];
const OF_TIMES: &[&str] = &[
    "hour($time)",
    "day($time)",
    "week($time)",
    "month($time)",
    "year($time)",
    "date_trunc('15 minutes', $time)",
    "date_trunc('day', $time)",
    "$time + interval 3 hour",
    "$time - interval 1 month",
    "$time + interval 2 weeks",
    "to_datetime($text)",
    "to_date($text)",
    "$time::date",
    "metadata.when::timestamp",
];
const JSON: &[&str] = &[
    "null",
    "true",
    "1",
    "'a'",
    "[1, 'a']",
    "metadata",
    "metadata.v",
    "metadata.list",
    "metadata.list[-1]",
    "metadata.deep",
    "metadata.deep.y.z",
    "metadata.nowhere",
    "input",
    "output",
    "output.a",
    "error",
    "error.message",
    "expected",
    "scores",
    "tags",
    "span_attributes",
    "_xact_id",
];
const OF_JSON: &[&str] = &[
    "$number",
    "$text",
    "$time",
    "$truth",
    "coalesce($json, $json)",
    "[$json, $number]",
    "{'a': $json, 'b': 1}",
    "{'a': $json}.a",
    "to_json($json)",
    "object_keys($json)",
    "$text::json",
    "least($json, $json)",
    "CASE WHEN $truth THEN $json ELSE $json END",
];
const AGGREGATES: &[&str] = &[
    "count($json)",
    "count(DISTINCT $json)",
    "count_distinct($json)",
    "sum($number)",
    "sum($truth)",
    "avg($number)",
    "min($number)",
    "max($json)",
    "min($time)",
    "percentile($number, 0.9)",
    "median($number)",
    "stddev($number)",
    "first($json)",
    "last($text)",
    "array_agg(id)",
    "string_agg(id, '-')",
    "$aggregate + $aggregate",
    "sum($number) / count(1)",
    "coalesce(sum($number), 0)",
    "count(1) > 1 ? $aggregate : null",
];
const OF_GROUPS: &[&str] = &[
    "$aggregate IS NOT NULL",
    "sum($number) > 1",
    "avg($number) < 100",
    "max($json) != 'a'",
    "$having AND $having",
    "$having OR $having",
    "NOT $having",
];
const OF_SPANS: &[&str] = &[
    "any_span($truth)",
    "any_span(is_root AND $truth)",
    "NOT any_span($truth)",
    "$spans AND $truth",
    "$spans AND $truth AND $truth",
    "$spans OR $truth",
    "$spans AND $spans",
    "any_span(any_span($truth) AND $truth AND $truth)",
];

/// Percentage of positions that get a leaf, and of leaves that are names of the query.
const LEAVES_PERCENT: usize = 45;
const EXTRA_PERCENT: usize = 30;

/// Generates expressions about rows with `extra` names, each of a kind.
#[derive(Debug, Default)]
pub struct Grammar {
    pub extra: Vec<(&'static str, String)>,
}

impl Grammar {
    /// Returns an expression of this kind, with sentences nested up to this depth.
    pub fn expr(&self, dice: &mut Dice, kind: &str, depth: usize) -> Expr {
        let text = self.sentence(dice, kind, depth);
        parse_expression(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn sentence(&self, dice: &mut Dice, kind: &str, depth: usize) -> String {
        let rule = RULES.iter().find(|rule| rule.kind == kind).unwrap_or_else(|| panic!("there is no kind {kind}"));
        if depth == 0 || dice.happens(LEAVES_PERCENT) {
            let extra: Vec<&String> = self.extra.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name).collect();
            if !extra.is_empty() && dice.happens(EXTRA_PERCENT) {
                return (*dice.pick(&extra)).clone();
            }
            return (*dice.pick(rule.leaves)).to_owned();
        }
        let mut said = String::new();
        let mut rest = *dice.pick(rule.sentences);
        while let Some((before, after)) = rest.split_once('$') {
            let end = after.find(|next: char| !next.is_ascii_alphabetic()).unwrap_or(after.len());
            said += before;
            said += &format!("({})", self.sentence(dice, &after[..end], depth - 1));
            rest = &after[end..];
        }
        said + rest
    }
}
