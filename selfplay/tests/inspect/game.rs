//! `--game`.

use crate::{inspect, made, outcome, run_directory, sample, write_shard};
use engine::record::Ending;

#[test]
fn one_game_is_printed_with_boards() {
    let (run, ..) = run_directory();
    let (code, text, complaints) = outcome(inspect().arg(run.path()).args(["--game", "6"]));
    assert_eq!((code, complaints.as_str()), (0, ""));
    let shown = sample(6, 60);
    assert!(text.starts_with("game 0-6 from "), "{text}");
    let boards = text.matches("   a b c d e f g h\n").count();
    assert_eq!(
        boards,
        shown.turns.len() - 2 + 1,
        "one a turn of play, and the last"
    );
    let rows: usize = shown.turns.iter().map(|turn| turn.rows.len()).sum();
    assert_eq!(text.matches("\n   row ").count(), rows);
    assert!(text.contains("\n1g ") && text.contains("\n1s ") && text.contains("\n2g "));
    match shown.ending {
        Ending::Won(outcome) => assert!(text.contains(&outcome.to_string())),
        _ => assert!(text.contains("unfinished after 60 turns: counted as ")),
    }
    // The same by its id.
    let by_id = outcome(inspect().arg(run.path()).args(["--game", "0-6"]));
    assert_eq!(by_id, (0, text, String::new()));
    for (none, said) in [("8", "there is no game 8"), ("1-6", "there is no game 1-6")] {
        let (code, _, complaints) = outcome(inspect().arg(run.path()).args(["--game", none]));
        assert_eq!(code, 1);
        assert!(complaints.contains("hold 8 readable games"), "{complaints}");
        assert!(complaints.contains(said), "{complaints}");
    }
}

#[test]
fn searches_targets_and_endings_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_shard(folder.path(), 0, &made::games());
    let shown = |game: &str| {
        let (code, text, complaints) = outcome(inspect().arg(&path).args(["--game", game]));
        assert_eq!((code, complaints.as_str()), (0, ""));
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("game 0-{game} from {}", path.display())));
        rest.to_owned()
    };
    assert_eq!(
        shown("0"),
        "\
seed 11, program 0.1.0, format 3, encoding 1
evaluator 00007 (seven)
evaluator 00008 (eight)
begun in a given position

2g
 +-----------------+
8|                 |
7| R             r |
6|     x     x     |
5|                 |
4|                 |
3|     x   E x     |
2|                 |
1|                 |
 +-----------------+
   a b c d e f g h
2g Ra7n
   full search by 00007: Gold wins 75.0% (50.0% by the network's value), 20 visits, 30 evaluations of 40 allowed
   row 0: 20 visits, weight 2.000, surprise 0.500, entropy 0.693: Ee3n 50.0% Ra7n 50.0%

2s
 +-----------------+
8| R               |
7|               r |
6|     x     x     |
5|                 |
4|                 |
3|     x   E x     |
2|                 |
1|                 |
 +-----------------+
   a b c d e f g h
Gold would have resigned after 0 turns, and was made to play on
Gold wins by goal after 1 turns
"
    );
    assert!(shown("1").contains("\n   fast search by 00007: Gold wins 100.0% "));
    assert!(shown("1").ends_with("\nGold wins by resignation after 1 turns\n"));
    assert!(shown("2").contains("\nbegun with turns of game 0-0\n"));
    assert!(shown("2").ends_with("\nunfinished after 0 turns\n"));
    let last = shown("3");
    assert!(last.contains("\n   drawn from the policy of 00008: Gold wins 25.0% by its value\n"));
    assert!(last.contains("\n2s rh7s\n   given\n"), "{last}");
    assert!(last.ends_with("\nSilver wins by forfeit after 3 turns\n"));
}
