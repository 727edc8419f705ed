//! Files cut and damaged everywhere.

use super::super::entry::{HEAD_BYTES, START_BYTES, read_frame};
use super::*;

/// Where each frame of a file begins, and where the last one ends.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![START_BYTES as usize];
    while borders[borders.len() - 1] < bytes.len() {
        let begin = borders[borders.len() - 1];
        let (_, length) = read_frame(&bytes[begin..], begin as u64).unwrap();
        borders.push(begin + length);
    }
    borders
}

/// A file with two short games, all of it flushed, and a frame at its end that says so.
fn small_file() -> Vec<u8> {
    let root = run();
    let (journal, _) = open(root.path(), 3);
    play(&journal, &game(3, 0, 2));
    play(&journal, &game(3, 1, 1));
    journal.sync().unwrap();
    begin(&journal, &game(3, 2, 1));
    fs::read(current_file(&journal)).unwrap()
}

#[test]
fn a_cut_anywhere_leaves_every_whole_frame() {
    let bytes = small_file();
    let borders = borders(&bytes);
    // Header, synced; begin, evaluator, turn, turn; begin, evaluator, turn; synced, begin, evaluator.
    assert_eq!(borders.len(), 13);
    let turns_at = [0, 0, 0, 0, 0, 1, 2, 2, 2, 3, 3, 3, 3];
    for end in 0..bytes.len() {
        let games = read(&bytes[..end]);
        if end < borders[1] {
            let error = games.err().unwrap();
            assert!(error.to_string().contains("the.journal"), "{error}");
            continue;
        }
        let games = games.unwrap();
        let whole = borders.iter().rposition(|&border| border <= end).unwrap();
        let turns: usize = games
            .found
            .values()
            .map(|found| found.game.turns.len())
            .sum();
        assert_eq!(turns, turns_at[whole], "cut at {end}");
        match &games.dropped[..] {
            [] => assert_eq!(borders[whole], end),
            [dropped] => {
                assert_eq!(dropped.offset as usize, borders[whole]);
                assert_eq!(dropped.offset + dropped.bytes, end as u64);
            }
            more => panic!("{more:?}"),
        }
        // A torn write may leave anything in place of the rest.
        let missing = &bytes[end..borders[whole + 1]];
        for garbage in [[0; 40], [255; 40]] {
            if garbage.starts_with(missing) {
                // The very bytes that were cut off.
                continue;
            }
            let torn = read(&[&bytes[..end], &garbage[..]].concat()).unwrap();
            assert_eq!(torn.found.len(), games.found.len());
            assert_eq!(torn.dropped[0].offset as usize, borders[whole]);
        }
    }
}

#[test]
fn every_flipped_bit_is_found_or_behind_the_last_flush() {
    let bytes = small_file();
    let borders = borders(&bytes);
    let flushed = borders[9];
    let whole = read(&bytes).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let begin = borders.iter().rfind(|&&border| border <= bit / 8);
        match read(&flipped) {
            Err(error) => {
                assert!(bit / 8 < flushed, "bit {bit}: {error}");
                let place = error.offset.unwrap_or(0) as usize;
                assert!(
                    place == begin.copied().unwrap_or(0) || place <= 8,
                    "{error}"
                );
            }
            Ok(games) => {
                assert!(bit / 8 >= flushed, "bit {bit} was not found");
                assert_eq!(games.dropped[0].offset as usize, *begin.unwrap());
                for (id, found) in &games.found {
                    assert_eq!(found.game.turns, whole.found[id].game.turns);
                }
            }
        }
    }
}

#[test]
fn a_frame_is_good_only_where_it_was_written() {
    let bytes = small_file();
    let borders = borders(&bytes);
    let (begin, end) = (borders[2], borders[3]);
    let moved = [&bytes[..end], &bytes[begin..end]].concat();
    assert_eq!(read(&moved).unwrap().dropped[0].offset as usize, end);
    assert!(end - begin > HEAD_BYTES);
}

#[test]
fn the_layout_is_the_documented_one() {
    let bytes = small_file();
    assert_eq!(&bytes[..12], b"TuskerJ\n\x02\0\0\0");
    assert_eq!(&bytes[12..20], b"\xf7TJ\n\x18\0\0\0");
    let mut checked = 12u64.to_le_bytes().to_vec();
    checked.extend(&bytes[16..20]);
    checked.extend(&bytes[24..48]);
    assert_eq!(bytes[20..24], crc32c::crc32c(&checked).to_le_bytes());
    let encoding = crate::encoding::ENCODING_VERSION.to_le_bytes();
    let header = [&[0, 0, 0, 0, 3, 0, 0, 0], &encoding[..], &[0; 12]].concat();
    assert_eq!(bytes[24..48], header);
    let mut future = bytes.clone();
    future[8] = 9;
    let message = read(&future).err().unwrap().to_string();
    assert!(message.contains("format version 9"), "{message}");
}

#[test]
fn a_hole_that_a_power_cut_left_is_no_damage() {
    let bytes = small_file();
    let borders = borders(&bytes);
    // Without the frame that says that all this was on the disk.
    let mut torn = bytes[..borders[9]].to_vec();
    torn[borders[5]..borders[5] + 30].fill(0);
    let games = read(&torn).unwrap();
    assert_eq!(games.dropped[0].offset as usize, borders[5]);
    assert_eq!(
        games
            .found
            .values()
            .map(|found| found.game.turns.len())
            .sum::<usize>(),
        1
    );
    // What was on the disk when the file began is damage.
    torn[borders[0] + 20] ^= 1;
    assert!(read(&torn).is_err());
}
