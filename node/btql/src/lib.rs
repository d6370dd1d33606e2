//! The query language: SQL, BTQL clauses and a JSON form, which are equivalent (`parse`) and print as each other
//! (`print`). Depends on no engine, storage or network.

pub mod ast;
mod bind;
pub mod bound;
pub mod columns;
mod error;
pub mod functions;
mod lex;
mod operators;
mod parse;
mod print;
pub mod schema;
mod without_literals;

pub use assay_node_values::{self as values, calendar};
pub use bind::{Env, bind, kinds};
pub use error::{ErrorLocation, Position, QueryError};
pub use lex::TEXT_BYTES_MAX;
pub use parse::{Parsed, parse, parse_expression, parse_text};
pub use print::{Unsayable, expression, in_clauses, in_sql, in_tree};
pub use without_literals::{NORMALIZED_BYTES_MAX, without_literals};

/// Remaining stack below which another one is mapped: several times that of one level of any recursion.
const STACK_LEFT_MIN: usize = 256 << 10;
const STACK_MORE: usize = 2 << 20;

/// Stack of the deepest accepted query in an unoptimized program. Its pages are only touched when needed.
const STACK_DEEP: usize = 32 << 20;

/// Stack of a thread on which [`deep`] maps no other one.
pub const DEEP_THREAD_STACK: usize = STACK_DEEP + STACK_MORE;

/// Runs a function that recurses over a query, on any thread. A stack is mapped only if the current one is too small,
/// since mapping takes longer than most queries.
pub fn deep<T>(of: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_DEEP, DEEP_THREAD_STACK, of)
}

/// Runs one level of a recursion. Its depth is bounded by `ast::DEPTH_MAX`, but the stack of the thread is unknown.
pub fn level<T>(of: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT_MIN, STACK_MORE, of)
}
