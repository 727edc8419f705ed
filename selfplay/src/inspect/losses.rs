//! Losses that another last turn of the loser would have avoided.

use arimaa::rules::{History, Outcome, Position, StepState, TURN_STEPS, TurnEnumerator, win_in};

/// Whether the loser's last turn allowed the end of the game, though after another legal turn the winner could not have won at once.
/// False for the loser's setup.
///
/// `positions` stood before each turn of the game.
pub(super) fn is_avoidable(positions: &[Position], outcome: Outcome) -> bool {
    let loser = outcome.winner.opponent();
    // A side may also lose by its own turn.
    let last = positions.iter().rposition(|it| it.side() == loser);
    let Some(last) = last else { return false };
    let mut history = History::default();
    for position in &positions[..=last] {
        history.push(position);
    }
    let mut enumerator = TurnEnumerator::new();
    let others = enumerator.enumerate(&positions[last], &history);
    others
        .iter()
        .any(|(end, _)| !loses_at_once(&end, &history, outcome))
}

/// Whether the game is lost at the end of a turn, or by the winner's next turn.
fn loses_at_once(end: &Position, history: &History, outcome: Outcome) -> bool {
    if let Some(ended) = end.outcome(history) {
        return ended.winner == outcome.winner;
    }
    win_in(&StepState::new(end), TURN_STEPS).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::notation::parse_position;
    use arimaa::rules::{Reason, Side};

    const GOLD_WINS: Outcome = Outcome {
        winner: Side::Gold,
        reason: Reason::Goal,
    };

    fn is_avoidable_at(before: &[&str]) -> bool {
        let positions = before.iter().map(|it| parse_position(it).unwrap());
        is_avoidable(&positions.collect::<Vec<_>>(), GOLD_WINS)
    }

    #[test]
    fn a_loss_is_avoidable_where_one_turn_prevents_the_goal() {
        // Silver's cat can walk from c8 to a8.
        let near = "s [  c     R      r                                                ]";
        let waited = "g [  c     R              r                                        ]";
        assert!(is_avoidable_at(&[near, waited]));
        // Silver's own turn may have ended the game too.
        assert!(is_avoidable_at(&[near]));
        let far = "s [        R      r                                            c   ]";
        let waited = "g [        R              r                                    c   ]";
        assert!(!is_avoidable_at(&[far, waited]));
    }

    #[test]
    fn a_loss_is_not_avoidable_where_each_turn_allows_an_immobilization() {
        // Wherever Silver's rabbit goes, the dog or the horse comes next to it.
        let before = "s [r                        D  H                                  R]";
        let waited = "g [        r                D  H                                  R]";
        assert!(!is_avoidable_at(&[before, waited]));
        // The dog alone is too far away.
        let before = "s [r                                                D             R]";
        let waited = "g [        r                                        D             R]";
        assert!(is_avoidable_at(&[before, waited]));
    }

    #[test]
    fn a_loss_without_a_turn_of_the_loser_is_not_avoidable() {
        let waited = "g [        R              r                                    c   ]";
        assert!(!is_avoidable_at(&[waited]));
    }
}
