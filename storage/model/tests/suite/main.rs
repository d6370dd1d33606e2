//! What the model promises, seen from outside: frozen bytes, the rules of merging, the rows that are refused.

mod commands;
