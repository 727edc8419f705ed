//! Finds one game, and prints it with boards and searches.

use super::read::{FoundGame, games_of};
use super::summary::entropy;
use super::text::printable;
use crate::output::print;
use anyhow::bail;
use arimaa::notation::{format_board_picture, format_step_with_capture, format_turn};
use arimaa::rules::{Action, Phase, Piece};
use engine::progress::say;
use engine::record::{
    Ending, EvaluatorId, FORMAT_VERSION, GameId, Header, POLICY_TOTAL, ReplayedRow, ReplayedTurn,
    SearchKind, SearchRecord, ShardReader, Start, TurnOrigin, WaivedResignation, replay,
};
use std::fmt::{self, Display, Formatter, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// A game of some shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GameChoice {
    /// By its number among the readable ones, in order from 0.
    Number(u64),
    /// By its id.
    Id(GameId),
}

impl FromStr for GameChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('-') {
            return text.parse().map(Self::Id);
        }
        let number = text.parse().map(Self::Number);
        number
            .map_err(|error| format!("{error}: a game is a number from 0 on, or an id like 3-1041"))
    }
}

impl Display for GameChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Id(id) => id.fmt(f),
        }
    }
}

/// Finds a game among the readable ones of all shards, and reports the faults before it. Also returns whether there were none.
pub(crate) fn find_game(
    shards: Vec<PathBuf>,
    choice: GameChoice,
) -> anyhow::Result<(FoundGame, bool)> {
    let mut all_readable = true;
    let mut before = 0;
    for game in games_of(shards) {
        match game {
            Ok(found)
                if choice == GameChoice::Number(before)
                    || choice == GameChoice::Id(found.record.id) =>
            {
                return Ok((found, all_readable));
            }
            Ok(_) => before += 1,
            Err(fault) => {
                say(&fault.to_string());
                all_readable = false;
            }
        }
    }
    bail!("there is no game {choice}: the shards hold {before} readable games, counted from 0")
}

/// Prints one game. Returns whether there is no fault before it.
pub(super) fn print_game(shards: Vec<PathBuf>, choice: GameChoice) -> anyhow::Result<bool> {
    let (found, all_readable) = find_game(shards, choice)?;
    let turns = replay(&found.record).map_err(|error| found.fault(error))?;
    let shard = ShardReader::open(&found.path)?;
    print(&describe(&found, shard.header(), &turns)?)?;
    Ok(all_readable)
}

/// A game as text: its origin, board and turn by turn, its ending.
fn describe(found: &FoundGame, header: &Header, turns: &[ReplayedTurn]) -> anyhow::Result<String> {
    let record = &found.record;
    let mut text = String::new();
    describe_origin(&mut text, found, header)?;
    for (index, turn) in turns.iter().enumerate() {
        let label = record.turn_number(index);
        writeln!(text)?;
        if turn.position.phase() == Phase::Play {
            text.push_str(&format_board_picture(&turn.position, label.number));
        }
        let steps = format_turn(&turn.turn, &turn.position);
        writeln!(text, "{label} {steps}")?;
        describe_choice(&mut text, &turn.origin, &record.evaluators)?;
        for row in &turn.rows {
            describe_row(&mut text, row)?;
        }
    }
    let game = record.to_game()?;
    let next = record.turn_number(turns.len());
    writeln!(text)?;
    text.push_str(&format_board_picture(game.position(), next.number));
    if let Some(WaivedResignation { loser, turn: after }) = record.resignation_waived {
        writeln!(
            text,
            "{loser} would have resigned after {after} turns, and was made to play on"
        )?;
    }
    let after = format!("after {} turns", turns.len());
    match record.ending {
        Ending::Won(outcome) => writeln!(text, "{outcome} {after}")?,
        Ending::Resigned { winner } => writeln!(text, "{winner} wins by resignation {after}")?,
        Ending::Forfeited { winner } => writeln!(text, "{winner} wins by forfeit {after}")?,
        Ending::Unfinished { value: None } => writeln!(text, "unfinished {after}")?,
        Ending::Unfinished { value: Some(value) } => {
            let gold = 100.0 * value;
            writeln!(text, "unfinished {after}: counted as {gold:.1}% for Gold")?;
        }
    }
    Ok(text)
}

