//! How often rows are used, and what happens when they are used up.

use super::*;
use crate::trainer::supply::SupplyState;
use engine::config::TrainConfig;

/// What the newest checkpoint says.
fn newest_state(run: &RunDirectory) -> TrainingState {
    let newest = checkpoint::newest(&run.checkpoints()).unwrap();
    newest.unwrap().header.state
}

#[test]
fn rows_are_used_as_often_as_allowed_and_then_others_must_come() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.reuse_factor = 1.0;
    fs::write(run.config(), config.to_toml()).unwrap();
    let error = outcome(&run, &config, steps(40)).unwrap_err().to_string();
    let stopped = newest_state(&run);
    let seen = stopped.supply.seen_rows;
    assert_eq!(stopped.step, seen / 64);
    assert!(stopped.supply.allowance < 64.0);
    let missing = format!(
        "the {} rows so far have been used as often as they may be",
        grouped(seen)
    );
    assert!(
        error.contains(&missing) && error.contains("or let `train run` wait"),
        "{error}"
    );
    assert!(error.contains("the newest checkpoint is "), "{error}");
    assert!(!run.network(1).exists());
    // The same again: nothing is lost or drawn twice.
    outcome(&run, &config, steps(None)).unwrap_err();
    assert_eq!(newest_state(&run), stopped);

    for sequence in 2.. {
        write_more_games(&run, sequence);
        match outcome(&run, &config, steps(None)) {
            Ok(ending) => {
                assert!(
                    matches!(ending, TrainingEnd::Published { .. }),
                    "{ending:?}"
                );
                break;
            }
            Err(error) => assert!(error.to_string().contains("have been used"), "{error}"),
        }
    }
    let end = newest_state(&run);
    assert_eq!((end.step, end.segment > 0), (40, true));
    assert!(end.supply.seen_rows > seen);
    let left = end.supply.seen_rows as f64 - 40.0 * 64.0;
    assert_eq!(end.supply.allowance, left);
}

#[test]
fn a_trainer_waits_for_games_until_they_come_or_a_stop_is_requested() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.reuse_factor = 1.0;
    train_to_end(&run, &config, None);
    let budget = TrainingBudget {
        wait: true,
        ..steps(3)
    };
    let error = outcome(
        &run,
        &config,
        TrainingBudget {
            wait: false,
            ..budget
        },
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("have been used"), "{error}");
    let stop = Stop::default();
    stop.request();
    let stopped = train_until(&run, &config, budget, &stop).unwrap();
    assert_eq!(stopped, TrainingEnd::NotBegun);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| outcome(&run, &config, budget));
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!waiting.is_finished());
        let log = engine::run::LogSummary::read(run.train_log()).unwrap();
        let missing = log.waiting.unwrap();
        assert!(missing.contains("a batch of 64 needs"), "{missing}");
        write_more_games(&run, 2);
        let ending = waiting.join().unwrap().unwrap();
        assert!(matches!(
            ending,
            TrainingEnd::Published { generation: 2, .. }
        ));
    });
    let state = newest_state(&run);
    assert_eq!((state.new_games, state.supply.seen_games), (10, 22));
}

#[test]
fn a_generation_takes_no_more_steps_than_configured() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.reuse_factor = 1.0;
    config.train.network_steps = 5;
    train_to_end(&run, &config, None);
    let first = newest_state(&run);
    assert_eq!(first.step, 5);
    // What was not used is still there.
    train_to_end(&run, &config, None);
    let second = newest_state(&run);
    assert_eq!((second.generation, second.new_rows), (2, 0));
    let (seen, drawn) = (second.supply.seen_rows, 64 * second.step);
    assert!(second.step > 5 && drawn <= seen && seen < drawn + 64);
}

#[test]
fn a_requested_stop_during_a_wait_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.reuse_factor = 1.0;
    config.train.checkpoint_steps = 100;
    fs::write(run.config(), config.to_toml()).unwrap();
    outcome(&run, &config, steps(40)).unwrap_err();
    let waiting = checkpoints(&run).pop().unwrap();
    let before = fs::read(&waiting).unwrap();
    // Too few for all the steps that are left.
    write_more_games(&run, 2);
    let budget = TrainingBudget {
        wait: true,
        ..steps(None)
    };
    let stop = Stop::default();
    stop.request();
    let ending = train_until(&run, &config, budget, &stop).unwrap();
    assert!(matches!(ending, TrainingEnd::Stopped { .. }), "{ending:?}");
    assert_eq!(fs::read(&waiting).unwrap(), before);
}

#[test]
fn rows_may_be_used_more_often_when_that_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.reuse_factor = 1.0;
    fs::write(run.config(), config.to_toml()).unwrap();
    outcome(&run, &config, steps(20)).unwrap_err();
    config.train.reuse_factor = 3.0;
    fs::write(run.config(), config.to_toml()).unwrap();
    train_to_end(&run, &config, None);
    let end = newest_state(&run);
    assert_eq!((end.step, end.supply.trained_rows), (20, 20 * 64));
    let left = 3.0 * end.supply.seen_rows as f64 - 20.0 * 64.0;
    assert_eq!(end.supply.allowance, left);
}

#[test]
fn rows_are_not_given_again_when_the_reuse_factor_falls_and_rises() {
    let folder = tempfile::tempdir().unwrap();
    let (run, config) = new_run(folder.path());
    let with = |reuse_factor| TrainConfig {
        reuse_factor,
        ..config.train.clone()
    };
    let mut supply = DataSupply::new(&run, &config.train, SupplyState::default());
    let look = |supply: &mut DataSupply, reuse_factor| {
        supply.look(&with(reuse_factor)).unwrap();
        let state = supply.state();
        state.allowance / state.seen_rows as f64
    };
    for factor in [2.0, 1.0, 2.0] {
        assert_eq!(look(&mut supply, factor), 2.0);
    }
    write_more_games(&run, 2);
    let mean = look(&mut supply, 1.0);
    assert!(1.0 < mean && mean < 2.0, "{mean}");
    assert!((look(&mut supply, 2.0) - 2.0).abs() < 1e-9);
    // What expired with the factor's fall is given again.
    supply.open_window(&with(1.0)).unwrap();
    assert!((look(&mut supply, 1.0) - 1.0).abs() < 1e-9);
    assert!((look(&mut supply, 2.0) - 2.0).abs() < 1e-9);
}

#[test]
fn lost_checkpoints_give_no_row_back() {
    let folder = tempfile::tempdir().unwrap();
    let (run, mut config) = new_run(folder.path());
    config.train.reuse_factor = 2.0;
    config.train.checkpoint_steps = 100;
    for _ in 0..2 {
        train_to_end(&run, &config, Some(6));
    }
    let before = newest_state(&run).supply;
    let of_second = |path: &&PathBuf| path.to_string_lossy().contains("/00002-");
    for checkpoint in checkpoints(&run).iter().filter(of_second) {
        fs::remove_file(checkpoint).unwrap();
    }
    let plan = TrainingPlan::make(&run, &config, steps(1), Device::Cpu, &Stop::default());
    let supply = plan.unwrap().unwrap().state.supply;
    assert_eq!(supply.allowance, before.allowance);
    assert_eq!(supply.trained_rows, 12 * 64);
}
