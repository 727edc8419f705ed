//! Pages of charts as SVG: axes, lines, dots and bars in frames, and how numbers are written beside them.
//!
//! Numbers that can't be drawn (NaN, infinite, or beyond any scale) leave a gap; a chart without numbers reads "no data yet".

use crate::error::TrainError;
use crate::ratings::RatingMark;
use engine::run::write_file;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;
use std::ops::Range;
use std::path::Path;

/// The reader's own font. Sizes count as in a font's box: letters come out a fifth smaller.
const FONT: &str = "sans-serif";

/// Two colours that the colour-blind tell apart too (Okabe and Ito's blue and vermilion).
pub(super) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(super) const VERMILION: RGBColor = RGBColor(213, 94, 0);
/// The colour of frames and of the diagonal.
const GREY: RGBColor = RGBColor(150, 150, 150);

/// The largest number that is drawn: a larger one would hide all others.
pub(super) const MAX_VALUE: f64 = 1e12;

/// The height of a page's title, in pixels.
const TITLE_HEIGHT: u32 = 40;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// Rows of charts below a title.
pub(super) struct Page {
    /// Width and height in pixels.
    pub(super) size: (u32, u32),
    pub(super) title: String,
    /// A warning at the right of the title.
    pub(super) note: Option<String>,
    pub(super) rows: Vec<Vec<Chart>>,
}

/// Lines, dots and bars in one frame.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) horizontal: Axis,
    pub(super) vertical: Axis,
    pub(super) lines: Vec<Line>,
    /// The place of the lines' names, if they have any: away from the lines.
    pub(super) legend: SeriesLabelPosition,
    pub(super) dots: Vec<Dot>,
    /// Position on the horizontal axis, and both ends.
    pub(super) bars: Vec<(f64, f64, f64)>,
    /// Whether both axes are the same, with a line where they are equal.
    pub(super) diagonal: bool,
}

/// The meaning of the numbers in one direction.
pub(super) struct Axis {
    pub(super) name: &'static str,
    pub(super) format: fn(&f64) -> String,
    /// By default from the numbers.
    pub(super) range: Option<(f64, f64)>,
}

/// Points that belong together, drawn in pieces where some can't be drawn.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) color: RGBColor,
    pub(super) points: Vec<(f64, f64)>,
}

/// A point with a mark, in the first line's colour.
pub(super) struct Dot {
    pub(super) at: (f64, f64),
    /// In pixels.
    pub(super) radius: i32,
}

impl Page {
    /// Draws the page into a file, in the place of the previous one.
    ///
    /// # Errors
    ///
    /// Fails where the page can't be drawn or the file can't be written.
    pub(super) fn write(&self, path: &Path) -> Result<(), TrainError> {
        let svg = self.svg().map_err(TrainError::io("draw", path))?;
        Ok(write_file(path, svg.as_bytes())?)
    }

    /// The page as SVG.
    pub(super) fn svg(&self) -> io::Result<String> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(svg)
    }

    fn draw<'a>(&self, svg: &'a mut String) -> Drawn<'a> {
        let root = SVGBackend::with_string(svg, self.size).into_drawing_area();
        root.fill(&WHITE)?;
        let (header, charts) = root.split_vertically(TITLE_HEIGHT);
        let title = TextStyle::from((FONT, 22)).color(&BLACK);
        header.draw(&Text::new(self.title.as_str(), (15, 12), title))?;
        if let Some(note) = &self.note {
            let style = TextStyle::from((FONT, 15))
                .color(&VERMILION)
                .pos(Pos::new(HPos::Right, VPos::Top));
            let at = (self.size.0 as i32 - 15, 16);
            header.draw(&Text::new(note.as_str(), at, style))?;
        }
        let areas = charts.split_evenly((self.rows.len(), 1));
        for (area, row) in areas.iter().zip(&self.rows) {
            let areas = area.split_evenly((1, row.len()));
            for (area, chart) in areas.iter().zip(row) {
                chart.draw(area)?;
            }
        }
        root.present()
    }
}

impl Axis {
    pub(super) fn new(name: &'static str, format: fn(&f64) -> String) -> Self {
        Self {
            name,
            format,
            range: None,
        }
    }

    /// From the least to the greatest number, with some room; none without numbers.
    fn range(&self, numbers: impl Iterator<Item = f64>) -> Option<Range<f64>> {
        let (low, high) = numbers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| {
                (low.min(number), high.max(number))
            });
        if low > high {
            return None;
        }
        if let Some((low, high)) = self.range {
            return Some(low..high);
        }
        // So much at least that the labels differ.
        let least = 1e-4 * low.abs().max(high.abs()).max(1.0);
        let room = (0.04 * (high - low)).max(least);
        Some(low - room..high + room)
    }

    fn can_draw(&self, number: f64) -> bool {
        let (low, high) = self.range.unwrap_or((-MAX_VALUE, MAX_VALUE));
        (low..=high).contains(&number)
    }
}

impl Chart {
    /// A chart without lines.
    pub(super) fn new(title: &'static str, horizontal: Axis, vertical: Axis) -> Self {
        Self {
            title,
            horizontal,
            vertical,
            lines: Vec::new(),
            legend: SeriesLabelPosition::UpperLeft,
            dots: Vec::new(),
            bars: Vec::new(),
            diagonal: false,
        }
    }

    /// Ratings by position on the horizontal axis.
    pub(super) fn of_ratings(
        title: &'static str,
        horizontal: Axis,
        name: &str,
        ratings: &[RatingMark],
    ) -> Self {
        let bar = |&(at, _, bar): &RatingMark| bar.map(|(low, high)| (at, low, high));
        let points = ratings.iter().map(|&(at, rating, _)| (at, rating));
        let points: Vec<_> = points.collect();
        Self {
            bars: ratings.iter().filter_map(bar).collect(),
            dots: points.iter().map(|&at| Dot { at, radius: 3 }).collect(),
            lines: vec![Line {
                name: name.to_owned(),
                color: BLUE,
                points,
            }],
            ..Self::new(title, horizontal, Axis::new("Elo", number))
        }
    }

