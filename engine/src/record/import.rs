//! Games that were not searched here, as records: the played turns are what a network should learn.

use super::game::{
    Ending, GameId, GameRecord, RowRecord, Start, StartFault, StartPosition, TurnOrigin, TurnRecord,
};
use super::policy::quantize_policy;
use arimaa::notation::{Conclusion, TurnLabel};
use arimaa::rules::{Action, Game, Outcome, Position, Side, StepState, Turn};

/// The evaluator's name in the headers of imported shards.
pub const IMPORTED: &str = "import";

/// Why a game can't be kept as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The game starts from a board that [`Position::new`] refuses.
    #[error("the game starts from an impossible position: {0}")]
    Start(#[from] StartFault),
    /// There is nothing to learn.
    #[error("the game has no turn")]
    NoTurns,
    /// Another side is said to have won than the rules say.
    #[error("{played}, but {stated} is said to have won")]
    OtherWinner {
        /// The winner by the rules.
        played: Outcome,
        /// The winner by the conclusion.
        stated: Side,
    },
    /// A turn is illegal, which only [`Game::play_unchecked`] lets into a game.
    #[error("turn {0} is illegal")]
    Illegal(TurnLabel),
}

/// Makes a record of a game that others have played. `conclusion` is how it was lost where the rules did not end it; it may also
/// be given for a game that the rules end, and its winner must then be the winner by the rules.
///
/// | field | what it holds |
/// |---|---|
/// | `id` | as given |
/// | `seed` | 0: nothing was drawn |
/// | `start` | [`Start::Empty`], or the position that the game started from |
/// | `evaluators` | empty: no evaluator was used |
/// | `actions` | the played steps; a setup as [`Setup::placements`](arimaa::rules::Setup::placements) orders it, for the order of the pieces is unknown |
/// | `origin` | [`TurnOrigin::Given`] |
/// | `rows` | one for every step state of every turn in which an action is chosen, also where only one is legal |
/// | `policy` | all of it on the action that was played; behind a turn of less than four steps, on its end |
/// | `visits`, `surprise` | 0: nothing was searched |
/// | `weight` | 1 |
/// | `ending` | how the rules end the game, else the conclusion; without one [`Ending::Unfinished`] without a value |
///
/// # Errors
/// What a record can't hold, see [`ImportError`].
///
/// ```
/// use arimaa::notation::{Conclusion, TurnLabel};
/// use arimaa::rules::{Game, Side};
/// use engine::record::{Ending, GameId, import, replay};
/// let record = "1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2
/// 1s ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7
/// 2g Ee2n Ee3n
/// ";
/// let game: Game = record.parse()?;
/// let winner = Side::Gold;
/// let id = GameId { generator: 0, counter: 0 };
/// let record = import(&game, Some(Conclusion::Resigned { winner }), id)?;
/// assert_eq!(record.ending, Ending::Resigned { winner });
/// let turns = replay(&record)?;
/// assert_eq!(turns[2].rows.len(), 3, "two steps and the end of the turn");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn import(
    game: &Game,
    conclusion: Option<Conclusion>,
    id: GameId,
) -> Result<GameRecord, ImportError> {
    if game.turns().is_empty() {
        return Err(ImportError::NoTurns);
    }
    let ending = match (game.outcome(), conclusion.map(Conclusion::winner)) {
        (Some(played), Some(stated)) if stated != played.winner => {
            return Err(ImportError::OtherWinner { played, stated });
        }
        (Some(outcome), _) => Ending::Won(outcome),
        (None, _) => conclusion.map_or(Ending::Unfinished { value: None }, Ending::from),
    };
    let start = match *game.start() {
        Position::INITIAL => Start::Empty,
        position => Start::Position(StartPosition::new(&position)),
    };
    let mut record = GameRecord {
        id,
        seed: 0,
        start,
        evaluators: Vec::new(),
        turns: Vec::with_capacity(game.turns().len()),
        ending,
        resignation_waived: None,
    };
    let mut played = record.new_game()?;
    for (index, turn) in game.turns().iter().enumerate() {
        let illegal = ImportError::Illegal(record.turn_number(index));
        let turn_record = import_turn(&played, turn).ok_or_else(|| illegal.clone())?;
        played.play(turn).map_err(|_| illegal)?;
        record.turns.push(turn_record);
    }
    Ok(record)
}

impl From<Conclusion> for Ending {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Resigned { winner } => Self::Resigned { winner },
            Conclusion::Forfeited { winner } => Self::Forfeited { winner },
        }
    }
}

impl Ending {
    /// How the game was lost, if it was lost otherwise than by the rules.
    pub fn conclusion(&self) -> Option<Conclusion> {
        match *self {
            Self::Resigned { winner } => Some(Conclusion::Resigned { winner }),
            Self::Forfeited { winner } => Some(Conclusion::Forfeited { winner }),
            Self::Won(_) | Self::Unfinished { .. } => None,
        }
    }
}

/// The record of a turn that is played next; none where one of its actions is illegal.
fn import_turn(game: &Game, turn: &Turn) -> Option<TurnRecord> {
    let side = game.position().side();
    let mut state = StepState::new(game.position());
    let mut record = TurnRecord {
        actions: Vec::new(),
        origin: TurnOrigin::Given,
        rows: Vec::new(),
    };
    for action in turn.actions(side) {
        record
            .rows
            .push(row(game, &state, record.actions.len(), action)?);
        record.actions.push(u16::try_from(action.index(side)).ok()?);
        state = state.after(action);
    }
    if !state.is_complete() {
        let end = row(game, &state, record.actions.len(), Action::End)?;
        record.rows.push(end);
    }
    Some(record)
}

/// The row of a state in which an action was played; none where it is illegal.
fn row(game: &Game, state: &StepState, step: usize, played: Action) -> Option<RowRecord> {
    let legal = state.legal_actions(game.history());
    let actions = legal.in_index_order(state.side());
    let shares: Vec<f32> = actions
        .map(|action| f32::from(u8::from(action == played)))
        .collect();
    Some(RowRecord {
        step: u8::try_from(step).ok()?,
        visits: 0,
        // Fails where no share is more than 0, which is where the action is illegal.
        policy: quantize_policy(&shares).ok()?,
        surprise: 0.0,
        weight: 1.0,
    })
}
