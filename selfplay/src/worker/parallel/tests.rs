//! Tests of several evaluators as one.

use super::*;
use arimaa::rules::{Game, StepState};
use engine::search::{Material, Uniform};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread::ThreadId;

/// Queries that all differ: the states of a setup, one placement after the other.
fn queries(count: usize) -> Vec<Query> {
    let game = Game::new();
    let mut waiting = vec![StepState::new(game.position())];
    let mut queries = Vec::new();
    while queries.len() < count {
        let state = waiting.remove(0);
        let legal = state.legal_actions(game.history());
        queries.push(Query {
            state,
            legal,
            repetitions: 0,
        });
        let after = legal
            .in_index_order(state.side())
            .map(|action| state.after(action));
        waiting.extend(after.filter(|after| !after.is_complete()));
    }
    queries
}

/// Which evaluator was requested how many answers, and in which thread.
type Asked = (usize, usize, ThreadId);

/// Judges as `material` does, and tells what it was asked, in which thread, and of its end.
struct Watched {
    number: usize,
    asked: Sender<Asked>,
    alive: Arc<AtomicUsize>,
    /// What to do with the next batches: nothing is what `material` does.
    plan: Vec<Plan>,
}

#[derive(Clone, Copy, PartialEq)]
enum Plan {
    Answer,
    Fail,
    Panic,
    LoseOne,
}

impl Evaluator for Watched {
    fn name(&self) -> &str {
        "watched"
    }

    fn leaves_at_once(&self) -> u32 {
        8
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        let asked = (self.number, queries.len(), std::thread::current().id());
        self.asked.send(asked).unwrap();
        let plan = if self.plan.is_empty() {
            Plan::Answer
        } else {
            self.plan.remove(0)
        };
        match plan {
            Plan::Answer => Material::default().evaluate(queries, out),
            Plan::LoseOne => Material::default().evaluate(&queries[1..], out),
            Plan::Panic => panic!("what a pity"),
            Plan::Fail => Err(EvaluatorError::Device {
                evaluator: "watched".into(),
                message: format!("evaluator {} is out of order", self.number),
            }),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

/// Evaluators with these plans as one, what they are asked, and how many of them are there.
fn watched(
    plans: &[&[Plan]],
    least_part: usize,
) -> (ParallelEvaluator, Receiver<Asked>, Arc<AtomicUsize>) {
    let (asked, told) = channel();
    let alive = Arc::new(AtomicUsize::new(plans.len()));
    let evaluators = plans.iter().enumerate().map(|(number, plan)| {
        Box::new(Watched {
            number,
            asked: asked.clone(),
            alive: Arc::clone(&alive),
            plan: plan.to_vec(),
        }) as Box<dyn Evaluator>
    });
    let parallel = ParallelEvaluator::new(evaluators.collect(), least_part).unwrap();
    (parallel, told, alive)
}

fn evaluate(evaluator: &mut dyn Evaluator, queries: &[Query]) -> Evaluations {
    let mut out = Evaluations::default();
    evaluator.evaluate(queries, &mut out).unwrap();
    out
}

#[test]
fn answers_come_in_the_order_of_the_queries() {
    let queries = queries(60);
    for evaluators in 1..=5 {
        let (mut parallel, _told, _) = watched(&vec![&[][..]; evaluators], 1);
        assert_eq!(parallel.leaves_at_once(), 8 * evaluators as u32);
        for count in [0, 1, 2, 3, 7, 60] {
            let expected = evaluate(&mut Material::default(), &queries[..count]);
            assert_eq!(evaluate(&mut parallel, &queries[..count]), expected);
        }
    }
}

#[test]
fn parts_are_nearly_equal_and_none_is_small() {
    let queries = queries(60);
    let (mut parallel, told, _) = watched(&[&[], &[], &[]], 4);
    let here = std::thread::current().id();
    for (count, expected) in [
        (0, vec![0]),
        (3, vec![3]),
        (7, vec![7]),
        (8, vec![4, 4]),
        (11, vec![5, 6]),
        (12, vec![4, 4, 4]),
        (60, vec![20, 20, 20]),
        (59, vec![19, 20, 20]),
    ] {
        evaluate(&mut parallel, &queries[..count]);
        let mut asked: Vec<Asked> = told.try_iter().collect();
        asked.sort_by_key(|one| one.0);
        let sizes: Vec<usize> = asked.iter().map(|one| one.1).collect();
        assert_eq!(sizes, expected, "{count}");
        let threads: Vec<ThreadId> = asked.iter().map(|one| one.2).collect();
        assert!(threads[0] == here && threads[1..].iter().all(|&thread| thread != here));
    }
}

#[test]
fn a_failure_names_its_evaluator_and_leaves_nothing_behind() {
    let queries = queries(12);
    let expected = evaluate(&mut Material::default(), &queries);
    for (plan, said) in [
        (Plan::Fail, "evaluator 1 is out of order"),
        (
            Plan::LoseOne,
            "evaluator 1 gave 3 answers for 4 step states",
        ),
    ] {
        let (mut parallel, _told, _) = watched(&[&[], &[plan], &[]], 4);
        let error = parallel.evaluate(&queries, &mut Evaluations::default());
        let message = error.unwrap_err().to_string();
        assert!(
            message.starts_with("watched: ") && message.contains(said),
            "{message}"
        );
        // The next batch is answered as if nothing had been.
        assert_eq!(evaluate(&mut parallel, &queries), expected);
    }
}

#[test]
fn a_panic_is_an_error_now_and_later() {
    let queries = queries(12);
    for place in 0..3 {
        let mut plans: [&[Plan]; 3] = [&[]; 3];
        plans[place] = &[Plan::Answer, Plan::Panic];
        let (mut parallel, _told, alive) = watched(&plans, 4);
        evaluate(&mut parallel, &queries);
        for said in ["panicked: what a pity", "has panicked before"] {
            let error = parallel.evaluate(&queries, &mut Evaluations::default());
            let message = error.unwrap_err().to_string();
            let expected = format!("watched: its evaluator {place} {said}");
            assert_eq!(message, expected);
        }
        drop(parallel);
        assert_eq!(alive.load(SeqCst), 0);
    }
}

#[test]
fn threads_end_with_it() {
    let (mut parallel, told, alive) = watched(&[&[], &[], &[]], 1);
    evaluate(&mut parallel, &queries(9));
    assert_eq!(alive.load(SeqCst), 3);
    drop(parallel);
    // Their evaluators are gone, and so are their ends of the channel.
    assert_eq!(alive.load(SeqCst), 0);
    assert_eq!(told.iter().count(), 3);
}

#[test]
fn none_and_different_ones_are_refused() {
    let error = |evaluators| {
        ParallelEvaluator::new(evaluators, 1)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(error(Vec::new()).contains("no evaluator"));
    let message = error(vec![Box::new(Uniform), Box::new(Material::default())]);
    assert!(
        message.contains("material") && message.contains("uniform"),
        "{message}"
    );
}
