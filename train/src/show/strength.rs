//! The plot of a run's ratings: how strong its networks are, by the games that were generated for them and by the hours that went
//! into them.

use super::page::{TRAINING, VALIDATION};
use super::panel::{Axis, Dot, Drawn, FONT, Line, Panel, count, number};
use crate::error::TrainError;
use engine::run::write_file;
use plotters::prelude::*;
use std::io;
use std::path::{Path, PathBuf};

/// Of the plot, in pixels.
const SIZE: (u32, u32) = (1_000, 440);
/// Of its title.
const TITLE_HEIGHT: u32 = 40;

/// Colours of anchors, which the colour-blind tell apart too (Okabe and Ito).
const ANCHORS: [RGBColor; 4] = [
    VALIDATION,
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(130, 130, 130),
];

/// What the plot shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Strength {
    /// Who has 0, in words.
    pub(crate) reference: String,
    /// By generation.
    pub(crate) networks: Vec<RatedNetwork>,
    /// The players that stay the same: name and rating.
    pub(crate) anchors: Vec<(String, f64)>,
}

/// How strong a network is, and what went into it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RatedNetwork {
    /// Which of the run's.
    pub(crate) generation: u32,
    /// Games that were generated for it and for those before, if that is known.
    pub(crate) games: Option<u64>,
    /// Hours of generating and training, if they are known.
    pub(crate) hours: Option<f64>,
    /// In Elo points above the reference.
    pub(crate) rating: f64,
    /// The ends of the bar that says how well its distance to the newest network is known: where the ends of the distance's 95%
    /// interval are, below the newest one's rating. The distance to the first network, which loses every game against those after
    /// it, is known to hundreds of points at best, and says nothing of whether the run still learns.
    pub(crate) bar: Option<(f64, f64)>,
}

/// Where the plot is, in the folder of the logs.
pub(crate) fn file(logs: &Path) -> PathBuf {
    logs.join("ratings.svg")
}

impl Strength {
    /// Draws the plot in the place of the one that was there.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub(crate) fn write(&self, logs: &Path) -> Result<(), TrainError> {
        let path = file(logs);
        let plot = self.svg().map_err(|error| TrainError::Io {
            what: "draw",
            path: path.clone(),
            error,
        })?;
        engine::run::make_folder(logs)?;
        Ok(write_file(&path, plot.as_bytes())?)
    }

    fn svg(&self) -> io::Result<String> {
        let mut plot = String::new();
        self.draw(&mut plot)
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(plot)
    }

    fn draw<'a>(&self, plot: &'a mut String) -> Drawn<'a> {
        let root = SVGBackend::with_string(plot, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (header, panels) = root.split_vertically(TITLE_HEIGHT);
        let title = format!(
            "Ratings in Elo points; {} has 0. Bars: 95% intervals of the distance to the newest network",
            self.reference
        );
        let style = TextStyle::from((FONT, 22)).color(&BLACK);
        header.draw(&Text::new(title, (15, 12), style))?;
        let (left, right) = panels.split_horizontally(SIZE.0 / 2);
        let games = |network: &RatedNetwork| network.games.map(|games| games as f64);
        self.panel("By games", ("games generated", count), games)
            .draw(&left)?;
        let hours = |network: &RatedNetwork| network.hours;
        self.panel(
            "By time",
            ("hours of generating and training", number),
            hours,
        )
        .draw(&right)?;
        root.present()
    }

    fn panel(
        &self,
        title: &'static str,
        (name, format): (&'static str, fn(&f64) -> String),
        effort: impl Fn(&RatedNetwork) -> Option<f64>,
    ) -> Panel {
        let placed: Vec<(f64, &RatedNetwork)> = self
            .networks
            .iter()
            .filter_map(|network| Some((effort(network)?, network)))
            .collect();
        let points: Vec<_> = placed.iter().map(|(at, it)| (*at, it.rating)).collect();
        let bars = placed.iter().filter_map(|(at, it)| {
            let (low, high) = it.bar?;
            Some((*at, low, high))
        });
        let bars: Vec<_> = bars.collect();
        let networks = Line {
            name: "networks".to_owned(),
            color: TRAINING,
            points: points.clone(),
        };
        Panel {
            title,
            horizontal: Axis {
                name,
                format,
                range: None,
            },
            vertical: Axis {
                name: "Elo",
                format: number,
                range: None,
            },
            lines: [networks].into_iter().chain(self.levels(&points)).collect(),
            legend: SeriesLabelPosition::LowerRight,
            dots: points.iter().map(|&at| Dot { at, radius: 3 }).collect(),
            bars,
            diagonal: false,
        }
    }

    /// The anchors that are as strong as networks are: others would leave the networks a small part of the panel.
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

    fn strength(known: bool) -> Strength {
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
        Strength {
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
    fn both_panels_show_every_network_and_the_anchors_among_them() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let shown = strength(true);
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
        let plot = strength(false).svg().unwrap();
        let empty = texts(&plot);
        assert_eq!(empty.iter().filter(|it| *it == "no data yet").count(), 2);
        let nothing = Strength::default().svg().unwrap();
        assert!(texts(&nothing).contains(&"no data yet".to_owned()));
        let mut some = strength(true);
        some.networks[11].hours = None;
        some.networks[3].rating = f64::NAN;
        let plot = some.svg().unwrap();
        assert!(!plot.to_lowercase().contains("nan"));
        let document = Document::parse(&plot).unwrap();
        let dots = document.descendants();
        assert_eq!(
            dots.filter(|node| node.has_tag_name("circle")).count(),
            11 + 10
        );
    }
}
