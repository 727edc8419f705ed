//! The learning rate of each step.

use engine::config::{ScheduleKind, TrainConfig};
use std::f64::consts::PI;

/// The learning rate of the run's step number `step`, which is the optimizer's step number `optimizer_step`, both from 1.
///
/// The schedule goes by the run's steps, and begins after `warmup_steps` of them. The warm-up, in which the rate rises evenly from 0,
/// goes by the optimizer's: one that was begun anew in the middle of a run knows nothing of earlier gradients either. `cosine` is
/// that of Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts", equation 5, without restarts.
pub(crate) fn learning_rate(config: &TrainConfig, step: u64, optimizer_step: u64) -> f64 {
    let warmup = u64::from(config.warmup_steps);
    let done = step.saturating_sub(1).saturating_sub(warmup);
    scheduled(config, done) * warm_up(warmup, optimizer_step)
}

/// The share of the scheduled rate in the warm-up.
fn warm_up(warmup: u64, optimizer_step: u64) -> f64 {
    if optimizer_step < warmup {
        optimizer_step as f64 / warmup as f64
    } else {
        1.0
    }
}

/// The scheduled rate after `done` steps of the schedule.
fn scheduled(config: &TrainConfig, done: u64) -> f64 {
    let (first, last) = (config.learning_rate, config.final_learning_rate);
    let steps = u64::from(config.schedule_steps);
    match config.schedule {
        ScheduleKind::Constant => first,
        ScheduleKind::Step => {
            let changes = done / steps.max(1);
            (first * config.schedule_factor.powf(changes as f64)).max(last)
        }
        ScheduleKind::Cosine if done >= steps => last,
        ScheduleKind::Cosine => {
            let share = done as f64 / steps as f64;
            last + (first - last) * 0.5 * (1.0 + (PI * share).cos())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::config::Config;

    fn config(schedule: ScheduleKind) -> TrainConfig {
        TrainConfig {
            learning_rate: 0.8,
            warmup_steps: 4,
            schedule,
            schedule_steps: 10,
            schedule_factor: 0.25,
            final_learning_rate: 0.1,
            ..Config::default().train
        }
    }

    /// The rate of a step of a run whose optimizer was begun with it.
    fn rate(config: &TrainConfig, step: u64) -> f64 {
        learning_rate(config, step, step)
    }

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-12,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_warm_up_rises_evenly_and_then_all_stays() {
        let config = config(ScheduleKind::Constant);
        let rates = [1, 2, 4, 5, 100, u64::MAX].map(|step| rate(&config, step));
        assert_eq!(rates, [0.2, 0.4, 0.8, 0.8, 0.8, 0.8]);
        let at_once = TrainConfig {
            warmup_steps: 0,
            ..config
        };
        assert_eq!(rate(&at_once, 1), 0.8);
    }

    #[test]
    fn steps_fall_by_the_factor_down_to_the_last_rate() {
        let config = config(ScheduleKind::Step);
        // Four steps of warm-up, then ten of each rate.
        for (step, expected) in [
            (1, 0.2),
            (4, 0.8),
            (5, 0.8),
            (14, 0.8),
            (15, 0.2),
            (24, 0.2),
            (25, 0.1),
            (1_000, 0.1),
            (u64::MAX, 0.1),
        ] {
            close(rate(&config, step), expected);
        }
        let without_end = TrainConfig {
            final_learning_rate: 0.0,
            ..config
        };
        close(rate(&without_end, 25), 0.05);
        assert_eq!(rate(&without_end, u64::MAX), 0.0);
    }

    #[test]
    fn the_cosine_begins_at_the_first_rate_and_ends_at_the_last() {
        let config = config(ScheduleKind::Cosine);
        for (step, expected) in [
            (2, 0.4),
            (4, 0.8),
            (5, 0.8),
            // Half of the ten steps, all but the last, all.
            (5 + 5, 0.45),
            (5 + 9, 0.1 + 0.35 * (1.0 + (0.9 * PI).cos())),
            (5 + 10, 0.1),
            (5 + 11, 0.1),
            (u64::MAX, 0.1),
        ] {
            close(rate(&config, step), expected);
        }
        let rates: Vec<f64> = (5..=15).map(|step| rate(&config, step)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
    }

    #[test]
    fn an_optimizer_begun_anew_warms_up_and_the_schedule_goes_on() {
        let config = config(ScheduleKind::Step);
        close(learning_rate(&config, 15, 1), 0.2 / 4.0);
        close(learning_rate(&config, 18, 4), 0.2);
    }
}
