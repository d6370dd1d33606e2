//! Tests of the server against the contract of the API: its document is compared field by field, and every operation is
//! called, on one node and on three in turn.

mod compare;
mod document;
mod form;
mod listed;
mod walk;
