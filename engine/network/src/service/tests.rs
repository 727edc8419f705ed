//! The service with devices that count, fail and run out of memory as they are told, and with a real one.

use super::evaluation_service::{EvaluationService, ServedNetwork};
use super::load::{Load, Loaded, Make, ServiceDevice, untimed};
use super::thread::Notes;
use super::usage::DeviceCounters;
use crate::architecture::Architecture;
use crate::device::Device;
use crate::error::NetworkError;
use crate::evaluator::NetworkEvaluator;
use crate::inference::ANSWER_FLOATS;
use crate::model::Network;
use crate::model::tests::decided_network;
use crate::packed::{Forward, ROW_BYTES, pack};
use crate::positions::real_positions;
use crate::prepare::Drift;
use arimaa::rules::Side;
use engine::config::Precision;
use engine::search::{Evaluations, Evaluator, Query};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

/// What a fake device does with its batches.
#[derive(Clone)]
enum Behaviour {
    /// Has memory for so many rows.
    Memory(usize),
    /// Has no memory at all for so many batches, and then enough.
    ShortFor(usize),
    /// Fails at the batch after so many.
    FailsAfter(usize),
    /// Panics at the first batch.
    Panics,
    /// Fails at the batch after so many, as tch does where a call takes a scalar: with a panic, of memory or of something else.
    PanicsAsTch(usize, bool),
    /// Evaluates a batch whenever it is sent something.
    Waits(Arc<Mutex<Receiver<()>>>),
}

/// Says of a row what its words make it say.
struct Fake {
    behaviour: Behaviour,
    batches: usize,
    rows: Vec<u8>,
    evaluated: Vec<f32>,
}

