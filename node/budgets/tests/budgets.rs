//! Budgets of several nodes over one catalog in memory, with lost, failed and unknown writes.

mod suite;
