//! The lines of an archive.

use super::movelist::{Entry, Movelist, SEPARATOR, read_movelist};
use super::{ArchiveError, ArchiveFault, ArchivedGame, ArchivedPlayer, Conclusion, Termination};
use crate::rules::{Position, Side};
use std::io::{BufRead, ErrorKind};

/// The longest line that is read, its end not counted. A longer one is an error, and its bytes are passed over, not kept.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Reads an archive line by line: each is a game or an error that names it, and after an error the next line is read. Only what
/// the archive can't give at all ([`ArchiveFault::Io`]) ends it. Blank lines are passed over. Memory is bounded by
/// [`MAX_LINE_BYTES`].
///
/// Most of the work is in the turns. [`next_line`](Self::next_line) leaves it to whoever has more than one thread for it.
///
/// ```
/// use arimaa::notation::{ArchiveReader, Conclusion, Termination};
/// use arimaa::rules::Side;
/// let archive = "id\twusername\tbusername\twrating\tbrating\tevent\tresult\ttermination\tmovelist
/// 7\tanna\tbert\t1600\t1550\tCasual game\tb\tr\t\
/// 1w Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2\\n\
/// 1b ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7\\n2w resigns
/// 8\tanna\tbert\t1600\t1550\tCasual game\tb\tr\t1w Ra3
/// ";
/// let mut games = ArchiveReader::new(archive.as_bytes())?;
/// let game = games.next().unwrap()?;
/// assert_eq!((game.id, game.gold.name.as_str(), game.winner), (7, "anna", Some(Side::Silver)));
/// assert_eq!((game.termination, game.game.turns().len()), (Termination::Resignation, 2));
/// assert_eq!(game.conclusion, Some(Conclusion::Resigned { winner: Side::Silver }));
/// let error = games.next().unwrap().unwrap_err();
/// assert!(error.to_string().starts_with("line 3, game 8, turn 1w: column 4: "));
/// assert!(games.next().is_none());
/// # Ok::<(), arimaa::notation::ArchiveError>(())
/// ```
#[derive(Debug)]
pub struct ArchiveReader<R> {
    lines: Lines<R>,
    columns: ArchiveColumns,
}

/// A line of an archive, not yet read as a game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveLine {
    number: u64,
    text: String,
}

impl ArchiveLine {
    /// Its size without its end, in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl<R: BufRead> ArchiveReader<R> {
    /// Reads the columns' names.
    ///
    /// # Errors
    /// The first line can't be read, is empty, or does not name the columns that must be there, or names one twice.
    pub fn new(source: R) -> Result<Self, ArchiveError> {
        let mut lines = Lines::new(source);
        let (_, names) = match lines.next() {
            None => return Err(ArchiveError::of_line(1, ArchiveFault::Empty)),
            Some(line) => line?,
        };
        Ok(Self {
            columns: ArchiveColumns::read_names(&names)
                .map_err(|fault| ArchiveError::of_line(1, fault))?,
            lines,
        })
    }

    /// The columns, by which lines are read.
    pub fn columns(&self) -> &ArchiveColumns {
        &self.columns
    }

    /// The next line that is not blank. What the iterator gives is made of it by [`ArchiveColumns::read`].
    pub fn next_line(&mut self) -> Option<Result<ArchiveLine, ArchiveError>> {
        loop {
            match self.lines.next()? {
                Ok((_, text)) if text.trim().is_empty() => {}
                Ok((number, text)) => return Some(Ok(ArchiveLine { number, text })),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<R: BufRead> Iterator for ArchiveReader<R> {
    type Item = Result<ArchivedGame, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.next_line()?;
        Some(line.and_then(|line| self.columns.read(&line)))
    }
}

/// The lines of a source with their numbers, from 1; ends after a failure of the source.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    /// The lines read so far.
    count: u64,
    /// Whether nothing follows any more.
    is_done: bool,
}

impl<R> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            count: 0,
            is_done: false,
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<(u64, String), ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let number = self.count + 1;
        match read_line(&mut self.source) {
            Ok(Some(line)) => {
                self.count = number;
                let line = line.map(|bytes| (number, into_text(bytes, number == 1)));
                Some(line.map_err(|fault| ArchiveError::of_line(number, fault)))
            }
            Ok(None) => {
                self.is_done = true;
                None
            }
            Err(error) => {
                self.is_done = true;
                Some(Err(ArchiveError::of_line(number, error.into())))
            }
        }
    }
}

