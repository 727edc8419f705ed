use super::*;
use crate::plots::chart::MAX_VALUE;
use crate::trainer::metrics::{MeanLosses, Metrics, StepMeasurements, ValidationMeasurements};
use network::{Head, PerHead};
use roxmltree::{Document, Node};

fn both(policy: f64, value: f64) -> MeanLosses {
    let mut losses = PerHead::default();
    (losses[Head::Policy], losses[Head::Value]) = (Some(policy), Some(value));
    MeanLosses(losses)
}

#[test]
fn the_trainers_own_log_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("train.jsonl");
    let metrics = Metrics::new(log.clone());
    let measured = StepMeasurements {
        losses: both(2.5, f64::NAN),
        policy_accuracy: 0.125,
        ..StepMeasurements::default()
    };
    metrics.write(LineKind::Train, 1, 20, &measured).unwrap();
    let bin = CalibrationBin {
        predicted: 0.25,
        actual: 0.5,
        rows: 9,
    };
    let measured = ValidationMeasurements {
        losses: both(2.75, 0.5),
        policy_accuracy: Some(0.25),
        calibration: vec![bin],
        rows: 9,
    };
    metrics
        .write(LineKind::Validation, 1, 30, &measured)
        .unwrap();
    let curves = Curves::read(&log).unwrap();
    assert_eq!(curves.policy_loss.training.points(), [(20, 2.5)]);
    assert_eq!(curves.policy_loss.validation.points(), [(30, 2.75)]);
    assert_eq!(curves.value_loss.training.points(), []);
    assert_eq!(curves.value_loss.validation.points(), [(30, 0.5)]);
    assert_eq!(curves.policy_accuracy.training.points(), [(20, 0.125)]);
    assert_eq!(curves.policy_accuracy.validation.points(), [(30, 0.25)]);
    assert_eq!(curves.calibration, [bin]);
    assert_eq!(curves.unreadable, 0);
}

#[test]
fn steps_that_are_made_again_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let line = |kind, step, accuracy| {
        format!("{{\"kind\":\"{kind}\",\"step\":{step},\"policy_accuracy\":{accuracy}}}\n")
    };
    let text = [
        line("train", 10, 0.1),
        line("train", 20, 0.2),
        line("validation", 25, 0.25),
        line("train", 30, 0.3),
        line("train", 15, 0.15),
    ];
    let log = folder.path().join("train.jsonl");
    std::fs::write(&log, text.concat()).unwrap();
    let curves = Curves::read(&log).unwrap();
    let accuracy = &curves.policy_accuracy;
    assert_eq!(accuracy.training.points(), [(10, 0.1), (15, 0.15)]);
    assert_eq!(accuracy.validation.points(), [(25, 0.25)]);
}

#[test]
fn calibration_is_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let text = concat!(
        "{\"kind\":\"validation\",\"step\":1,\"calibration\":[{\"predicted\":0.5,\"actual\":0.5,\"rows\":1}]}\n",
        "{\"kind\":\"validation\",\"step\":2,\"calibration\":[{\"predicted\":0.25,\"actual\":0.5,\"rows\":8}]}\n",
        "{\"kind\":\"validation\",\"step\":3}\n",
        "{\"kind\":\"validation\",\"step\":4,\"calibration\":[]}\n",
    );
    let log = folder.path().join("train.jsonl");
    std::fs::write(&log, text).unwrap();
    let curves = Curves::read(&log).unwrap();
    let bin = CalibrationBin {
        predicted: 0.25,
        actual: 0.5,
        rows: 8,
    };
    assert_eq!(curves.calibration, [bin]);
    assert_eq!(curves.unreadable, 0);
}

