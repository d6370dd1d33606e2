//! Groups over the members of an object, such as all scores by name, without a row for each member.
//!
//! Each key of a unit has a column of values, for which the key is constant. The keys of a sealed unit are collected
//! once.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{Bound, BoundExpr, Datum, Field, Function, Groups};
use assay_node_btql::values::Value;
use assay_storage_segments::{Form, Want};
use assay_storage_shard::Unit;

use crate::EngineError;
use crate::groups::object_members;
use crate::leaf::spans::{SpanSelection, push_groups};
use crate::rows::output::{Page, Part};
use crate::scan::ScanContext;
use crate::scan::filter::{narrow, rows_at_once};
use crate::scan::source::ScanUnit;
use crate::scheduling::watch::MemoryHold;

/// Upper bound of distinct keys. Rows with more keys are unpivoted one by one.
const KEYS_MAX: usize = 64;
/// Prefix of cache names of collected keys.
const NAMED: &str = "keys";

/// Plan for groups of the members of a column or of a path below it.
#[derive(Debug)]
pub(crate) struct ByKey<'b> {
    column: &'static str,
    steps: &'b [Step],
    value: &'b str,
    groups: &'b Groups,
    filter: Option<&'b BoundExpr>,
}

impl<'b> ByKey<'b> {
    /// Returns a plan, or `None` if the query needs rows of members.
    pub fn of(bound: &'b Bound, groups: &'b Groups, page: &Page) -> Option<ByKey<'b>> {
        let [unpivot] = bound.unpivot.as_slice() else { return None };
        let BoundExpr::Field(Field::Column(column), steps) = &unpivot.of else { return None };
        let is_stored = !matches!(*column, "comments" | "audit_data");
        let Part::Groups(table) = Part::new(bound, page) else { return None };
        unpivot.key.as_deref().filter(|key| is_stored && *key != unpivot.value && !table.needs_positions())?;
        let filter = bound.unpivoted_filter.as_ref();
        Some(ByKey { column, steps, value: &unpivot.value, groups, filter })
    }

    /// Adds the groups of a unit. Returns `false` if it has too many keys or if its keys are unknown.
    pub fn push(
        &self,
        context: &ScanContext<'_>,
        piece: &ScanUnit,
        seen: &SpanSelection<'_>,
        part: &mut Part,
        held: &mut MemoryHold,
    ) -> Result<bool, EngineError> {
        let Some(keys) = self.keys(context, &piece.unit)? else { return Ok(false) };
        let selected = seen.select(context, piece)?;
        for key in keys.as_string::<i32>().iter().flatten() {
            let value = BoundExpr::Field(Field::Column(self.column), self.below(key));
            let is_there = BoundExpr::Call(Function::IsNotNull, vec![value]);
            let mut selected = narrow(context, piece, &selected, &is_there)?;
            if let Some(filter) = self.filter {
                selected = narrow(context, piece, &selected, &self.said(filter, key))?;
            }
            let said = |of: &BoundExpr| self.said(of, key);
            let dimensions: Vec<BoundExpr> = self.groups.dimensions.iter().map(said).collect();
            let aggregated: Vec<Option<BoundExpr>> =
                self.groups.aggregates.iter().map(|aggregate| aggregate.of.as_ref().map(said)).collect();
            push_groups(context, piece, &selected, &dimensions, &aggregated, part, held)?;
        }
        Ok(true)
    }

    fn below(&self, key: &str) -> Vec<Step> {
        self.steps.iter().cloned().chain([Step::Key(key.to_owned())]).collect()
    }

    /// Specializes an expression over members for one key.
    fn said(&self, of: &BoundExpr, key: &str) -> BoundExpr {
        let said = |of: &BoundExpr| self.said(of, key);
        match of {
            BoundExpr::Field(Field::Unpivoted(name), steps) if name == self.value => {
                BoundExpr::Field(Field::Column(self.column), [self.below(key), steps.clone()].concat())
            }
            BoundExpr::Field(Field::Unpivoted(_), steps) => {
                let key = BoundExpr::Const(Datum::Text(key.to_owned()));
                if steps.is_empty() { key } else { BoundExpr::Call(Function::Get(steps.clone()), vec![key]) }
            }
            BoundExpr::Const(_) | BoundExpr::Field(..) => of.clone(),
            BoundExpr::Call(function, of) => BoundExpr::Call(function.clone(), of.iter().map(said).collect()),
            BoundExpr::If(cases, otherwise) => {
                let cases = cases.iter().map(|(condition, then)| (said(condition), said(then)));
                BoundExpr::If(cases.collect(), Box::new(said(otherwise)))
            }
        }
    }

    /// Returns the keys of a unit's rows, visible or not. Too many keys are cached as a single null.
    fn keys(&self, context: &ScanContext<'_>, unit: &Unit) -> Result<Option<ArrayRef>, EngineError> {
        // Nothing is cached for rows in memory.
        if !unit.is_sorted() {
            return Ok(None);
        }
        let name = format!("{NAMED} {} {:?}", self.column, self.steps);
        let keys = match unit.recall(&context.shared.cache, &name) {
            Some(keys) => keys,
            None => {
                let keys: ArrayRef = Arc::new(self.found(context, unit)?);
                unit.remember(&context.shared.cache, &name, &keys);
                keys
            }
        };
        Ok(Some(keys).filter(|keys| keys.null_count() == 0))
    }

    fn found(&self, context: &ScanContext<'_>, unit: &Unit) -> Result<StringArray, EngineError> {
        let (want, rows) = (self.want(), unit.rows());
        let mut keys: BTreeSet<String> = BTreeSet::new();
        let mut start = 0;
        while start < rows {
            context.watch.check()?;
            let range = start..rows.min(start + rows_at_once(context, unit));
            start = range.end;
            let texts = unit.read(&context.shared.cache, range, None, std::slice::from_ref(&want))?;
            for text in texts.iter().flat_map(|texts| texts.as_string::<i32>().iter().flatten()) {
                object_members::each(&Value::read(text), |key, member| {
                    if !member.is_null() && !keys.contains(key) {
                        keys.insert(key.to_owned());
                    }
                });
            }
            if keys.len() > KEYS_MAX {
                return Ok(StringArray::new_null(1));
            }
        }
        Ok(keys.into_iter().map(Some).collect())
    }

    fn want(&self) -> Want {
        if self.steps.is_empty() {
            return Want::Field(self.column.to_owned());
        }
        Want::Path([&[Step::Key(self.column.to_owned())], self.steps].concat(), Form::Json)
    }
}
