//! Exact amounts of currencies. Source: ARCP draft 1.1, section 9.6.
//!
//! An amount is a whole number of billionths: sums are exact, comparing needs no scale, and no decimal crate
//! is needed. A decimal type with a floating scale would round silently once scales differ too much. No
//! floating-point number is used anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::message::Cost;

/// The digits after the point that are kept.
const PLACES: usize = 9;
/// Parts of a whole unit: ten to the power of [`PLACES`].
const PARTS: u128 = 1_000_000_000;
/// The most digits before the point.
const WHOLE_DIGITS: usize = 18;
/// The longest name of a currency, in bytes.
const LONGEST_NAME: usize = 32;

/// Amounts of several currencies.
pub type Amounts = BTreeMap<Currency, Decimal>;

/// A currency, or another unit that a deployment counts, such as `USD` or `credits`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Currency(String);

impl Currency {
    /// Returns the name of the currency.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Currency {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.len() <= LONGEST_NAME
            && name.chars().all(in_name)
        {
            return Ok(Self(name));
        }
        Err(invalid(
            "currency",
            format!("it is a letter, then letters, digits, `-` and `_`, at most {LONGEST_NAME}"),
        ))
    }
}

impl From<Currency> for String {
    fn from(Currency(name): Currency) -> Self {
        name
    }
}

impl FromStr for Currency {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::try_from(name.to_owned())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A decimal number that is never negative, with up to 18 digits before the point and 9 after it. In JSON it
/// is a string.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Decimal(u128);

impl Decimal {
    /// The number zero, in no unit.
    pub const ZERO: Self = Self(0);
    /// The largest number that is kept. Sums stop there.
    pub const MAX: Self = Self(10_u128.pow((WHOLE_DIGITS + PLACES) as u32) - 1);

    /// Reads what an operation reports as its cost: a number as JSON writes it, with an exponent or without.
    /// It is rounded up to the next billionth, and one that is too large counts as [`Decimal::MAX`], so that
    /// no report costs less than it says.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is negative or no number.
    pub fn reported(text: &str) -> Result<Self, Error> {
        let number =
            JsonNumber::read(text).ok_or_else(|| invalid("cost", "it is a decimal number".to_owned()))?;
        let amount = number.billionths();
        if number.negative && amount != Self::ZERO {
            return Err(invalid("cost", "it may not be negative".to_owned()));
        }
        Ok(amount)
    }

    /// Adds two numbers; the sum is at most [`Decimal::MAX`].
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0).min(Self::MAX)
    }

    /// Returns half of the number, rounded down to the billionth.
    #[must_use]
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// Subtracts a number; the difference is at least zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Cost> for Decimal {
    fn from(cost: Cost) -> Self {
        Self(cost.billionths().into())
    }
}

impl FromStr for Decimal {
    type Err = Error;

    /// Reads a number that is written `digits` or `digits.digits`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        if !is_digits(whole) || !is_digits(fraction) {
            return Err(invalid("amount", "it is digits, or digits, a point and digits".to_owned()));
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        if whole.len() > WHOLE_DIGITS || fraction.len() > PLACES {
            let reason =
                format!("it has at most {WHOLE_DIGITS} digits before the point and {PLACES} after it");
            return Err(invalid("amount", reason));
        }
        Ok(Self(digits(whole) * PARTS + digits(&format!("{fraction:0<PLACES$}"))))
    }
}

impl TryFrom<String> for Decimal {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> Self {
        decimal.to_string()
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / PARTS, self.0 % PARTS);
        if parts == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{parts:0PLACES$}").trim_end_matches('0'))
    }
}

/// An amount of a currency, written `USD:5.25`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Amount {
    /// The currency that is counted.
    pub currency: Currency,
    /// How much of it.
    pub value: Decimal,
}

impl FromStr for Amount {
    type Err = Error;

    /// Reads an amount that is written `currency:decimal`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (currency, value) = text
            .split_once(':')
            .ok_or_else(|| invalid("amount", "it is written `currency:decimal`".to_owned()))?;
        Ok(Self { currency: currency.parse()?, value: value.parse()? })
    }
}

impl TryFrom<String> for Amount {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.to_string()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.currency, self.value)
    }
}

/// A number as RFC 8259, section 6, writes it, in its parts.
struct JsonNumber {
    negative: bool,
    /// Digits without leading zeros, of which the first `point` stand before the point.
    digits: String,
    point: i64,
}

