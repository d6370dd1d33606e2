//! Assignment of rows to columns with the largest sum, by the Hungarian algorithm.

/// Returns for each row its column, if it has one. Every row has one, or every column is taken.
///
/// `gains` has rows of one length, which is not 0.
pub(super) fn best_assignment(gains: &[Vec<f64>]) -> Vec<Option<usize>> {
    let (rows, columns) = (gains.len(), gains[0].len());
    if rows <= columns {
        let of_column = shortest_paths(rows, columns, |row, column| -gains[row][column]);
        let mut of_row = vec![None; rows];
        for (column, row) in of_column.into_iter().enumerate() {
            if let Some(row) = row {
                of_row[row] = Some(column);
            }
        }
        return of_row;
    }
    shortest_paths(columns, rows, |column, row| -gains[row][column])
}

/// Assigns every row to a column at the least cost; returns the row of each column. There are at most as many rows as
/// columns.
///
/// Adds one row after another along the cheapest path of reassignments, in reduced costs by potentials.
fn shortest_paths(rows: usize, columns: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<Option<usize>> {
    // column `columns` stands for the row that is being added
    let mut row_of: Vec<Option<usize>> = vec![None; columns + 1];
    let (mut row_potential, mut column_potential) = (vec![0.0; rows], vec![0.0; columns + 1]);
    for added in 0..rows {
        row_of[columns] = Some(added);
        let mut least = vec![f64::INFINITY; columns];
        let mut previous = vec![columns; columns];
        let mut is_reached = vec![false; columns + 1];
        let mut column = columns;
        while let Some(row) = row_of[column] {
            is_reached[column] = true;
            let (mut step, mut next) = (f64::INFINITY, columns);
            for other in (0..columns).filter(|other| !is_reached[*other]) {
                let reduced = cost(row, other) - row_potential[row] - column_potential[other];
                if reduced < least[other] {
                    (least[other], previous[other]) = (reduced, column);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=columns {
                match (is_reached[other], row_of[other]) {
                    (true, Some(row)) => {
                        row_potential[row] += step;
                        column_potential[other] -= step;
                    }
                    _ if other < columns => least[other] -= step,
                    _ => {}
                }
            }
            column = next;
        }
        while column != columns {
            row_of[column] = row_of[previous[column]];
            column = previous[column];
        }
    }
    row_of.truncate(columns);
    row_of
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the largest sum over all assignments, tried one by one.
    fn largest(gains: &[Vec<f64>], row: usize, taken: u32) -> f64 {
        if row == gains.len() {
            return 0.0;
        }
        let without = largest(gains, row + 1, taken);
        let free = (0..gains[0].len()).filter(|column| taken & (1 << column) == 0);
        free.map(|column| gains[row][column] + largest(gains, row + 1, taken | 1 << column)).fold(without, f64::max)
    }

    proptest! {
        #[test]
        fn an_assignment_has_the_largest_sum_and_takes_each_column_once(
            columns in 1_usize..6,
            flat in prop::collection::vec(0_u32..5, 1..36),
        ) {
            let gains: Vec<Vec<f64>> =
                flat.chunks_exact(columns).map(|row| row.iter().map(|gain| f64::from(*gain) / 4.0).collect()).collect();
            prop_assume!(!gains.is_empty());
            let found = best_assignment(&gains);
            let mut taken: Vec<usize> = found.iter().flatten().copied().collect();
            prop_assert_eq!(taken.len(), gains.len().min(columns));
            taken.sort_unstable();
            taken.dedup();
            prop_assert_eq!(taken.len(), gains.len().min(columns));
            let sum: f64 = found.iter().enumerate().filter_map(|(row, column)| column.map(|c| gains[row][c])).sum();
            prop_assert!((sum - largest(&gains, 0, 0)).abs() < 1e-9);
        }
    }
}
