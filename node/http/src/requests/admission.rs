//! Admission of requests: the budgets that they wait for, and the applicants for them.
//!
//! A request is authenticated before its body is read. The body stays in the socket until the budget has room for it.

use actix_web::HttpRequest;
use assay_node_auth::Principal;
use assay_node_limits::{Budget, Division, Holder, Reading, Refusals, Refused, Reservation, metrics};
use tokio::time::Instant;

use crate::config::HttpConfig;
use crate::requests::caller::wait_of;
use crate::requests::wait::{REQUEST_WAIT, Wait};
use crate::responses::refusal::{ErrorKind, Refusal};

/// Size up to which bodies may use the reserve of the budget.
const SMALL_BODY_BYTES: u64 = 64 << 10;

/// Budgets that all requests of this node share.
#[derive(Debug)]
pub struct Budgets {
    /// Bytes of request bodies. They are reserved before reading, until the request ends.
    pub bodies: Budget,
    /// Estimated memory of parsed bodies, and of rows that a request collects before it responds.
    pub parsed: Budget,
    /// Number of concurrent file uploads.
    pub uploads: Budget,
    /// Bytes of responses with rows that are being sent.
    pub answers: Budget,
    /// Counts of refusals by cause.
    pub refusals: Refusals,
}

/// Applicant for a part of a budget, with the deadline of its wait.
#[derive(Clone, Debug)]
pub struct Applicant {
    pub holder: Holder,
    pub wait: Wait,
}

/// Returns an applicant for a request that needs no credential.
pub fn anonymous(request: &HttpRequest) -> Applicant {
    Applicant { holder: Holder::ANONYMOUS, wait: wait_of(request) }
}

impl Budgets {
    pub fn new(config: &HttpConfig) -> Budgets {
        let refusals = Refusals::default();
        let bodies = Division::with_reserve(config.bodies_bytes_max as u64, SMALL_BODY_BYTES);
        Budgets {
            bodies: Budget::divided("http.bodies_bytes_max", bodies, &refusals),
            parsed: Budget::new("http.parsed_bytes_max", config.parsed_bytes_max as u64, &refusals),
            uploads: Budget::new("http.uploads_max", config.uploads_max as u64, &refusals),
            answers: Budget::new("http.answers_bytes_max", config.answers_bytes_max as u64, &refusals),
            refusals,
        }
    }

    /// Returns the metrics of these budgets and of others in Prometheus text format.
    pub fn text(&self, others: Vec<(&'static str, Reading)>) -> String {
        let own = [&self.bodies, &self.parsed, &self.uploads, &self.answers];
        let own = own.map(|budget| (budget.name(), budget.reading()));
        metrics(&own.into_iter().chain(others).collect::<Vec<_>>())
    }
}

impl Applicant {
    pub fn new(principal: &Principal, wait: Wait) -> Applicant {
        Applicant { holder: Holder::new(principal.org.0, principal.credential.counted_as()), wait }
    }

    /// Waits for an amount, which is reduced to the maximum of one holder if it is larger.
    pub async fn reserve(&self, budget: &Budget, amount: u64) -> Result<Reservation, Refusal> {
        let acquired = budget.acquire(self.holder, amount.min(budget.largest()), self.wait.until());
        self.wait.spend(acquired).await.map_err(|refused| full(budget, refused))
    }

    /// Waits until `until` for an amount. The wait does not count as waiting time of the request.
    pub async fn reserve_until(&self, budget: &Budget, amount: u64, until: Instant) -> Result<Reservation, Refusal> {
        let acquired = budget.acquire(self.holder, amount.min(budget.largest()), until).await;
        acquired.map_err(|refused| full(budget, refused))
    }

    /// Waits to enlarge a reservation, up to the maximum of one holder.
    pub async fn grow(&self, budget: &Budget, held: &mut Reservation, by: u64) -> Result<(), Refusal> {
        self.grow_until(budget, held, by, self.wait.until()).await
    }

    /// Waits to enlarge a reservation to an amount, or reduces it.
    pub async fn fit(&self, budget: &Budget, held: &mut Reservation, amount: u64) -> Result<(), Refusal> {
        let has = held.amount();
        held.shrink(has.saturating_sub(amount));
        self.grow(budget, held, amount.saturating_sub(has)).await
    }

    /// Waits to enlarge the reservation of a long-running upload. Each call has its own deadline.
    pub async fn grow_again(&self, budget: &Budget, held: &mut Reservation, by: u64) -> Result<(), Refusal> {
        self.grow_until(budget, held, by, Instant::now() + REQUEST_WAIT).await
    }

    /// Waits until `until` to enlarge a reservation, up to the maximum of one holder.
    pub async fn grow_until(
        &self,
        budget: &Budget,
        held: &mut Reservation,
        by: u64,
        until: Instant,
    ) -> Result<(), Refusal> {
        let by = by.min(budget.largest().saturating_sub(held.amount()));
        if by == 0 {
            return Ok(());
        }
        self.wait.spend(held.grow(by, until)).await.map_err(|refused| full(budget, refused))
    }
}

fn full(budget: &Budget, refused: Refused) -> Refusal {
    let name = budget.name();
    match refused {
        Refused::NeverFits { largest } => Refusal::new(
            ErrorKind::TooLarge,
            format!("the request needs more of `{name}` than {largest}, the maximum of one request"),
        ),
        Refused::Full { waited, retry_after } => {
            let (waited, seconds) = (waited.as_secs_f64(), retry_after.as_secs());
            let why = format!(
                "the node is busy: the request waited {waited:.1} s for space in `{name}`, which stayed full; retry \
                 after {seconds} s"
            );
            Refusal { retry_after_seconds: Some(seconds), ..Refusal::new(ErrorKind::Busy, why) }
        }
    }
}