impl JsonNumber {
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        if !is_digits(whole) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').to_owned();
        let zeros = length(&all) - length(&digits);
        Some(Self { negative, digits, point: length(whole) - zeros + exponent })
    }

    /// The amount without its sign, rounded up.
    fn billionths(&self) -> Decimal {
        if self.digits.is_empty() {
            return Decimal::ZERO;
        }
        // How many digits a number of billionths has.
        let wanted = self.point + PLACES as i64;
        if wanted > (WHOLE_DIGITS + PLACES) as i64 {
            return Decimal::MAX;
        }
        let wanted = usize::try_from(wanted).unwrap_or(0);
        let (kept, dropped) = self.digits.split_at(wanted.min(self.digits.len()));
        let rounded_up = u128::from(dropped.bytes().any(|digit| digit != b'0'));
        Decimal(digits(&format!("{kept:0<wanted$}")) + rounded_up).min(Decimal::MAX)
    }
}

/// An exponent, cut to a size with which sums cannot overflow.
fn read_exponent(text: &str) -> Option<i64> {
    /// Larger than any number of digits that text in memory has.
    const LARGEST: i64 = 1 << 48;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let size = is_digits(unsigned).then(|| unsigned.parse().unwrap_or(LARGEST).min(LARGEST))?;
    Some(if text.starts_with('-') { -size } else { size })
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number that at most 27 digits write.
fn digits(text: &str) -> u128 {
    text.bytes().fold(0, |number, digit| number * 10 + u128::from(digit - b'0'))
}

fn invalid(argument: &str, reason: String) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    fn reported(text: &str) -> String {
        Decimal::reported(text).unwrap().to_string()
    }

    #[test]
    fn an_amount_is_read_exactly_and_written_shortest() {
        let written = |text: &str| text.parse::<Amount>().unwrap().to_string();
        assert_eq!(written("USD:5.00"), "USD:5");
        assert_eq!(written("credits:1000"), "credits:1000");
        assert_eq!(written("EUR:007.010"), "EUR:7.01");
        assert_eq!(written("x-unit_2:0.000000001"), "x-unit_2:0.000000001");
        assert_eq!(written("USD:999999999999999999.999999999"), format!("USD:{}", Decimal::MAX));
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "USD",
            "USD:",
            ":5",
            "USD:-1",
            "USD:+1",
            "USD:.5",
            "USD:5.",
            "USD:1e3",
            "USD:1,5",
            "USD: 1",
            "1SD:1",
            "US D:1",
            "USD:0.0000000001",
            "USD:1000000000000000000",
            "USD:1.2.3",
            "USD:٣",
            "USD:5:5",
        ] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_reported_cost_is_rounded_up_and_never_negative() {
        assert_eq!(reported("0.0234"), "0.0234");
        assert_eq!(reported("1e-7"), "0.0000001");
        assert_eq!(reported("2.5E+3"), "2500");
        assert_eq!(reported("1e-10"), "0.000000001");
        assert_eq!(reported("1e-999999999999999999999"), "0.000000001");
        assert_eq!(reported("1.0000000001"), "1.000000001");
        assert_eq!(reported("0.0"), "0");
        assert_eq!(reported("-0.0"), "0");
        assert_eq!(reported("0e99999999999999999999"), "0");
        assert_eq!(Decimal::reported("1e18").unwrap(), Decimal::MAX);
        assert_eq!(Decimal::reported("1e99999999999999999999").unwrap(), Decimal::MAX);
        for text in ["-0.01", "-1e-99", "NaN", "Infinity", "", "-", "1e", "1.", ".5", "0x1", "1 "] {
            assert!(Decimal::reported(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sums_stop_at_the_largest_and_differences_at_zero() {
        assert_eq!(decimal("0.1").plus(decimal("0.2")), decimal("0.3"));
        assert_eq!(Decimal::MAX.plus(Decimal::MAX), Decimal::MAX);
        assert_eq!(decimal("1").minus(decimal("1.5")), Decimal::ZERO);
    }

    proptest! {
        #[test]
        fn writing_and_reading_gives_the_same_number(parts in 0..=Decimal::MAX.0) {
            let number = Decimal(parts);
            prop_assert_eq!(decimal(&number.to_string()), number);
            prop_assert_eq!(Decimal::reported(&number.to_string()).unwrap(), number);
        }

        #[test]
        fn no_text_of_a_number_breaks_it(text in "-?[0-9]{0,30}[.]?[0-9]{0,30}([eE][+-]?[0-9]{0,30})?") {
            let _ = text.parse::<Decimal>();
            let _ = Decimal::reported(&text);
        }

        #[test]
        fn an_exponent_moves_the_point(digits in 1_u64..1_000_000, exponent in 0_u32..9) {
            let scaled = Decimal(u128::from(digits) * 10_u128.pow(9 - exponent));
            prop_assert_eq!(Decimal::reported(&format!("{digits}e-{exponent}")).unwrap(), scaled);
        }
    }
}
