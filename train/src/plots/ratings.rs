//! The plot of a run's ratings: those of its networks, by the games generated for them and by the hours spent on them.

use super::chart::{Axis, Chart, Line, Page, VERMILION, count, number};
use crate::error::TrainError;
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

/// The ratings on the plot.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RatingPlot {
    /// The player with rating 0, in words.
    pub(crate) reference: String,
    /// By generation.
    pub(crate) networks: Vec<RatedNetwork>,
    /// Name and rating.
    pub(crate) anchors: Vec<(String, f64)>,
}

/// A network's rating, and the games and hours spent on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RatedNetwork {
    pub(crate) generation: u32,
    /// Games generated for it and for its predecessors, if known.
    pub(crate) games: Option<u64>,
    /// Hours of generating and training, if known.
    pub(crate) hours: Option<f64>,
    /// In Elo points above the reference.
    pub(crate) rating: f64,
    /// The 95% interval of its distance to the newest network, subtracted from the newest one's rating. The distance to the first
    /// network, which loses every game against later ones, is uncertain by hundreds of points and doesn't show recent progress.
    pub(crate) bar: Option<(f64, f64)>,
}

/// The plot's file in the folder of the logs.
pub(crate) fn file(logs: &Path) -> PathBuf {
    logs.join("ratings.svg")
}

impl RatingPlot {
    /// Draws the plot in the place of the previous one.
    ///
    /// # Errors
    ///
    /// Fails where the folder or the file can't be written.
    pub(crate) fn write(&self, logs: &Path) -> Result<(), TrainError> {
        make_folder(logs)?;
        self.page().write(&file(logs))
    }

    fn page(&self) -> Page {
        let title = format!(
            "Ratings in Elo points; {} has 0. Bars: 95% intervals of the distance to the newest network",
            self.reference
        );
        let games = |network: &RatedNetwork| network.games.map(|games| games as f64);
        let games = self.chart("By games", Axis::new("games generated", count), games);
        let hours = Axis::new("hours of generating and training", number);
        let hours = self.chart("By time", hours, |network| network.hours);
        Page {
            size: (1_000, 440),
            title,
            note: None,
            rows: vec![vec![games, hours]],
        }
    }

    fn chart(
        &self,
        title: &'static str,
        horizontal: Axis,
        effort: impl Fn(&RatedNetwork) -> Option<f64> + Clone,
    ) -> Chart {
        let networks = self.networks.iter();
        let ratings = networks.filter_map(|it| Some((effort(it)?, it.rating, it.bar)));
        let mut chart = Chart::of_ratings(title, horizontal, "networks", ratings);
        let levels = self.levels(&chart.lines[0].points);
        chart.lines.extend(levels);
        chart.legend = SeriesLabelPosition::LowerRight;
        chart
    }

    /// The anchors within the networks' ratings: others would leave the networks a small part of the chart.
    fn levels(&self, points: &[(f64, f64)]) -> Vec<Line> {
        let least = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(f64::INFINITY, f64::min);
        let first = least(&mut points.iter().map(|point| point.0));
        let last = -least(&mut points.iter().map(|point| -point.0));
        let lowest = least(&mut points.iter().map(|point| point.1));
        let highest = -least(&mut points.iter().map(|point| -point.1));
        let anchors = self.anchors.iter().zip(ANCHORS.into_iter().cycle());
        anchors
            .filter(|((_, rating), _)| (lowest..=highest).contains(rating))
            .map(|((name, rating), color)| Line {
                name: name.clone(),
                color,
                points: vec![(first, *rating), (last, *rating)],
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roxmltree::Document;

    fn sample(known: bool) -> RatingPlot {
        let network = |generation: u32| {
            let rating = 180.0 * f64::from(generation).sqrt();
            let error = 8.0 * f64::from(generation);
            RatedNetwork {
                generation,
                games: known.then_some(u64::from(generation) * 2_500),
                hours: known.then_some(f64::from(generation) * 1.75),
                rating,
                bar: (generation > 0).then_some((rating - error, rating + error)),
            }
        };
        RatingPlot {
            reference: "the first network".to_owned(),
            networks: (0..12).map(network).collect(),
            anchors: vec![
                ("random".to_owned(), -600.0),
                ("material:32".to_owned(), 250.0),
            ],
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
    fn both_charts_show_every_network_and_the_anchors_among_them() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let shown = sample(true);
        shown.write(&logs).unwrap();
        shown.write(&logs).unwrap();
        let plot = std::fs::read_to_string(file(&logs)).unwrap();
        let texts = texts(&plot);
        let how_many = |text: &str| texts.iter().filter(|other| *other == text).count();
        assert_eq!(how_many("no data yet"), 0);
        for (text, times) in [
            ("By games", 1),
            ("By time", 1),
            ("Elo", 2),
            ("networks", 2),
            ("material:32", 2),
            ("random", 0),
            ("10k", 1),
        ] {
            assert_eq!(how_many(text), times, "{text}: {texts:?}");
        }
        assert!(texts[0].contains("; the first network has 0"), "{texts:?}");
        let document = Document::parse(&plot).unwrap();
        let dots = document.descendants();
        let dots = dots.filter(|node| node.has_tag_name("circle")).count();
        assert_eq!(dots, 2 * shown.networks.len());
    }

    #[test]
    fn what_is_not_known_is_not_drawn() {
        let plot = sample(false).page().svg().unwrap();
        let empty = texts(&plot);
        assert_eq!(empty.iter().filter(|it| *it == "no data yet").count(), 2);
        let nothing = RatingPlot::default().page().svg().unwrap();
        assert!(texts(&nothing).contains(&"no data yet".to_owned()));
        let mut some = sample(true);
        some.networks[11].hours = None;
        some.networks[3].rating = f64::NAN;
        let plot = some.page().svg().unwrap();
        assert!(!plot.to_lowercase().contains("nan"));
        let document = Document::parse(&plot).unwrap();
        let dots = document.descendants();
        assert_eq!(
            dots.filter(|node| node.has_tag_name("circle")).count(),
            11 + 10
        );
    }
}
