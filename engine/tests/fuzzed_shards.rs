//! The body of the fuzz target `shards` on bounded random input.

#[path = "../fuzz/shards.rs"]
mod shards;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn shards_of_any_content_are_read_or_refused(
        kind in any::<u8>(),
        changes in vec(any::<u8>(), 0..60),
    ) {
        shards::shards(&[&[kind][..], &changes].concat());
    }
}

#[test]
fn what_is_not_changed_is_read() {
    for kind in 0..4 {
        shards::shards(&[kind]);
    }
    assert!(
        shards::sample()
            .turns
            .iter()
            .any(|turn| !turn.rows.is_empty())
    );
}
