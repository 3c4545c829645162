//! Grants: what a job may do, as patterns of targets for each kind of operation, with an end and a budget.
//!
//! A grant is data and rules. Who holds it, who is asked before it is extended, and where operations are
//! checked is for the engine to say. Sources: ARCP draft 1.1, sections 9, 10 and 14; draft 02, sections 9, 10
//! and 14; draft 01, section 15.
//!
//! What a job is given of its parent's grant ([`Grants::narrow`]) is a snapshot: what is revoked or extended
//! later is not passed on. What it may cost is taken from the parent's budget ([`Grants::give_away`]), since
//! two children could each spend all that is left otherwise.

mod amount;
mod budget;
mod canonical;
mod delegator;
mod denial;
mod glob;
mod kind;
mod lease;
mod name;
mod operation;
mod path;
mod pattern;
mod percent;
mod stored;
mod syntax;
#[cfg(test)]
mod tests;
mod url;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::error::Error;
use crate::id::LeaseId;
use crate::message::TokenUsage;

pub use amount::{Amount, Amounts, Currency, Decimal};
pub use budget::Budget;
pub use delegator::Delegator;
pub use denial::{Denial, NotASubset};
pub use kind::OperationKind;
pub use lease::{Lease, LeaseChange, LeaseTerms};
pub use operation::{AskedOperation, Operation};
pub use pattern::{Pattern, PatternLimits};

use stored::StoredGrants;

/// The pattern that covers every target of its kind.
const ALL: &str = "**";

/// What may be done: kinds of operations with patterns of their targets, until when, and at what cost. What
/// is not named is not granted.
///
/// A request for a grant has the same form; nothing of it is spent or revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "StoredGrants", into = "StoredGrants")]
#[schemars(with = "StoredGrants")]
pub struct Grants {
    capabilities: BTreeMap<OperationKind, Vec<Pattern>>,
    expires_at: Option<Timestamp>,
    budget: Budget,
    revoked: Option<String>,
    /// Whether people are asked about what no pattern covers.
    asks: bool,
    /// What was allowed beside the patterns, each operation as it is.
    allowed: Vec<AskedOperation>,
    /// What people allowed beside the patterns for a time, also where that is over.
    leases: BTreeMap<LeaseId, Lease>,
    /// Who gave the job its task, where it is of another's grant.
    delegator: Option<Box<Delegator>>,
    /// How many principals must give the same answer to what its job asks.
    quorum: Option<u32>,
}

impl Grants {
    /// Reads kinds of operations with the patterns of each.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where one is not of its form, or there are too many.
    pub fn parse<'a, P>(
        capabilities: impl IntoIterator<Item = (&'a str, P)>,
        limits: &PatternLimits,
    ) -> Result<Self, Error>
    where
        P: IntoIterator<Item = &'a str>,
    {
        let (mut read, mut count, mut bytes) = (BTreeMap::<_, Vec<_>>::new(), 0, 0);
        for (kind, patterns) in capabilities {
            let kind: OperationKind = kind.parse()?;
            for text in patterns {
                (count, bytes) = (count + 1, bytes + text.len());
                if count > limits.patterns || bytes > limits.total_bytes {
                    let (most, most_bytes) = (limits.patterns, limits.total_bytes);
                    let reason = format!("there are at most {most} patterns, of {most_bytes} bytes together");
                    return Err(Error::InvalidArgument {
                        argument: "patterns of a grant".to_owned(),
                        reason,
                    });
                }
                read.entry(kind.clone()).or_default().push(Pattern::parse(&kind, text, limits)?);
            }
        }
        Ok(Self { capabilities: read, ..Self::default() })
    }

    /// The same, until a moment; without one it does not expire.
    #[must_use]
    pub const fn until(mut self, expires_at: Option<Timestamp>) -> Self {
        self.expires_at = expires_at;
        self
    }

