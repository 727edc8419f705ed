//! The bodies of the fuzz targets on bounded random input.

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../fuzz/corpus.rs"]
mod corpus;
#[path = "../fuzz/settings.rs"]
mod settings;
#[path = "../fuzz/shards.rs"]
mod shards;

use proptest::collection::vec;
use proptest::prelude::*;

/// Texts that are read by one reader or another.
const TEXTS: [&str; 14] = [
    "1g Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2\n\
     1s ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8\n2g Ee2n Ee3n Ee4n\n",
    "g [r                                  Er                          R]\n2g re4n Ed4e\n2s ra8s\n",
    "7s\n +-----------------+\n8| r   r r   r   r |\n7| m   h     e   c |\n6|   r x r   x r   |\n\
     5| h   d     c   d |\n4| E   H         M |\n3|   R x   R H R   |\n2| D   C     C   D |\n\
     1| R   R R   R   R |\n +-----------------+\n   a b c d e f g h\n",
    "s [r rr r rm h  e c r r  r h d  c dE H    M R  RHR D C  C DR RR R R]",
    "Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2",
    "ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8",
    "Ee5n Ee6s he7s",
    "ed7s ra7ss rb6s",
    "d2n d3n e4s",
    "RHCEMCHR/RRRDDRRR",
    "12s",
    r#"{"start":"g [r                                  Er                          R]","steps_used":0,"pending":"nothing",
     "board":"[r                                  Er                          R]"}"#,
    r#"{"123": 2}"#,
    "elephant",
];

/// What a fuzz target does with an input.
type Body = fn(&[u8]);

/// A text with one of its characters replaced, taken out or doubled.
fn damaged(text: String) -> impl Strategy<Value = String> {
    let letters: Vec<char> = text.chars().collect();
    (0..letters.len(), any::<char>(), "[ A-Za-z0-9\n]", 0..4).prop_map(
        move |(index, wild, near, kind)| {
            let mut letters = letters.clone();
            match kind {
                0 => letters[index] = wild,
                1 => letters[index] = near.chars().next().unwrap_or(' '),
                2 => {
                    letters.remove(index);
                }
                _ => letters.insert(index, letters[index]),
            }
            letters.into_iter().collect()
        },
    )
}

fn texts() -> Vec<String> {
    let cases = include_str!("../arimaa/tests/data/oracle/cases_public.jsonl").lines();
    let texts = TEXTS.into_iter().chain(cases.take(25));
    texts.map(str::to_owned).collect()
}

/// A movelist of random entries behind the setups.
fn movelist() -> impl Strategy<Value = String> {
    let turn = "(([1-4][wbgs] )?(takeback|resigns|(([REMHDCremhdc][a-h][1-8][nesw]) ?){0,4})(\\\\n)?){0,12}";
    turn.prop_map(|turns| {
        format!(
            "7\t\t\t\t\t\tw\tt\t1g Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2\\n\
             1s ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8\\n{turns}\t0\n"
        )
    })
}

/// Messages of controllers and engines.
const MESSAGES: [&str; 12] = [
    "setposition g [rrrrrrrrhdcemcdh                                HDCMECDHRRRRRRRR]",
    "setoption name tcmove value 30",
    "setoption name opponent value bot Sharp",
    "makemove Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2",
    "makemove Ee5n Ee6s he7s",
    "go ponder",
    "protocol-version 1",
    "id name bot OpFor",
    "info depth 10+",
    "info time 5.25",
    "info pv Ee2n Ee3n b ed7s g Ee4n",
    "log Warning: no such option",
];

#[test]
fn undamaged_texts_pass() {
    for text in texts() {
        bodies::notation(text.as_bytes());
    }
    for message in MESSAGES {
        bodies::aei(message.as_bytes());
    }
}

#[test]
fn unchanged_shards_are_read() {
    for kind in 0..4 {
        shards::shards(&[kind]);
    }
    let sample = shards::sample();
    assert!(sample.turns.iter().any(|turn| !turn.rows.is_empty()));
}

