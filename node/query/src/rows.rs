//! Rows of a query, merged in their order from the parts of its leaves.

use assay_node_engine::{Hash, Limit, Position, RowMerge, Table, innermost};
use futures::future::join_all;

use crate::coordinate::{DistributedQuery, InputError, InputPart, LeafInput, RowsWanted};
use crate::{AskError, Executor, QueryThread};

/// Row streams of a result that has pages.
#[derive(Debug)]
pub(crate) struct RowStreams {
    inputs: Vec<RowInput>,
    /// Merge of the inputs. `None` while a thread works on it, and after an error.
    merge: Option<RowMerge>,
    /// Highest hash in the sample.
    sample: Option<Hash>,
    bytes: usize,
}

/// Input with its number in the merge and the position of its last row. An input without a source has ended or failed.
#[derive(Debug)]
struct RowInput {
    number: usize,
    source: Option<LeafInput>,
    after: Option<Position>,
}

/// Part received from an input.
struct NumberedPart {
    number: usize,
    part: InputPart,
}

impl RowStreams {
    /// Opens the rows of a query after `after`, in parts of about `bytes`.
    pub async fn open(
        query: &mut DistributedQuery<'_>,
        limit: Option<u64>,
        bytes: usize,
        after: Option<Position>,
    ) -> Result<RowStreams, AskError> {
        let sample = query.sampled().await?;
        let mut streams =
            RowStreams { inputs: Vec::new(), merge: Some(RowMerge::new(innermost(&query.asked.bound))), sample, bytes };
        let inputs = query.open(streams.wanted(limit, after)).await?;
        streams.add(inputs, after)?;
        Ok(streams)
    }

    fn wanted(&self, limit: Option<u64>, after: Option<Position>) -> RowsWanted {
        RowsWanted { limit, bytes: Some(self.bytes), after, until: self.sample }
    }

    fn add(&mut self, inputs: Vec<LeafInput>, after: Option<Position>) -> Result<(), AskError> {
        let merge = self.merge.as_mut().ok_or_else(broken)?;
        for input in inputs {
            self.inputs.push(RowInput { number: merge.add(), source: Some(input), after });
        }
        Ok(())
    }

    pub fn has_ended(&self) -> bool {
        self.merge.as_ref().is_some_and(RowMerge::has_ended)
    }

    /// Returns the next rows. There is at least one until all were returned.
    pub async fn next(
        &mut self,
        query: &mut DistributedQuery<'_>,
        executor: &Executor,
        left: Option<u64>,
        limit: Limit,
    ) -> Result<Table, AskError> {
        loop {
            let parts = self.fetch(query, left).await?;
            let mut merge = self.merge.take().ok_or_else(broken)?;
            let (bound, seed) = (query.asked.bound.clone(), query.seed);
            let work = move |QueryThread { watch, .. }: QueryThread<'_>| {
                let (inner, mut positions) = (innermost(&bound), Vec::new());
                for NumberedPart { number, part: InputPart { part, is_last } } in parts {
                    watch.check()?;
                    let part = part.decoded(inner, seed)?;
                    let is_last = part.ends_input(is_last);
                    positions.push((number, merge.push(number, part, inner)?, is_last));
                    if is_last {
                        merge.end(number);
                    }
                }
                let table = match merge.needs_any() {
                    true => None,
                    false => Some(merge.take(inner, &limit)?),
                };
                Ok::<_, AskError>((merge, positions, table))
            };
            let (merge, positions, table) = executor.run_until(query.until, work).await??;
            self.merge = Some(merge);
            self.advance(positions);
            if let Some(table) = table {
                return Ok(table);
            }
        }
    }

    /// Fetches the next parts of the inputs that the merge needs.
    async fn fetch(
        &mut self,
        query: &mut DistributedQuery<'_>,
        left: Option<u64>,
    ) -> Result<Vec<NumberedPart>, AskError> {
        let merge = self.merge.as_ref().ok_or_else(broken)?;
        let (bytes, sample) = (self.bytes, self.sample);
        let needed = self.inputs.iter_mut().filter(|input| merge.needs(input.number));
        let fetched = needed.map(|input| {
            let wanted = RowsWanted { limit: left, bytes: Some(bytes), after: input.after, until: sample };
            let query = &*query;
            async move {
                let Some(source) = &mut input.source else { return (input, Err(InputError::Failed(broken()))) };
                let part = query.next_part(source, wanted).await;
                (input, part)
            }
        });
        let (mut parts, mut failed) = (Vec::new(), Vec::new());
        for (input, part) in join_all(fetched).await {
            match part {
                Ok(part) => parts.push(NumberedPart { number: input.number, part }),
                Err(InputError::Failed(why)) => return Err(why),
                Err(InputError::OpenAgain) => {
                    failed.extend(input.source.take().map(|source| (input.number, source, input.after)))
                }
            }
        }
        for (number, source, after) in failed {
            self.merge.as_mut().ok_or_else(broken)?.end(number);
            let inputs = query.open_again(source, self.wanted(left, after)).await?;
            self.add(inputs, after)?;
        }
        Ok(parts)
    }

    fn advance(&mut self, positions: Vec<(usize, Option<Position>, bool)>) {
        for (number, position, is_last) in positions {
            if let Some(input) = self.inputs.iter_mut().find(|input| input.number == number) {
                input.after = position.or(input.after);
                if is_last {
                    input.source = None;
                }
            }
        }
    }
}

/// Returns all parts of a result that has no pages.
pub(crate) async fn all_parts(
    query: &mut DistributedQuery<'_>,
    limit: Option<u64>,
) -> Result<Vec<crate::leaf::LeafPart>, AskError> {
    let until = query.sampled().await?;
    let wanted = RowsWanted { limit, bytes: None, after: None, until };
    let mut inputs = query.open(wanted).await?;
    let mut parts = Vec::new();
    while !inputs.is_empty() {
        let drained = inputs.into_iter().map(|mut input| {
            let query = &*query;
            async move {
                let mut parts = Vec::new();
                loop {
                    match query.next_part(&mut input, wanted).await {
                        Ok(InputPart { part, is_last }) => {
                            parts.push(part);
                            if is_last != Some(false) {
                                return Ok((parts, None));
                            }
                        }
                        // A result without pages has no position to continue from, so the input starts again.
                        Err(InputError::OpenAgain) => return Ok((Vec::new(), Some(input))),
                        Err(InputError::Failed(why)) => return Err(why),
                    }
                }
            }
        });
        let mut failed = Vec::new();
        for drained in join_all(drained).await {
            let (some, input) = drained?;
            parts.extend(some);
            failed.extend(input);
        }
        inputs = Vec::new();
        for input in failed {
            inputs.extend(query.open_again(input, wanted).await?);
        }
    }
    Ok(parts)
}

fn broken() -> AskError {
    AskError::Internal("an answer is continued after an error".into())
}
