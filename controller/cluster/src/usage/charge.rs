//! From use to money, in whole numbers. Every amount is rounded down once, so no record costs more than was used.

use edgeloom_common::price::{Micros, ONE, Prices};
use edgeloom_common::usage::{Charge, Tariff, UsageView};

/// Microseconds in an hour.
const HOUR_US: u128 = 3_600_000_000;
const HOUR_S: u128 = 3_600;
const HOUR_MS: u128 = 3_600_000;
const GB: u128 = 1_000_000_000;

/// What a record costs; `owed` is credit that the records before it could not take up.
pub(super) fn charge(record: &UsageView, tariff: &Tariff, owed: Micros) -> Charge {
    let Tariff { version, prices } = tariff;
    let factor = prices.factor(&record.sla);
    let cpu = amount((record.cpu_us, HOUR_US), prices.core_hour, factor);
    let memory = amount((record.memory_byte_s, GB * HOUR_S), prices.gb_hour, factor);
    let sent = amount((record.sent_bytes, GB), prices.gb_sent, Micros::ONE);
    let pulled = amount((record.pulled_bytes, GB), prices.gb_pulled, Micros::ONE);
    let gross = [cpu, memory, sent, pulled].into_iter().fold(0, |sum: u64, part| sum.saturating_add(part.0));
    let credit = self::owed(record, prices, owed).0.min(gross);
    Charge {
        currency: prices.currency.clone(),
        prices_version: *version,
        cpu_micros: cpu,
        memory_micros: memory,
        sent_micros: sent,
        pulled_micros: pulled,
        credit_micros: Micros(credit),
        total_micros: Micros(gross - credit),
    }
}

/// Credit for waiting beyond what was promised, with what is owed from before.
pub(super) fn owed(record: &UsageView, prices: &Prices, before: Micros) -> Micros {
    let promised_ms = prices.waiting_promised.of(record.sla.satisfaction).map(|s| s.saturating_mul(1000));
    let over_ms = promised_ms.map_or(0, |promised_ms| record.waited_ms().saturating_sub(promised_ms));
    let credit = amount((over_ms, HOUR_MS), prices.waiting_credit_hour, Micros::ONE);
    Micros(before.0.saturating_add(credit.0))
}

/// `quantity` in `unit`s at a price for one. The configuration's bounds keep the product far below 2^128.
fn amount((quantity, unit): (u64, u128), price: Micros, factor: Micros) -> Micros {
    let product = u128::from(quantity) * u128::from(price.0);
    let product = product.saturating_mul(u128::from(factor.0)) / (unit * u128::from(ONE));
    Micros(u64::try_from(product).unwrap_or(u64::MAX))
}