fn describe_origin(text: &mut String, found: &FoundGame, header: &Header) -> fmt::Result {
    let record = &found.record;
    writeln!(
        text,
        "game {} from {}, frame {} at byte {}",
        record.id,
        found.path.display(),
        found.at.frame,
        found.at.offset
    )?;
    writeln!(
        text,
        "seed {}, program {}, format {}, encoding {}",
        record.seed,
        printable(&header.program_version),
        FORMAT_VERSION,
        header.encoding_version
    )?;
    for EvaluatorId { name, identity } in &record.evaluators {
        let (name, identity) = (printable(name), printable(identity));
        writeln!(text, "evaluator {name} ({identity})")?;
    }
    match &record.start {
        Start::Empty => writeln!(text, "begun on the empty board"),
        Start::Fork { game } => writeln!(text, "begun with turns of game {game}"),
        Start::Opening => writeln!(text, "begun with a given opening"),
        Start::Position(_) => writeln!(text, "begun in a given position"),
    }
}

fn describe_choice(
    text: &mut String,
    origin: &TurnOrigin,
    evaluators: &[EvaluatorId],
) -> fmt::Result {
    let place = origin.evaluator().map(usize::from);
    let name = place.and_then(|place| evaluators.get(place));
    let name = name.map_or(String::new(), |evaluator| printable(&evaluator.name));
    match origin {
        TurnOrigin::Given => writeln!(text, "   given"),
        TurnOrigin::Policy { network_value, .. } => {
            let gold = 100.0 * network_value;
            writeln!(
                text,
                "   drawn from the policy of {name}: Gold wins {gold:.1}% by its value"
            )
        }
        TurnOrigin::Search(search) => describe_search(text, search, &name),
    }
}

fn describe_search(text: &mut String, search: &SearchRecord, name: &str) -> fmt::Result {
    let kind = match search.kind {
        SearchKind::Full => "full",
        SearchKind::Fast => "fast",
    };
    let [gold, network] = [search.value, search.network_value].map(|value| 100.0 * value);
    write!(
        text,
        "   {kind} search by {name}: Gold wins {gold:.1}% ({network:.1}% by the network's value), {} visits",
        search.visits
    )?;
    // 0 where it was not kept.
    if search.evaluations > 0 {
        write!(text, ", {} evaluations", search.evaluations)?;
    }
    if search.budget > 0 {
        write!(text, " of {} allowed", search.budget)?;
    }
    writeln!(text)
}

/// The actions of a policy target that are shown.
const ACTIONS_SHOWN: usize = 5;

fn describe_row(text: &mut String, row: &ReplayedRow) -> fmt::Result {
    let side = row.state.side();
    let step = row.state.steps_used();
    write!(
        text,
        "   row {step}: {} visits, weight {:.3}, surprise {:.3}, entropy {:.3}:",
        row.visits,
        row.weight,
        row.surprise,
        entropy(row.policy)
    )?;
    let mut shares: Vec<(Action, u16)> = row
        .legal
        .in_index_order(side)
        .zip(row.policy.iter().copied())
        .filter(|&(_, part)| part > 0)
        .collect();
    // A stable sort: equal ones stay in the order of the policy.
    shares.sort_by_key(|&(_, part)| std::cmp::Reverse(part));
    for (action, part) in shares.iter().take(ACTIONS_SHOWN) {
        let share = 100.0 * f64::from(*part) / f64::from(POLICY_TOTAL);
        write!(text, " {} {share:.1}%", format_action(*action, row))?;
    }
    writeln!(text)
}

/// The notation of an action in a row's state.
pub(crate) fn format_action(action: Action, row: &ReplayedRow) -> String {
    match action {
        Action::Step(step) => format_step_with_capture(step, &row.state),
        Action::Place(square) => match row.state.next_placement() {
            Some(kind) => format!("{}{square}", Piece::new(row.state.side(), kind)),
            None => square.to_string(),
        },
        Action::End => "end".into(),
    }
}
