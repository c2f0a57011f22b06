//! Records for spreadsheets: a line each (RFC 4180), amounts as decimals.

use edgeloom_common::job::Service;
use edgeloom_common::price::Micros;
use edgeloom_common::usage::{UsageList, UsageView};

/// Name of a column, and a record's cell in it.
type Column = (&'static str, fn(&UsageView) -> String);

const COLUMNS: [Column; 34] = [
    ("number", |it| some(it.number)),
    ("job", |it| it.job.to_string()),
    ("task", |it| it.task.to_string()),
    ("node", |it| it.node.to_string()),
    ("container", |it| it.container.clone()),
    ("copies", |it| it.copies.to_string()),
    ("copy_of", |it| some(it.copy_of.as_ref())),
    ("satisfaction", |it| service(it.sla.satisfaction)),
    ("reputation", |it| service(it.sla.reputation)),
    ("resources", |it| service(it.sla.resources)),
    ("redundancy", |it| service(it.sla.redundancy)),
    ("accepted_ms", |it| it.accepted_ms.to_string()),
    ("from_ms", |it| it.from_ms.to_string()),
    ("until_ms", |it| some(it.until_ms)),
    ("end", |it| word(it)),
    ("heard_ms", |it| it.heard_ms.to_string()),
    ("runs", |it| it.runs.to_string()),
    ("queued_ms", |it| it.queued_ms.to_string()),
    ("starting_ms", |it| it.starting_ms.to_string()),
    ("running_ms", |it| it.running_ms.to_string()),
    ("cpu_us", |it| it.cpu_us.to_string()),
    ("memory_byte_s", |it| it.memory_byte_s.to_string()),
    ("reserved_cpu_us", |it| it.reserved_cpu_us.to_string()),
    ("reserved_memory_byte_s", |it| it.reserved_memory_byte_s.to_string()),
    ("sent_bytes", |it| it.sent_bytes.to_string()),
    ("received_bytes", |it| it.received_bytes.to_string()),
    ("pulled_bytes", |it| it.pulled_bytes.to_string()),
    ("prices_version", |it| some(it.charge.as_ref().map(|charge| charge.prices_version))),
    ("currency", |it| some(it.charge.as_ref().map(|charge| &charge.currency))),
    ("cpu", |it| amount(it, |charge| charge.cpu_micros)),
    ("memory", |it| amount(it, |charge| charge.memory_micros)),
    ("traffic", |it| {
        amount(it, |charge| Micros(charge.sent_micros.0.saturating_add(charge.pulled_micros.0)))
    }),
    ("credit", |it| amount(it, |charge| charge.credit_micros)),
    ("total", |it| amount(it, |charge| charge.total_micros)),
];

pub(super) fn text(list: &UsageList) -> String {
    let header = COLUMNS.map(|(name, _)| name.to_owned());
    let rows = list.records.iter().map(|record| COLUMNS.map(|(_, cell)| quoted(cell(record))));
    std::iter::once(header).chain(rows).map(|cells| cells.join(",") + "\r\n").collect()
}

fn quoted(cell: String) -> String {
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

fn some(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn service(service: Option<Service>) -> String {
    some(service.map(Service::name))
}

/// As JSON has it.
fn word(record: &UsageView) -> String {
    let word = serde_json::to_value(record.end).expect("a word is a text");
    word.as_str().unwrap_or_default().to_owned()
}

fn amount(record: &UsageView, of: fn(&edgeloom_common::usage::Charge) -> Micros) -> String {
    some(record.charge.as_ref().map(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::tables::tests::list;

    #[test]
    fn every_record_is_a_line_of_as_many_cells() {
        let mut list = list();
        list.records[1].container = "a,\"b\"".to_owned();
        let text = text(&list);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("number,job,task,node,") && lines[0].ends_with(",credit,total"));
        let cells: Vec<&str> = lines[1].split(',').collect();
        assert_eq!(
            (cells.len(), cells[0], cells[1], cells[8], cells[14]),
            (34, "4", "cats", "premium", "day")
        );
        assert_eq!(cells[28..], ["EUR", "0.06", "0.00", "0.00", "0.0005", "0.06"]);
        assert!(lines[2].starts_with(",cats,detect,n1,\"a,\"\"b\"\"\",2,find,"), "{text}");
    }
}