#[test]
fn what_can_not_be_read_is_counted_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = concat!(
        "{\"kind\":\"train\",\"step\":1,\"policy_loss\":3}\n",
        "{\"kind\":\"train\",\"st\n",
        "{\"kind\":\"train\",\"policy_loss\":3}\n",
        "{\"kind\":\"train\",\"step\":2,\"policy_loss\":1e999}\n",
        "7\n",
        "\n",
        "{\"games\":12}\n",
        "{\"kind\":\"another\",\"step\":\"x\"}\n",
        "{\"kind\":\"train\",\"step\":3,\"policy_loss\":2}\r\n",
    );
    let mut bytes = text.as_bytes().to_vec();
    bytes.extend(b"\xff\xfe");
    let log = folder.path().join("train.jsonl");
    std::fs::write(&log, bytes).unwrap();
    let curves = Curves::read(&log).unwrap();
    let points = [(1, 3.0), (3, 2.0)];
    assert_eq!(curves.policy_loss.training.points(), points);
    assert_eq!(curves.unreadable, 5);
}

#[test]
fn a_run_without_a_log_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let none = Curves::read(&folder.path().join("train.jsonl")).unwrap();
    assert_eq!(none, Curves::default());
    let message = Curves::read(folder.path()).unwrap_err().to_string();
    let path = folder.path().display().to_string();
    assert!(message.contains(&path), "{message}");
}

#[test]
fn the_page_takes_the_place_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curves.svg");
    std::fs::write(&path, "old").unwrap();
    let curves = Curves::default();
    assert_eq!(curves.write(folder.path()).unwrap(), path);
    let page = std::fs::read_to_string(&path).unwrap();
    assert_eq!(page, svg(&curves));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
    let error = curves.write(&folder.path().join("missing")).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("missing/curves.svg"), "{message}");
}

const TITLES: [&str; 5] = [
    "Policy loss",
    "Value loss",
    "Policy accuracy",
    "Value calibration",
    RATING,
];

fn svg(curves: &Curves) -> String {
    curves.page().svg().unwrap()
}

fn series(points: impl IntoIterator<Item = (u64, f64)>) -> Series {
    let mut series = Series::default();
    for (step, value) in points {
        series.push(step, value);
    }
    series
}

fn full() -> Curves {
    let falling = |from: f64| {
        let points = (1..300u64).map(|i| (i * 50, from / (i as f64).sqrt() + 1.5));
        series(points)
    };
    let rows = |from| ByRows {
        training: falling(from),
        validation: falling(from + 0.5),
    };
    let bin = |i: u32| CalibrationBin {
        predicted: f64::from(i) / 10.0 + 0.05,
        actual: f64::from(i) / 12.0 + 0.1,
        rows: u64::from(1_000 / (i + 1)),
    };
    let rating = |generation: u32| {
        let rating = 300.0 * f64::from(generation).sqrt();
        let bar = (generation < 11).then_some((rating - 40.0, rating + 45.0));
        (f64::from(generation), rating, bar)
    };
    let accuracy = |from| series((1..300u64).map(|i| (i * 50, from + i as f64 / 1e3)));
    Curves {
        policy_loss: rows(3.0),
        value_loss: rows(0.7),
        policy_accuracy: ByRows {
            training: accuracy(0.2),
            validation: accuracy(0.15),
        },
        calibration: (0..10).map(bin).collect(),
        ratings: (0..12).map(rating).collect(),
        unreadable: 0,
    }
}

fn texts(document: &Document) -> Vec<String> {
    let nodes = document.descendants();
    nodes
        .filter(|node| node.has_tag_name("text"))
        .map(|node| node.text().unwrap_or("").trim().to_owned())
        .collect()
}

fn numbers_are_finite(node: Node) -> bool {
    let wrong = |value: &str| ["nan", "inf"].iter().any(|bad| value.contains(bad));
    let mut attributes = node.attributes();
    !attributes.any(|attribute| wrong(&attribute.value().to_lowercase()))
}

/// The texts of a page, which must be XML.
fn texts_of(curves: &Curves) -> Vec<String> {
    let page = svg(curves);
    let document = Document::parse(&page).unwrap();
    assert!(document.root_element().has_tag_name("svg"));
    assert!(document.descendants().all(numbers_are_finite), "{page}");
    let texts = texts(&document);
    for title in TITLES {
        assert!(texts.iter().any(|text| text == title), "no {title}");
    }
    texts
}

