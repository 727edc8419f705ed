//! The games of an archive.

use super::lines::{ArchiveLine, Lines};
use super::movelist::{SEPARATOR, read_movelist};
use super::{ArchivedGame, ArchivedPlayer, Conclusion, Termination};
use crate::notation::error::{NotationError, NotationReason};
use crate::notation::token::{Location, Span};
use crate::rules::{Game, Position, Side};
use std::io::BufRead;

/// Reads an archive line by line: each is a game or an error that names it, and after an error the next line is read. Only a
/// failure of the source ([`NotationReason::Io`]) ends it. Blank lines are passed over. Memory is bounded by
/// [`MAX_LINE_BYTES`](super::MAX_LINE_BYTES).
///
/// Most of the work is in the turns. With [`next_line`](Self::next_line) and [`ArchiveColumns::read`], several threads can share it.
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
/// assert!(error.to_string().starts_with("line 3, column 42: "));
/// assert!(games.next().is_none());
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug)]
pub struct ArchiveReader<R> {
    lines: Lines<R>,
    columns: ArchiveColumns,
}

impl<R: BufRead> ArchiveReader<R> {
    /// Reads the columns' names.
    ///
    /// # Errors
    /// The first line can't be read, is missing, does not name the columns that must be there, or names one twice.
    pub fn new(source: R) -> Result<Self, NotationError> {
        let mut lines = Lines::new(source);
        let names = match lines.next() {
            Some(line) => line?,
            None => return Err(Location::START.expected("a line that names the columns", "")),
        };
        Ok(Self {
            columns: ArchiveColumns::read_names(names.span())?,
            lines,
        })
    }

    /// The columns, by which lines are read.
    pub fn columns(&self) -> &ArchiveColumns {
        &self.columns
    }

    /// The next line that is not blank. What the iterator gives is made of it by [`ArchiveColumns::read`].
    pub fn next_line(&mut self) -> Option<Result<ArchiveLine, NotationError>> {
        self.lines
            .find(|line| !matches!(line, Ok(line) if line.text.trim().is_empty()))
    }
}

impl<R: BufRead> Iterator for ArchiveReader<R> {
    type Item = Result<ArchivedGame, NotationError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.next_line()?;
        Some(line.and_then(|line| self.columns.read(&line)))
    }
}

/// The columns of an archive.
#[derive(Debug, Clone)]
pub struct ArchiveColumns {
    /// Their names, in the order in which they stand.
    names: Vec<String>,
}

/// The columns that must be there.
const REQUIRED: [&str; 4] = ["id", "result", "termination", "movelist"];

/// The other columns that are read.
const OPTIONAL: [&str; 7] = [
    "wusername",
    "busername",
    "wrating",
    "brating",
    "event",
    "rated",
    "corrupt",
];

