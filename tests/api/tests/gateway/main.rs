//! Tests of the AI gateway with real nodes and scripted model servers that misbehave.

mod budgets;
mod caching;
mod cluster;
mod faults;
mod fixture;
mod guardrails;
mod items;
mod logging;
mod paths;
mod routing;
mod secrets;
