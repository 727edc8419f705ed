//! TensorBoard's event files, scalars only.
//!
//! A file is a row of TFRecords: the length as `u64`, the masked CRC-32C of these eight bytes, the data, the data's masked
//! CRC-32C, all numbers little-endian (TensorFlow, `tensorflow/core/lib/io/record_writer.h`). The data is an `Event` of
//! `tensorboard/compat/proto/event.proto`; what scalars need of it is written down below, with the numbers of its fields.
//! The first event names the format's version.
//!
//! A training that goes on adds to the newest file, until it is large: TensorBoard keeps each file open. First of all it says that
//! it starts, and with which step. TensorBoard forgets what it has read of that step and later ones (`SessionLog.START` in
//! `tensorboard/backend/event_processing/event_accumulator.py`), so that steps that are made once more are shown once. Its files are
//! read by name, which begins with the time.

use crate::error::TrainError;
use engine::run::make_folder;
use prost::Message;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the first event says.
const FILE_VERSION: &str = "brain.Event:2";

/// What all names of files begin with.
const NAME: &str = "events.out.tfevents.";

/// A file of as many bytes is not added to when a training begins.
const LARGE: u64 = 16 << 20;

/// The bytes of a record before its data: the length and its checksum.
const HEAD: usize = 12;

/// `SessionLog.SessionStatus.START`.
const START: i32 = 1;

/// A file of events that scalars are added to.
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
    /// In those with measurements.
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
    /// In those that say that a training starts.
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
    /// Goes on with the newest file of a folder, or begins one, and says that the training starts with step `next_step`. The
    /// folder is made if need be. Files are named `events.out.tfevents.SECONDS.tusker.NNN`, NNN being the first number that is free.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub(crate) fn open(folder: &Path, next_step: u64) -> Result<Self, TrainError> {
        Self::open_at(folder, next_step, SystemTime::now())
    }

    fn open_at(folder: &Path, next_step: u64, now: SystemTime) -> Result<Self, TrainError> {
        make_folder(folder)?;
        let mut events = match newest(folder) {
            Some(path) => match Self::go_on(&path) {
                Ok(Some(events)) => events,
                // Nothing is lost with a file that can't be added to: it stays as it is.
                Ok(None) | Err(_) => Self::create(folder, now)?,
            },
            None => Self::create(folder, now)?,
        };
        events.write(&Event {
            wall_time: seconds_since_1970(now),
            step: signed(next_step),
            session_log: Some(SessionLog { status: START }),
            ..Event::default()
        })?;
        Ok(events)
    }

    /// A file as far as its records are whole, which a kill or a full disk may have cut short; none if it is large, or if this is
    /// nothing to add to.
    fn go_on(path: &Path) -> std::io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).open(path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.len() >= LARGE {
            return Ok(None);
        }
        let length = whole_length(&mut file, about.len())?;
        if length == 0 {
            return Ok(None);
        }
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Some(Self {
            path: path.to_owned(),
            file,
            length,
        }))
    }

    fn create(folder: &Path, now: SystemTime) -> Result<Self, TrainError> {
        let seconds = seconds_since_1970(now);
        let mut number = 0u32;
        let (path, file) = loop {
            let name = format!("{NAME}{:010}.tusker.{number:03}", seconds as u64);
            let path = folder.join(name);
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).open(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < u32::MAX => {
                    number += 1;
                }
                Err(error) => {
                    return Err(TrainError::Io {
                        what: "create",
                        path,
                        error,
                    });
                }
            }
        };
        let mut events = Self {
            path,
            file,
            length: 0,
        };
        events.write(&Event {
            wall_time: seconds,
            file_version: Some(FILE_VERSION.into()),
            ..Event::default()
        })?;
        Ok(events)
    }

    /// Adds what was measured after an optimizer's step, by name (`loss/policy`), as one event. Readers of the file see it at
    /// once. TensorBoard's numbers are `f32`; what is no number is shown as such.
    ///
    /// # Errors
    ///
    /// What the disk says. Nothing of the event stays in the file then, and others may follow.
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
            // A reader would stop for good at half a record. If even this fails, the disk has more to say than can be reported.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(TrainError::Io {
                what: "write to",
                path: self.path.clone(),
                error,
            });
        }
        self.length += record.len() as u64;
        Ok(())
    }
}