#[test]
fn the_corpora_pass() {
    let bodies: [(&str, Body); 9] = [
        ("aei", bodies::aei),
        ("archive", bodies::archive),
        ("configuration", settings::configuration),
        ("generator", bodies::generator),
        ("journal", bodies::journal),
        ("notation", bodies::notation),
        ("positions", bodies::positions),
        ("records", bodies::records),
        ("shards", shards::shards),
    ];
    for (target, body) in bodies {
        for input in corpus::inputs(&format!("fuzz/corpus/{target}.jsonl")) {
            body(&input);
        }
    }
    for input in corpus::inputs("fuzz/corpus/archive.jsonl") {
        bodies::texts(&input);
    }
}

/// The sections of the configuration, keys of them, and values.
const SETTINGS: &str = "(\\[?(selfplay|train|loop|match|network|search|openings|heads)[\\].\n]{0,2}|mode|evaluations|seed|blocks|\
    set|time|clock|option|material|=|\"(auto|puct|gumbel|never)\"|'|-?[0-9]{1,12}[.e]?[0-9]{0,3}|true|nan|[a-z \n]){0,12}";

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(51),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text(text in any::<String>()) {
        bodies::notation(text.as_bytes());
    }

    #[test]
    fn any_words(text in "([gs1-9]{0,2} )?([RCDHMErcdhmex][a-i][0-9][neswx]{0,3}[ \n]?){0,18}") {
        bodies::notation(text.as_bytes());
    }

    #[test]
    fn damaged_texts(text in proptest::sample::select(texts()).prop_flat_map(damaged)) {
        bodies::notation(text.as_bytes());
    }

    #[test]
    fn any_message(text in any::<String>()) {
        bodies::aei(text.as_bytes());
    }

    #[test]
    fn any_words_of_messages(
        text in "((setoption|name|value|go|ponder|makemove|setposition|g|info|score|depth|time|pv|log|id|Error:|[a-z0-9+.-]{1,4})[ \t\r\n]{0,2}){0,8}"
    ) {
        bodies::aei(text.as_bytes());
    }

    #[test]
    fn any_standard_option(
        option in proptest::sample::select(&arimaa::aei::StandardOption::ALL[..]),
        value in "[ -]?([0-9]{0,12}[.e]?[0-9]{0,3}|inf|nan|[a-zä ]{0,9})"
    ) {
        bodies::aei(format!("setoption name {option} value {value}").as_bytes());
    }

    #[test]
    fn damaged_messages(
        text in proptest::sample::select(&MESSAGES[..]).prop_flat_map(|text| damaged(text.to_owned()))
    ) {
        bodies::aei(text.as_bytes());
    }

    #[test]
    fn any_board(bytes in vec(any::<u8>(), 0..200)) {
        bodies::positions(&bytes);
    }

    #[test]
    fn few_pieces(bytes in vec(any::<u8>(), 0..40)) {
        bodies::positions(&bytes);
    }

    #[test]
    fn any_game(bytes in vec(any::<u8>(), 0..150)) {
        bodies::records(&bytes);
    }

    #[test]
    fn any_setting(text in SETTINGS) {
        settings::configuration(text.as_bytes());
    }

    #[test]
    fn any_turn(bytes in vec(any::<u8>(), 0..120)) {
        bodies::generator(&bytes);
    }

    #[test]
    fn any_journal(bytes in vec(any::<u8>(), 0..300)) {
        bodies::journal(&bytes);
    }

    #[test]
    fn any_archive(bytes in vec(any::<u8>(), 0..80)) {
        bodies::archive(&bytes);
    }

    #[test]
    fn any_movelist(line in movelist()) {
        bodies::archive(line.as_bytes());
    }

    #[test]
    fn any_texts(bytes in vec(any::<u8>(), 0..80)) {
        bodies::texts(&bytes);
    }

    #[test]
    fn any_lines(text in "((([1-3][wbgs]|x:) ?)(takeback|resigns|lost|(([REMDCremdc][a-h][1-8][nesw]) ?){0,4})\n){0,12}") {
        bodies::texts(text.as_bytes());
    }

    #[test]
    fn damaged_archives(at in any::<[u8; 2]>(), text in "[ \\\\nwbgs1-4\t\nExRe]{0,6}") {
        bodies::archive(&[&at[..], text.as_bytes()].concat());
    }

    #[test]
    fn changed_shards_are_read_or_refused(kind in any::<u8>(), changes in vec(any::<u8>(), 0..60)) {
        shards::shards(&[&[kind][..], &changes].concat());
    }
}