    fn can_draw(&self, (x, y): (f64, f64)) -> bool {
        self.horizontal.can_draw(x) && self.vertical.can_draw(y)
    }

    fn bars(&self) -> impl Iterator<Item = (f64, f64, f64)> + Clone {
        let bars = self.bars.iter().copied();
        bars.filter(|&(x, low, high)| self.can_draw((x, low)) && self.can_draw((x, high)))
    }

    fn ranges(&self) -> Option<(Range<f64>, Range<f64>)> {
        let points = self.lines.iter().flat_map(|line| &line.points).copied();
        let points = points.filter(|&point| self.can_draw(point));
        let ends = self.bars().flat_map(|(x, low, high)| [(x, low), (x, high)]);
        let all = points.chain(ends);
        let horizontal = self.horizontal.range(all.clone().map(|point| point.0))?;
        Some((horizontal, self.vertical.range(all.map(|point| point.1))?))
    }

    fn draw<'a>(&self, area: &Area<'a>) -> Drawn<'a> {
        let Some((horizontal, vertical)) = self.ranges() else {
            return self.draw_empty(area);
        };
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, (FONT, 19))
            .margin(10)
            .margin_right(20)
            .x_label_area_size(40)
            .y_label_area_size(55)
            .build_cartesian_2d(horizontal, vertical)?;
        chart
            .configure_mesh()
            .x_desc(self.horizontal.name)
            .y_desc(self.vertical.name)
            .x_labels(7)
            .y_labels(7)
            .x_label_formatter(&self.horizontal.format)
            .y_label_formatter(&self.vertical.format)
            .label_style((FONT, 14))
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.1))
            .axis_style(BLACK.mix(0.5))
            .draw()?;
        if self.diagonal {
            chart.draw_series(LineSeries::new([(0.0, 0.0), (1.0, 1.0)], GREY))?;
        }
        let bars = self.bars().map(|(x, low, high)| {
            let ends = vec![(x, low), (x, high)];
            PathElement::new(ends, BLACK.mix(0.6).stroke_width(2))
        });
        chart.draw_series(bars)?;
        for line in &self.lines {
            for (number, piece) in line
                .points
                .split(|&point| !self.can_draw(point))
                .filter(|piece| !piece.is_empty())
                .enumerate()
            {
                let color = line.color;
                let style = color.stroke_width(2);
                // A line of one point can't be seen.
                if let [point] = piece {
                    chart.draw_series([Circle::new(*point, 2, color.filled())])?;
                }
                let drawn = chart.draw_series(LineSeries::new(piece.iter().copied(), style))?;
                if number == 0 && !line.name.is_empty() {
                    drawn.label(line.name.as_str()).legend(move |(x, y)| {
                        PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2))
                    });
                }
            }
        }
        let dots = self.dots.iter().filter(|dot| self.can_draw(dot.at));
        let color = self.lines.first().map_or(BLACK, |line| line.color);
        chart.draw_series(dots.map(|dot| Circle::new(dot.at, dot.radius, color.filled())))?;
        if self.lines.iter().any(|line| !line.name.is_empty()) {
            chart
                .configure_series_labels()
                .position(self.legend.clone())
                .label_font((FONT, 14))
                .background_style(WHITE.mix(0.8))
                .draw()?;
        }
        Ok(())
    }

    fn draw_empty<'a>(&self, area: &Area<'a>) -> Drawn<'a> {
        let area = area.margin(10, 10, 10, 10).titled(self.title, (FONT, 19))?;
        let (width, height) = area.dim_in_pixel();
        let (width, height) = (width as i32, height as i32);
        let frame = [(0, 0), (width - 1, height - 1)];
        area.draw(&Rectangle::new(frame, GREY))?;
        let style = TextStyle::from((FONT, 16))
            .color(&GREY)
            .pos(Pos::new(HPos::Center, VPos::Center));
        area.draw(&Text::new("no data yet", (width / 2, height / 2), style))
    }
}

/// Such as 500, 20k and 1.5M.
pub(super) fn count(number: &f64) -> String {
    match number.abs() {
        below if below < 1e3 => short(*number, ""),
        below if below < 1e6 => short(number / 1e3, "k"),
        below if below < 1e9 => short(number / 1e6, "M"),
        _ => short(number / 1e9, "G"),
    }
}

/// Labels between two whole numbers stay empty.
pub(super) fn whole(number: &f64) -> String {
    match number.fract().abs() {
        rest if rest < 1e-6 => short(*number, ""),
        _ => String::new(),
    }
}

pub(super) fn percent(share: &f64) -> String {
    short(100.0 * share, "%")
}

pub(super) fn number(number: &f64) -> String {
    match number.abs() {
        size if size >= 1e6 => format!("{number:.3e}"),
        _ => short(*number, ""),
    }
}

/// With as many decimals as are needed, four at most.
fn short(number: f64, unit: &str) -> String {
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let text = if text == "-0" { "0" } else { text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        let counts = [500.0, 1_500.0, 20_000.0, 1.5e6, 2e9].map(|number| count(&number));
        assert_eq!(counts, ["500", "1.5k", "20k", "1.5M", "2G"]);
        assert_eq!((whole(&3.0), whole(&3.5)), ("3".into(), String::new()));
        assert_eq!(percent(&0.125), "12.5%");
        assert_eq!([number(&-0.00001), number(&2e7)], ["0", "2.000e7"]);
    }
}
