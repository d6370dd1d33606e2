//! Groups over the elements of an array, such as all tags, without a row of values for each element.
//!
//! Rows with the same text have the same elements, so each text of a batch is parsed once.

use arrow_array::{Array, ArrayRef, StringArray, UInt32Array};
use arrow_select::take::take;
use assay_node_btql::bound::{Bound, BoundExpr, Field, Groups};
use assay_node_expressions::Type;
use assay_node_expressions::aggregates::{RowPositions, value_at};

use crate::EngineError;
use crate::groups::codes::Codes;
use crate::groups::{GroupTable, Typed};
use crate::leaf::spans::{SpanSelection, each_part, hold_groups};
use crate::rows::output::{Page, Part};
use crate::scan::ScanContext;
use crate::scan::source::ScanUnit;
use crate::scheduling::watch::MemoryHold;

/// Number of elements that are added to their groups at once.
const ELEMENTS_AT_ONCE: usize = 1 << 14;

/// Plan for groups of the elements of a column or of a path below it.
#[derive(Debug)]
pub(crate) struct ByElement<'b> {
    of: &'b BoundExpr,
    value: &'b str,
    dimensions: Vec<&'b BoundExpr>,
    aggregated: Vec<Option<&'b BoundExpr>>,
}

impl<'b> ByElement<'b> {
    /// Returns a plan, or `None` if the query has expressions over elements, keys of members, or depends on positions.
    pub fn of(bound: &'b Bound, groups: &'b Groups, page: &Page) -> Option<ByElement<'b>> {
        let [unpivot] = bound.unpivot.as_slice() else { return None };
        let BoundExpr::Field(Field::Column(_), _) = &unpivot.of else { return None };
        let Part::Groups(table) = Part::new(bound, page) else { return None };
        let plan = ByElement {
            of: &unpivot.of,
            value: &unpivot.value,
            dimensions: groups.dimensions.iter().collect(),
            aggregated: groups.aggregates.iter().map(|aggregate| aggregate.of.as_ref()).collect(),
        };
        let is_plain = unpivot.key.is_none() && bound.unpivoted_filter.is_none() && !table.needs_positions();
        let is_of_rows = |expr: &BoundExpr| !expr.any_field(&|field| matches!(field, Field::Unpivoted(_)));
        (is_plain && plan.exprs().all(|expr| plan.is_element(expr) || is_of_rows(expr))).then_some(plan)
    }

    fn exprs(&self) -> impl Iterator<Item = &'b BoundExpr> {
        self.dimensions.iter().copied().chain(self.aggregated.iter().copied().flatten())
    }

    fn is_element(&self, expr: &BoundExpr) -> bool {
        matches!(expr, BoundExpr::Field(Field::Unpivoted(name), steps) if name == self.value && steps.is_empty())
    }

    /// Adds the elements of the selected rows of a unit to their groups.
    pub fn push(
        &self,
        context: &ScanContext<'_>,
        piece: &ScanUnit,
        seen: &SpanSelection<'_>,
        part: &mut Part,
        held: &mut MemoryHold,
    ) -> Result<(), EngineError> {
        let Part::Groups(table) = part else { return Err(EngineError::Damaged) };
        let selected = seen.select(context, piece)?;
        let object = context.sources[piece.source].number;
        let exprs: Vec<&BoundExpr> =
            std::iter::once(self.of).chain(self.exprs().filter(|expr| !self.is_element(expr))).collect();
        each_part(context, piece, &selected, &exprs, false, |mut columns, _, rows| {
            let (array, ty) = columns.remove(0);
            let elements = Elements::of(&array, ty, rows);
            elements.each(|rows, numbers| {
                context.watch.check()?;
                self.push_elements(table, &elements.texts, &columns, rows, numbers, object)?;
                hold_groups(table, held)
            })
        })
    }

    /// Adds elements by the numbers of their texts and of their rows.
    fn push_elements(
        &self,
        table: &mut GroupTable,
        texts: &ArrayRef,
        columns: &[Typed],
        rows: UInt32Array,
        numbers: UInt32Array,
        object: u32,
    ) -> Result<(), EngineError> {
        let taken =
            |array: &ArrayRef, places: &UInt32Array| take(array, places, None).map_err(|_| EngineError::Damaged);
        let elements: Typed = (taken(texts, &numbers)?, Type::Json);
        let others = columns.iter().map(|(array, ty)| Ok((taken(array, &rows)?, *ty)));
        let mut others = others.collect::<Result<Vec<Typed>, EngineError>>()?.into_iter();
        let mut column = |expr: &BoundExpr| match self.is_element(expr) {
            true => Ok(elements.clone()),
            false => others.next().ok_or(EngineError::Damaged),
        };
        let dimensions = self.dimensions.iter().map(|expr| column(expr)).collect::<Result<Vec<_>, _>>()?;
        let aggregated = self.aggregated.iter().map(|expr| expr.map(&mut column).transpose());
        let aggregated = aggregated.collect::<Result<Vec<_>, _>>()?;
        table.push(rows.len(), &dimensions, &aggregated, &RowPositions { keys: &[], object })
    }
}