fn how_many(texts: &[String], text: &str) -> usize {
    texts.iter().filter(|other| *other == text).count()
}

#[test]
fn every_chart_is_drawn() {
    let curves = full();
    let texts = texts_of(&curves);
    assert_eq!(how_many(&texts, "no data yet"), 0);
    assert_eq!(how_many(&texts, "training rows"), 3);
    assert_eq!(how_many(&texts, "validation rows"), 3);
    for name in ["step", "nats", "actual", "Elo", "generation", "10k"] {
        assert!(how_many(&texts, name) > 0, "{name}: {texts:?}");
    }
    let page = svg(&curves);
    let document = Document::parse(&page).unwrap();
    let dots = document.descendants();
    let dots = dots.filter(|node| node.has_tag_name("circle")).count();
    assert_eq!(dots, curves.calibration.len() + curves.ratings.len());
}

#[test]
fn an_empty_run_says_so_in_every_chart() {
    let texts = texts_of(&Curves::default());
    assert_eq!(how_many(&texts, "no data yet"), TITLES.len());
    assert_eq!(texts.len(), TITLES.len() * 2 + 1);
    let unreadable = Curves {
        unreadable: 3,
        ..Curves::default()
    };
    let texts = texts_of(&unreadable);
    assert_eq!(how_many(&texts, "3 lines of the log can't be read"), 1);
}

#[test]
fn what_is_no_number_leaves_a_gap() {
    let mut curves = full();
    for (place, value) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e300]
        .into_iter()
        .enumerate()
    {
        for rows in [&mut curves.policy_loss, &mut curves.policy_accuracy] {
            rows.training.push(20_000 + place as u64, value);
        }
        curves.calibration.push(CalibrationBin {
            predicted: value,
            actual: 0.5,
            rows: u64::MAX,
        });
        let place = place as f64;
        curves.ratings.extend([
            (100.0 + place, 5.0, Some((value, 9.0))),
            (200.0 + place, value, None),
        ]);
    }
    curves.value_loss = ByRows {
        training: series([(1, f64::NAN), (2, f64::INFINITY)]),
        validation: series([(u64::MAX, 1.0)]),
    };
    let texts = texts_of(&curves);
    assert_eq!(how_many(&texts, "no data yet"), 1);
    let one_gap = series([(1, 1.0), (2, 2.0), (3, f64::NAN), (4, 1.0), (5, 2.0)]);
    let mut curves = Curves::default();
    curves.policy_loss.training = one_gap;
    let page = svg(&curves);
    let color = "stroke=\"#0072B2\"";
    // Two pieces, and one in the legend.
    assert_eq!(page.matches(color).count(), 3, "{page}");
}

#[test]
fn numbers_that_hardly_differ_are_drawn_too() {
    for value in [0.0, 1e-300, -1e-9, 1.0, -1e11, MAX_VALUE] {
        for second in [value, value * (1.0 + 1e-15), value + 1e-12] {
            let mut curves = Curves::default();
            curves.policy_loss.training = series([(7, value), (8, second)]);
            curves.value_loss.training = series([(999_999_999_999, value)]);
            curves.ratings = vec![(f64::from(u32::MAX), value, Some((value, second)))];
            let texts = texts_of(&curves);
            assert!(how_many(&texts, "no data yet") <= 4, "{value}");
        }
    }
}

#[test]
fn many_points_become_means() {
    let many = series((0..2_500u64).map(|step| (step, (step % 3) as f64)));
    let thinned = thin(&many);
    assert_eq!(thinned.len(), 834);
    assert_eq!((thinned[0], thinned[1]), ((1.0, 1.0), (4.0, 1.0)));
    let few = series([(3, 2.0), (5, 4.0)]);
    assert_eq!(thin(&few), [(3.0, 2.0), (5.0, 4.0)]);
    let gap = series((0..2_000u64).map(|step| (step, if step < 4 { f64::NAN } else { 1.0 })));
    let thinned = thin(&gap);
    assert!(thinned[1].1.is_nan() && thinned[2] == (4.5, 1.0));
}
