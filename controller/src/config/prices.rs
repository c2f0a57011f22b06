//! `[prices]`: what use costs. Amounts are texts, since a number of TOML would be a float.

use super::section::Section;
use edgeloom_common::job::Service;
use edgeloom_common::price::{Factors, Micros, Prices, Promises};

/// Larger ones are slips, and products stay far below what integers hold.
const PRICE_MAX: Micros = Micros(10_000_000_000);
const FACTOR_MAX: Micros = Micros(100_000_000);
const CURRENCY_MAX: usize = 8;
/// A day.
const PROMISE_MAX_S: u64 = 86_400;

/// The tables of `[prices]`.
pub(super) struct Sections {
    prices: Section,
    resources: Section,
    reputation: Section,
    redundancy: Section,
    waiting: Section,
}

impl Sections {
    pub(super) fn of(root: &mut Section) -> Self {
        let mut prices = root.optional_section("prices");
        Self {
            resources: prices.optional_section("resources"),
            reputation: prices.optional_section("reputation"),
            redundancy: prices.optional_section("redundancy"),
            waiting: prices.optional_section("waiting"),
            prices,
        }
    }

    pub(super) fn into_sections(self) -> [Section; 5] {
        [self.prices, self.resources, self.reputation, self.redundancy, self.waiting]
    }

    /// None where the table is left out: nothing is charged then. What is wrong is noted.
    pub(super) fn read(&mut self) -> Option<Prices> {
        if !self.prices.is_there() {
            return None;
        }
        let wanted = "a currency such as \"EUR\"";
        let currency = self.prices.text("currency", wanted).unwrap_or_default();
        if currency.len() > CURRENCY_MAX || !currency.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let problem = format!("{currency:?} is not {wanted}: up to {CURRENCY_MAX} letters and digits");
            self.prices.refuse("currency", problem);
        }
        let mut price = |key: &str| decimal(&mut self.prices, key, Micros(0), PRICE_MAX);
        let [core_hour, gb_hour, gb_sent, gb_pulled] =
            ["core_hour", "gb_hour", "gb_sent", "gb_pulled"].map(&mut price);
        Some(Prices {
            currency,
            core_hour,
            gb_hour,
            gb_sent,
            gb_pulled,
            resources: factors(&mut self.resources),
            reputation: factors(&mut self.reputation),
            redundancy: factors(&mut self.redundancy),
            waiting_credit_hour: decimal(&mut self.waiting, "credit_hour", Micros(0), PRICE_MAX),
            waiting_promised: promises(&mut self.waiting),
        })
    }
}

fn factors(section: &mut Section) -> Factors {
    let mut factor = |service: Service| decimal(section, service.name(), Micros::ONE, FACTOR_MAX);
    let [premium, advanced, best_effort] = Service::ALL.map(&mut factor);
    Factors { best_effort, advanced, premium }
}

fn promises(section: &mut Section) -> Promises {
    let mut promise = |service: Service| seconds(section, service.name());
    let [premium, advanced, best_effort] = Service::ALL.map(&mut promise);
    Promises { best_effort, advanced, premium }
}

fn decimal(section: &mut Section, key: &str, default: Micros, most: Micros) -> Micros {
    const WANTED: &str = "a decimal number in quotes such as \"0.25\"";
    if !section.has_any(&[key]) {
        return default;
    }
    let number: Option<Micros> = section.parsed(key, WANTED);
    if number.is_some_and(|number| number > most) {
        section.refuse(key, format!("is over {most}; write less, or take another currency"));
    }
    number.unwrap_or(default)
}

/// `30s`, `5m` or `1h`.
fn seconds(section: &mut Section, key: &str) -> Option<u64> {
    const UNITS: [(char, u64); 3] = [('s', 1), ('m', 60), ('h', 3600)];
    const WANTED: &str = "a time such as \"30s\", \"5m\" or \"1h\"";
    if !section.has_any(&[key]) {
        return None;
    }
    let text = section.text(key, WANTED)?;
    let unit = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, seconds)));
    let number = unit.and_then(|(number, seconds)| number.parse::<u64>().ok()?.checked_mul(*seconds));
    let number = number.filter(|seconds| *seconds <= PROMISE_MAX_S);
    if number.is_none() {
        section.refuse(key, format!("{text:?} is not {WANTED}, up to 24h"));
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Prices>, Vec<String>) {
        let mut root = Section::root(text.parse().unwrap());
        let mut sections = Sections::of(&mut root);
        let prices = sections.read();
        let problems = Section::finish(std::iter::once(root).chain(sections.into_sections()));
        (prices, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn without_the_table_nothing_is_charged() {
        assert_eq!(read(""), (None, Vec::new()));
    }

    #[test]
    fn a_table_reads_exactly_and_what_is_left_out_is_free_or_as_dear() {
        let (prices, problems) = read(
            "[prices]\ncurrency = \"EUR\"\ncore_hour = \"0.04\"\ngb_sent = \"0.000001\"\n[prices.reputation]\npremium = \"1.5\"\n\
             best-effort = \"0.8\"\n[prices.waiting]\ncredit_hour = \"0.1\"\npremium = \"30s\"\nadvanced = \"5m\"",
        );
        let prices = prices.unwrap();
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            (prices.core_hour, prices.gb_sent, prices.gb_hour),
            (Micros(40_000), Micros(1), Micros(0))
        );
        let expected =
            Factors { premium: Micros(1_500_000), best_effort: Micros(800_000), ..Factors::default() };
        assert_eq!((prices.reputation, prices.resources), (expected, Factors::default()));
        let promised = Promises { premium: Some(30), advanced: Some(300), best_effort: None };
        assert_eq!((prices.waiting_promised, prices.waiting_credit_hour), (promised, Micros(100_000)));
    }

    #[test]
    fn every_problem_of_a_table_is_named() {
        let (_, problems) = read(
            "[prices]\ncurrency = \"gold coins\"\ncore_hour = 0.04\ngb_hour = \"-1\"\ngb_sent = \"0.0000001\"\n\
             gb_pulled = \"10001\"\nper_hour = \"1\"\n[prices.resources]\npremium = \"1000\"\ngold = \"2\"\n\
             [prices.waiting]\npremium = \"soon\"\nadvanced = \"25h\"\ncredit_hour = \"1,5\"",
        );
        for field in [
            "prices.currency:",
            "prices.core_hour:",
            "prices.gb_hour:",
            "prices.gb_sent:",
            "prices.gb_pulled:",
            "prices.per_hour:",
            "prices.resources.premium:",
            "prices.resources.gold:",
            "prices.waiting.premium:",
            "prices.waiting.advanced:",
            "prices.waiting.credit_hour:",
        ] {
            assert!(problems.iter().any(|line| line.starts_with(field)), "{field} in {problems:?}");
        }
        assert_eq!(problems.len(), 11, "{problems:?}");
        let (_, problems) = read("[prices]\n[prices.reputation]\n");
        assert!(problems.len() == 1 && problems[0].starts_with("prices.currency:"), "{problems:?}");
    }
}
