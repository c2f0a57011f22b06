//! `edgeloom usage`: what containers used, and what it costs.

mod csv;
pub(crate) mod moment;
mod tables;

use crate::arguments::Output;
use crate::client::Client;
use crate::commands::Printer;
use crate::error::Error;
use clap::Args;
use edgeloom_common::ids::JobName;
use edgeloom_common::usage::UsageList;
use moment::Moment;

#[derive(Debug, Args)]
pub(crate) struct UsageArguments {
    /// Only of this job; also of one that has gone.
    job: Option<JobName>,
    /// Only records that begin then or later: 2026-11-01 or 2026-11-01T12:30:00Z, which is UTC, or 7d, which is
    /// seven days ago. Every day, UTC, has records of its own.
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    since: Option<Moment>,
    /// Only records that begin earlier.
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    until: Option<Moment>,
}

pub(crate) fn usage(client: &Client, printer: &Printer, arguments: &UsageArguments) -> Result<(), Error> {
    let list = fetch(client, &selection(arguments, moment::now_ms()))?;
    match printer.output() {
        Output::Csv => printer.print(&list, csv::text),
        Output::Table | Output::Json => printer.print(&list, tables::text),
    }
}

/// What a job used so far, as a line; empty where a controller of an earlier version keeps no records.
pub(crate) fn so_far(client: &Client, job: &JobName) -> String {
    fetch(client, &format!("&job={job}")).map(|list| tables::so_far(&list)).unwrap_or_default()
}

/// The query without its page.
fn selection(arguments: &UsageArguments, now_ms: u64) -> String {
    let UsageArguments { job, since, until } = arguments;
    let mut query = String::new();
    if let Some(job) = job {
        query.push_str(&format!("&job={job}"));
    }
    for (name, moment) in [("since_ms", since), ("until_ms", until)] {
        if let Some(moment) = moment {
            query.push_str(&format!("&{name}={}", moment.at_ms(now_ms)));
        }
    }
    query
}

/// All pages as one list.
fn fetch(client: &Client, selection: &str) -> Result<UsageList, Error> {
    let page = |after: u64| client.fetch::<UsageList>(&format!("/v1/usage?after={after}{selection}"));
    let mut all = page(0)?;
    while let Some(after) = all.next {
        let page = page(after)?;
        // An answer that leads nowhere must not be asked for again and again.
        all.next = page.next.filter(|next| *next > after);
        all.records.extend(page.records);
        all.unreadable = all.unreadable.max(page.unreadable);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_names_what_was_given() {
        let none = UsageArguments { job: None, since: None, until: None };
        assert_eq!(selection(&none, 5), "");
        let since = Some(moment::parse("1970-01-02").unwrap());
        let until = Some(moment::parse("1s").unwrap());
        let some = UsageArguments { job: Some("cats".parse().unwrap()), since, until };
        assert_eq!(selection(&some, 172_801_000), "&job=cats&since_ms=86400000&until_ms=172800000");
    }
}
