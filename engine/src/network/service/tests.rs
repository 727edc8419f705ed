//! The service with devices that count, fail and run out of memory as they are told, and with a real one.

use super::*;
use crate::encoding::PLANES;
use crate::network::model::tests::decided_network;
use crate::network::packed::{ANSWER_FLOATS, ROW_WORDS, pack};
use crate::network::positions::real_positions;
use crate::network::{Network, NetworkEvaluator};
use crate::rules::Side;
use crate::search::{Evaluations, Evaluator, Query};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

/// What a fake device does with its batches.
#[derive(Clone)]
enum Behaviour {
    /// Has memory for so many rows.
    Memory(usize),
    /// Fails at the batch after so many.
    FailsAfter(usize),
    /// Panics at the first batch.
    Panics,
    /// Evaluates a batch whenever it is sent something.
    Waits(Arc<Mutex<Receiver<()>>>),
}

/// Says of a row what its words make it say.
struct Fake {
    behaviour: Behaviour,
    batches: usize,
    rows: Vec<i64>,
    evaluated: Vec<f32>,
}

/// Equal priors, and a value that tells rows apart.
fn fake_answer(words: &[i64]) -> [f32; ANSWER_FLOATS] {
    let legal: u32 = words[PLANES..PLANES + 6]
        .iter()
        .map(|set| set.count_ones())
        .sum();
    let mut hash = 0u64;
    for &word in words {
        hash = (hash ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    let mut answer = [-(legal as f32).ln(); ANSWER_FLOATS];
    answer[ANSWER_FLOATS - 1] = (hash % 10_000) as f32 / 2_500.0 - 2.0;
    answer
}

impl Forward for Fake {
    fn load(&mut self, first: usize, packed: &[i64]) -> Result<(), NetworkError> {
        let begin = first * ROW_WORDS;
        if self.rows.len() < begin + packed.len() {
            self.rows.resize(begin + packed.len(), 0);
        }
        self.rows[begin..begin + packed.len()].copy_from_slice(packed);
        Ok(())
    }

    fn run(&mut self, size: usize) -> Result<(), NetworkError> {
        self.batches += 1;
        match &self.behaviour {
            Behaviour::Memory(rows) if size > *rows => {
                let text = "CUDA out of memory. Tried to allocate 2.00 GiB.";
                return Err(NetworkError::Torch(text.into()));
            }
            Behaviour::FailsAfter(batches) if self.batches > *batches => {
                return Err(NetworkError::Torch("the device fell off the bus".into()));
            }
            Behaviour::Panics => panic!("as it was told"),
            Behaviour::Waits(signal) => signal.lock().unwrap().recv().unwrap(),
            _ => {}
        }
        self.rows
            .resize(size.max(self.rows.len() / ROW_WORDS) * ROW_WORDS, 0);
        let rows = self.rows.chunks_exact(ROW_WORDS).take(size);
        self.evaluated = rows.flat_map(fake_answer).collect();
        Ok(())
    }

    fn read(&mut self, first: usize, out: &mut [f32]) -> Result<(), NetworkError> {
        out.copy_from_slice(&self.evaluated[first * ANSWER_FLOATS..][..out.len()]);
        Ok(())
    }
}

fn setup(device: u16, sizes: &[usize], behaviours: &[Behaviour]) -> Setup {
    let forwards = behaviours.iter().map(|behaviour| {
        Box::new(Fake {
            behaviour: behaviour.clone(),
            batches: 0,
            rows: Vec::new(),
            evaluated: Vec::new(),
        }) as Box<dyn Forward>
    });
    Setup {
        device: Device::Cuda(device),
        sizes: untimed(sizes),
        forwards: forwards.collect(),
    }
}

/// A service of fake devices, and the notes that it made.
fn launch(setups: Vec<Setup>) -> (EvaluationService, Arc<Mutex<Vec<String>>>) {
    let written = Arc::new(Mutex::new(Vec::new()));
    let kept = written.clone();
    let notes: Notes = Arc::new(move |note: &str| kept.lock().unwrap().push(note.to_owned()));
    (
        EvaluationService::launch("test", setups, &notes).unwrap(),
        written,
    )
}

const ENOUGH: Behaviour = Behaviour::Memory(usize::MAX);

fn assert_fake_answers(queries: &[Query], out: &Evaluations) {
    assert_eq!(out.len(), queries.len());
    for (index, query) in queries.iter().enumerate() {
        let mut words = Vec::new();
        pack(query, &mut words);
        let value = 1.0 / (1.0 + (-fake_answer(&words)[ANSWER_FLOATS - 1]).exp());
        let value = match query.side() {
            Side::Gold => value,
            Side::Silver => 1.0 - value,
        };
        let answer = out.get(index).unwrap();
        assert_eq!(answer.value, value);
        assert_eq!(answer.priors.len(), query.legal.count());
        answer.check("test", query).unwrap();
    }
}

#[test]
fn many_clients_on_several_devices_get_their_own_answers() {
    let setups = vec![
        setup(0, &[4, 16], &[ENOUGH, ENOUGH]),
        setup(1, &[8, 32], &[ENOUGH, ENOUGH]),
    ];
    let (service, notes) = launch(setups);
    let queries = real_positions(1_000).unwrap();
    let asked: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker: usize| {
                let (mut client, queries) = (service.client(), &queries);
                scope.spawn(move || {
                    let mut out = Evaluations::default();
                    let batch = |round: usize| {
                        let first = (worker * 211 + round * 37) % 900;
                        &queries[first..first + (round * 7 + worker) % 45]
                    };
                    client.submit(0, batch(0)).unwrap();
                    for round in 0..60 {
                        client.submit((round + 1) % 2, batch(round + 1)).unwrap();
                        client.receive(round % 2, &mut out).unwrap();
                        assert_fake_answers(batch(round), &out);
                    }
                    client.receive(0, &mut out).unwrap();
                    assert_fake_answers(batch(60), &out);
                    (0..=60).map(|round| batch(round).len()).sum::<usize>()
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    let counters = service.counters();
    assert_eq!(counters.len(), 4);
    assert_eq!(counters[3].device, Device::Cuda(1));
    let total = |what: fn(&ThreadCounters) -> u64| counters.iter().map(what).sum::<u64>();
    assert_eq!(total(|thread| thread.rows), asked as u64);
    assert!(total(|thread| thread.padded_rows) >= asked as u64);
    assert!(total(|thread| thread.batches) as usize >= asked / 32);
    assert!(total(|thread| (thread.busy + thread.waiting).as_nanos() as u64) > 0);
    assert!(notes.lock().unwrap().is_empty());
}

#[test]
fn memory_that_runs_out_halves_the_batches_and_loses_nothing() {
    let behaviours = [Behaviour::Memory(16), Behaviour::Memory(16)];
    // A processor is not warmed up: the memory runs out under way.
    let setup = Setup {
        device: Device::Cpu,
        ..setup(0, &[8, 16, 32, 64], &behaviours)
    };
    let (service, notes) = launch(vec![setup]);
    let queries = real_positions(500).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (mut client, queries) = (service.client(), &queries[worker * 50..]);
            scope.spawn(move || {
                let mut out = Evaluations::default();
                for round in 0..5 {
                    let batch = &queries[round..round + 150];
                    client.evaluate(batch, &mut out).unwrap();
                    assert_fake_answers(batch, &out);
                }
            });
        }
    });
    assert_eq!(service.largest_batches(), [16]);
    let notes = notes.lock().unwrap();
    assert_eq!(notes.len(), 2, "{notes:?}");
    for (note, (size, left)) in notes.iter().zip([(64, 32), (32, 16)]) {
        assert!(
            note.contains("device cpu: out of memory")
                && note.contains(&format!("{size} rows of test"))
                && note.contains(&format!("at most {left} rows")),
            "{note}"
        );
    }
}

#[test]
fn a_warm_up_finds_out_what_the_memory_holds() {
    let (service, notes) = launch(vec![setup(0, &[8, 32, 64], &[Behaviour::Memory(16)])]);
    let queries = real_positions(40).unwrap();
    let mut out = Evaluations::default();
    service.client().evaluate(&queries, &mut out).unwrap();
    assert_fake_answers(&queries, &out);
    assert_eq!(service.largest_batches(), [8]);
    assert_eq!(notes.lock().unwrap().len(), 1);
}

/// What a client of a service that ends gets, in several workers, and later.
fn errors_of_all(service: &EvaluationService) -> Vec<String> {
    let queries = real_positions(40).unwrap();
    let ask = |rounds: usize| {
        let (mut client, mut out) = (service.client(), Evaluations::default());
        let mut results = (0..rounds).map(|_| client.evaluate(&queries, &mut out));
        results.find_map(Result::err).unwrap().to_string()
    };
    let mut errors: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(|| ask(100))).collect();
        let ended = workers.into_iter().map(|worker| worker.join().unwrap());
        ended.collect()
    });
    errors.push(ask(1));
    errors
}