/// Equal priors, and a value that tells rows apart.
fn fake_answer(row: &[u8]) -> [f32; ANSWER_FLOATS] {
    let mut hash = 0u64;
    for &byte in row {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    let mut answer = [3.0; ANSWER_FLOATS];
    answer[ANSWER_FLOATS - 1] = (hash % 10_000) as f32 / 2_500.0 - 2.0;
    answer
}

impl Forward for Fake {
    fn load(&mut self, first: usize, packed: &[u8]) -> Result<(), NetworkError> {
        let begin = first * ROW_BYTES;
        if self.rows.len() < begin + packed.len() {
            self.rows.resize(begin + packed.len(), 0);
        }
        self.rows[begin..begin + packed.len()].copy_from_slice(packed);
        Ok(())
    }

    fn run(&mut self, size: usize) -> Result<(), NetworkError> {
        self.batches += 1;
        match &self.behaviour {
            Behaviour::Memory(rows) if size > *rows => return Err(no_memory()),
            Behaviour::ShortFor(batches) if self.batches <= *batches => return Err(no_memory()),
            Behaviour::FailsAfter(batches) if self.batches > *batches => {
                return Err(NetworkError::Torch("the device fell off the bus".into()));
            }
            Behaviour::Panics => panic!("as it was told"),
            Behaviour::PanicsAsTch(batches, memory) if self.batches > *batches => {
                return panic_as_tch(*memory);
            }
            Behaviour::Waits(signal) => signal.lock().unwrap().recv().unwrap(),
            _ => {}
        }
        self.rows
            .resize(size.max(self.rows.len() / ROW_BYTES) * ROW_BYTES, 0);
        let rows = self.rows.chunks_exact(ROW_BYTES).take(size);
        self.evaluated = rows.flat_map(fake_answer).collect();
        Ok(())
    }

    fn read(&mut self, first: usize, out: &mut [f32]) -> Result<(), NetworkError> {
        out.copy_from_slice(&self.evaluated[first * ANSWER_FLOATS..][..out.len()]);
        Ok(())
    }
}

fn no_memory() -> NetworkError {
    NetworkError::Torch("CUDA out of memory. Tried to allocate 2.00 GiB.".into())
}

/// What tch does where a call that takes a scalar fails.
fn panic_as_tch(memory: bool) -> Result<(), NetworkError> {
    let text = if memory {
        "CUDA out of memory. Tried to allocate 2.00 GiB."
    } else {
        "CUDA error: an illegal memory access was encountered"
    };
    let error = tch::TchError::Torch(text.into());
    panic!("called `Result::unwrap()` on an `Err` value: {error:?}");
}

/// A device of a fake service.
struct Setup {
    device: Device,
    sizes: Vec<usize>,
    /// By thread.
    behaviours: Vec<Behaviour>,
}

fn setup(device: u16, sizes: &[usize], behaviours: &[Behaviour]) -> Setup {
    Setup {
        device: Device::Cuda(device),
        sizes: sizes.to_vec(),
        behaviours: behaviours.to_vec(),
    }
}

impl Setup {
    /// What loads a fake network.
    fn load(&self) -> Load {
        let makes = self.behaviours.iter().map(|behaviour| {
            let behaviour = behaviour.clone();
            Box::new(move || {
                let fake = Box::new(Fake {
                    behaviour,
                    batches: 0,
                    rows: Vec::new(),
                    evaluated: Vec::new(),
                });
                Ok((fake as Box<dyn Forward>, None))
            }) as Make
        });
        let mut makes: Vec<Make> = makes.collect();
        let (device, sizes) = (self.device, untimed(&self.sizes));
        Box::new(move || {
            let (first, _) = makes.remove(0)()?;
            let loaded = Loaded {
                others: makes,
                sizes,
                notes: Vec::new(),
                used: ServiceDevice {
                    device,
                    precision: Precision::Fp32,
                    drift: Drift::default(),
                    tuning: None,
                },
            };
            Ok((first, loaded))
        })
    }
}

type Written = Arc<Mutex<Vec<String>>>;

/// A service of fake devices with a network, and the notes that it made.
fn launch(setups: Vec<Setup>) -> (Arc<ServedNetwork>, Written) {
    let written = Arc::new(Mutex::new(Vec::new()));
    let kept = written.clone();
    let notes: Notes = Arc::new(move |note: &str| kept.lock().unwrap().push(note.to_owned()));
    let devices: Vec<Device> = setups.iter().map(|setup| setup.device).collect();
    let threads = setups[0].behaviours.len();
    let service = EvaluationService::launch(&devices, threads, None, notes).unwrap();
    let loads = setups.iter().map(Setup::load).collect();
    let network = service.load_by(loads, "test".into(), 4).unwrap();
    let chosen = std::mem::take(&mut *written.lock().unwrap());
    assert_eq!(chosen.len(), setups.len(), "{chosen:?}");
    assert!(chosen[0].contains("test is computed in fp32: its values are off by 0.0000"));
    (network, written)
}

/// The largest batch of each device, in rows.
fn largest_batches(network: &ServedNetwork) -> Vec<usize> {
    network.service.queue.largest_batches(network.id)
}

const ENOUGH: Behaviour = Behaviour::Memory(usize::MAX);

fn assert_fake_answers(queries: &[Query], out: &Evaluations) {
    assert_eq!(out.len(), queries.len());
    for (index, query) in queries.iter().enumerate() {
        let mut row = Vec::new();
        pack(query, &mut row);
        let value = 1.0 / (1.0 + (-fake_answer(&row)[ANSWER_FLOATS - 1]).exp());
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
    let (network, notes) = launch(setups);
    let queries = real_positions(1_000).unwrap();
    let asked: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker: usize| {
                let (mut client, queries) = (network.client(), &queries);
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
    let counters = network.service().device_counters();
    assert_eq!(counters.len(), 2);
    assert_eq!(counters[1].device, Device::Cuda(1));
    let total = |what: fn(&DeviceCounters) -> u64| counters.iter().map(what).sum::<u64>();
    assert_eq!(total(|device| device.rows), asked as u64);
    assert!(total(|device| device.padded_rows) >= asked as u64);
    assert!(total(|device| device.batches) as usize >= asked / 32);
    assert!(counters.iter().all(|device| !device.busy.is_zero()));
    assert!(notes.lock().unwrap().is_empty());
}

#[test]
fn memory_that_runs_out_halves_the_batches_and_loses_nothing() {
    for behaviour in [Behaviour::Memory(16), Behaviour::PanicsAsTch(40, true)] {
        let is_lasting = matches!(behaviour, Behaviour::Memory(_));
        let behaviours = [behaviour.clone(), behaviour];
        let (network, notes) = launch(vec![setup(3, &[8, 16, 32, 64], &behaviours)]);
        let queries = real_positions(500).unwrap();
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let (mut client, queries) = (network.client(), &queries[worker * 50..]);
                scope.spawn(move || {
                    let mut out = Evaluations::default();
                    for round in 0..5 {
                        let batch = &queries[round..round + 150];
                        if client.evaluate(batch, &mut out).is_err() {
                            // At last there is no memory for 8 rows either.
                            assert!(!is_lasting);
                            return;
                        }
                        assert_fake_answers(batch, &out);
                    }
                });
            }
        });
        let notes = notes.lock().unwrap();
        // Which batch the panic meets depends on how the workers' requests meet in batches.
        let sizes: &[u32] = if is_lasting { &[64, 32] } else { &[] };
        if is_lasting {
            assert_eq!(largest_batches(&network), [16]);
            assert_eq!(notes.len(), 2, "{notes:?}");
        }
        for note in notes.iter() {
            assert!(note.contains("device cuda:3: out of memory"), "{note}");
        }
        // In any order: one thread of the device may halve again before the other has told.
        for size in sizes {
            let (rows, left) = (format!("{size} rows of test"), size / 2);
            let left = format!("at most {left} rows");
            let is_told = |note: &String| note.contains(&rows) && note.contains(&left);
            assert!(notes.iter().any(is_told), "{rows}, {left}: {notes:?}");
        }
    }
}

