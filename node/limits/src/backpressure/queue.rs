//! Scheduling of one budget, without a clock or tasks. Each event returns the requests that it admits.
//!
//! # Rules
//!
//! *Order.* The requests of a credential are served in order of arrival. The organization that holds least is served
//! first, and within it the credential that holds least. Among equals, the one that was served least recently goes
//! first.
//!
//! *Shares.* While others wait, an organization gets at most half of the budget, and a credential at most a quarter. A
//! holder of nothing may have one request of any size. A grant that exceeds one of these shares always leaves the last
//! eighth of the budget free.
//!
//! *Large and small.* When the first request does not fit, the queue saves space for it. Later requests may meanwhile
//! use the express part, an eighth of the budget. The same shares apply within that part. So a large request is served
//! once earlier holders leave, and it does not block small ones. Small requests may also use a separate reserve.
//!
//! *Growth.* Reservations that wait to grow precede all new requests, the oldest first. If every reservation waits to
//! grow, none would ever be released. The queue then grants the oldest one its growth, even beyond the budget. That
//! reservation stays the oldest until its release, so the excess is the growth of one reservation.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uuid::Uuid;

use super::holder::Holder;

/// Number of a request and of its later reservation. Later requests have higher numbers.
pub type Id = u64;

/// Division of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Size of the budget, including the reserve.
    pub total: u64,
    /// Part reserved for requests of at most `small_max`.
    pub reserve: u64,
    pub small_max: u64,
}

impl Division {
    /// Returns a division without a reserve.
    pub fn plain(total: u64) -> Division {
        Division { total, reserve: 0, small_max: 0 }
    }

    /// Returns a division that reserves a 64th for requests of at most `small_max`.
    ///
    /// A single credential still reaches 85 % of the budget.
    pub fn with_reserve(total: u64, small_max: u64) -> Division {
        Division { total, reserve: total / 64, small_max }
    }

    fn main(&self) -> u64 {
        self.total - self.reserve
    }

    fn eighth(&self) -> u64 {
        self.total / 8
    }

    /// Returns the largest amount that one holder can reserve.
    pub fn largest(&self) -> u64 {
        self.main() - self.eighth()
    }
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    Admitted,
    Waiting,
}

/// Part of the budget that an amount was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Main,
    Express,
    Reserve,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Amount held in the main and express parts.
    held: u64,
    express: u64,
    reserve: u64,
}

impl Usage {
    fn add(&mut self, part: Part, amount: u64) {
        match part {
            Part::Main => self.held += amount,
            Part::Express => (self.held, self.express) = (self.held + amount, self.express + amount),
            Part::Reserve => self.reserve += amount,
        }
    }

    fn take(&mut self, part: Part, amount: u64) {
        match part {
            Part::Main => self.held -= amount,
            Part::Express => (self.held, self.express) = (self.held - amount, self.express - amount),
            Part::Reserve => self.reserve -= amount,
        }
    }

    fn is_empty(&self) -> bool {
        self.held == 0 && self.reserve == 0
    }
}

#[derive(Debug)]
struct Entry {
    holder: Holder,
    held: u64,
    part: Part,
    /// Amount that the entry waits for, or `None` if it does not wait.
    asks: Option<u64>,
}

#[derive(Debug, Default)]
struct Credential {
    usage: Usage,
    /// Moment since which the credential waits for its turn.
    turn: u64,
    small: VecDeque<Id>,
    large: VecDeque<Id>,
}

#[derive(Debug, Default)]
struct Organization {
    usage: Usage,
    turn: u64,
    waiting: usize,
    credentials: BTreeMap<Uuid, Credential>,
}

/// All reservations of one budget and all waiting requests.
#[derive(Debug)]
pub struct Queue {
    division: Division,
    usage: Usage,
    entries: BTreeMap<Id, Entry>,
    organizations: BTreeMap<Uuid, Organization>,
    /// Reservations that wait to grow.
    growing: BTreeSet<Id>,
    /// Number of reservations that hold an amount and do not wait.
    active: usize,
    waiting: usize,
    waiting_amount: u64,
    waiting_organizations: usize,
    waiting_credentials: usize,
    next: Id,
    moment: u64,
}

/// Head of a credential's queue, with its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    organization: (u64, u64),
    credential: (u64, u64),
    id: Id,
}

impl Queue {
    pub fn new(division: Division) -> Queue {
        Queue {
            division,
            usage: Usage::default(),
            entries: BTreeMap::new(),
            organizations: BTreeMap::new(),
            growing: BTreeSet::new(),
            active: 0,
            waiting: 0,
            waiting_amount: 0,
            waiting_organizations: 0,
            waiting_credentials: 0,
            next: 0,
            moment: 0,
        }
    }

