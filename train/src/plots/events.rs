//! TensorBoard's event files, scalars only.
//!
//! A file is a row of TFRecords: the length as `u64`, the masked CRC-32C of these eight bytes, the data, the data's masked
//! CRC-32C, all numbers little-endian (TensorFlow, `tensorflow/core/lib/io/record_writer.h`). The data is an `Event` of
//! `tensorboard/compat/proto/event.proto`; the messages below are the part of it that scalars need, with its field numbers.
//! The first event names the format's version.
//!
//! Each start of a training begins a new file, whose second event states the first step to come. At it, TensorBoard forgets that
//! step and later ones (`SessionLog.START` in `tensorboard/backend/event_processing/event_accumulator.py`): repeated steps are shown
//! once. TensorBoard reads the files by name, which begins with the time.

use crate::error::TrainError;
use engine::run::make_folder;
use prost::Message;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The format version in the first event.
const FILE_VERSION: &str = "brain.Event:2";

/// `SessionLog.SessionStatus.START`.
const START: i32 = 1;

/// A file of scalar events, open for writing.
#[derive(Debug)]
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
    /// The bytes of whole records.
    length: u64,
}

/// `tensorboard.Event`.
#[derive(Clone, PartialEq, Message)]
struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    /// In the first event of a file.
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    /// In events with measurements.
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
    /// In the event of a training's start.
    #[prost(message, optional, tag = "7")]
    session_log: Option<SessionLog>,
}

/// `tensorboard.SessionLog`.
#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// `tensorboard.Summary`.
#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Scalar>,
}

/// `tensorboard.Summary.Value`.
#[derive(Clone, PartialEq, Message)]
struct Scalar {
    #[prost(string, tag = "1")]
    tag: String,
    /// Optional, as one of several kinds: a 0 is written too.
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

impl EventFile {
    /// Begins a file in a folder, which is made if need be, and states that the training starts with step `next_step`. The file is
    /// named `events.out.tfevents.SECONDS.tusker.NNN`, NNN being the first free number.
    ///
    /// # Errors
    ///
    /// Fails where the folder or the file can't be written.
    pub(crate) fn open(folder: &Path, next_step: u64) -> Result<Self, TrainError> {
        Self::open_at(folder, next_step, SystemTime::now())
    }

    fn open_at(folder: &Path, next_step: u64, now: SystemTime) -> Result<Self, TrainError> {
        make_folder(folder)?;
        let wall_time = seconds_since_1970(now);
        let (path, file) = create(folder, wall_time as u64)?;
        let mut events = Self {
            path,
            file,
            length: 0,
        };
        events.write(&Event {
            wall_time,
            file_version: Some(FILE_VERSION.into()),
            ..Event::default()
        })?;
        events.write(&Event {
            wall_time,
            step: signed(next_step),
            session_log: Some(SessionLog { status: START }),
            ..Event::default()
        })?;
        Ok(events)
    }

    /// Adds what was measured after an optimizer's step, by name (`loss/policy`), as one event, which readers see at once.
    /// TensorBoard stores `f32` and shows NaN as such.
    ///
    /// # Errors
    ///
    /// Fails where the file can't be written. The file then keeps no part of the event; later events may follow.
    pub(crate) fn scalars(
        &mut self,
        step: u64,
        wall_time: SystemTime,
        scalars: &[(impl AsRef<str>, f64)],
    ) -> Result<(), TrainError> {
        let value = scalars.iter().map(|(tag, value)| Scalar {
            tag: tag.as_ref().to_owned(),
            simple_value: Some(*value as f32),
        });
        self.write(&Event {
            wall_time: seconds_since_1970(wall_time),
            step: signed(step),
            summary: Some(Summary {
                value: value.collect(),
            }),
            ..Event::default()
        })
    }

    fn write(&mut self, event: &Event) -> Result<(), TrainError> {
        let record = record(&event.encode_to_vec());
        if let Err(error) = self.file.write_all(&record) {
            // A reader would stop for good at half a record. Should this fail too, the first error is the one to report.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(TrainError::io("write to", &self.path)(error));
        }
        self.length += record.len() as u64;
        Ok(())
    }
}

/// Creates the file with the first free number.
fn create(folder: &Path, seconds: u64) -> Result<(PathBuf, File), TrainError> {
    let mut number = 0u32;
    loop {
        let path = folder.join(format!(
            "events.out.tfevents.{seconds:010}.tusker.{number:03}"
        ));
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < u32::MAX => {
                number += 1;
            }
            Err(error) => return Err(TrainError::io("create", &path)(error)),
        }
    }
}