/// What a client of a service that ends gets, in several workers, and later.
fn errors_of_all(network: &Arc<ServedNetwork>) -> Vec<String> {
    let queries = real_positions(40).unwrap();
    let ask = |rounds: usize| {
        let (mut client, mut out) = (network.client(), Evaluations::default());
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
fn without_memory_for_the_smallest_batch_every_client_gets_an_error() {
    let (network, _) = launch(vec![setup(2, &[8, 16], &[Behaviour::Memory(7)])]);
    for error in errors_of_all(&network) {
        assert!(
            error.contains("test: device cuda:2 failed: out of memory with 8 rows of test, the"),
            "{error}"
        );
    }
}

#[test]
fn a_short_lack_of_memory_for_the_smallest_batch_is_waited_out() {
    let (network, _) = launch(vec![setup(1, &[64], &[Behaviour::ShortFor(2)])]);
    let queries = real_positions(40).unwrap();
    let mut out = Evaluations::default();
    network.client().evaluate(&queries, &mut out).unwrap();
    assert_eq!(out.len(), queries.len());
    assert!(!network.service().has_ended());
}

#[test]
fn the_last_device_that_fails_ends_the_service_for_every_client() {
    for (behaviour, text) in [
        (Behaviour::FailsAfter(3), "the device fell off the bus"),
        (
            Behaviour::PanicsAsTch(3, false),
            "CUDA error: an illegal memory access was encountered",
        ),
    ] {
        let (network, _) = launch(vec![setup(1, &[16], &[behaviour.clone(), behaviour])]);
        for error in errors_of_all(&network) {
            assert_eq!(
                error,
                format!("test: device cuda:1 failed: libtorch: {text}")
            );
        }
        // Nothing is loaded any more.
        let service = network.service();
        let error = service
            .load_by(vec![setup(1, &[16], &[ENOUGH]).load()], "b".into(), 4)
            .unwrap_err();
        assert!(
            error.to_string().contains("device cuda:1 failed"),
            "{error}"
        );
    }
}

#[test]
fn a_device_that_fails_leaves_its_work_to_the_others() {
    for behaviour in [
        Behaviour::FailsAfter(3),
        Behaviour::PanicsAsTch(3, false),
        Behaviour::Panics,
    ] {
        let failing = setup(1, &[16], &[behaviour.clone(), behaviour]);
        let (network, notes) = launch(vec![setup(0, &[16], &[ENOUGH, ENOUGH]), failing]);
        let queries = real_positions(400).unwrap();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (mut client, queries) = (network.client(), &queries[worker * 50..]);
                scope.spawn(move || {
                    let mut out = Evaluations::default();
                    for round in 0..40 {
                        let batch = &queries[round..round + 100];
                        client.evaluate(batch, &mut out).unwrap();
                        assert_fake_answers(batch, &out);
                    }
                });
            }
        });
        let notes = notes.lock().unwrap();
        let [note] = notes.as_slice() else {
            panic!("{notes:?}")
        };
        assert!(
            note.starts_with("device cuda:1 failed: ")
                && note.ends_with("; cuda:0 continues without it"),
            "{note}"
        );
        // The others load networks as before.
        let service = network.service();
        let loads = vec![
            setup(0, &[16], &[ENOUGH, ENOUGH]).load(),
            setup(1, &[16], &[ENOUGH, ENOUGH]).load(),
        ];
        let other = service.load_by(loads, "b".into(), 4).unwrap();
        assert_eq!(other.devices().len(), 1);
        let mut out = Evaluations::default();
        other.client().evaluate(&queries, &mut out).unwrap();
        assert_fake_answers(&queries, &out);
    }
}

