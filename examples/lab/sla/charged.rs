//! What use costs: each record's amounts, computed anew from its figures and the price table.

use super::report::Report;
use super::stage::Stage;
use crate::api::Request;
use anyhow::{Context, Result};
use edgeloom_common::price::{ONE, Prices};
use edgeloom_common::usage::{UsageList, UsageView};

const HOUR_S: u128 = 3_600;
const GB: u128 = 1_000_000_000;

/// Each record of these jobs costs what its parts cost by the table.
pub(super) fn charged<'a>(
    stage: &Stage,
    report: &mut Report,
    jobs: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    let prices = prices(stage)?;
    let mut wrong = Vec::new();
    let (mut records, mut total) = (0, 0);
    for job in jobs {
        for record in stage.ground.api.usage(job)? {
            let charge = record.charge.as_ref().context("every record is charged")?;
            let told = [charge.cpu_micros, charge.memory_micros, charge.sent_micros, charge.pulled_micros];
            let told = told.map(|part| part.0);
            let sum = told.iter().sum::<u64>().checked_sub(charge.credit_micros.0);
            if told != parts(&record, &prices) || sum != Some(charge.total_micros.0) {
                wrong.push(format!("{job}/{}", record.task));
            }
            (records, total) = (records + 1, total + charge.total_micros.0);
        }
    }
    report.none(&format!("records that do not cost what their parts do, of {records}"), &wrong);
    report.verdict.check("and together they cost something, in millionths", total > 0, total, "more than 0");
    Ok(())
}

/// The table that the answers carry.
fn prices(stage: &Stage) -> Result<Prices> {
    let (_, body) = stage.ground.api.request(&Request::Get("/v1/usage?limit=1"))?;
    let list: UsageList = serde_json::from_str(&body)?;
    Ok(list.tariff.context("there are prices")?.prices)
}

/// Cores, memory, bytes sent and bytes pulled at the table's prices, in millionths.
fn parts(record: &UsageView, prices: &Prices) -> [u64; 4] {
    let factor = prices.resources.of(record.sla.resources).0;
    let part = |(quantity, unit): (u64, u128), price: u64, factor: u64| {
        let product = u128::from(quantity) * u128::from(price) * u128::from(factor);
        u64::try_from(product / unit / u128::from(ONE)).unwrap_or(u64::MAX)
    };
    [
        part((record.cpu_us, HOUR_S * 1_000_000), prices.core_hour.0, factor),
        part((record.memory_byte_s, HOUR_S * GB), prices.gb_hour.0, factor),
        part((record.sent_bytes, GB), prices.gb_sent.0, ONE),
        part((record.pulled_bytes, GB), prices.gb_pulled.0, ONE),
    ]
}