/// Elements of the arrays of a batch.
struct Elements {
    /// Code of the array of each row.
    codes: Vec<u32>,
    /// End of the elements of each code in `texts`.
    ends: Vec<u32>,
    /// JSON of the elements that are not null.
    texts: ArrayRef,
}

impl Elements {
    fn of(array: &ArrayRef, ty: Type, rows: usize) -> Elements {
        debug_assert_eq!(array.len(), rows, "a value for each row");
        let Codes { of_rows, first } = Codes::of(array, ty);
        let (mut texts, mut ends) = (Vec::new(), Vec::with_capacity(first.len()));
        for row in first {
            let elements = value_at(array, ty, row as usize).spread(false).into_iter().map(|(_, element)| element);
            texts.extend(elements.filter(|element| !element.is_null()).map(|element| element.to_json()));
            ends.push(texts.len() as u32);
        }
        Elements { codes: of_rows, ends, texts: std::sync::Arc::new(StringArray::from_iter_values(texts)) }
    }

    /// Passes the rows of elements and the numbers of their texts, a bounded number at once.
    fn each(
        &self,
        mut take: impl FnMut(UInt32Array, UInt32Array) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let (mut rows, mut numbers) = (Vec::new(), Vec::new());
        for (row, code) in self.codes.iter().enumerate() {
            let code = *code as usize;
            let start = code.checked_sub(1).map_or(0, |before| self.ends[before]);
            for number in start..self.ends[code] {
                rows.push(row as u32);
                numbers.push(number);
                if rows.len() == ELEMENTS_AT_ONCE {
                    take(std::mem::take(&mut rows).into(), std::mem::take(&mut numbers).into())?;
                }
            }
        }
        if rows.is_empty() { Ok(()) } else { take(rows.into(), numbers.into()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;

    use super::*;

    fn elements(arrays: Vec<Option<&str>>) -> Vec<(u32, String)> {
        let rows = arrays.len();
        let array: ArrayRef = Arc::new(StringArray::from(arrays));
        let elements = Elements::of(&array, Type::Json, rows);
        let mut found = Vec::new();
        let all = elements.each(|rows, numbers| {
            let texts = elements.texts.as_string::<i32>();
            let pairs = rows.values().iter().zip(numbers.values());
            found.extend(pairs.map(|(row, number)| (*row, texts.value(*number as usize).to_owned())));
            assert!(rows.len() <= ELEMENTS_AT_ONCE);
            Ok(())
        });
        assert!(all.is_ok());
        found
    }

    #[test]
    fn elements_stand_beside_their_rows() {
        let arrays = vec![
            Some(r#"["a","b"]"#),
            None,
            Some("[]"),
            Some(r#"["a","b"]"#),
            Some(r#"[null,1,"a","a"]"#),
            Some("\"a\""),
        ];
        let expected = [(0, "\"a\""), (0, "\"b\""), (3, "\"a\""), (3, "\"b\""), (4, "1"), (4, "\"a\""), (4, "\"a\"")];
        assert_eq!(elements(arrays), expected.map(|(row, text)| (row, text.to_owned())));
    }

    #[test]
    fn many_elements_are_passed_in_several_parts() {
        let long = format!("[{}1]", "1,".repeat(ELEMENTS_AT_ONCE));
        assert_eq!(elements(vec![Some(&long), Some("[2]")]).len(), ELEMENTS_AT_ONCE + 2);
        assert_eq!(elements(vec![Some("[]")]).len(), 0);
    }
}