#[test]
fn a_panic_leaves_nothing_waiting() {
    let (network, _) = launch(vec![setup(1, &[16], &[Behaviour::Panics])]);
    for error in errors_of_all(&network) {
        assert!(error.contains("its evaluation thread panicked"), "{error}");
    }
}

#[test]
fn networks_come_and_go_while_others_are_evaluated() {
    let (first, _) = launch(vec![setup(0, &[16], &[ENOUGH, ENOUGH])]);
    let service = first.service().clone();
    let queries = real_positions(200).unwrap();
    let mut clients = vec![first.client()];
    // The client alone keeps its network, and with it the service.
    drop(first);
    for round in 0..20 {
        clients[round].submit(0, &queries).unwrap();
        let load = setup(0, &[8, 32], &[ENOUGH, ENOUGH]).load();
        let network = service.load_by(vec![load], format!("{round}"), 4).unwrap();
        clients.push(network.client());
        if round >= 10 {
            // With rows in flight whose answers are never taken.
            clients[round - 9].submit(1, &queries).unwrap();
        }
        let mut out = Evaluations::default();
        clients[round].receive(0, &mut out).unwrap();
        assert_fake_answers(&queries, &out);
    }
    drop(clients);
    assert!(!service.queue.has_networks());
    assert_eq!(service.rows_waiting(), 0);
}

#[test]
fn a_network_that_cannot_be_loaded_leaves_the_others_as_they_are() {
    let (network, _) = launch(vec![setup(0, &[16], &[ENOUGH])]);
    let service = network.service();
    for error in [
        NetworkError::Torch("CUDA out of memory".into()),
        NetworkError::Architecture {
            key: "blocks",
            value: 0,
            allowed: "1".into(),
        },
    ] {
        let said = match &error {
            NetworkError::Torch(reason) => format!("device cuda:0: {reason}"),
            error => error.to_string(),
        };
        let load: Load = Box::new(move || Err(error));
        let found = service.load_by(vec![load], "b".into(), 4).unwrap_err();
        assert_eq!(found.to_string(), said);
        let queries = real_positions(30).unwrap();
        let mut out = Evaluations::default();
        network.client().evaluate(&queries, &mut out).unwrap();
        assert_fake_answers(&queries, &out);
    }
}