/// Reads a line without its end; none at the end of the source. A line that is too long is read to its end and is a fault.
fn read_line(source: &mut impl BufRead) -> std::io::Result<Option<Result<Vec<u8>, ArchiveFault>>> {
    let mut line = Vec::new();
    let (mut has_begun, mut is_too_long) = (false, false);
    loop {
        let bytes = match source.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            break;
        }
        has_begun = true;
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        // One byte more than the limit may be the carriage return before the end.
        if line.len() + part.len() > MAX_LINE_BYTES + 1 {
            is_too_long = true;
            line = Vec::new();
        }
        if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(part.len(), |end| end + 1);
        source.consume(used);
        if end.is_some() {
            break;
        }
    }
    if !has_begun {
        return Ok(None);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    let limit = MAX_LINE_BYTES;
    if is_too_long || line.len() > limit {
        return Ok(Some(Err(ArchiveFault::LineTooLong { limit })));
    }
    Ok(Some(Ok(line)))
}

/// The text of a line. What is no UTF-8 was written in Latin-1, as names of players and places were for long: there every byte is
/// a letter. A byte order mark is no part of the first line.
fn into_text(line: Vec<u8>, is_first: bool) -> String {
    let text = String::from_utf8(line)
        .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect());
    match text.strip_prefix('\u{feff}') {
        Some(rest) if is_first => rest.to_owned(),
        _ => text,
    }
}

/// The beginning of a text, for a message.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 24;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Where the columns of an archive stand.
#[derive(Debug, Clone)]
pub struct ArchiveColumns {
    count: usize,
    id: usize,
    result: usize,
    termination: usize,
    movelist: usize,
    gold_name: Option<usize>,
    silver_name: Option<usize>,
    gold_rating: Option<usize>,
    silver_rating: Option<usize>,
    event: Option<usize>,
    rated: Option<usize>,
    corrupt: Option<usize>,
}

impl ArchiveColumns {
    /// Reads the game of a line.
    ///
    /// # Errors
    /// What stands there is no game, see [`ArchiveFault`].
    pub fn read(&self, line: &ArchiveLine) -> Result<ArchivedGame, ArchiveError> {
        read_game(&line.text, line.number, self)
    }

    fn read_names(line: &str) -> Result<Self, ArchiveFault> {
        let names: Vec<&str> = line.split('\t').map(str::trim).collect();
        let mut missing = Vec::new();
        let find = |name: &'static str| {
            let mut places = (0..names.len()).filter(|&place| names[place] == name);
            match (places.next(), places.next()) {
                (_, Some(_)) => Err(ArchiveFault::DoubleColumn(name)),
                (place, None) => Ok(place),
            }
        };
        let mut require = |name: &'static str| {
            let place = find(name)?;
            if place.is_none() {
                missing.push(name);
            }
            Ok::<usize, ArchiveFault>(place.unwrap_or(0))
        };
        let columns = Self {
            count: names.len(),
            id: require("id")?,
            result: require("result")?,
            termination: require("termination")?,
            movelist: require("movelist")?,
            gold_name: find("wusername")?,
            silver_name: find("busername")?,
            gold_rating: find("wrating")?,
            silver_rating: find("brating")?,
            event: find("event")?,
            rated: find("rated")?,
            corrupt: find("corrupt")?,
        };
        if missing.is_empty() {
            Ok(columns)
        } else {
            Err(ArchiveFault::MissingColumns(missing))
        }
    }
}

