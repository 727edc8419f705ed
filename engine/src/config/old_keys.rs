//! Keys of earlier versions, and what replaced them.

use toml::{Table, Value};

/// The advice for a key that no longer exists.
pub(super) fn replacement_of(key: &str) -> Option<String> {
    let find = |keys: &[(&str, &'static str)], key: &str| {
        let found = keys.iter().find(|(old, _)| *old == key)?;
        Some(found.1)
    };
    if let Some(new) = key
        .strip_prefix("search.")
        .and_then(|key| find(SEARCH, key))
    {
        return Some(format!(
            "is now selfplay.search.{new}, and match.search.{new} for matches"
        ));
    }
    for section in ["selfplay.search.", "match.search."] {
        let Some(name) = key.strip_prefix(section) else {
            continue;
        };
        return match find(SEARCH, name) {
            Some(new) => (new != name).then(|| format!("is now {section}{new}")),
            None if (section, name) == ("match.search.", "evaluations") => {
                Some("is a player's setting of its own: evaluations=N".into())
            }
            None => replacement_of(&format!("search.{name}")),
        };
    }
    let moved = find(MOVED, key).map(|new| format!("is now {new}"));
    moved.or_else(|| find(REMOVED, key).map(|reason| format!("was removed{reason}; delete it")))
}

/// Drops the keys that were removed without a replacement.
pub(super) fn drop_removed(config: &mut Table) {
    for (key, _) in REMOVED {
        let mut names = key.split('.');
        let Some(last) = names.next_back() else {
            continue;
        };
        let section = names.try_fold(&mut *config, |table, name| {
            table.get_mut(name).and_then(Value::as_table_mut)
        });
        if let Some(section) = section {
            section.remove(last);
        }
    }
}

/// Keys of the old section `search` that self-play and matches each have now.
const SEARCH: &[(&str, &str)] = &[
    ("mode", "mode"),
    ("reuse_tree", "reuse_tree"),
    ("memory_mib", "memory_mib"),
    ("parallel_leaves", "parallel_leaves"),
    ("goal_solver", "goal_solver"),
    ("exploration", "puct.exploration"),
    ("exploration_base", "puct.exploration_base"),
    ("first_play_reduction", "puct.first_play_reduction"),
    ("min_turn_visits", "puct.min_turn_visits"),
    ("gumbel_candidates", "gumbel.candidates"),
    ("gumbel_beam_width", "gumbel.beam_width"),
    ("gumbel_beam_value_scale", "gumbel.beam_value_scale"),
    ("gumbel_visit_constant", "gumbel.visit_constant"),
    ("gumbel_value_scale", "gumbel.value_scale"),
];

/// Keys with another name or section.
const MOVED: &[(&str, &str)] = &[
    ("search.evaluations", "selfplay.evaluations"),
    ("search.lost_turn_checks", "selfplay.loss_proof_limit"),
    (
        "search.prior_temperature",
        "selfplay.exploration.prior_temperature",
    ),
    ("search.noise_share", "selfplay.exploration.dirichlet_share"),
    (
        "search.noise_concentration",
        "selfplay.exploration.dirichlet_concentration",
    ),
    ("search.gumbel_noise", "selfplay.exploration.gumbel_noise"),
    ("search.policy_target", "selfplay.targets.kind"),
    ("search.target_value_scale", "selfplay.targets.value_scale"),
    ("selfplay.temperature", "selfplay.exploration.temperature"),
    (
        "selfplay.temperature_half_life",
        "selfplay.exploration.temperature_half_life",
    ),
    (
        "selfplay.final_temperature",
        "selfplay.exploration.final_temperature",
    ),
    ("selfplay.min_target_visits", "selfplay.targets.min_visits"),
    ("selfplay.surprise_share", "selfplay.targets.surprise_share"),
    ("train.value_weight", "train.heads.value"),
    ("train.turns_left_weight", "train.heads.turns_left"),
    ("train.ending_weight", "train.heads.ending"),
    ("train.taken_weight", "train.heads.captures"),
    ("train.reply_weight", "train.heads.reply"),
    ("train.uses_per_row", "train.reuse_factor"),
    ("pit.max_turns", "match.max_turns"),
    ("loop.pit_last", "loop.match_opponents"),
    ("loop.pit_games", "loop.match_games"),
    ("loop.final_pit_games", "loop.final_match_games"),
    ("loop.pit_evaluations", "loop.match_evaluations"),
];

const PLAYOUT_CAP: &str =
    ": networks learned less from it (configs/README.md); all turns are searched in full";

/// Keys without a replacement, and why they were removed.
const REMOVED: &[(&str, &str)] = &[
    (
        "search.turns_left_weight",
        ": no network said how many turns are left",
    ),
    ("selfplay.cache_mib", " with the evaluation cache"),
    ("selfplay.playout_cap", PLAYOUT_CAP),
    ("selfplay.playout_cap.full_share", PLAYOUT_CAP),
    ("selfplay.playout_cap.fast_evaluations", PLAYOUT_CAP),
    ("selfplay.playout_cap.fast_gumbel_noise", PLAYOUT_CAP),
    ("selfplay.playout_cap.record_fast", PLAYOUT_CAP),
];
