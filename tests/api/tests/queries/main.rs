//! `POST /btql` from outside, over HTTP: on one node and on three, with each request to the next of them.

mod audit;
mod cases;
mod fixture;
mod fresh;
mod hostile;
mod judge;
mod later;
mod loss;
mod nodes;
mod paging;
mod tenants;
