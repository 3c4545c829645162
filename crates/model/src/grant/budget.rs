//! Budgets: how much of each currency a grant lets operations cost. Source: ARCP draft 1.1, section 9.6.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::amount::{Amount, Currency, Decimal};
use crate::error::Error;

/// How many currencies one budget may have.
const MOST_CURRENCIES: usize = 32;

/// Ceilings of what operations cost, each currency by itself. A currency that is not named has no ceiling and
/// is not counted.
///
/// Costs are counted after they arose, so more may be spent than was granted; then nothing remains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Budget(BTreeMap<Currency, Counter>);

/// What was granted of one currency, and what of it is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Counter {
    /// The ceiling of the currency.
    granted: Decimal,
    /// What operations have reported.
    #[serde(default)]
    spent: Decimal,
}

impl Counter {
    const fn remaining(self) -> Decimal {
        self.granted.minus(self.spent)
    }
}

impl Budget {
    /// Reads amounts such as `USD:5.00`, of which nothing is spent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where one is no amount, a currency is there twice, or there are too many.
    pub fn parse<'a>(amounts: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let mut budget = Self::default();
        for text in amounts {
            let Amount { currency, value } = text.parse()?;
            let twice = format!("the currency `{currency}` is there twice");
            let counter = Counter { granted: value, spent: Decimal::ZERO };
            let reason = if budget.0.insert(currency, counter).is_some() {
                twice
            } else if budget.0.len() > MOST_CURRENCIES {
                format!("it has more than {MOST_CURRENCIES} currencies")
            } else {
                continue;
            };
            return Err(Error::InvalidArgument { argument: "budget".to_owned(), reason });
        }
        Ok(budget)
    }

    /// Counts what an operation reported, and returns what remains; nothing where the currency has no
    /// ceiling.
    pub fn spend(&mut self, currency: &Currency, cost: Decimal) -> Option<Decimal> {
        let counter = self.0.get_mut(currency)?;
        counter.spent = counter.spent.plus(cost);
        Some(counter.remaining())
    }

    /// Counts as unspent what was given away and not spent, at most all that was spent.
    pub(super) fn take_back(&mut self, unspent: &BTreeMap<Currency, Decimal>) {
        for (currency, amount) in unspent {
            if let Some(counter) = self.0.get_mut(currency) {
                counter.spent = counter.spent.minus(*amount);
            }
        }
    }

    /// Returns what remains of a currency, where it has a ceiling.
    pub fn remaining(&self, currency: &Currency) -> Option<Decimal> {
        self.0.get(currency).map(|counter| counter.remaining())
    }

    /// Returns what remains of each currency that has a ceiling.
    pub fn all_remaining(&self) -> impl Iterator<Item = Amount> + '_ {
        self.0
            .iter()
            .map(|(currency, counter)| Amount { currency: currency.clone(), value: counter.remaining() })
    }

    /// Returns what was granted of each currency that has a ceiling.
    pub fn granted(&self) -> impl Iterator<Item = Amount> + '_ {
        self.0.iter().map(|(currency, counter)| Amount { currency: currency.clone(), value: counter.granted })
    }

    /// Returns the first currency of which nothing remains.
    pub fn exhausted(&self) -> Option<&Currency> {
        self.0.iter().find(|(_, counter)| counter.remaining() == Decimal::ZERO).map(|(currency, _)| currency)
    }

    /// Returns the first amount of another budget that is more than what remains of this one.
    pub(super) fn exceeded_by(&self, request: &Self) -> Option<Amount> {
        request
            .all_remaining()
            .find(|asked| self.remaining(&asked.currency).is_some_and(|left| asked.value > left))
    }

    /// Half of what remains of each currency, of which nothing is spent.
    #[must_use]
    pub(super) fn half(&self) -> Self {
        let half = |counter: &Counter| Counter { granted: counter.remaining().half(), spent: Decimal::ZERO };
        Self(self.0.iter().map(|(currency, counter)| (currency.clone(), half(counter))).collect())
    }

    /// The least that remains of each currency in either budget, of which nothing is spent.
    #[must_use]
    pub(super) fn least(&self, other: &Self) -> Self {
        let mut least = BTreeMap::new();
        for Amount { currency, value } in self.all_remaining().chain(other.all_remaining()) {
            let counter = least.entry(currency).or_insert(Counter { granted: value, spent: Decimal::ZERO });
            counter.granted = counter.granted.min(value);
        }
        Self(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(amounts: &[&str]) -> Budget {
        Budget::parse(amounts.iter().copied()).unwrap()
    }

    fn currency(name: &str) -> Currency {
        name.parse().unwrap()
    }

    #[test]
    fn currencies_are_spent_independently() {
        let mut budget = budget(&["USD:1", "credits:10"]);
        assert_eq!(budget.spend(&currency("USD"), "0.4".parse().unwrap()), Some("0.6".parse().unwrap()));
        assert_eq!(budget.spend(&currency("EUR"), "5".parse().unwrap()), None);
        assert_eq!(budget.remaining(&currency("credits")), Some("10".parse().unwrap()));
        assert_eq!(budget.exhausted(), None);
        assert_eq!(budget.spend(&currency("USD"), "0.6".parse().unwrap()), Some(Decimal::ZERO));
        assert_eq!(budget.exhausted(), Some(&currency("USD")));
    }

    #[test]
    fn a_budget_of_nothing_is_exhausted_from_the_start() {
        assert_eq!(budget(&["USD:0.00"]).exhausted(), Some(&currency("USD")));
        assert_eq!(Budget::default().exhausted(), None);
    }

    #[test]
    fn a_currency_stands_once_and_there_are_not_too_many() {
        assert!(Budget::parse(["USD:1", "USD:2"]).is_err());
        let many: Vec<String> = (0..=MOST_CURRENCIES).map(|number| format!("unit{number}:1")).collect();
        assert!(Budget::parse(many.iter().map(String::as_str)).is_err());
        assert!(Budget::parse(many.iter().skip(1).map(String::as_str)).is_ok());
    }

    #[test]
    fn it_is_stored_as_text() {
        let mut budget = budget(&["USD:5.00"]);
        budget.spend(&currency("USD"), "3".parse().unwrap());
        let stored = serde_json::to_string(&budget).unwrap();
        assert_eq!(stored, r#"{"USD":{"granted":"5","spent":"3"}}"#);
        assert_eq!(serde_json::from_str::<Budget>(&stored).unwrap(), budget);
    }
}
