//! Keys of earlier versions, and what replaced them.

/// What to tell a user of a key that is no more.
pub(super) fn replacement_of(key: &str) -> Option<&'static str> {
    let old = OLD_KEYS.iter().find(|(old, _)| *old == key)?;
    Some(old.1)
}

/// Old keys with what is told of them.
const OLD_KEYS: &[(&str, &str)] = &[
    (
        "search.mode",
        "is now selfplay.search.mode, and match.search.mode for matches",
    ),
    (
        "search.reuse_tree",
        "is now selfplay.search.reuse_tree, and match.search.reuse_tree for matches",
    ),
    (
        "search.memory_mib",
        "is now selfplay.search.memory_mib, and match.search.memory_mib for matches",
    ),
    (
        "search.parallel_leaves",
        "is now selfplay.search.parallel_leaves, and match.search.parallel_leaves for matches",
    ),
    (
        "search.goal_solver",
        "is now selfplay.search.goal_solver, and match.search.goal_solver for matches",
    ),
    (
        "search.exploration",
        "is now selfplay.search.puct.exploration, and match.search.puct.exploration for matches",
    ),
    (
        "search.exploration_base",
        "is now selfplay.search.puct.exploration_base, and match.search.puct.exploration_base for matches",
    ),
    (
        "search.first_play_reduction",
        "is now selfplay.search.puct.first_play_reduction, and match.search.puct.first_play_reduction for matches",
    ),
    (
        "search.min_turn_visits",
        "is now selfplay.search.puct.min_turn_visits, and match.search.puct.min_turn_visits for matches",
    ),
    (
        "search.gumbel_candidates",
        "is now selfplay.search.gumbel.candidates, and match.search.gumbel.candidates for matches",
    ),
    (
        "search.gumbel_beam_width",
        "is now selfplay.search.gumbel.beam_width, and match.search.gumbel.beam_width for matches",
    ),
    (
        "search.gumbel_beam_value_scale",
        "is now selfplay.search.gumbel.beam_value_scale, and match.search.gumbel.beam_value_scale for matches",
    ),
    (
        "search.gumbel_visit_constant",
        "is now selfplay.search.gumbel.visit_constant, and match.search.gumbel.visit_constant for matches",
    ),
    (
        "search.gumbel_value_scale",
        "is now selfplay.search.gumbel.value_scale, and match.search.gumbel.value_scale for matches",
    ),
    ("search.evaluations", "is now selfplay.evaluations"),
    (
        "search.lost_turn_checks",
        "is now selfplay.loss_proof_limit",
    ),
    (
        "search.prior_temperature",
        "is now selfplay.exploration.prior_temperature",
    ),
    (
        "search.noise_share",
        "is now selfplay.exploration.dirichlet_share",
    ),
    (
        "search.noise_concentration",
        "is now selfplay.exploration.dirichlet_concentration",
    ),
    (
        "search.gumbel_noise",
        "is now selfplay.exploration.gumbel_noise",
    ),
    ("search.policy_target", "is now selfplay.targets.kind"),
    (
        "search.target_value_scale",
        "is now selfplay.targets.value_scale",
    ),
    (
        "search.turns_left_weight",
        "was removed: no network said how many turns are left",
    ),
    (
        "selfplay.temperature",
        "is now selfplay.exploration.temperature",
    ),
    (
        "selfplay.temperature_half_life",
        "is now selfplay.exploration.temperature_half_life",
    ),
    (
        "selfplay.final_temperature",
        "is now selfplay.exploration.final_temperature",
    ),
    (
        "selfplay.min_target_visits",
        "is now selfplay.targets.min_visits",
    ),
    (
        "selfplay.surprise_share",
        "is now selfplay.targets.surprise_share",
    ),
    (
        "selfplay.cache_mib",
        "was removed with the evaluation cache",
    ),
    ("train.value_weight", "is now train.heads.value"),
    ("train.turns_left_weight", "is now train.heads.turns_left"),
    ("train.ending_weight", "is now train.heads.ending"),
    ("train.taken_weight", "is now train.heads.captures"),
    ("train.reply_weight", "is now train.heads.reply"),
    ("train.uses_per_row", "is now train.reuse_factor"),
    ("pit.max_turns", "is now match.max_turns"),
    ("loop.pit_last", "is now loop.match_opponents"),
    ("loop.pit_games", "is now loop.match_games"),
    ("loop.final_pit_games", "is now loop.final_match_games"),
    ("loop.pit_evaluations", "is now loop.match_evaluations"),
];
