use super::super::request::Reply;
use super::*;
use crate::packed::ROW_BYTES;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

fn sizes(pairs: &[(usize, f64)]) -> Vec<BatchSize> {
    let sizes = pairs
        .iter()
        .map(|&(rows, seconds)| BatchSize { rows, seconds });
    sizes.collect()
}

#[test]
fn the_chosen_size_evaluates_most_rows_a_second() {
    // A CPU: the time grows with the rows, and padding costs as much as rows do.
    let cpu = sizes(&[(1, 0.01), (8, 0.08), (32, 0.32)]);
    // A GPU: small batches cost as much as middling ones.
    let gpu = sizes(&[(32, 1e-3), (128, 1.1e-3), (512, 3e-3)]);
    for (sizes, waiting, size) in [
        (&cpu, 1, 1),
        (&cpu, 7, 1),
        (&cpu, 9, 8),
        (&cpu, 500, 32),
        (&gpu, 1, 32),
        (&gpu, 33, 32),
        (&gpu, 40, 128),
        (&gpu, 200, 128),
        (&gpu, 400, 512),
    ] {
        assert_eq!(choose(sizes, waiting).unwrap().rows, size, "{waiting} wait");
    }
    assert!(choose(&[], 3).is_none());
}

/// A queue of so many devices with one thread each, and a network of these sizes everywhere.
fn queue(devices: u16, sizes: &[BatchSize]) -> Queue {
    let devices: Vec<Device> = (0..devices).map(Device::Cuda).collect();
    let queue = Queue::new(&devices, 1);
    queue.add_network(7, "test", vec![sizes.to_vec(); devices.len()]);
    queue
}

fn batch(queue: &Queue, device: usize) -> DeviceBatch {
    match queue.take(device, 0) {
        Some(Task::Evaluate(batch)) => batch,
        _ => panic!("no batch"),
    }
}

#[test]
fn an_incomplete_batch_waits_while_another_computes() {
    let queue = queue(2, &sizes(&[(4, 1e5)]));
    let (sender, _replies) = channel();
    let push = |rows| {
        let packed = Arc::new(vec![0; rows * ROW_BYTES]);
        queue.push(7, Part::new(packed, rows, Vec::new(), sender.clone()));
    };
    let rows = |device| batch(&queue, device).rows;
    push(1);
    let first = batch(&queue, 0);
    assert_eq!(first.rows, 1, "an idle device takes what there is");
    std::thread::scope(|scope| {
        push(2);
        let next = scope.spawn(|| rows(0));
        std::thread::sleep(Duration::from_millis(20));
        push(2);
        assert_eq!(next.join().unwrap(), 4, "filled while it waited");
        queue.done(&first, 0);
        push(1);
        let next = scope.spawn(|| rows(0));
        std::thread::sleep(Duration::from_millis(20));
        let waiting = queue.rows_waiting();
        queue.done(&first, 0);
        assert_eq!(waiting, 1);
        assert_eq!(next.join().unwrap(), 1, "sent when the device is idle");
        push(3);
        assert_eq!(rows(1), 3, "another device is idle");
    });
}

#[test]
fn overlapping_batches_count_once_as_busy_time() {
    let queue = queue(2, &sizes(&[(4, 1e-3)]));
    let (sender, _replies) = channel();
    let pause = || std::thread::sleep(Duration::from_millis(10));
    let busy = || queue.device_counters()[0].busy;
    let begun = Instant::now();
    queue.push(7, request(7, 10, &sender));
    let (first, second) = (batch(&queue, 0), batch(&queue, 0));
    pause();
    assert!(busy() >= Duration::from_millis(10), "while it computes");
    queue.done(&first, 0);
    pause();
    queue.put_back(second, 0);
    let counters = queue.device_counters();
    let DeviceCounters {
        batches,
        rows,
        padded_rows,
        ..
    } = counters[0];
    assert_eq!((batches, rows, padded_rows), (1, 4, 4));
    assert!(busy() >= Duration::from_millis(20) && busy() <= begun.elapsed());
    let idle = busy();
    pause();
    assert_eq!(busy(), idle);
    assert_eq!(counters[1], DeviceCounters::new(Device::Cuda(1)));
    // A device fails with a batch in hand.
    let last = batch(&queue, 0);
    queue.lose(0, "it broke");
    queue.put_back(last, 0);
    let lost = busy();
    pause();
    assert_eq!(busy(), lost);
}

