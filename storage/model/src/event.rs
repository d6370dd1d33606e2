//! One event row: its fields, their limits, and how a client's JSON becomes row operations.