    pub fn division(&self) -> Division {
        self.division
    }

    /// Returns the amount held in all parts.
    pub fn held(&self) -> u64 {
        self.usage.held + self.usage.reserve
    }

    /// Returns the number of waiting requests, including reservations that wait to grow.
    pub fn waiting(&self) -> usize {
        self.waiting + self.growing.len()
    }

    pub fn waiting_amount(&self) -> u64 {
        self.waiting_amount
    }

    /// Returns the amount that a reservation holds.
    pub fn amount(&self, id: Id) -> u64 {
        self.entries.get(&id).map_or(0, |entry| entry.held)
    }

    /// Returns whether a request or the growth of a reservation still waits.
    pub fn is_waiting(&self, id: Id) -> bool {
        self.entries.get(&id).is_some_and(|entry| entry.asks.is_some())
    }

    /// Adds a request and returns its state and the other requests that are now admitted.
    ///
    /// A request for nothing is admitted at once. The caller checks that the amount can fit.
    pub fn ask(&mut self, holder: Holder, amount: u64) -> (Id, RequestState, Vec<Id>) {
        let id = self.next;
        self.next += 1;
        self.entries.insert(id, Entry { holder, held: 0, part: Part::Main, asks: None });
        if amount == 0 {
            return (id, RequestState::Admitted, Vec::new());
        }
        self.enqueue(id, amount);
        let (asked, others) = self.serve_and_find(id);
        (id, asked, others)
    }

    /// Requests growth of a reservation and returns its state and the other requests that are now admitted.
    pub fn grow(&mut self, id: Id, by: u64) -> (RequestState, Vec<Id>) {
        let Some(entry) = self.entries.get_mut(&id) else { return (RequestState::Admitted, Vec::new()) };
        if by == 0 || entry.asks.is_some() {
            return (RequestState::Admitted, Vec::new());
        }
        if entry.held == 0 {
            self.enqueue(id, by);
        } else {
            entry.asks = Some(by);
            self.active -= 1;
            self.growing.insert(id);
            self.waiting_amount += by;
        }
        self.serve_and_find(id)
    }

    /// Releases a part of a reservation, unless it waits to grow. Returns the requests that this admits.
    pub fn shrink(&mut self, id: Id, by: u64) -> Vec<Id> {
        let Some(entry) = self.entries.get_mut(&id) else { return Vec::new() };
        let by = by.min(entry.held);
        if by == 0 || entry.asks.is_some() {
            return Vec::new();
        }
        entry.held -= by;
        let (holder, part) = (entry.holder, entry.part);
        if entry.held == 0 {
            self.active -= 1;
        }
        self.give_back(holder, part, by);
        self.serve()
    }

    /// Withdraws the growth that a reservation waits for. It keeps its amount.
    ///
    /// [`Queue::leave`] removes a request that holds nothing.
    pub fn cancel_growth(&mut self, id: Id) -> Vec<Id> {
        self.stop_waiting(id);
        self.serve()
    }

    /// Ends a request or a reservation and returns the requests that this admits.
    pub fn leave(&mut self, id: Id) -> Vec<Id> {
        self.stop_waiting(id);
        let Some(entry) = self.entries.remove(&id) else { return Vec::new() };
        if entry.held > 0 {
            self.active -= 1;
            self.give_back(entry.holder, entry.part, entry.held);
        }
        self.forget_if_idle(entry.holder);
        self.serve()
    }

    fn is_small(&self, amount: u64) -> bool {
        self.division.reserve > 0 && amount <= self.division.small_max
    }

    fn enqueue(&mut self, id: Id, amount: u64) {
        let is_small = self.is_small(amount);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.asks = Some(amount);
        let holder = entry.holder;
        self.moment += 1;
        let organization = self.organizations.entry(holder.organization).or_default();
        if organization.waiting == 0 {
            organization.turn = self.moment;
            self.waiting_organizations += 1;
        }
        organization.waiting += 1;
        let credential = organization.credentials.entry(holder.credential).or_default();
        if credential.small.is_empty() && credential.large.is_empty() {
            credential.turn = self.moment;
            self.waiting_credentials += 1;
        }
        if is_small {
            credential.small.push_back(id)
        } else {
            credential.large.push_back(id)
        }
        self.waiting += 1;
        self.waiting_amount += amount;
    }

