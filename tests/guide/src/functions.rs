//! The function reference, made of the rows that the query language has.

use std::fmt::Write;

use assay_node_btql::bound::Kinds;
use assay_node_btql::functions::{Argument, ArgumentKind, FunctionRow, NullRule, Presence, ResultKind, Section, all};

const HEAD: &str = "| function | result | nulls | meaning |\n|---|---|---|---|\n";

/// Returns the reference in Markdown: one table for each section, in the order of the rows.
pub fn reference() -> String {
    let mut sections: Vec<(Section, String)> = Vec::new();
    for (_, row) in all() {
        let place = sections.iter().position(|(section, _)| *section == row.section).unwrap_or_else(|| {
            sections.push((row.section, HEAD.to_owned()));
            sections.len() - 1
        });
        let (result, nulls) = (result(row.result), nulls(row.nulls));
        writeln!(sections[place].1, "| {} | {result} | {nulls} | {} |", call(row), row.help).expect("a text takes all");
    }
    let written = sections.into_iter().map(|(section, table)| format!("### {}\n\n{table}", title(section)));
    format!("\n{}\n", written.collect::<Vec<_>>().join("\n"))
}

fn title(section: Section) -> &'static str {
    match section {
        Section::Text => "Text functions",
        Section::Numbers => "Number functions",
        Section::Time => "Time functions",
        Section::Json => "Array and JSON functions",
        Section::Conditionals => "Conditional functions",
        Section::Casts => "Casts",
        Section::Search => "Search, cost and traces",
        Section::Aggregates => "Aggregates",
    }
}

/// Returns the call with its arguments, and the synonyms of its name.
fn call(row: &FunctionRow) -> String {
    let arguments: Vec<String> = row.arguments.iter().map(argument).collect();
    let synonyms = row.names.iter().skip(1).map(|name| format!(", `{name}`"));
    format!("`{}({})`{}", row.name(), arguments.join(", "), synonyms.collect::<String>())
}

fn argument(argument: &Argument) -> String {
    let kind = match argument.kind {
        ArgumentKind::Any => argument.name,
        ArgumentKind::Text => "text",
        ArgumentKind::Number => "number",
        ArgumentKind::Integer => "integer",
        ArgumentKind::Boolean => "boolean",
        ArgumentKind::Time => "time",
        ArgumentKind::Constant => "constant",
        ArgumentKind::Unit => "unit",
        ArgumentKind::Pattern => "pattern",
        ArgumentKind::Json => "JSON",
    };
    let typed = if kind == argument.name { kind.to_owned() } else { format!("{}: {kind}", argument.name) };
    match argument.presence {
        Presence::Required => typed,
        Presence::Optional => format!("[{typed}]"),
        Presence::Repeated => format!("{typed}, ..."),
    }
}

fn result(result: ResultKind) -> &'static str {
    match result {
        ResultKind::Always(kind) => match kind {
            Kinds::Null => "null",
            Kinds::Boolean => "boolean",
            Kinds::Integer => "integer",
            Kinds::Number => "number",
            Kinds::Text => "text",
            Kinds::Time => "time",
            Kinds::Interval => "interval",
            Kinds::Texts => "texts",
            Kinds::Any => "JSON",
        },
        ResultKind::First => "as the first argument",
        ResultKind::Common => "as the arguments",
        ResultKind::IntegerOfInteger => "number; integer for integers",
        ResultKind::IntegerOfBoolean => "number; integer for booleans",
    }
}

fn nulls(nulls: NullRule) -> &'static str {
    match nulls {
        NullRule::NullIfAny => "null if an argument is null",
        NullRule::NullIfFirst => "null if the first argument is null",
        NullRule::NullIfAll => "ignores nulls; null without other values",
        NullRule::Skipped => "ignores nulls; never null",
        NullRule::Never => "never null",
        NullRule::Other(rule) => rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_a_row_with_its_arguments_and_rules() {
        let reference = reference();
        for row in [
            "| `substring(text, start: integer, [length: integer])`, `substr` | text | null if an argument is null |",
            "| `coalesce(value, ...)` | as the arguments | ignores nulls; null without other values |",
            "| `count(value)` | integer | ignores nulls; never null |",
        ] {
            assert!(reference.contains(row), "{row} is not in\n{reference}");
        }
    }
}
