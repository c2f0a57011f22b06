//! Work spread over threads, its results in the order of the work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Threads that this machine runs at a time.
#[must_use]
pub fn available_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// `work` of each item; after a failure no further item is begun, and the first failure in order is the
/// answer.
///
/// # Errors
/// Those of `work`.
pub(crate) fn try_map<T, R, E>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E>
where
    T: Sync,
    R: Send,
    E: Send,
{
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((at, result));
        }
        done
    };
    let mut all: Vec<(usize, Result<R, E>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        let items: Vec<u64> = (0..100).collect();
        let squares = try_map(&items, 4, |item| Ok::<u64, ()>(item * item)).unwrap();
        assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_is_the_answer() {
        let refused = try_map(&[1, 2, 3], 2, |item| if *item == 2 { Err("two") } else { Ok(*item) });
        assert_eq!(refused, Err("two"));
    }
}
