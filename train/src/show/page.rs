//! The page of curves: small panels, each with its own scale.
//!
//! Numbers that can't be drawn (NaN, infinite, or beyond any scale) leave a gap; a panel without any says so.

use super::curves::{ByRows, Curves, Series};
use super::panel::{Axis, Dot, Drawn, FONT, Line, Panel, count, number, percent, whole};
use super::strength::RatedNetwork;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;

/// Of the whole page, in pixels.
const SIZE: (u32, u32) = (1_000, 1_020);
/// Of the page's title.
const TITLE_HEIGHT: u32 = 40;
/// Of a row of panels.
const ROW_HEIGHT: u32 = 320;

/// Two colours that the colour-blind tell apart too (Okabe and Ito's blue and vermilion).
pub(super) const TRAINING: RGBColor = RGBColor(0, 114, 178);
pub(super) const VALIDATION: RGBColor = RGBColor(213, 94, 0);

/// The title of its panel.
const RATING: &str = "Rating; bars: 95% intervals of the distance to the newest network";

/// More points than this are drawn as means of neighbours.
const MOST_POINTS: usize = 1_000;

/// Draws the page.
///
/// # Errors
///
/// What the drawing library says.
pub(super) fn svg(curves: &Curves) -> io::Result<String> {
    let mut page = String::new();
    draw(curves, &mut page).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(page)
}

fn draw<'a>(curves: &Curves, page: &'a mut String) -> Drawn<'a> {
    let root = SVGBackend::with_string(page, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (header, panels) = root.split_vertically(TITLE_HEIGHT);
    let title = TextStyle::from((FONT, 25)).color(&BLACK);
    header.draw(&Text::new("Training curves", (15, 12), title))?;
    if curves.unreadable > 0 {
        let note = format!("{} lines of the logs can't be read", curves.unreadable);
        let style = TextStyle::from((FONT, 15))
            .color(&VALIDATION)
            .pos(Pos::new(HPos::Right, VPos::Top));
        header.draw(&Text::new(note, (SIZE.0 as i32 - 15, 16), style))?;
    }
    let (first, rest) = panels.split_vertically(ROW_HEIGHT);
    let (second, third) = rest.split_vertically(ROW_HEIGHT);
    let half = SIZE.0 / 2;
    let (policy_loss, value_loss) = first.split_horizontally(half);
    let (policy_accuracy, value_calibration) = second.split_horizontally(half);
    let above = SeriesLabelPosition::UpperRight;
    let loss = |title, rows| by_step(title, ("nats", number), above.clone(), rows);
    loss("Policy loss", &curves.policy_loss).draw(&policy_loss)?;
    loss("Value loss", &curves.value_loss).draw(&value_loss)?;
    by_step(
        "Policy accuracy",
        ("rows", percent),
        SeriesLabelPosition::LowerRight,
        &curves.policy_accuracy,
    )
    .draw(&policy_accuracy)?;
    calibration(curves).draw(&value_calibration)?;
    rating(curves).draw(&third)?;
    root.present()
}