impl ArchiveColumns {
    fn read_names(line: Span<'_>) -> Result<Self, NotationError> {
        let mut names: Vec<String> = Vec::new();
        for Span { text: name, place } in line.split("\t").map(Span::trim) {
            let is_read = REQUIRED.contains(&name) || OPTIONAL.contains(&name);
            if is_read && names.iter().any(|other| other == name) {
                return Err(place.fault(NotationReason::DoubleColumn(name.to_owned())));
            }
            names.push(name.to_owned());
        }
        let is_missing = |name: &&str| !names.iter().any(|other| other == name);
        let missing: Vec<&str> = REQUIRED.into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(line.place.fault(NotationReason::MissingColumns(missing)));
        }
        Ok(Self { names })
    }

    /// Reads the game of a line.
    ///
    /// # Errors
    /// What stands there is no game. The error names the line and the column, in characters, of the field or turn at fault.
    pub fn read(&self, line: &ArchiveLine) -> Result<ArchivedGame, NotationError> {
        let fields: Vec<Span> = line.span().split("\t").map(Span::trim).collect();
        let (found, expected) = (fields.len(), self.names.len());
        if found != expected {
            let reason = NotationReason::FieldCount { found, expected };
            return Err(line.span().place.fault(reason));
        }
        // A column that is not there is empty.
        let field = |name: &str| {
            let column = self.names.iter().position(|other| other == name);
            column.map_or(Span::whole(""), |column| fields[column])
        };
        let id = field("id");
        let id = id
            .text
            .parse()
            .map_err(|_| id.expected("a game's number"))?;
        if field("corrupt").text == "1" {
            return Err(field("corrupt").place.fault(NotationReason::Corrupt));
        }
        let winner = read_winner(field("result"))?;
        let [gold, silver] = [("wusername", "wrating"), ("busername", "brating")];
        let read_player = |(name, rating)| {
            Ok(ArchivedPlayer {
                name: field(name).text.to_owned(),
                rating: read_rating(field(rating))?,
            })
        };
        let (gold, silver) = (read_player(gold)?, read_player(silver)?);
        let termination = Termination::from_code(field("termination").text);
        let movelist = field("movelist");
        let entries = movelist.split(SEPARATOR);
        let (game, given_up) = read_movelist(&Position::INITIAL, entries, movelist.place)?;
        check_ending(&game, given_up, winner, &termination)
            .map_err(|reason| field("result").place.fault(reason))?;
        Ok(ArchivedGame {
            line: line.number,
            id,
            gold,
            silver,
            event: field("event").text.to_owned(),
            is_rated: match field("rated").text {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            },
            winner,
            conclusion: conclusion(&game, given_up, winner, &termination),
            termination,
            game,
        })
    }
}

fn read_winner(result: Span<'_>) -> Result<Option<Side>, NotationError> {
    match result.text {
        "w" | "g" => Ok(Some(Side::Gold)),
        "b" | "s" => Ok(Some(Side::Silver)),
        "d" | "n" | "u" | "" => Ok(None),
        _ => Err(result.expected("a result (w, b, g, s, d, n, u)")),
    }
}

/// Databases write nothing at all as `NULL` or `\N`.
fn read_rating(rating: Span<'_>) -> Result<Option<f64>, NotationError> {
    if matches!(rating.text, "" | "NULL" | "\\N") {
        return Ok(None);
    }
    let number = rating
        .text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite());
    number.map(Some).ok_or_else(|| rating.expected("a rating"))
}

/// Compares what the archive says of the end with the turns. A game that the rules end may have any termination that is not
/// another one of the rules, and one that they do not end any that is none of the rules.
fn check_ending(
    game: &Game,
    given_up: Option<Conclusion>,
    winner: Option<Side>,
    termination: &Termination,
) -> Result<(), NotationReason> {
    if let (Some(given_up), Some(winner)) = (given_up, winner)
        && given_up.winner() != winner
    {
        return Err(NotationReason::LoserWon(winner));
    }
    let stated = match *termination {
        Termination::Rules(reason) => Some(reason),
        _ => None,
    };
    match (game.outcome(), stated) {
        (None, None) => Ok(()),
        (None, Some(reason)) => Err(NotationReason::NotOver(reason)),
        (Some(played), stated)
            if winner == Some(played.winner)
                && stated.is_none_or(|reason| reason == played.reason) =>
        {
            Ok(())
        }
        (Some(played), _) => Err(NotationReason::OtherEnding {
            played,
            winner,
            termination: termination.to_string(),
        }),
    }
}

/// How a game that the rules do not end was lost, where its winner is known.
fn conclusion(
    game: &Game,
    given_up: Option<Conclusion>,
    winner: Option<Side>,
    termination: &Termination,
) -> Option<Conclusion> {
    let winner = winner.filter(|_| game.outcome().is_none())?;
    let forfeited = Conclusion::Forfeited { winner };
    Some(match termination {
        Termination::Resignation => Conclusion::Resigned { winner },
        Termination::Other(_) => given_up.unwrap_or(forfeited),
        _ => forfeited,
    })
}