fn request(rows: usize, mark: u8, sender: &Sender<Reply>) -> Part {
    let bytes = (0..rows).flat_map(|row| [mark + row as u8; ROW_BYTES]);
    Part::new(Arc::new(bytes.collect()), rows, Vec::new(), sender.clone())
}

fn marks(batch: &DeviceBatch) -> Vec<u8> {
    let bytes = batch.parts.iter().flat_map(Part::packed);
    bytes.copied().step_by(ROW_BYTES).collect()
}

#[test]
fn requests_are_served_in_order_and_cut_to_size() {
    let queue = queue(1, &sizes(&[(4, 1e-3)]));
    let (sender, replies) = channel();
    for (rows, mark) in [(3, 10), (6, 20), (1, 30)] {
        queue.push(7, request(rows, mark, &sender));
    }
    let next = || {
        let batch = batch(&queue, 0);
        // The device is idle again.
        queue.done(&batch, 0);
        batch
    };
    let first = batch(&queue, 0);
    assert_eq!((first.rows, first.size), (4, 4));
    assert_eq!(marks(&first), [10, 11, 12, 20]);
    queue.put_back(first, 0);
    assert_eq!(marks(&next()), [10, 11, 12, 20]);
    let second = next();
    assert_eq!(marks(&second), [21, 22, 23, 24]);
    let third = next();
    assert_eq!(marks(&third), [25, 30]);
    assert_eq!(third.size, 4);

    // The first batch was dropped.
    assert!(replies.recv().unwrap().is_err() && replies.recv().unwrap().is_err());
    second.parts.into_iter().for_each(Part::answer);
    assert_eq!(replies.recv().unwrap(), Ok((1, vec![])));
    drop(third);
    assert!(replies.recv().unwrap().is_err() && replies.recv().unwrap().is_err());
    queue.end("it is over");
    assert!(queue.take(0, 0).is_none());
}

#[test]
fn batches_hold_rows_of_one_network_in_order_of_arrival() {
    let queue = queue(1, &sizes(&[(4, 1e-3)]));
    queue.add_network(8, "other", vec![sizes(&[(2, 1e-3)])]);
    let (sender, _replies) = channel();
    for (network, mark) in [(7, 10), (8, 20), (7, 30), (8, 40)] {
        queue.push(network, request(1, mark, &sender));
    }
    let next = || {
        let batch = batch(&queue, 0);
        queue.done(&batch, 0);
        (batch.network, batch.size, marks(&batch))
    };
    assert_eq!(next(), (7, 4, vec![10, 30]));
    assert_eq!(next(), (8, 2, vec![20, 40]));
    assert_eq!(queue.rows_waiting(), 0);
}

#[test]
fn a_lost_device_leaves_its_rows_to_the_others() {
    let queue = queue(2, &sizes(&[(4, 1e-3)]));
    let (sender, replies) = channel();
    queue.push(7, request(3, 10, &sender));
    let failed = batch(&queue, 0);
    let note = queue.lose(0, "it broke").unwrap();
    assert_eq!(
        note,
        "device cuda:0 failed: it broke; cuda:1 continues without it"
    );
    assert_eq!(queue.lose(0, "again"), None);
    queue.put_back(failed, 0);
    assert!(queue.take(0, 0).is_none());
    let saved = batch(&queue, 1);
    assert_eq!(marks(&saved), [10, 11, 12]);
    // The last one takes everything with it.
    assert_eq!(queue.lose(1, "it broke, too"), None);
    queue.put_back(saved, 1);
    let reason = "device cuda:1 failed: it broke, too".to_owned();
    assert_eq!(replies.recv().unwrap(), Err(reason.clone()));
    queue.push(7, request(1, 20, &sender));
    assert_eq!(replies.recv().unwrap(), Err(reason));
}

#[test]
fn the_largest_size_is_halved_down_to_the_smallest() {
    let mut allowed = sizes(&[(32, 1.0), (64, 1.0), (128, 1.0)]);
    assert_eq!(halve(&mut allowed, 128), Shortage::Halved(64));
    // The device's other thread had such a batch in hand as well.
    assert_eq!(halve(&mut allowed, 128), Shortage::Known);
    assert_eq!(halve(&mut allowed, 64), Shortage::Halved(32));
    assert_eq!(halve(&mut allowed, 32), Shortage::Smallest);
    // Where the half is no size, the smallest is left.
    let mut two = sizes(&[(48, 1.0), (64, 1.0)]);
    assert_eq!(halve(&mut two, 64), Shortage::Halved(48));
    assert_eq!(halve(&mut Vec::new(), 1), Shortage::Smallest);
}