#[test]
fn without_memory_for_the_smallest_batch_every_client_is_told() {
    let (service, _) = launch(vec![setup(2, &[8, 16], &[Behaviour::Memory(7)])]);
    for error in errors_of_all(&service) {
        assert!(
            error.contains("test: device cuda:2: out of memory with 8 rows of test, the smallest"),
            "{error}"
        );
    }
}

#[test]
fn a_device_that_fails_ends_the_service_for_every_client() {
    let failing = || {
        setup(
            1,
            &[16],
            &[Behaviour::FailsAfter(3), Behaviour::FailsAfter(3)],
        )
    };
    let (service, _) = launch(vec![failing()]);
    for error in errors_of_all(&service) {
        let expected = "test: device cuda:1: libtorch: the device fell off the bus";
        assert_eq!(error, expected);
    }
    // Other devices that would go on are no help: which batch failed would be chance.
    let (service, _) = launch(vec![setup(0, &[16], &[ENOUGH]), failing()]);
    errors_of_all(&service);
}

#[test]
fn a_thread_that_panics_leaves_nobody_waiting() {
    let (service, _) = launch(vec![setup(1, &[16], &[Behaviour::Panics])]);
    for error in errors_of_all(&service) {
        assert!(
            error.contains("given up") || error.contains("device cuda:1: its evaluation thread"),
            "{error}"
        );
    }
}