/// The file of a folder that is read last. A folder that can't be read has none: the next thing that is done in it says why.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let newest = names
        .filter(|name| name.starts_with(NAME) && name.contains(".tusker."))
        .max()?;
    Some(folder.join(newest))
}

/// How many bytes of a file are whole records, as far as their heads say.
fn whole_length(file: &mut File, bytes: u64) -> std::io::Result<u64> {
    let mut at = 0;
    let mut head = [0; HEAD];
    while bytes - at >= HEAD as u64 {
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut head)?;
        let (length, checksum) = head.split_at(8);
        if masked_crc32c(length).to_le_bytes() != checksum {
            break;
        }
        let length = length
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        match length.checked_add(HEAD as u64 + 4) {
            Some(record) if record <= bytes - at => at += record,
            _ => break,
        }
    }
    Ok(at)
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

/// TensorFlow's `crc32c::Mask`: a checksum of bytes that hold checksums says little, so they are held changed.
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
        // Nothing was closed: it is to be seen while the run goes on.
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
        let mut events = EventFile::create(folder.path(), UNIX_EPOCH).unwrap();
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

    #[test]
    fn a_training_that_goes_on_adds_to_the_newest_file_behind_its_whole_records() {
        let folder = tempfile::tempdir().unwrap();
        let now = UNIX_EPOCH + NOW;
        let old = EventFile::create(folder.path(), now).unwrap().path;
        let mut events = EventFile::create(folder.path(), now).unwrap();
        assert!(old.ends_with("events.out.tfevents.1500000000.tusker.000"));
        assert!(
            events
                .path
                .ends_with("events.out.tfevents.1500000000.tusker.001")
        );
        events.scalars(10, now, &[("x", 1.0)]).unwrap();
        events.scalars(20, now, &[("x", 2.0)]).unwrap();
        let path = events.path;
        let whole = std::fs::read(&path).unwrap();
        let lengths: Vec<usize> = records(&whole).iter().map(|data| data.len() + 16).collect();
        let (first, two) = (lengths[0], lengths[0] + lengths[1]);
        let old_bytes = std::fs::read(&old).unwrap();
        for (kept, expected) in [
            (whole.len(), whole.len()),
            (whole.len() - 1, two),
            (two + HEAD, two),
            (two + 3, two),
            (first, first),
        ] {
            std::fs::write(&path, &whole[..kept]).unwrap();
            let again = EventFile::open_at(folder.path(), 11, now).unwrap();
            assert_eq!(again.path, path);
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes[..expected], whole[..expected], "{kept}");
            let added = records(&bytes[expected..]);
            assert_eq!(fields(added[0])[2], (7, vec![0x08, 1]));
            assert_eq!(added.len(), 1);
        }
        assert_eq!(std::fs::read(&old).unwrap(), old_bytes);
        // What is no such file, or is large, is left alone.
        for content in [
            vec![],
            b"no events at all".to_vec(),
            vec![0; LARGE as usize],
        ] {
            std::fs::write(&path, &content).unwrap();
            let next = EventFile::open_at(folder.path(), 11, now + Duration::from_secs(1)).unwrap();
            assert!(
                next.path
                    .ends_with("events.out.tfevents.1500000001.tusker.000")
            );
            assert_eq!(std::fs::read(&path).unwrap(), content);
            std::fs::remove_file(next.path).unwrap();
        }
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let error = EventFile::create(&missing, UNIX_EPOCH + NOW).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("can't create"), "{message}");
        let name = "missing/events.out.tfevents.1500000000.tusker.000";
        assert!(message.contains(name), "{message}");
        assert!(EventFile::open(&missing, 1).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
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
