//! A task's labels, tolerations, preferences, affinity and spread, as a user writes them.

use super::fields::{self, Fields};
use super::hosting;
use super::problems::{Place, Problems, excerpt};
use super::tree::{Node, Value};
use super::words::{Condition, LabelText, Topology};
use super::{Affinity, Attribute, Placement, Preference, Selector, Spread, Term, Toleration};
use crate::ids::TaskName;
use std::collections::BTreeMap;

const RULES_MAX: usize = 32;
const WEIGHT_MAX: u32 = 100;
const SKEW_MAX: u32 = 1000;
const TERM_FIELDS: &[&str] = &["with", "labels", "by", "weight"];
const SPREAD_FIELDS: &[&str] = &["by", "labels", "max_skew", "required"];
const PREFERENCE_FIELDS: &[&str] = &["constraint", "weight"];

const LABEL_REMEDY: &str = "use 1 to 63 letters, digits and `. _ - /`";
const BY_REMEDY: &str = "write `node.name`, or a label as `node.labels.zone`";

/// Tasks of the job that rules name, each with its place.
pub(super) type Named = Vec<(TaskName, Place)>;

/// Reads all of them; what does not read is told and left out.
pub(super) fn placement(fields: &Fields<'_>, problems: &mut Problems) -> (Placement, Named) {
    let mut named = Named::new();
    let found = |name: &str| fields.optional(name);
    let labels = found("labels").map(|(node, place)| labels(node, &place, problems)).unwrap_or_default();
    let tolerations = found("tolerations").map(|it| each(it, problems, toleration)).unwrap_or_default();
    let preferences = found("preferences").map(|it| each(it, problems, preference)).unwrap_or_default();
    let mut affinity = |name: &str, problems: &mut Problems| {
        let terms =
            found(name).map(|it| each(it, problems, |item, problems| terms(item, &mut named, problems)));
        collect(terms.unwrap_or_default().into_iter().flatten())
    };
    let (together, apart) = (affinity("affinity", problems), affinity("anti_affinity", problems));
    let spreads = found("spread")
        .map(|it| each(it, problems, |(node, place), problems| spread((node, place), &labels, problems)));
    let placement = Placement {
        labels: labels.clone(),
        tolerations,
        preferences,
        affinity: together,
        anti_affinity: apart,
        spread: spreads.unwrap_or_default(),
        ports: found("ports").map(|(node, place)| hosting::ports(node, &place, problems)).unwrap_or_default(),
        mounts: found("volumes")
            .map(|(node, place)| hosting::mounts(node, &place, problems))
            .unwrap_or_default(),
        ..Placement::default()
    };
    (placement, named)
}

/// The items of a list, or the one that stands there alone.
fn each<T>(
    (node, place): (&Node, Place),
    problems: &mut Problems,
    mut read: impl FnMut((&Node, Place), &mut Problems) -> Option<T>,
) -> Vec<T> {
    let items = match &node.value {
        Value::List(_) => fields::list(node, &place, RULES_MAX, problems).unwrap_or_default(),
        _ => vec![(node, place)],
    };
    items.into_iter().filter_map(|item| read(item, problems)).collect()
}

fn labels(node: &Node, place: &Place, problems: &mut Problems) -> BTreeMap<String, String> {
    let Some(written) = Fields::any(node, place, problems) else { return BTreeMap::new() };
    let count = written.iter().count();
    if count > RULES_MAX {
        problems.add(place, format!("has {count} labels, at most {RULES_MAX} are allowed"), "remove some");
        return BTreeMap::new();
    }
    let mut read = BTreeMap::new();
    for (key, node, place) in written.iter() {
        let key = key.parse::<LabelText>();
        if let Err(error) = &key {
            problems.add(&place, error.to_string(), LABEL_REMEDY);
        }
        let value = fields::parsed::<LabelText>(node, &place, LABEL_REMEDY, problems);
        if let (Ok(LabelText(key)), Some(LabelText(value))) = (key, value) {
            read.insert(key, value);
        }
    }
    read
}

/// `gpu`, `gpu=yes`, `gpu=yes:no_schedule`, or `all`.
fn toleration((node, place): (&Node, Place), problems: &mut Problems) -> Option<Toleration> {
    let remedy = "write a taint as `gpu`, `gpu=yes` or `gpu=yes:no_schedule`, or `all`";
    fields::parsed(node, &place, remedy, problems)
}