    /// The same, with a budget.
    #[must_use]
    pub fn costing(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// The same, but that people are asked about what no pattern covers.
    #[must_use]
    pub fn asking(self) -> Self {
        Self { asks: true, ..self }
    }

    /// Whether people are asked about what no pattern covers.
    pub const fn asks(&self) -> bool {
        self.asks
    }

    /// The same, but that so many principals must give the same answer to what the job asks.
    #[must_use]
    pub fn wanting(self, quorum: Option<u32>) -> Self {
        Self { quorum, ..self }
    }

    /// How many principals must give the same answer to what the job asks, where the grant says so.
    pub const fn quorum(&self) -> Option<u32> {
        self.quorum
    }

    /// Allows one operation from here on, as long as there is room to keep it.
    pub fn allow(&mut self, operation: AskedOperation) {
        if self.allowed.len() < PatternLimits::REQUEST.patterns && !self.allowed.contains(&operation) {
            self.allowed.push(operation);
        }
    }

    /// The leases that are held beside the patterns, and those that have ended by themselves.
    pub const fn leases(&self) -> &BTreeMap<LeaseId, Lease> {
        &self.leases
    }

    /// Whether one more lease can be kept at this moment: those that have ended make room.
    pub fn has_room_for_a_lease(&self, now: Timestamp) -> bool {
        self.leases.values().filter(|lease| lease.is_live(now)).count() < PatternLimits::REQUEST.patterns
    }

    /// Takes in what became of a lease at this moment. What became of one that is not held changes nothing.
    pub fn change_lease(&mut self, id: LeaseId, change: &LeaseChange, now: Timestamp) {
        match change {
            LeaseChange::Granted { terms } => {
                if self.leases.len() >= PatternLimits::REQUEST.patterns {
                    self.leases.retain(|_, lease| lease.is_live(now));
                }
                self.leases.insert(id, (**terms).clone());
            }
            LeaseChange::Extended { expires_at } => {
                self.leases.entry(id).and_modify(|lease| lease.extend(*expires_at));
            }
            LeaseChange::Revoked { .. } => {
                self.leases.remove(&id);
            }
        }
    }

    /// Whether it says neither an end nor a budget, nor who gave the task, nor how many must answer.
    pub fn has_no_bounds(&self) -> bool {
        self.delegator.is_none()
            && self.quorum.is_none()
            && self.expires_at.is_none()
            && self.budget.all_remaining().next().is_none()
    }

    /// The same for a job that asks nobody before it does something: it has an end and a budget, how many must answer what it asks, and nothing
    /// else.
    #[must_use]
    pub fn without_patterns(self) -> Self {
        let Self { expires_at, budget, revoked, delegator, quorum, .. } = self;
        Self { expires_at, budget, revoked, delegator, quorum, ..Self::default() }
    }

    /// Returns the patterns of each kind of operation that is granted.
    pub const fn capabilities(&self) -> &BTreeMap<OperationKind, Vec<Pattern>> {
        &self.capabilities
    }

    /// Returns when the grant expires, where it does.
    pub const fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// Returns the budget with what is spent of it.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the reason why the grant was revoked, where it was.
    pub fn revoked(&self) -> Option<&str> {
        self.revoked.as_deref()
    }

    /// Whether the operation may be done now. It is checked before the operation begins; what it costs is
    /// counted by [`Grants::spend`].
    ///
    /// # Errors
    /// The first [`Denial`] of these: revoked, expired, not covered, a currency of the budget is exhausted.
    pub fn check(&self, operation: &Operation, now: Timestamp) -> Result<(), Denial> {
        self.is_live(now)?;
        let is_covered = self.patterns(operation.kind()).iter().any(|pattern| pattern.allows(operation));
        let is_covered = is_covered || self.allowed.iter().any(|allowed| allowed.is(operation));
        if !is_covered && !self.leases.values().any(|lease| lease.allows(operation, now)) {
            let kind = operation.kind().clone();
            return Err(Denial::NotCovered { kind, target: operation::shown(operation.target()) });
        }
        self.is_affordable()
    }

    /// Whether anything may be done now: it lives, and something remains of each currency.
    ///
    /// # Errors
    /// The first [`Denial`] of these: revoked, expired, a currency of the budget is exhausted.
    pub fn check_life(&self, now: Timestamp) -> Result<(), Denial> {
        self.is_live(now)?;
        self.is_affordable()
    }

    fn is_affordable(&self) -> Result<(), Denial> {
        match self.budget.exhausted() {
            Some(currency) => Err(Denial::BudgetExhausted { currency: currency.clone() }),
            None => Ok(()),
        }
    }

    /// Counts what an operation has cost, and returns what remains; nothing where the currency has no
    /// ceiling.
    pub fn spend(&mut self, currency: &Currency, cost: Decimal) -> Option<Decimal> {
        self.budget.spend(currency, cost)
    }

    /// Counts what a model was used for.
    pub fn spend_on(&mut self, usage: &TokenUsage) {
        if let (Ok(dollars), false) = ("USD".parse(), usage.cost.is_zero()) {
            self.spend(&dollars, Decimal::from(usage.cost));
        }
    }

    /// What a child is given of this grant: all that the request names, at most what remains of the budget,
    /// at the latest until this one expires. What the request leaves out of end and budget is as here. What
    /// is revoked or expired has children that are.
    ///
    /// # Errors
    /// [`NotASubset`] where the request asks for what this grant is not shown to cover. Nothing is cut to
    /// fit: see [`Grants::reduce`].
    pub fn narrow(&self, request: &Self) -> Result<Self, NotASubset> {
        for (capability, patterns) in &request.capabilities {
            let held = self.patterns(capability);
            let is_beyond = |asked: &&Pattern| !held.iter().any(|pattern| pattern.covers(asked));
            if let Some(asked) = patterns.iter().find(is_beyond) {
                let (capability, pattern) = (capability.clone(), asked.to_string());
                return Err(NotASubset::Pattern { capability, pattern });
            }
        }
        if let Some(asked) = self.budget.exceeded_by(&request.budget) {
            let value = self.budget.remaining(&asked.currency).unwrap_or_default();
            let remaining = Amount { currency: asked.currency.clone(), value };
            return Err(NotASubset::Budget { asked, remaining });
        }
        if let (Some(asked), Some(held)) = (request.expires_at, self.expires_at)
            && asked > held
        {
            return Err(NotASubset::Expiry { asked, held });
        }
        Ok(self.child(request.capabilities.clone(), request))
    }

    /// What a job that is delegated has of this grant: the patterns of these kinds of operations, half of what remains of the budget, and the same
    /// end. Where people are asked about what no pattern covers, they are asked about what the other job does, too.
    ///
    /// # Errors
    /// [`NotASubset`] where a kind is not held, and nobody would be asked about it.
    pub fn delegated(&self, kinds: &[OperationKind]) -> Result<Self, NotASubset> {
        let held = |kind: &&OperationKind| self.capabilities.contains_key(*kind);
        if let (Some(kind), false) = (kinds.iter().find(|kind| !held(kind)), self.asks) {
            return Err(NotASubset::Pattern { capability: kind.clone(), pattern: ALL.to_owned() });
        }
        let inherited = kinds.iter().filter(held).map(|kind| (kind.clone(), self.patterns(kind).to_vec()));
        let request = Self {
            capabilities: inherited.collect(),
            budget: self.budget.half(),
            asks: self.asks,
            ..Self::default()
        };
        self.narrow(&request)
    }

    /// Allows everything of these kinds.
    ///
    /// # Errors
    /// As [`Grants::parse`].
    pub fn of_kinds(kinds: &[OperationKind]) -> Result<Self, Error> {
        Self::parse(kinds.iter().map(|kind| (kind.as_str(), [ALL])), &PatternLimits::REQUEST)
    }

    /// Counts what another job was given of the budget.
    pub fn give_away(&mut self, given: &Self) {
        for Amount { currency, value } in given.budget.all_remaining() {
            self.spend(&currency, value);
        }
    }

    /// What remains of the budget, of each currency that has a ceiling.
    pub fn remaining(&self) -> Amounts {
        self.budget.all_remaining().map(|Amount { currency, value }| (currency, value)).collect()
    }

    /// Counts what another job did not spend of what it was given: it can be spent again.
    pub fn take_back(&mut self, unspent: &Amounts) {
        self.budget.take_back(unspent);
    }

    /// Who gave the job that holds this its task.
    pub fn delegator(&self) -> Option<&Delegator> {
        self.delegator.as_deref()
    }

    /// The same, of a job that was given its task.
    #[must_use]
    pub fn delegated_by(self, delegator: Delegator) -> Self {
        Self { delegator: Some(Box::new(delegator)), ..self }
    }

    /// What of a request this grant allows: of two patterns of which one covers the other, the narrower one; of
    /// ends and amounts, the smaller. Patterns of which neither covers the other give nothing.
    #[must_use]
    pub fn reduce(&self, request: &Self) -> Self {
        let mut capabilities = BTreeMap::new();
        for (kind, asked) in &request.capabilities {
            let held = self.patterns(kind);
            let covered = |patterns: &[Pattern], one: &Pattern| patterns.iter().any(|wide| wide.covers(one));
            let mut both: Vec<Pattern> = asked.iter().filter(|one| covered(held, one)).cloned().collect();
            let narrower = held.iter().filter(|one| covered(asked, one) && !covered(&both, one));
            let narrower: Vec<Pattern> = narrower.cloned().collect();
            both.extend(narrower);
            if !both.is_empty() {
                capabilities.insert(kind.clone(), both);
            }
        }
        self.child(capabilities, request)
    }

    /// Moves the end to a later moment. An earlier one, or a grant that does not expire, changes nothing.
    ///
    /// # Errors
    /// [`Denial::Revoked`] and [`Denial::Expired`]: what has ended is granted anew, not extended.
    pub fn extend(&mut self, until: Timestamp, now: Timestamp) -> Result<(), Denial> {
        self.is_live(now)?;
        self.expires_at = self.expires_at.map(|expires_at| expires_at.max(until));
        Ok(())
    }

    /// Takes the grant back at once and for good. The first reason stays.
    pub fn revoke(&mut self, reason: &str) {
        self.revoked.get_or_insert_with(|| reason.to_owned());
    }

    fn is_live(&self, now: Timestamp) -> Result<(), Denial> {
        match (&self.revoked, self.expires_at) {
            (Some(reason), _) => Err(Denial::Revoked { reason: reason.clone() }),
            (None, Some(at)) if now >= at => Err(Denial::Expired { at }),
            _ => Ok(()),
        }
    }

    fn patterns(&self, kind: &OperationKind) -> &[Pattern] {
        self.capabilities.get(kind).map_or(&[], Vec::as_slice)
    }

    fn child(&self, capabilities: BTreeMap<OperationKind, Vec<Pattern>>, request: &Self) -> Self {
        Self {
            capabilities,
            expires_at: self.expires_at.into_iter().chain(request.expires_at).min(),
            budget: self.budget.least(&request.budget),
            revoked: self.revoked.clone(),
            asks: self.asks && request.asks,
            // What was allowed while the parent ran was allowed to the parent.
            allowed: Vec::new(),
            leases: BTreeMap::new(),
            delegator: None,
            quorum: self.quorum.max(request.quorum),
        }
    }
}
