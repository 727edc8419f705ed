//! Journal files: any bytes, any content under good checksums, and the file of a real journal with some of its content changed.

use super::Choices;
use engine::record::journal::{Beginning, FORMAT_VERSION, Journal, JournalPlace, games_in};
use engine::record::{
    Ending, EndingFault, GameId, GameRecord, ReplayError, ShardName, replay, samples,
};
use std::path::Path;
use std::sync::OnceLock;

const START_BYTES: usize = 12;
const HEAD_BYTES: usize = 12;

/// Reads a journal file. Nothing may panic, and what is read are games.
pub(crate) fn journal(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let file = match choices.byte() % 4 {
        0 => bytes.to_vec(),
        1 => {
            let mut payloads = vec![real_payloads()[0].clone()];
            while choices.are_left() {
                let mut payload = vec![choices.byte() % 8, 0, 0, 0];
                payload.extend((0..choices.byte()).map(|_| choices.byte()));
                payloads.push(payload);
            }
            framed(&payloads)
        }
        _ => {
            let mut payloads = real_payloads().to_vec();
            change(&mut payloads, &mut choices);
            let mut file = framed(&payloads);
            // Nor does it matter where it ends.
            if choices.byte() < 64 {
                let cut = usize::from(choices.byte()) * 16;
                file.truncate(file.len().saturating_sub(cut));
            }
            file
        }
    };
    let Ok((games, dropped)) = games_in(Path::new("000-000000.journal"), &file) else {
        return;
    };
    for part in &dropped {
        let end = part.offset + part.bytes;
        assert!(end <= file.len() as u64 && (part.is_damage || end == file.len() as u64));
    }
    for game in games {
        let record = GameRecord {
            id: game.beginning.id,
            seed: game.beginning.seed,
            start: game.beginning.start,
            evaluators: game.evaluators,
            turns: game.turns,
            ending: Ending::Unfinished { value: None },
            resignation_waived: None,
        };
        assert!(matches!(
            replay(&record),
            Ok(_) | Err(ReplayError::Ending(EndingFault::Over { .. }))
        ));
    }
}

/// Changes bytes of some entries, and leaves out, doubles or moves others.
fn change(payloads: &mut Vec<Vec<u8>>, choices: &mut Choices<'_>) {
    for _ in 0..=choices.byte() % 4 {
        // The header stays.
        let index = 1 + usize::from(choices.byte()) % (payloads.len() - 1);
        let other = 1 + usize::from(choices.byte()) % (payloads.len() - 1);
        match choices.byte() % 8 {
            0 => payloads[index] = payloads[other].clone(),
            1 => payloads.swap(index, other),
            2 if payloads.len() > 2 => {
                payloads.remove(index);
            }
            _ => {
                let payload = &mut payloads[index];
                // More often where the fields are than in the targets.
                let at = usize::from(choices.byte()) * usize::from(1 + choices.byte() % 8);
                let at = at % payload.len();
                payload[at] = choices.byte();
            }
        }
    }
}

/// A file of these entries.
fn framed(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut file = [&b"TuskerJ\n"[..], &FORMAT_VERSION.to_le_bytes()].concat();
    for payload in payloads {
        let length = (payload.len() as u32).to_le_bytes();
        let checked = [&(file.len() as u64).to_le_bytes()[..], &length, payload].concat();
        file.extend(b"\xf7TJ\n");
        file.extend(length);
        file.extend(crc32c::crc32c(&checked).to_le_bytes());
        file.extend(payload);
    }
    file
}

/// The entries of a journal with two games, one of them announced for a shard.
fn real_payloads() -> &'static [Vec<u8>] {
    static PAYLOADS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    PAYLOADS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let place = JournalPlace::new(folder.path(), folder.path(), 0);
        let (journal, _) = Journal::open(place).unwrap();
        for counter in 0..2 {
            let id = GameId {
                generator: 0,
                counter,
            };
            let game = samples::random_game(id, 7, 4);
            let (seed, start) = (game.seed, game.start);
            journal.begin(Beginning { id, seed, start }).unwrap();
            for evaluator in &game.evaluators {
                journal.evaluator(id, evaluator).unwrap();
            }
            for (number, turn) in (0..).zip(&game.turns) {
                journal.turn(id, number, turn).unwrap();
            }
            let shard = ShardName {
                generator: 0,
                sequence: counter as u32,
            };
            journal.closing(shard, &[id]).unwrap();
        }
        let file = std::fs::read(folder.path().join("000-000000.journal")).unwrap();
        let mut payloads = Vec::new();
        let mut left = &file[START_BYTES..];
        while let Some((head, behind)) = left.split_at_checked(HEAD_BYTES) {
            let length = u32::from_le_bytes(head[4..8].try_into().unwrap());
            let (payload, behind) = behind.split_at(length as usize);
            payloads.push(payload.to_vec());
            left = behind;
        }
        assert_eq!(framed(&payloads), file);
        payloads
    })
}