    /// Removes a request from its queue and returns the requested amount.
    fn dequeue(&mut self, id: Id) -> Option<u64> {
        let entry = self.entries.get_mut(&id)?;
        let (amount, holder) = (entry.asks.take()?, entry.holder);
        self.waiting_amount -= amount;
        let organization = self.organizations.get_mut(&holder.organization)?;
        let credential = organization.credentials.get_mut(&holder.credential)?;
        for queue in [&mut credential.small, &mut credential.large] {
            if let Some(place) = queue.iter().position(|one| *one == id) {
                queue.remove(place);
            }
        }
        self.waiting -= 1;
        organization.waiting -= 1;
        if credential.small.is_empty() && credential.large.is_empty() {
            self.waiting_credentials -= 1;
        }
        if organization.waiting == 0 {
            self.waiting_organizations -= 1;
        }
        Some(amount)
    }

    fn stop_waiting(&mut self, id: Id) {
        if self.growing.remove(&id) {
            if let Some(entry) = self.entries.get_mut(&id) {
                self.waiting_amount -= entry.asks.take().unwrap_or_default();
                self.active += usize::from(entry.held > 0);
            }
        } else {
            self.dequeue(id);
        }
    }

    fn give_back(&mut self, holder: Holder, part: Part, amount: u64) {
        self.usage.take(part, amount);
        if let Some(organization) = self.organizations.get_mut(&holder.organization) {
            organization.usage.take(part, amount);
            if let Some(credential) = organization.credentials.get_mut(&holder.credential) {
                credential.usage.take(part, amount);
            }
        }
        self.forget_if_idle(holder);
    }

    fn forget_if_idle(&mut self, holder: Holder) {
        let Some(organization) = self.organizations.get_mut(&holder.organization) else { return };
        let is_idle = organization.credentials.get(&holder.credential).is_some_and(|credential| {
            credential.usage.is_empty() && credential.small.is_empty() && credential.large.is_empty()
        });
        if is_idle {
            organization.credentials.remove(&holder.credential);
        }
        if organization.credentials.is_empty() {
            self.organizations.remove(&holder.organization);
        }
    }
}

/// Facts that decide about one request.
struct View {
    asks: u64,
    organization: Usage,
    credential: Usage,
    others_wait: bool,
    other_credentials_wait: bool,
}

impl Queue {
    /// Admits all requests that the rules allow now.
    fn serve(&mut self) -> Vec<Id> {
        let mut admitted = Vec::new();
        if self.waiting() == 0 {
            return admitted;
        }
        let growing = self.serve_growing(&mut admitted);
        while let Some(blocked) = growing.or_else(|| self.serve_first(&mut admitted)) {
            if !self.serve_behind(blocked, &mut admitted) {
                break;
            }
        }
        if self.active == 0
            && let Some(oldest) = self.growing.first().copied()
        {
            self.admit_growth(oldest);
            admitted.push(oldest);
        }
        admitted
    }

    /// Serves the queue. Returns the state of one request and the other admitted requests.
    fn serve_and_find(&mut self, id: Id) -> (RequestState, Vec<Id>) {
        let mut admitted = self.serve();
        let asked = if admitted.contains(&id) { RequestState::Admitted } else { RequestState::Waiting };
        admitted.retain(|one| *one != id);
        (asked, admitted)
    }

    /// Lets reservations grow, the oldest first. Returns the first one that lacks space, which new requests must not
    /// take.
    fn serve_growing(&mut self, admitted: &mut Vec<Id>) -> Option<Id> {
        for id in Vec::from_iter(self.growing.iter().copied()) {
            let Some(view) = self.view(id).filter(|view| !self.exceeds_share(view)) else { continue };
            if !self.has_room(&view) {
                return Some(id);
            }
            self.admit_growth(id);
            admitted.push(id);
        }
        None
    }

    /// Admits requests in order until one does not fit, and returns it.
    ///
    /// Returns `None` if no request lacks space.
    fn serve_first(&mut self, admitted: &mut Vec<Id>) -> Option<Id> {
        loop {
            let heads = self.heads();
            let within = |head: &Head| self.view(head.id).is_some_and(|view| !self.exceeds_share(&view));
            let first = heads.into_iter().filter(within).min()?;
            let view = self.view(first.id)?;
            if !self.has_room(&view) {
                return Some(first.id);
            }
            self.admit(first.id, Part::Main);
            admitted.push(first.id);
        }
    }

    /// Admits one request that may pass the first. Returns whether it admitted one.
    fn serve_behind(&mut self, blocked: Id, admitted: &mut Vec<Id>) -> bool {
        let saved = self.view(blocked).map_or(0, |view| view.asks);
        let mut heads = self.heads();
        heads.sort_unstable();
        for head in heads {
            let Some(view) = self.view(head.id) else { continue };
            let part = match head.id != blocked && self.may_go_express(&view, saved) {
                true => Part::Express,
                false if self.may_use_reserve(&view) => Part::Reserve,
                false => continue,
            };
            self.admit(head.id, part);
            admitted.push(head.id);
            return true;
        }
        false
    }