fn by_step(
    title: &'static str,
    (unit, format): (&'static str, fn(&f64) -> String),
    legend: SeriesLabelPosition,
    rows: &ByRows,
) -> Panel {
    let line = |name: &str, color, series| Line {
        name: name.to_owned(),
        color,
        points: thin(series),
    };
    Panel {
        title,
        horizontal: Axis {
            name: "step",
            format: count,
            range: None,
        },
        vertical: Axis {
            name: unit,
            format,
            range: None,
        },
        lines: vec![
            line("training rows", TRAINING, &rows.training),
            line("validation rows", VALIDATION, &rows.validation),
        ],
        legend,
        dots: Vec::new(),
        bars: Vec::new(),
        diagonal: false,
    }
}

fn calibration(curves: &Curves) -> Panel {
    let axis = |name| Axis {
        name,
        format: percent,
        range: Some((0.0, 1.0)),
    };
    let most = curves.calibration.iter().map(|bin| bin.rows).max();
    let most = most.unwrap_or(0).max(1) as f64;
    let mut bins = curves.calibration.clone();
    bins.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    let dots = bins.iter().map(|bin| Dot {
        at: (bin.predicted, bin.actual),
        radius: 2 + (6.0 * (bin.rows as f64 / most).sqrt()) as i32,
    });
    let points = bins.iter().map(|bin| (bin.predicted, bin.actual));
    Panel {
        title: "Value calibration",
        horizontal: axis("predicted (size of a dot: rows)"),
        vertical: axis("actual"),
        lines: vec![Line {
            name: String::new(),
            color: VALIDATION,
            points: points.collect(),
        }],
        legend: SeriesLabelPosition::UpperLeft,
        dots: dots.collect(),
        bars: Vec::new(),
        diagonal: true,
    }
}

fn rating(curves: &Curves) -> Panel {
    let at = |network: &RatedNetwork| f64::from(network.generation);
    let points: Vec<_> = curves
        .ratings
        .iter()
        .map(|network| (at(network), network.rating))
        .collect();
    let bars = curves.ratings.iter().filter_map(|network| {
        let (low, high) = network.bar?;
        Some((at(network), low, high))
    });
    Panel {
        title: RATING,
        horizontal: Axis {
            name: "generation",
            format: whole,
            range: None,
        },
        vertical: Axis {
            name: "Elo",
            format: number,
            range: None,
        },
        bars: bars.collect(),
        dots: points.iter().map(|&at| Dot { at, radius: 3 }).collect(),
        lines: vec![Line {
            name: String::new(),
            color: TRAINING,
            points,
        }],
        legend: SeriesLabelPosition::UpperLeft,
        diagonal: false,
    }
}

/// A series' points, means of neighbours where they are many.
fn thin(series: &Series) -> Vec<(f64, f64)> {
    let points = series.points();
    let together = points.len().div_ceil(MOST_POINTS).max(1);
    let mean = |points: &[(u64, f64)]| {
        let finite = points.iter().filter(|point| point.1.is_finite());
        let (mut steps, mut values, mut count) = (0.0, 0.0, 0.0);
        for &(step, value) in finite {
            steps += step as f64;
            values += value;
            count += 1.0;
        }
        // Of none it is no number, which is a gap.
        (steps / count, values / count)
    };
    points.chunks(together).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::curves::CalibrationBin;
    use crate::show::panel::LARGEST;
    use roxmltree::{Document, Node};

    const TITLES: [&str; 5] = [
        "Policy loss",
        "Value loss",
        "Policy accuracy",
        "Value calibration",
        RATING,
    ];

    fn series(points: impl IntoIterator<Item = (u64, f64)>) -> Series {
        let mut series = Series::default();
        for (step, value) in points {
            series.push(step, value);
        }
        series
    }

    fn rated(generation: u32, rating: f64, bar: Option<(f64, f64)>) -> RatedNetwork {
        RatedNetwork {
            generation,
            games: None,
            hours: None,
            rating,
            bar,
        }
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
            rated(generation, rating, bar)
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
        let page = svg(curves).unwrap();
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
    fn every_panel_is_drawn() {
        let curves = full();
        let texts = texts_of(&curves);
        assert_eq!(how_many(&texts, "no data yet"), 0);
        assert_eq!(how_many(&texts, "training rows"), 3);
        assert_eq!(how_many(&texts, "validation rows"), 3);
        for name in ["step", "nats", "actual", "Elo", "generation", "10k"] {
            assert!(how_many(&texts, name) > 0, "{name}: {texts:?}");
        }
        let page = svg(&curves).unwrap();
        let document = Document::parse(&page).unwrap();
        let dots = document.descendants();
        let dots = dots.filter(|node| node.has_tag_name("circle")).count();
        assert_eq!(dots, curves.calibration.len() + curves.ratings.len());
    }

    #[test]
    fn an_empty_run_says_so_in_every_panel() {
        let texts = texts_of(&Curves::default());
        assert_eq!(how_many(&texts, "no data yet"), TITLES.len());
        assert_eq!(texts.len(), TITLES.len() * 2 + 1);
        let unreadable = Curves {
            unreadable: 3,
            ..Curves::default()
        };
        let texts = texts_of(&unreadable);
        assert_eq!(how_many(&texts, "3 lines of the logs can't be read"), 1);
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
            let place = place as u32;
            curves.ratings.extend([
                rated(100 + place, 5.0, Some((value, 9.0))),
                rated(200 + place, value, None),
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
        let page = svg(&curves).unwrap();
        let color = "stroke=\"#0072B2\"";
        // Two pieces, and one in the legend.
        assert_eq!(page.matches(color).count(), 3, "{page}");
    }

    #[test]
    fn numbers_that_hardly_differ_are_drawn_too() {
        for value in [0.0, 1e-300, -1e-9, 1.0, -1e11, LARGEST] {
            for second in [value, value * (1.0 + 1e-15), value + 1e-12] {
                let mut curves = Curves::default();
                curves.policy_loss.training = series([(7, value), (8, second)]);
                curves.value_loss.training = series([(999_999_999_999, value)]);
                curves.ratings = vec![rated(u32::MAX, value, Some((value, second)))];
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
}