fn read_game(
    line: &str,
    number: u64,
    columns: &ArchiveColumns,
) -> Result<ArchivedGame, ArchiveError> {
    let of_line = |fault| ArchiveError::of_line(number, fault);
    let fields: Vec<&str> = line.split('\t').collect();
    let (found, expected) = (fields.len(), columns.count);
    if found != expected {
        return Err(of_line(ArchiveFault::FieldCount { found, expected }));
    }
    let field = |place: usize| fields[place].trim();
    let optional = |place: Option<usize>| place.map_or("", field);
    let id = field(columns.id);
    let id: u64 = id
        .parse()
        .map_err(|_| of_line(wrong_field("id", id, "game's number")))?;
    let of_game = |fault| ArchiveError {
        game: Some(id),
        ..of_line(fault)
    };
    if optional(columns.corrupt) == "1" {
        return Err(of_game(ArchiveFault::Corrupt));
    }
    let winner = read_winner(field(columns.result)).map_err(of_game)?;
    let gold_rating = read_rating("wrating", optional(columns.gold_rating)).map_err(of_game)?;
    let silver_rating = read_rating("brating", optional(columns.silver_rating)).map_err(of_game)?;
    let termination = Termination::from_code(field(columns.termination));
    let entries = fields[columns.movelist].split(SEPARATOR);
    let entries = entries.map(|text| Entry { line: number, text });
    let movelist =
        read_movelist(number, &Position::INITIAL, entries).map_err(|error| ArchiveError {
            turn: error.turn,
            ..of_game(error.fault)
        })?;
    check_ending(&movelist, winner, &termination).map_err(of_game)?;
    let conclusion = conclusion(&movelist, winner, &termination);
    Ok(ArchivedGame {
        line: number,
        id,
        gold: ArchivedPlayer {
            name: optional(columns.gold_name).to_owned(),
            rating: gold_rating,
        },
        silver: ArchivedPlayer {
            name: optional(columns.silver_name).to_owned(),
            rating: silver_rating,
        },
        event: optional(columns.event).to_owned(),
        is_rated: read_flag(optional(columns.rated)),
        winner,
        termination,
        conclusion,
        game: movelist.game,
    })
}

fn wrong_field(column: &'static str, text: &str, what: &'static str) -> ArchiveFault {
    ArchiveFault::Field {
        column,
        text: shorten(text),
        what,
    }
}

fn read_winner(text: &str) -> Result<Option<Side>, ArchiveFault> {
    match text {
        "w" | "g" => Ok(Some(Side::Gold)),
        "b" | "s" => Ok(Some(Side::Silver)),
        "d" | "n" | "u" | "" => Ok(None),
        _ => Err(wrong_field("result", text, "result (w, b, g, s, d, n, u)")),
    }
}

/// Databases write nothing at all as `NULL` or `\N`.
fn read_rating(column: &'static str, text: &str) -> Result<Option<f64>, ArchiveFault> {
    if matches!(text, "" | "NULL" | "\\N") {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(rating) if rating.is_finite() => Ok(Some(rating)),
        _ => Err(wrong_field(column, text, "rating")),
    }
}

fn read_flag(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

/// Holds what the archive says of the end against the turns. A game that the rules end may have any termination that is not
/// another one of the rules, and one that they do not end any that is none of the rules.
fn check_ending(
    movelist: &Movelist,
    winner: Option<Side>,
    termination: &Termination,
) -> Result<(), ArchiveFault> {
    if let (Some(conclusion), Some(winner)) = (movelist.conclusion, winner)
        && conclusion.winner() != winner
    {
        return Err(ArchiveFault::LoserWon(winner));
    }
    match (movelist.game.outcome(), termination) {
        (None, Termination::Rules(_)) => Err(ArchiveFault::NotOver(termination.clone())),
        (None, _) => Ok(()),
        (Some(played), stated) => {
            let is_other = matches!(stated, Termination::Rules(reason) if *reason != played.reason);
            if is_other || winner != Some(played.winner) {
                return Err(ArchiveFault::OtherEnding {
                    played,
                    winner,
                    termination: stated.clone(),
                });
            }
            Ok(())
        }
    }
}

/// How a game that the rules do not end was lost, if anybody is known to have won it.
fn conclusion(
    movelist: &Movelist,
    winner: Option<Side>,
    termination: &Termination,
) -> Option<Conclusion> {
    let winner = winner.filter(|_| movelist.game.outcome().is_none())?;
    match termination {
        Termination::Resignation => Some(Conclusion::Resigned { winner }),
        Termination::Other(_) => movelist
            .conclusion
            .or(Some(Conclusion::Forfeited { winner })),
        _ => Some(Conclusion::Forfeited { winner }),
    }
}
