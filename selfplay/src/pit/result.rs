//! The summary of a game that is over: a line of the match's results.

use super::external_engine::FaultKind;
use super::game::{PitGame, Usage};
use super::record::{RecordHeader, hash_of};
use super::referee::Forfeit;
use arimaa::notation::format_record;
use arimaa::rules::Reason;
use engine::files::ChecksumForm;
use engine::ratings::GameResult;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The file of a match's results.
pub(crate) const RESULTS: &str = "results.jsonl";

/// The most bytes of all results: a million games have about 300 MB.
pub(crate) const MAX_RESULTS_BYTES: u64 = 1 << 32;

/// The summary of a game, as the results keep it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GameSummary {
    /// Its number in the match.
    pub(crate) game: u64,
    /// The result of the pairing's first player.
    pub(super) result: GameResult,
    pub(crate) reason: End,
    /// The fault of an external engine that lost other than by the rules, with its last lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<String>,
    /// Turns, those of the opening included.
    pub(crate) turns: u64,
    /// The usage of the pairing's two players.
    pub(super) usage: [Usage; 2],
    /// The hash of its turns.
    #[serde(rename = "moves")]
    pub(super) turns_hash: String,
    /// The hash of its record.
    #[serde(rename = "record")]
    pub(crate) record_hash: String,
}

/// Why a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Goal,
    Elimination,
    Immobilization,
    /// Half a point each.
    TurnLimit,
    /// Other than by the rules: the loser is an external engine.
    #[serde(untagged)]
    Fault(FaultKind),
}

impl From<Reason> for End {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Goal => Self::Goal,
            Reason::Elimination => Self::Elimination,
            Reason::Immobilization => Self::Immobilization,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Goal => "goal",
            Self::Elimination => "elimination",
            Self::Immobilization => "immobilization",
            Self::TurnLimit => "turn limit",
            Self::Fault(kind) => return kind.fmt(f),
        })
    }
}

impl GameSummary {
    /// The summary of a game that is over, and its record: the names of its two among all `players`, its `opening` and the seed, and the
    /// turns with their players' reports.
    pub(super) fn of(
        over: &PitGame,
        usage: [Usage; 2],
        players: &[String],
        opening: &str,
        seed: u64,
    ) -> (Self, String) {
        let game = over.game();
        let (winner, reason, outcome) = match (&over.referee.forfeit, game.outcome()) {
            (Some(Forfeit { loser, fault }), _) => {
                let winner = loser.opponent();
                let outcome = format!("{winner:?} wins by {} of {loser:?}", fault.kind);
                (Some(winner), End::Fault(fault.kind), outcome)
            }
            (None, Some(outcome)) => {
                let reason = outcome.reason.into();
                (Some(outcome.winner), reason, outcome.to_string())
            }
            (None, None) => {
                let outcome = format!("unfinished after {} turns", game.turns().len());
                (None, End::TurnLimit, outcome)
            }
        };
        let result = match winner {
            Some(winner) if winner == over.fixture.first_has() => GameResult::Win,
            Some(_) => GameResult::Loss,
            None => GameResult::Unfinished,
        };
        let turns = format_record(game);
        let [gold, silver] = over.fixture.by_colour();
        let header = RecordHeader {
            gold: &players[gold],
            silver: &players[silver],
            result: &outcome,
            game: over.fixture.number,
            seed,
            // A file's name may contain line breaks.
            opening: &opening.replace(char::is_control, "?"),
        };
        let fault = over.referee.forfeit.as_ref().map(Forfeit::in_words);
        let remarks = |turn: usize| {
            let remark = over.referee.remarks.get(&turn);
            (over.turn_infos()[turn], remark.map(String::as_str))
        };
        let record = header.with_turns(&turns, game.turns().len(), remarks, fault.as_deref());
        let summary = Self {
            game: over.fixture.number,
            result,
            reason,
            fault,
            turns: game.turns().len() as u64,
            usage,
            turns_hash: hash_of(&turns),
            record_hash: hash_of(&record),
        };
        (summary, record)
    }

    /// Its line among the results, with a checksum.
    pub(super) fn to_line(&self) -> String {
        let json = serde_json::to_string(self);
        let json = json.unwrap_or_else(|error| unreachable!("a summary is always JSON: {error}"));
        ChecksumForm::Json.sign(&json)
    }

