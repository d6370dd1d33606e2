//! Order of candidates: by priority, then by weighted rendezvous hashing (G-72).

use super::Candidate;

/// Basis of the order within one priority.
#[derive(Clone, Copy, Debug)]
pub enum CandidateOrder<'a> {
    /// Order in which calls of one session use the same upstream, on every node.
    Session { principal: &'a str, session: &'a str },
    /// Weighted random order, where `seed` is a new random number for each call.
    Random { seed: u64 },
}

/// Sorts candidates by scores.
///
/// Each score depends only on its candidate, so a change of one candidate does not reorder the others.
pub(super) fn sort(candidates: &mut Vec<Candidate>, model: &str, order: CandidateOrder<'_>) {
    let rank = |candidate: &Candidate| {
        let metadata = &candidate.provider.metadata;
        let hash = hash(model, order, &candidate.provider.id, &candidate.model);
        // Candidates without a weight come after all others of their priority.
        (metadata.priority, metadata.weight == 0.0, arrival(hash, metadata.weight))
    };
    let mut ranked: Vec<_> = candidates.drain(..).map(|candidate| (rank(&candidate), candidate)).collect();
    ranked.sort_by(|(one, _), (other, _)| (one.0, one.1).cmp(&(other.0, other.1)).then(one.2.total_cmp(&other.2)));
    candidates.extend(ranked.into_iter().map(|(_, candidate)| candidate));
}

/// Returns the time of the first arrival of a process with the rate `weight`.
///
/// The earliest candidate comes first, with a probability of its weight over the sum of weights.
fn arrival(hash: u64, weight: f64) -> f64 {
    /// Number of equidistant floats between 0 and 1, which is 2^53.
    const STEPS: f64 = 9_007_199_254_740_992.0;
    let uniform = ((hash >> 11) as f64 + 0.5) / STEPS;
    let rate = if weight > 0.0 { weight } else { 1.0 };
    -uniform.ln() / rate
}

/// Returns a hash that is equal on every node and must never change.
fn hash(model: &str, order: CandidateOrder<'_>, secret_id: &str, upstream: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &[u8]| {
        // Each text has a length prefix, so different lists of texts never hash the same bytes.
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    match order {
        CandidateOrder::Session { principal, session } => {
            add(b"session");
            add(principal.as_bytes());
            add(session.as_bytes());
        }
        CandidateOrder::Random { seed } => {
            add(b"random");
            add(&seed.to_le_bytes());
        }
    }
    for text in [model, secret_id, upstream] {
        add(text.as_bytes());
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}