    fn heads(&self) -> Vec<Head> {
        let mut heads = Vec::new();
        for organization in self.organizations.values().filter(|organization| organization.waiting > 0) {
            for credential in organization.credentials.values() {
                for id in [credential.small.front(), credential.large.front()].into_iter().flatten() {
                    heads.push(Head {
                        organization: (organization.usage.held, organization.turn),
                        credential: (credential.usage.held, credential.turn),
                        id: *id,
                    });
                }
            }
        }
        heads
    }

    fn view(&self, id: Id) -> Option<View> {
        let entry = self.entries.get(&id)?;
        let organization = self.organizations.get(&entry.holder.organization)?;
        let credential = organization.credentials.get(&entry.holder.credential)?;
        let own = usize::from(organization.waiting > 0);
        let own_credential = usize::from(!credential.small.is_empty() || !credential.large.is_empty());
        Some(View {
            asks: entry.asks?,
            organization: organization.usage,
            credential: credential.usage,
            others_wait: self.waiting_organizations > own,
            other_credentials_wait: self.waiting_credentials > own_credential,
        })
    }

    /// Returns whether a grant would exceed a share that applies while others wait.
    fn exceeds_share(&self, view: &View) -> bool {
        let over = |usage: Usage, share: u64| usage.held > 0 && usage.held + view.asks > share;
        (view.others_wait && over(view.organization, self.division.total / 2))
            || (view.other_credentials_wait && over(view.credential, self.division.total / 4))
    }

    /// Returns whether a grant would take the organization above half or the credential above a quarter.
    fn is_large_holder(&self, view: &View) -> bool {
        view.organization.held + view.asks > self.division.total / 2
            || view.credential.held + view.asks > self.division.total / 4
    }

    fn has_room(&self, view: &View) -> bool {
        let kept_free = if self.is_large_holder(view) { self.division.eighth() } else { 0 };
        self.usage.held + view.asks + kept_free <= self.division.main()
    }

    /// Returns whether a request may pass the first one, for which the queue saves `saved`.
    fn may_go_express(&self, view: &View, saved: u64) -> bool {
        let express = self.division.eighth();
        let leaves_room_in_the_end = saved + 2 * express <= self.division.main();
        leaves_room_in_the_end
            && !self.is_large_holder(view)
            && self.has_room(view)
            && within_part(view.asks, express, [self.usage.express, view.organization.express, view.credential.express])
    }

    fn may_use_reserve(&self, view: &View) -> bool {
        let used = [self.usage.reserve, view.organization.reserve, view.credential.reserve];
        self.is_small(view.asks) && within_part(view.asks, self.division.reserve, used)
    }

    fn admit(&mut self, id: Id, part: Part) {
        let Some(amount) = self.dequeue(id) else { return };
        self.take(id, part, amount);
    }

    fn admit_growth(&mut self, id: Id) {
        self.growing.remove(&id);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some(amount) = entry.asks.take() else { return };
        let part = entry.part;
        self.waiting_amount -= amount;
        if part != Part::Reserve {
            return self.take(id, part, amount);
        }
        // The reserve is only for small requests, so a growing one moves to the main part.
        let (holder, held) = (entry.holder, std::mem::take(&mut entry.held));
        self.give_back(holder, Part::Reserve, held);
        self.take(id, Part::Main, held + amount);
    }

    fn take(&mut self, id: Id, part: Part, amount: u64) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        (entry.held, entry.part) = (entry.held + amount, part);
        let holder = entry.holder;
        self.active += 1;
        self.moment += 1;
        self.usage.add(part, amount);
        let organization = self.organizations.entry(holder.organization).or_default();
        organization.usage.add(part, amount);
        organization.turn = self.moment;
        let credential = organization.credentials.entry(holder.credential).or_default();
        credential.usage.add(part, amount);
        credential.turn = self.moment;
    }
}

/// Returns whether an amount fits in a part of the budget.
///
/// An organization gets half of the part and a credential a quarter. A holder of nothing in it may have one request.
fn within_part(asks: u64, part: u64, [all, organization, credential]: [u64; 3]) -> bool {
    let within = |used: u64, share: u64| used == 0 || used + asks <= share;
    all + asks <= part && within(organization, part / 2) && within(credential, part / 4)
}

#[cfg(test)]
mod tests;