    /// The summary of a line with its end; none of one that is torn or changed.
    pub(crate) fn of_line(line: impl AsRef<[u8]>) -> Option<Self> {
        let line = std::str::from_utf8(line.as_ref()).ok()?;
        let json = ChecksumForm::Json.open(line).ok()??;
        serde_json::from_str(&json).ok()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::player::PlayerKind;
    use super::super::sampling::random_setup;
    use super::super::schedule::Fixture;
    use super::*;
    use crate::mutation::{Mutations, cases};
    use crate::worker::batch::{InPlay, Tally};
    use arimaa::notation::{RecordReader, parse_record};
    use arimaa::rules::{Game, Side, Turn};
    use engine::search::{Evaluations, Evaluator, Material};

    /// Some game's summary, with this record.
    pub(in super::super) fn summary(game: u64, record: &str) -> GameSummary {
        GameSummary {
            game,
            result: GameResult::Win,
            reason: End::Goal,
            fault: None,
            turns: 20,
            usage: [Usage::default(); 2],
            turns_hash: hash_of(record),
            record_hash: hash_of(record),
        }
    }

    /// A game of a policy against random turns, from an opening to its end or the limit.
    fn played(number: u64, opening: Game, max_turns: usize) -> PitGame<'static> {
        let fixture = Fixture {
            number,
            pairing: 0,
            players: [0, 1],
            pair: 0,
        };
        let players = [
            &PlayerKind::Policy { temperature: 0.0 },
            &PlayerKind::Random,
        ];
        let players = fixture.by_colour().map(|player| players[player]);
        let mut game = PitGame::new(fixture, opening, players, [None, None], 1, max_turns);
        let mut answers = Evaluations::default();
        while let Some((_, queries)) = game.next_queries(&mut Tally::default()).unwrap() {
            let queries = queries.to_vec();
            Material::default()
                .evaluate(&queries, &mut answers)
                .unwrap();
            game.answer(0, "material", answers.get(0).unwrap()).unwrap();
        }
        game
    }

    #[test]
    fn any_line_of_the_results_is_read_or_refused() {
        let kept = summary(7, "a").to_line();
        let fault = ",\"reason\":\"illegal_turn\",\"fault\":\"it played x\\n\"}";
        let samples = [kept.trim_end(), fault];
        let mut changes = Mutations::new(&samples, 31);
        for _ in 0..cases(2_000) {
            let changed = changes.next();
            let changed = String::from_utf8_lossy(&changed).into_owned() + "\n";
            assert!(changed == kept || GameSummary::of_line(&changed).is_none());
            let signed = ChecksumForm::Json.sign(&changed);
            if let Some(summary) = GameSummary::of_line(&signed) {
                assert_eq!(GameSummary::of_line(summary.to_line()), Some(summary));
            }
        }
    }

    #[test]
    fn a_record_is_read_back_with_its_header_and_reports() {
        let mut rng = super::super::sampling::opening_stream(1, 0);
        let mut opening = Game::new();
        for _ in Side::ALL {
            opening.play_unchecked(Turn::Setup(random_setup(&mut rng)));
        }
        let from_position = Game::from_position(*opening.position());
        let players = ["policy: x".to_owned(), "random".to_owned()];
        for (number, opening, limit) in [
            (0, opening.clone(), 9),
            (1, opening, 400),
            (0, from_position, 6),
        ] {
            let game = played(number, opening, limit);
            let text = "7, random setups";
            let (summary, record) = GameSummary::of(&game, game.usage(), &players, text, 5);
            assert_eq!(&parse_record(&record).unwrap(), game.game(), "{record}");
            let read: Vec<_> = RecordReader::new(record.as_bytes()).collect();
            assert_eq!(&read[0].as_ref().unwrap().game, game.game());
            let gold = players[number as usize].as_str();
            assert!(
                record.starts_with(&format!("Gold: {gold}\nSilver: ")),
                "{record}"
            );
            assert!(record.contains("Seed: 5\nOpening: 7, random setups\n"));
            let judged = record.lines().filter(|line| line.starts_with("# value "));
            assert_eq!(judged.count() as u64, game.usage()[0].turns);
            assert_eq!(summary.turns, game.game().turns().len() as u64);
            assert_eq!(summary.record_hash, hash_of(&record));
            let line = summary.to_line();
            let parsed = GameSummary::of_line(&line).unwrap();
            let changed = line.replace("\"turns\":", "\"turns\":1");
            assert_eq!(GameSummary::of_line(&changed), None);
            assert_eq!(
                (parsed.result, parsed.reason),
                (summary.result, summary.reason)
            );
            match game.game().outcome() {
                None => assert!(record.contains("Result: unfinished after ")),
                Some(outcome) => {
                    let won = outcome.winner == game.fixture.first_has();
                    assert_eq!(summary.result == GameResult::Win, won);
                    assert!(record.contains(&format!("Result: {outcome}\n")));
                }
            }
        }
    }
}
