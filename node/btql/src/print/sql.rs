//! Printer of a query as SQL.

use std::fmt::Write;

use super::expr::{put_path, text};
use super::restate::as_select;
use super::{Unsayable, expression, name};
use crate::ast::{Amount, From, PivotClause, Query, Sample, Select, SelectItem, Sort, Source, UnpivotClause};

const FORM: &str = "SQL";

/// A query as SQL, if SQL has words for it.
pub fn in_sql(query: &Query) -> Result<String, Unsayable> {
    let query = as_select(query, FORM)?;
    let no_words = |what| Unsayable { form: FORM, what };
    let from = query.from.as_ref().ok_or_else(|| no_words("a query without a source"))?;
    if query.select.is_empty() {
        return Err(no_words("a query that selects nothing"));
    }
    let mut out = String::from(if query.distinct { "SELECT DISTINCT " } else { "SELECT " });
    out.push_str(&joined(&query.select, select));
    out.push_str(" FROM ");
    out.push_str(&from_sql(from)?);
    if let Some(sample) = &query.sample {
        out.push_str(&table_sample(sample));
    }
    query.unpivot.iter().for_each(|unpivot| out.push_str(&unpivot_sql(unpivot)));
    if let Some(PivotClause::For { measures, column }) = &query.pivot {
        let mut place = String::new();
        put_path(&mut place, column);
        let _ = write!(out, " PIVOT ({} FOR {place} IN (ANY))", joined(measures, item));
    }
    let mut clause = |word: &str, said: Option<String>| {
        if let Some(said) = said {
            let _ = write!(out, " {word} {said}");
        }
    };
    clause("WHERE", query.filter.as_ref().map(expression));
    clause("GROUP BY", query.group_by.as_ref().map(|groups| joined(groups, expression)));
    clause("HAVING", query.final_filter.as_ref().map(expression));
    clause("ORDER BY", Some(joined(&query.sort, sort)).filter(|sorts| !sorts.is_empty()));
    clause("LIMIT", query.limit.map(|limit| limit.to_string()));
    clause("OFFSET", query.cursor.as_deref().map(text));
    let settings = joined(&query.settings, |(key, value)| {
        format!("{} = {}", name(key), expression(&crate::ast::Expr::literal(value.clone())))
    });
    clause("SETTINGS", Some(settings).filter(|settings| !settings.is_empty()));
    Ok(out)
}

pub(super) fn joined<T>(of: &[T], say: impl Fn(&T) -> String) -> String {
    of.iter().map(say).collect::<Vec<_>>().join(", ")
}

pub(super) fn select(select: &Select) -> String {
    match select {
        Select::Star(replaced) if replaced.is_empty() => "*".into(),
        Select::Star(replaced) => {
            let replaced = joined(replaced, |(column, expr)| format!("{} AS {}", expression(expr), name(column)));
            format!("* REPLACE ({replaced})")
        }
        Select::Item(one) => item(one),
    }
}

pub(super) fn item(item: &SelectItem) -> String {
    match &item.alias {
        Some(alias) => format!("{} AS {}", expression(&item.expr), name(alias)),
        None => expression(&item.expr),
    }
}

pub(super) fn sort(sort: &Sort) -> String {
    let nulls = match sort.nulls_first {
        None => "",
        Some(true) => " NULLS FIRST",
        Some(false) => " NULLS LAST",
    };
    format!("{}{}{nulls}", expression(&sort.expr), if sort.descending { " DESC" } else { "" })
}

fn from_sql(from: &From) -> Result<String, Unsayable> {
    let source = match &from.source {
        Source::Query(query) => format!("({})", in_sql(query)?),
        Source::Objects { name: source, args } => {
            let shape = from.shape.map(|shape| format!("shape => '{}'", shape.name()));
            let args: Vec<String> = args.iter().map(expression).chain(shape).collect();
            if args.is_empty() { name(source) } else { format!("{}({})", name(source), args.join(", ")) }
        }
    };
    Ok(from.alias.as_ref().map_or(source.clone(), |alias| format!("{source} AS {}", name(alias))))
}

fn table_sample(sample: &Sample) -> String {
    let amount = match sample.amount {
        Amount::Rate(rate) => format!("{} PERCENT", rate * 100.0),
        Amount::Count(count) => format!("{count} ROWS"),
    };
    let seed = sample.seed.map(|seed| format!(" REPEATABLE ({seed})")).unwrap_or_default();
    format!(" TABLESAMPLE ({amount}){seed}")
}

fn unpivot_sql(unpivot: &UnpivotClause) -> String {
    let key = unpivot.key.as_deref().map_or("_".into(), name);
    format!(" UNPIVOT ({} FOR {key} IN ({}))", name(&unpivot.value), expression(&unpivot.expr))
}
