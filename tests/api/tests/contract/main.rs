//! What is served beside the contract of the API: the document that a server shows is compared with it field by field, and
//! every operation is called, on one node and on three in turn.

mod compare;
mod document;
mod form;
mod listed;
mod walk;