fn preference((node, place): (&Node, Place), problems: &mut Problems) -> Option<Preference> {
    let fields = Fields::open(node, &place, PREFERENCE_FIELDS, problems)?;
    let remedy = "write `constraint: \"node.labels.ssd == true\"`";
    let constraint = fields
        .required("constraint", remedy, problems)
        .and_then(|(node, place)| fields::parsed::<Condition>(node, &place, remedy, problems));
    let weight = fields.required("weight", "write `weight:` with 1 to 100", problems);
    let weight = weight.and_then(|(node, place)| number(node, &place, WEIGHT_MAX, problems));
    Some(Preference { constraint: constraint?.0, weight: weight? })
}

/// Terms of one rule, with the weight of those that are preferred only.
type Terms = Vec<(Term, Option<u32>)>;

fn terms((node, place): (&Node, Place), named: &mut Named, problems: &mut Problems) -> Option<Terms> {
    let fields = Fields::open(node, &place, TERM_FIELDS, problems)?;
    let by = by(&fields, problems);
    let weight = match fields.optional("weight") {
        Some((node, place)) => number(node, &place, WEIGHT_MAX, problems).map(Some),
        None => Some(None),
    };
    let mut selectors = Vec::new();
    if let Some(with) = fields.optional("with") {
        let remedy = "name tasks of this job: `with: [track]`";
        for (name, place) in each(with, problems, |(node, place), problems| {
            Some((fields::parsed::<TaskName>(node, &place, remedy, problems)?, place))
        }) {
            selectors.push(Selector::Task(name.clone()));
            named.push((name, place));
        }
    }
    if let Some((node, place)) = fields.optional("labels") {
        let labels = labels(node, &place, problems);
        if !labels.is_empty() {
            selectors.push(Selector::Labels(labels));
        }
    }
    if !fields.has("with") && !fields.has("labels") {
        let remedy = "write `with: [track]`, or `labels: { app: cache }` for tasks of any job";
        problems.add(&place, "says nothing of which tasks", remedy);
    }
    let (by, weight) = (by?, weight?);
    Some(selectors.into_iter().map(|with| (Term { with, by: by.clone() }, weight)).collect())
}

fn collect(terms: impl Iterator<Item = (Term, Option<u32>)>) -> Affinity {
    let mut affinity = Affinity::default();
    for (term, weight) in terms {
        match weight {
            None => affinity.required.push(term),
            Some(weight) => affinity.preferred.push((term, weight)),
        }
    }
    affinity
}

fn spread(
    (node, place): (&Node, Place),
    own: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> Option<Spread> {
    let fields = Fields::open(node, &place, SPREAD_FIELDS, problems)?;
    let by = by(&fields, problems);
    let counted = match fields.optional("labels") {
        Some((node, place)) => labels(node, &place, problems),
        None => own.clone(),
    };
    if counted.is_empty() {
        let remedy = "give the task `labels`, which then are counted, or write them here";
        problems.add(&place, "says nothing of which tasks to spread", remedy);
    }
    let skew = fields.optional("max_skew");
    let max_skew = skew.map_or(Some(1), |(node, place)| number(node, &place, SKEW_MAX, problems));
    let required = fields.optional("required").map_or(Some(false), |(node, place)| {
        fields::parsed::<bool>(node, &place, "write `required: true` or `required: false`", problems)
    });
    Some(Spread { labels: counted, by: by?, max_skew: max_skew?, required: required? })
}

/// Nodes one by one, unless a label is named.
fn by(fields: &Fields<'_>, problems: &mut Problems) -> Option<Attribute> {
    let Some((node, place)) = fields.optional("by") else { return Some(Attribute::Name) };
    fields::parsed::<Topology>(node, &place, BY_REMEDY, problems).map(|topology| topology.0)
}

fn number(node: &Node, place: &Place, most: u32, problems: &mut Problems) -> Option<u32> {
    let text = fields::text(node, place, problems)?;
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Some(number),
        _ => {
            let problem = format!("{:?} is no number from 1 to {most}", excerpt(text));
            problems.add(place, problem, "write a whole number");
            None
        }
    }
}