#[test]
fn a_service_that_is_dropped_answers_what_it_has_begun_and_no_more() {
    let (signal, waits) = channel();
    let waits = Behaviour::Waits(Arc::new(Mutex::new(waits)));
    // The warm-up takes a signal of its own.
    let (service, _) = launch(vec![setup(0, &[16], &[waits])]);
    signal.send(()).unwrap();
    let queries = real_positions(20).unwrap();
    let (mut client, mut out) = (service.client(), Evaluations::default());
    client.submit(0, &queries[..16]).unwrap();
    while service.queue.rows_waiting() > 0 {
        std::thread::yield_now();
    }
    client.submit(1, &queries).unwrap();
    let dropping = std::thread::spawn(move || drop(service));
    let message = client.receive(1, &mut out).unwrap_err().to_string();
    assert_eq!(message, "test: the evaluation service has ended");
    signal.send(()).unwrap();
    client.receive(0, &mut out).unwrap();
    assert_fake_answers(&queries[..16], &out);
    dropping.join().unwrap();
    let message = client.evaluate(&queries, &mut out).unwrap_err().to_string();
    assert_eq!(message, "test: the evaluation service has ended");
}

#[test]
fn a_lane_has_one_batch_in_flight() {
    let (service, _) = launch(vec![setup(0, &[4], &[ENOUGH])]);
    let queries = real_positions(10).unwrap();
    let (mut client, mut out) = (service.client(), Evaluations::default());
    let nothing = client.receive(3, &mut out).unwrap_err().to_string();
    assert_eq!(nothing, "test: nothing is in flight");
    client.submit(3, &queries).unwrap();
    let second = client.submit(3, &queries).unwrap_err().to_string();
    assert_eq!(second, "test: lane 3 already has a batch in flight");
    client.submit(1, &[]).unwrap();
    client.receive(1, &mut out).unwrap();
    assert!(out.is_empty());
    // The client's own lane is none of the numbered ones.
    client.evaluate(&queries[..3], &mut out).unwrap();
    assert_fake_answers(&queries[..3], &out);
    client.receive(3, &mut out).unwrap();
    assert_fake_answers(&queries, &out);
}

fn options(batch_sizes: &[usize]) -> ServiceOptions {
    ServiceOptions {
        batch_sizes: Some(batch_sizes.to_vec()),
        ..ServiceOptions::default()
    }
}

fn start(network: &Network, options: &ServiceOptions) -> Result<EvaluationService, NetworkError> {
    EvaluationService::start(network, options, "test", |_| {})
}

#[test]
fn a_real_device_says_what_the_evaluator_says() {
    let network = decided_network(2, 16);
    let service = start(&network, &options(&[16, 64])).unwrap();
    let used = &service.devices()[0];
    assert_eq!(used.device, Device::Cpu);
    let mut evaluator =
        NetworkEvaluator::new(&network, Device::Cpu, used.precision, "test").unwrap();
    let queries = real_positions(300).unwrap();
    let (mut expected, mut found) = (Evaluations::default(), Evaluations::default());
    evaluator.evaluate(&queries, &mut expected).unwrap();
    let mut client = service.client();
    assert_eq!(client.name(), "test");
    client.evaluate(&queries, &mut found).unwrap();
    assert_eq!(found.len(), queries.len());
    for index in 0..queries.len() {
        let (one, other) = (expected.get(index).unwrap(), found.get(index).unwrap());
        assert!((one.value - other.value).abs() < 1e-5);
        let mut pairs = one.priors.iter().zip(other.priors);
        assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-5));
    }
}

#[test]
fn options_that_cannot_be_used_are_errors() {
    let network = Network::new(
        crate::network::Architecture {
            blocks: 1,
            channels: 8,
        },
        1,
    )
    .unwrap();
    let usual = options(&[16]);
    for (options, part) in [
        (
            ServiceOptions {
                devices: vec![],
                ..usual.clone()
            },
            "needs a device",
        ),
        (
            ServiceOptions {
                threads_a_device: 0,
                ..usual.clone()
            },
            "needs a thread",
        ),
        (options(&[]), "sizes of batches"),
        (options(&[16, 0]), "sizes of batches"),
        (
            ServiceOptions {
                precision: Precision::Fp16,
                ..usual.clone()
            },
            "fp16",
        ),
        (
            ServiceOptions {
                devices: vec![Device::Cuda(999)],
                ..usual.clone()
            },
            "device cuda:999",
        ),
    ] {
        let message = start(&network, &options).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}
