//! The plot of a run's ratings: those of its networks, by the games and evaluations generated for them, and by the hours spent on them.

use super::chart::{Axis, Chart, Line, Page, VERMILION, count, number};
use crate::error::TrainError;
use crate::ratings::{Player, RatedPlayer, RatingMark, RatingsFile};
use engine::run::make_folder;
use plotters::chart::SeriesLabelPosition;
use plotters::style::RGBColor;
use std::path::{Path, PathBuf};

/// Colours of anchors, which the colour-blind tell apart too (Okabe and Ito).
const ANCHORS: [RGBColor; 4] = [
    VERMILION,
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(130, 130, 130),
];

/// The plot's file in the folder of the logs.
pub(crate) fn file(logs: &Path) -> PathBuf {
    logs.join("ratings.svg")
}

/// Draws the plot in the place of the previous one.
///
/// # Errors
///
/// Fails where the folder or the file can't be written.
pub(crate) fn write(ratings: &RatingsFile, logs: &Path) -> Result<(), TrainError> {
    make_folder(logs)?;
    page(ratings).write(&file(logs))
}

fn page(ratings: &RatingsFile) -> Page {
    let reference = match ratings.reference.parse::<Player>() {
        Ok(player) => player.in_words(),
        Err(()) => ratings.reference.clone(),
    };
    let title = format!(
        "Ratings in Elo points; {reference} has 0. Bars: 95% intervals of the distance to the newest network"
    );
    let games = ratings.marks(|network| network.generated_games.map(|games| games as f64));
    let evaluations = |network: &RatedPlayer| network.generated_evaluations.map(|it| it as f64);
    let evaluations = ratings.marks(evaluations);
    let hours = ratings.marks(|network| network.hours);
    let by_games = Axis::new("games generated", count);
    let by_evaluations = Axis::new("evaluations by networks", count);
    let by_time = Axis::new("hours of generating and training", number);
    Page {
        size: (1_440, 440),
        title,
        note: None,
        rows: vec![vec![
            chart("By games", by_games, &games, ratings),
            chart("By evaluations", by_evaluations, &evaluations, ratings),
            chart("By time", by_time, &hours, ratings),
        ]],
    }
}

fn chart(
    title: &'static str,
    horizontal: Axis,
    marks: &[RatingMark],
    ratings: &RatingsFile,
) -> Chart {
    let mut chart = Chart::of_ratings(title, horizontal, "networks", marks);
    let levels = levels(ratings, &chart.lines[0].points);
    chart.lines.extend(levels);
    chart.legend = SeriesLabelPosition::LowerRight;
    chart
}

/// The anchors within the networks' ratings: others would leave the networks a small part of the chart.
fn levels(ratings: &RatingsFile, points: &[(f64, f64)]) -> Vec<Line> {
    let least = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(f64::INFINITY, f64::min);
    let first = least(&mut points.iter().map(|point| point.0));
    let last = -least(&mut points.iter().map(|point| -point.0));
    let lowest = least(&mut points.iter().map(|point| point.1));
    let highest = -least(&mut points.iter().map(|point| -point.1));
    let anchors = ratings.ratings.iter().filter(|it| it.generation.is_none());
    anchors
        .zip(ANCHORS.into_iter().cycle())
        .filter(|(anchor, _)| (lowest..=highest).contains(&anchor.rating))
        .map(|(anchor, color)| Line {
            name: anchor.player.clone(),
            color,
            points: vec![(first, anchor.rating), (last, anchor.rating)],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use roxmltree::Document;

    fn sample(known: bool) -> RatingsFile {
        let rating = |generation: u32| 180.0 * f64::from(generation).sqrt();
        let network = |generation: u32| {
            let behind = rating(11) - rating(generation);
            let error = 8.0 * f64::from(generation);
            RatedPlayer {
                generation: Some(generation),
                rating: rating(generation),
                behind_newest: (generation > 0).then_some([behind - error, behind + error]),
                generated_games: known.then_some(u64::from(generation) * 2_500),
                generated_evaluations: known.then_some(u64::from(generation) * 8_000_000),
                hours: known.then_some(f64::from(generation) * 1.75),
                ..RatedPlayer::default()
            }
        };
        let anchors = [("random", -600.0), ("material:32", 250.0)];
        let anchors = anchors.map(|(player, rating)| RatedPlayer {
            player: player.to_owned(),
            rating,
            ..RatedPlayer::default()
        });
        RatingsFile {
            reference: "00000".to_owned(),
            ratings: (0..12).map(network).chain(anchors).collect(),
            results: Vec::new(),
        }
    }

    fn texts(plot: &str) -> Vec<String> {
        let document = Document::parse(plot).unwrap();
        let nodes = document.descendants();
        nodes
            .filter(|node| node.has_tag_name("text"))
            .map(|node| node.text().unwrap_or("").trim().to_owned())
            .collect()
    }

    #[test]
    fn all_charts_show_every_network_and_the_anchors_among_them() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let shown = sample(true);
        write(&shown, &logs).unwrap();
        write(&shown, &logs).unwrap();
        let plot = std::fs::read_to_string(file(&logs)).unwrap();
        let texts = texts(&plot);
        let how_many = |text: &str| texts.iter().filter(|other| *other == text).count();
        assert_eq!(how_many("no data yet"), 0);
        for (text, times) in [
            ("By games", 1),
            ("By evaluations", 1),
            ("By time", 1),
            ("Elo", 3),
            ("networks", 3),
            ("material:32", 3),
            ("random", 0),
            ("10k", 1),
        ] {
            assert_eq!(how_many(text), times, "{text}: {texts:?}");
        }
        assert!(texts[0].contains("; the first network has 0"), "{texts:?}");
        let document = Document::parse(&plot).unwrap();
        let dots = document.descendants();
        let dots = dots.filter(|node| node.has_tag_name("circle")).count();
        assert_eq!(dots, 3 * 12);
    }

    #[test]
    fn what_is_not_known_is_not_drawn() {
        let plot = page(&sample(false)).svg().unwrap();
        let empty = texts(&plot);
        assert_eq!(empty.iter().filter(|it| *it == "no data yet").count(), 3);
        let nothing = page(&RatingsFile::default()).svg().unwrap();
        assert!(texts(&nothing).contains(&"no data yet".to_owned()));
        let mut some = sample(true);
        some.ratings[11].hours = None;
        some.ratings[3].rating = f64::NAN;
        let plot = page(&some).svg().unwrap();
        assert!(!plot.to_lowercase().contains("nan"));
        let document = Document::parse(&plot).unwrap();
        let dots = document.descendants();
        assert_eq!(
            dots.filter(|node| node.has_tag_name("circle")).count(),
            11 + 11 + 10
        );
    }
}
