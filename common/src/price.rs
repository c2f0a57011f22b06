//! Prices and amounts in whole millionths: what is added up comes out the same for whoever adds it up.

use crate::job::{Service, Sla};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Millionths in one.
pub const ONE: u64 = 1_000_000;
const DECIMALS: usize = 6;

/// A decimal number of at most six decimals: an amount of money, a price, a factor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub u64);

/// Why a text is no such number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MicrosError {
    #[error("it is no decimal number such as 0.25")]
    Number,
    #[error("it has more than {DECIMALS} decimals")]
    TooFine,
    #[error("it is too large")]
    TooLarge,
}

impl Micros {
    pub const ONE: Self = Self(ONE);
}

impl FromStr for Micros {
    type Err = MicrosError;
    fn from_str(text: &str) -> Result<Self, MicrosError> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            return Err(MicrosError::Number);
        }
        if decimals.len() > DECIMALS {
            return Err(MicrosError::TooFine);
        }
        let number = |text: &str| text.parse::<u64>().map_err(|_| MicrosError::TooLarge);
        let whole = number(whole)?.checked_mul(ONE).ok_or(MicrosError::TooLarge)?;
        let micros = whole.checked_add(number(&format!("{decimals:0<DECIMALS$}"))?);
        micros.map(Self).ok_or(MicrosError::TooLarge)
    }
}

impl fmt::Display for Micros {
    /// With two decimals at least, and no zeros beyond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:0DECIMALS$}", self.0 % ONE);
        let (cents, rest) = decimals.split_at(2);
        f.pad(&format!("{}.{cents}{}", self.0 / ONE, rest.trim_end_matches('0')))
    }
}

/// What use costs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// As people write it: `EUR`.
    pub currency: String,
    /// An hour of one core, as the kernel counts processor time.
    pub core_hour: Micros,
    /// An hour of 10^9 bytes of memory.
    pub gb_hour: Micros,
    /// 10^9 bytes that a container sent.
    pub gb_sent: Micros,
    /// 10^9 bytes of images that were fetched for a container.
    pub gb_pulled: Micros,
    /// By these cores and memory are dearer in a class; a job that names no service pays the plain price.
    #[serde(default)]
    pub resources: Factors,
    #[serde(default)]
    pub reputation: Factors,
    #[serde(default)]
    pub redundancy: Factors,
    /// An hour of waiting beyond what the job's `satisfaction` promises is credited with this.
    #[serde(default)]
    pub waiting_credit_hour: Micros,
    #[serde(default)]
    pub waiting_promised: Promises,
}

/// One number for each service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factors {
    pub best_effort: Micros,
    pub advanced: Micros,
    pub premium: Micros,
}

impl Default for Factors {
    fn default() -> Self {
        Self { best_effort: Micros::ONE, advanced: Micros::ONE, premium: Micros::ONE }
    }
}

impl Factors {
    #[must_use]
    pub fn of(&self, service: Option<Service>) -> Micros {
        match service {
            None => Micros::ONE,
            Some(Service::BestEffort) => self.best_effort,
            Some(Service::Advanced) => self.advanced,
            Some(Service::Premium) => self.premium,
        }
    }
}

/// For how long a container waits at most, in seconds; none: nothing is promised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Promises {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_effort: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advanced: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub premium: Option<u64>,
}

impl Promises {
    #[must_use]
    pub fn of(&self, service: Option<Service>) -> Option<u64> {
        match service? {
            Service::BestEffort => self.best_effort,
            Service::Advanced => self.advanced,
            Service::Premium => self.premium,
        }
    }
}

impl Prices {
    /// By what cores and memory are dearer for these services, rounded to a millionth.
    #[must_use]
    pub fn factor(&self, sla: &Sla) -> Micros {
        let one = u128::from(ONE);
        let factors = [
            self.resources.of(sla.resources),
            self.reputation.of(sla.reputation),
            self.redundancy.of(sla.redundancy),
        ];
        let product =
            factors.iter().map(|factor| u128::from(factor.0)).reduce(u128::saturating_mul).unwrap_or(0);
        Micros(u64::try_from(product.saturating_add(one * one / 2) / (one * one)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_read_and_print_exactly() {
        for (text, micros, printed) in [
            ("0", 0, "0.00"),
            ("1", 1_000_000, "1.00"),
            ("0.04", 40_000, "0.04"),
            ("12.5", 12_500_000, "12.50"),
            ("0.000001", 1, "0.000001"),
            ("3.141500", 3_141_500, "3.1415"),
            ("18446744073709.551615", u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(text.parse(), Ok(Micros(micros)), "{text}");
            assert_eq!(Micros(micros).to_string(), printed);
        }
    }

    #[test]
    fn what_is_no_exact_decimal_is_refused() {
        for bad in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "NaN", " 1", "0x1", "1.2.3"] {
            assert_eq!(bad.parse::<Micros>(), Err(MicrosError::Number), "{bad}");
        }
        assert_eq!("0.0000001".parse::<Micros>(), Err(MicrosError::TooFine));
        for large in ["18446744073709.551616", "18446744073710", "99999999999999999999999"] {
            assert_eq!(large.parse::<Micros>(), Err(MicrosError::TooLarge), "{large}");
        }
    }

    #[test]
    fn factors_of_classes_multiply_and_no_class_is_one() {
        let half_more = Factors { premium: Micros(1_500_000), ..Factors::default() };
        let third = Factors { premium: Micros(333_333), ..Factors::default() };
        let prices = Prices { resources: half_more, reputation: third, ..Prices::default() };
        assert_eq!(prices.factor(&Sla::default()), Micros::ONE);
        assert_eq!(prices.factor(&Sla::all(Service::Advanced)), Micros::ONE);
        // 1.5 * 0.333333 = 0.4999995, rounded up.
        assert_eq!(prices.factor(&Sla::all(Service::Premium)), Micros(500_000));
    }
}
