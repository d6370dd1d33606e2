//! The language of questions: SQL, BTQL clauses and a JSON tree, which say the same (`parse`) and can be said again in each
//! other's words (`print`). Knows no engine, no store and no network.

pub mod ast;
mod bind;
pub mod bound;
pub mod columns;
mod error;
mod lex;
mod operators;
mod parse;
mod print;
pub mod schema;

pub use assay_node_values::{self as values, calendar};
pub use bind::{Env, bind, kinds};
pub use error::{ErrorLocation, Position, QueryError};
pub use lex::TEXT_BYTES_MAX;
pub use parse::{Parsed, parse, parse_expression, parse_text};
pub use print::{Unsayable, expression, in_clauses, in_sql, in_tree};

/// Stack that is left when more is taken: what one level of any recursion here needs, several times over.
const STACK_LEFT_MIN: usize = 256 << 10;
const STACK_MORE: usize = 2 << 20;

/// What the deepest query takes that is read at all, in a program that was not made fast; it is not touched until it is needed.
const STACK_DEEP: usize = 32 << 20;

/// Stack of a thread on which [`deep`] maps no other: what the deepest query takes, and what its callers take.
pub const DEEP_THREAD_STACK: usize = STACK_DEEP + STACK_MORE;

/// For what goes down a whole query, on whatever thread. A stack is mapped only where the one at hand is too small: to map
/// and to unmap one takes longer than most queries take to be read.
pub fn deep<T>(of: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_DEEP, DEEP_THREAD_STACK, of)
}

/// One level of a recursion. How deep it goes is limited (`ast::DEPTH_MAX`), how much stack a thread has is not known here.
pub fn level<T>(of: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT_MIN, STACK_MORE, of)
}
