//! The table of the guide on what a reduced sandbox does not hold, compared with the list of attempts.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use crate::attempt::Attempt;

/// Page of the guide.
const PAGE: &str = include_str!("../../../node/guide/code-functions.md");
/// Heading of the section with the table.
const HEADING: &str = "### What `reduced` does not hold";

/// Checks that the guide lists exactly the gaps of the attempts.
pub fn check(attempts: &[Attempt]) -> Result<()> {
    let wanted: BTreeSet<&str> = attempts.iter().filter_map(|attempt| attempt.gap.as_deref()).collect();
    let written: BTreeSet<&str> = gaps(PAGE)?.into_iter().collect();
    let missing: Vec<_> = wanted.difference(&written).collect();
    let surplus: Vec<_> = written.difference(&wanted).collect();
    ensure!(missing.is_empty() && surplus.is_empty(), "the guide lacks the gaps {missing:?}, and has {surplus:?}");
    Ok(())
}

/// Returns the first column of the table below the heading.
fn gaps(page: &str) -> Result<Vec<&str>> {
    let section = page.split_once(HEADING).with_context(|| format!("the guide has no section `{HEADING}`"))?.1;
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = rows.skip(2).filter_map(|row| row.split('|').nth(1)).map(str::trim);
    Ok(cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_lists_the_gaps_of_the_attempts() {
        let list = crate::attempt::AttemptList::read().expect("the list");
        check(&list.attempts).expect("the same gaps");
    }

    #[test]
    fn gaps_are_the_first_column_of_the_table() {
        let page =
            format!("# x\n\n{HEADING}\n\nText.\n\n| gap | why |\n|---|---|\n| a | b |\n| c | d |\n\nMore | text\n");
        assert_eq!(gaps(&page).expect("a table"), ["a", "c"]);
        assert!(gaps("# x").is_err());
    }
}
