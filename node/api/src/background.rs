//! Background work of the API, which runs without a request while the node serves.

use assay_node_http::server::edge::Edge;
use assay_node_http::web::Data;
use assay_node_invocations_http::invocations::execute_forwarded_calls;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

/// Runs the background work of this node until the future is dropped.
pub fn run(edge: Data<Edge>) -> BoxFuture<'static, ()> {
    execute_forwarded_calls(&edge);
    let work: Vec<BoxFuture<'static, ()>> = vec![
        assay_node_evaluations_http::background::run(edge.clone()).boxed(),
        assay_node_online_scoring_executor::run(edge).boxed(),
    ];
    async move { drop(join_all(work).await) }.boxed()
}