fn signed(step: u64) -> i64 {
    i64::try_from(step).unwrap_or(i64::MAX)
}

fn seconds_since_1970(time: SystemTime) -> f64 {
    let since_1970 = time.duration_since(UNIX_EPOCH);
    since_1970.map_or(0.0, |time| time.as_secs_f64())
}

/// Frames data as a TFRecord.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked_crc32c(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked_crc32c(data).to_le_bytes());
    record
}

/// TensorFlow's `crc32c::Mask`: a checksum over bytes with checksums is weak, so stored checksums are masked.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Duration = Duration::from_secs(1_500_000_000);

    fn number<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
        let (number, rest) = bytes.split_first_chunk().unwrap();
        *bytes = rest;
        *number
    }

    /// The CRC-32C bit by bit: not the crate's.
    fn checksum(bytes: &[u8]) -> u32 {
        let mut remainder = u32::MAX;
        for &byte in bytes {
            remainder ^= u32::from(byte);
            for _ in 0..8 {
                let odd = remainder & 1 == 1;
                remainder = (remainder >> 1) ^ if odd { 0x82f6_3b78 } else { 0 };
            }
        }
        let checksum = !remainder;
        checksum.rotate_left(17).wrapping_add(0xa282_ead8)
    }

    fn records(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let length: [u8; 8] = number(&mut bytes);
            assert_eq!(u32::from_le_bytes(number(&mut bytes)), checksum(&length));
            let (record, rest) = bytes.split_at(u64::from_le_bytes(length) as usize);
            bytes = rest;
            assert_eq!(u32::from_le_bytes(number(&mut bytes)), checksum(record));
            records.push(record);
        }
        records
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let [byte] = number(bytes);
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// The fields of a protobuf message: number, and what it holds, numbers as their bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let content = match key & 7 {
                0 => varint(&mut bytes).to_le_bytes().to_vec(),
                1 => number::<8>(&mut bytes).to_vec(),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    bytes = rest;
                    content.to_vec()
                }
                5 => number::<4>(&mut bytes).to_vec(),
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, content));
        }
        fields
    }

    fn scalar(bytes: &[u8]) -> (String, f32) {
        let fields = fields(bytes);
        let [(1, tag), (2, value)] = fields.as_slice() else {
            panic!("{fields:?}");
        };
        let value = f32::from_le_bytes(value.as_slice().try_into().unwrap());
        (String::from_utf8(tag.clone()).unwrap(), value)
    }

    fn seconds(bytes: &[u8]) -> f64 {
        f64::from_le_bytes(bytes.try_into().unwrap())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let now = UNIX_EPOCH + NOW;
        let mut events = EventFile::open_at(folder.path(), 7, now).unwrap();
        let later = now + Duration::from_millis(1_500);
        let losses = [("loss/policy", 2.25), ("loss/value", 0.0)];
        events.scalars(300, later, &losses).unwrap();
        let odd = [("a", f64::NAN), ("b", f64::MAX), ("ö", -0.5)];
        events.scalars(u64::MAX, later, &odd).unwrap();
        // The file is still open: readers see it during the run.
        let bytes = std::fs::read(&events.path).unwrap();
        let records = records(&bytes);
        assert_eq!(records.len(), 4);

        let first = fields(records[0]);
        let [(1, time), (3, version)] = first.as_slice() else {
            panic!("{first:?}");
        };
        assert_eq!(seconds(time), 1.5e9);
        assert_eq!(version, b"brain.Event:2");

        let start = fields(records[1]);
        assert_eq!(start[1], (2, 7u64.to_le_bytes().to_vec()));
        assert_eq!(start[2], (7, vec![0x08, 1]));

        let second = fields(records[2]);
        let [(1, time), (2, step), (5, summary)] = second.as_slice() else {
            panic!("{second:?}");
        };
        assert_eq!(seconds(time), 1.5e9 + 1.5);
        assert_eq!(step, &300u64.to_le_bytes());
        let values = fields(summary);
        assert_eq!(values.len(), 2);
        assert!(values.iter().all(|(number, _)| *number == 1));
        assert_eq!(scalar(&values[0].1), ("loss/policy".into(), 2.25));
        assert_eq!(scalar(&values[1].1), ("loss/value".into(), 0.0));

        let third = fields(records[3]);
        assert_eq!(third[1], (2, i64::MAX.to_le_bytes().to_vec()));
        let values = fields(&third[2].1);
        assert!(scalar(&values[0].1).1.is_nan());
        assert_eq!(scalar(&values[1].1), ("b".into(), f32::INFINITY));
        assert_eq!(scalar(&values[2].1), ("ö".into(), -0.5));
    }

    /// The event was put together by hand from event.proto and summary.proto, its checksums bit by bit.
    #[test]
    fn an_event_has_the_bytes_that_the_format_asks_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventFile::open_at(folder.path(), 1, UNIX_EPOCH).unwrap();
        let before = std::fs::read(&events.path).unwrap().len();
        let time = UNIX_EPOCH + Duration::from_secs(2);
        events.scalars(300, time, &[("x", 1.0)]).unwrap();
        let data = [
            0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, // wall_time = 2.0
            0x10, 0xac, 0x02, // step = 300
            0x2a, 10, // summary, 10 bytes
            0x0a, 8, // value, 8 bytes
            0x0a, 1, b'x', // tag = "x"
            0x15, 0, 0, 0x80, 0x3f, // simple_value = 1.0
        ];
        let mut expected = vec![24, 0, 0, 0, 0, 0, 0, 0];
        expected.extend(checksum(&expected).to_le_bytes());
        expected.extend(data);
        expected.extend(checksum(&data).to_le_bytes());
        let bytes = std::fs::read(&events.path).unwrap();
        assert_eq!(bytes[before..], expected);
        // As TensorFlow's own writer begins its files: length 24, and its checksum.
        assert_eq!(expected[8..12], [0xa3, 0x7f, 0x4b, 0x22]);
    }

    /// A large file, a file cut short by a kill and a file of another program stay as they are too.
    #[test]
    fn each_start_begins_a_file_and_leaves_the_others_alone() {
        let folder = tempfile::tempdir().unwrap();
        let now = UNIX_EPOCH + NOW;
        let names = ["1500000000.tusker.000", "1500000000.tusker.001"];
        let names = names.map(|name| format!("events.out.tfevents.{name}"));
        let mut events = EventFile::open_at(folder.path(), 1, now).unwrap();
        let first = events.path.clone();
        assert!(first.ends_with(&names[0]));
        events.scalars(10, now, &[("x", 1.0)]).unwrap();
        drop(events);
        let whole = std::fs::read(&first).unwrap();
        for content in [&whole[..], &whole[..whole.len() - 1], b"no events", b""] {
            std::fs::write(&first, content).unwrap();
            let second = EventFile::open_at(folder.path(), 11, now).unwrap();
            assert!(second.path.ends_with(&names[1]));
            assert_eq!(std::fs::read(&first).unwrap(), content);
            let bytes = std::fs::read(&second.path).unwrap();
            let added = records(&bytes);
            assert_eq!(added.len(), 2);
            assert_eq!(fields(added[0])[1], (3, b"brain.Event:2".to_vec()));
            let start = fields(added[1]);
            assert_eq!(start[1], (2, 11u64.to_le_bytes().to_vec()));
            assert_eq!(start[2], (7, vec![0x08, 1]));
            std::fs::remove_file(second.path).unwrap();
        }
        let later = now + Duration::from_secs(1);
        let next = EventFile::open_at(folder.path(), 11, later).unwrap();
        assert!(
            next.path
                .ends_with("events.out.tfevents.1500000001.tusker.000")
        );
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let error = create(&missing, NOW.as_secs()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("can't create"), "{message}");
        let name = "missing/events.out.tfevents.1500000000.tusker.000";
        assert!(message.contains(name), "{message}");
        assert!(EventFile::open(&missing, 1).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let mut events = EventFile {
            path: "run/events".into(),
            file,
            length: 0,
        };
        let error = events.scalars(1, UNIX_EPOCH, &[("x", 1.0)]).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("can't write to run/events: "), "{message}");
    }
}