#[test]
fn a_service_that_ends_answers_what_it_has_begun_and_no_more() {
    let (signal, waits) = channel();
    let waits = Behaviour::Waits(Arc::new(Mutex::new(waits)));
    let (network, _) = launch(vec![setup(0, &[16], &[waits])]);
    let queries = real_positions(20).unwrap();
    let (mut client, mut out) = (network.client(), Evaluations::default());
    client.submit(0, &queries[..16]).unwrap();
    while network.service.rows_waiting() > 0 {
        std::thread::yield_now();
    }
    client.submit(1, &queries).unwrap();
    network.service.queue.end("it is over");
    let message = client.receive(1, &mut out).unwrap_err().to_string();
    assert_eq!(message, "test: it is over");
    signal.send(()).unwrap();
    client.receive(0, &mut out).unwrap();
    assert_fake_answers(&queries[..16], &out);
    let message = client.evaluate(&queries, &mut out).unwrap_err().to_string();
    assert_eq!(message, "test: it is over");
}

#[test]
fn a_slot_has_one_batch_in_flight() {
    let (network, _) = launch(vec![setup(0, &[4], &[ENOUGH])]);
    let queries = real_positions(10).unwrap();
    let (mut client, mut out) = (network.client(), Evaluations::default());
    assert_eq!(client.leaves_at_once(), 4);
    let nothing = client.receive(3, &mut out).unwrap_err().to_string();
    assert_eq!(nothing, "test: nothing is in flight");
    client.submit(3, &queries).unwrap();
    let second = client.submit(3, &queries).unwrap_err().to_string();
    assert_eq!(second, "test: slot 3 already has a batch in flight");
    client.submit(1, &[]).unwrap();
    client.receive(1, &mut out).unwrap();
    assert!(out.is_empty());
    // The client's own slot is none of the numbered ones.
    client.evaluate(&queries[..3], &mut out).unwrap();
    assert_fake_answers(&queries[..3], &out);
    client.receive(3, &mut out).unwrap();
    assert_fake_answers(&queries, &out);
}

#[test]
fn a_real_device_agrees_with_the_evaluator() {
    let networks = [decided_network(2, 16), decided_network(1, 24)];
    let service = EvaluationService::start(&[Device::CpuService], None, |_| {}).unwrap();
    let queries = real_positions(300).unwrap();
    for network in &networks {
        let served = service.load(network, Precision::Auto, "test").unwrap();
        let used = &served.devices()[0];
        assert_eq!(used.device, Device::CpuService);
        assert_eq!(largest_batches(&served), [64]);
        let mut evaluator = NetworkEvaluator::new(network, used.precision, "test").unwrap();
        let (mut expected, mut found) = (Evaluations::default(), Evaluations::default());
        evaluator.evaluate(&queries, &mut expected).unwrap();
        let mut client = served.client();
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
}

#[test]
fn devices_that_cannot_be_used_are_errors() {
    for (devices, part) in [
        (&[][..], "needs a device"),
        (&[Device::Cuda(999)], "device cuda:999"),
    ] {
        let message = EvaluationService::start(devices, None, |_| {})
            .unwrap_err()
            .to_string();
        assert!(message.contains(part), "{message}");
    }
    let sizes = Architecture {
        blocks: 1,
        channels: 8,
    };
    let network = Network::new(sizes, 1).unwrap();
    let service = EvaluationService::start(&[Device::CpuService], None, |_| {}).unwrap();
    let fp16 = service.load(&network, Precision::Fp16, "test").unwrap_err();
    assert!(fp16.to_string().contains("fp16"), "{fp16}");
}
