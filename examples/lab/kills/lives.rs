//! Which containers run, by the kernel's own account: the processes in their cgroups. It answers while Docker
//! is dead, too; Docker's files say which task a container is of.

use crate::cgroup;
use crate::lab::Lab;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A container's first process, of a task of ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life {
    pub(crate) job: String,
    pub(crate) task: String,
    pub(crate) node: String,
    pub(crate) container: String,
    pub(crate) pid: i32,
}

impl Life {
    /// As people read it.
    pub(crate) fn told(&self) -> String {
        format!("{} on {} in {:.12} (pid {})", self.task, self.node, self.container, self.pid)
    }
}

/// The nodes' cgroups and Docker's folders.
#[derive(Debug)]
pub(crate) struct Eye {
    lab: String,
    nodes: Vec<(String, PathBuf)>,
    /// Job and task by container; none for containers of nobody.
    tasks: BTreeMap<String, Option<(String, String)>>,
}

impl Eye {
    pub(crate) fn new(lab: &Lab) -> Self {
        let nodes = lab.nodes();
        let nodes = nodes.iter().map(|node| (node.spec.name.clone(), node.state().join("docker/containers")));
        Self { lab: lab.id.clone(), nodes: nodes.collect(), tasks: BTreeMap::new() }
    }

    /// Everything that runs now.
    pub(crate) fn look(&mut self) -> BTreeSet<Life> {
        let mut lives = BTreeSet::new();
        for (node, folder) in self.nodes.clone() {
            for (container, pids) in cgroup::containers(&self.lab, &node) {
                let Some(pid) = pids.into_iter().filter(|pid| runs_its_program(*pid)).min() else { continue };
                let Some((job, task)) = self.task(&folder, &container) else { continue };
                lives.insert(Life { job, task, node: node.clone(), container, pid });
            }
        }
        lives
    }

    fn task(&mut self, folder: &std::path::Path, container: &str) -> Option<(String, String)> {
        if let Some(known) = self.tasks.get(container) {
            return known.clone();
        }
        // Docker writes the file before it starts the container; replaced while being read, it reads next time.
        let text = std::fs::read_to_string(folder.join(container).join("config.v2.json")).ok()?;
        let config: Value = serde_json::from_str(&text).ok()?;
        let label = |key: &str| Some(config["Config"]["Labels"][key].as_str()?.to_owned());
        let task = label("edgeloom.job").zip(label("edgeloom.task"));
        self.tasks.insert(container.to_owned(), task.clone());
        task
    }
}

/// The first process of a container's own process namespace, once it is the program: what the runtime itself does
/// in the cgroup before is no life.
fn runs_its_program(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| is_first(&status))
}

fn is_first(status: &str) -> bool {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
    let (name, pids) = (value("Name:"), value("NSpid:").split_whitespace().collect::<Vec<_>>());
    !name.starts_with("runc") && name != "exe" && matches!(pids[..], [_, .., "1"])
}

/// A life that is over.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) life: Life,
    pub(crate) begun_s: f64,
    /// Seen last, and seen gone.
    pub(crate) last_s: f64,
    pub(crate) ended_s: f64,
}

/// A task in two containers at once.
#[derive(Debug, Clone)]
pub(crate) struct Double {
    pub(crate) lives: [Life; 2],
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

/// All lives of a run, from looks in a row.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    pub(crate) begun: usize,
    pub(crate) ended: Vec<Ended>,
    /// Those that two looks in a row agree on: one look takes its time.
    pub(crate) doubles: Vec<Double>,
    running: BTreeMap<Life, f64>,
    twice: BTreeSet<[Life; 2]>,
    looked_s: f64,
}

/// What a look showed beyond the one before.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) begun: Vec<Life>,
    pub(crate) ended: Vec<Life>,
}

impl Lives {
    /// Takes a look in.
    pub(crate) fn see(&mut self, at_s: f64, found: &BTreeSet<Life>) -> News {
        let mut news = News::default();
        let gone: Vec<Life> = self.running.keys().filter(|life| !found.contains(*life)).cloned().collect();
        for life in gone {
            let begun_s = self.running.remove(&life).unwrap_or(at_s);
            self.ended.push(Ended { life: life.clone(), begun_s, last_s: self.looked_s, ended_s: at_s });
            news.ended.push(life);
        }
        for life in found {
            if self.running.insert(life.clone(), self.running.get(life).copied().unwrap_or(at_s)).is_none() {
                self.begun += 1;
                news.begun.push(life.clone());
            }
        }
        let twice = pairs(found);
        for pair in twice.intersection(&self.twice) {
            match self.doubles.iter_mut().find(|double| double.lives == *pair) {
                Some(double) => double.to_s = at_s,
                None => {
                    self.doubles.push(Double { lives: pair.clone(), from_s: self.looked_s, to_s: at_s });
                }
            }
        }
        (self.twice, self.looked_s) = (twice, at_s);
        news
    }
}

/// Lives of the same task, which lie next to each other in their order.
fn pairs(found: &BTreeSet<Life>) -> BTreeSet<[Life; 2]> {
    let next = found.iter().zip(found.iter().skip(1));
    let same = next.filter(|(one, other)| (&one.job, &one.task) == (&other.job, &other.task));
    same.map(|(one, other)| [one.clone(), other.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(task: &str, node: &str, container: &str) -> Life {
        let [job, task, node, container] = ["j", task, node, container].map(str::to_owned);
        Life { job, task, node, container, pid: 7 }
    }

    #[test]
    fn a_task_is_double_once_two_looks_in_a_row_show_both() {
        let (one, other, third) = (life("t", "n1", "a"), life("t", "n2", "b"), life("u", "n2", "c"));
        let both = BTreeSet::from([one.clone(), other.clone(), third.clone()]);
        let mut lives = Lives::default();
        lives.see(1.0, &both);
        assert!(lives.doubles.is_empty());
        lives.see(2.0, &BTreeSet::from([one, third]));
        lives.see(3.0, &both);
        lives.see(4.0, &both);
        lives.see(5.0, &both);
        assert_eq!(lives.doubles.len(), 1);
        assert!((lives.doubles[0].from_s - 3.0).abs() < 1e-9 && (lives.doubles[0].to_s - 5.0).abs() < 1e-9);
    }

    #[test]
    fn what_the_runtime_does_before_the_program_is_no_life() {
        let status = |name: &str, pids: &str| format!("Name:\t{name}\nUmask:\t0022\nNSpid:\t{pids}\n");
        assert!(is_first(&status("pipeline", "6884\t1")));
        assert!(!is_first(&status("pipeline", "6884\t7")));
        for (name, pids) in [("exe", "6798"), ("exe", "6798\t1"), ("runc:[2:INIT]", "6884\t1"), ("x", "1")] {
            assert!(!is_first(&status(name, pids)), "{name}");
        }
    }

    #[test]
    fn another_process_in_the_same_container_is_another_life() {
        let first = life("t", "n1", "a");
        let second = Life { pid: 8, ..first.clone() };
        let mut lives = Lives::default();
        lives.see(1.0, &BTreeSet::from([first.clone()]));
        let news = lives.see(2.0, &BTreeSet::from([second.clone()]));
        assert_eq!((news.begun, news.ended), (vec![second], vec![first]));
        assert_eq!((lives.begun, lives.ended.len()), (2, 1));
        assert!((lives.ended[0].begun_s - 1.0).abs() < 1e-9);
    }
}
