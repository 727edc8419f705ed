//! The body of the fuzz target `networks` on bounded random input.

#[path = "../../fuzz/corpus.rs"]
mod corpus;
#[path = "../../fuzz/networks.rs"]
mod networks;

use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn the_corpus_passes() {
    for input in corpus::inputs("../fuzz/corpus/networks.jsonl") {
        networks::networks(&input);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(52),
        ..ProptestConfig::default()
    })]

    #[test]
    fn changed_files_are_read_or_refused(kind in any::<u8>(), changes in vec(any::<u8>(), 0..30)) {
        networks::networks(&[&[kind][..], &changes].concat());
    }

    #[test]
    fn other_headers_are_read_or_refused(at in any::<u16>(), count in 0_u8..9, text in "[\\[\\]{}:,\"0-9a-z.\\\\]{0,8}") {
        let [low, high] = at.to_le_bytes();
        networks::networks(&[&[2, low, high, count][..], text.as_bytes()].concat());
    }
}
