//! One panel of the page: axes, lines, dots and bars in a frame, and how numbers are written beside them.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// Whatever the reader's machine calls so. Sizes count as in a font's box: letters come out a fifth smaller.
pub(super) const FONT: &str = "sans-serif";

/// Of what is no data.
const GREY: RGBColor = RGBColor(150, 150, 150);

/// What is larger than this would leave nothing of the rest.
pub(super) const LARGEST: f64 = 1e12;

/// A part of a page.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Whether the drawing library could draw it.
pub(super) type Drawn<'a> =
    Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// What stands in one frame.
pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) horizontal: Axis,
    pub(super) vertical: Axis,
    pub(super) lines: Vec<Line>,
    /// Where the lines' names stand, if they have any: where the lines are not.
    pub(super) legend: SeriesLabelPosition,
    pub(super) dots: Vec<Dot>,
    /// Where on the horizontal axis, and both ends.
    pub(super) bars: Vec<(f64, f64, f64)>,
    /// Whether both axes are the same, with a line where they are equal.
    pub(super) diagonal: bool,
}

/// What the numbers in one direction mean.
pub(super) struct Axis {
    pub(super) name: &'static str,
    pub(super) format: fn(&f64) -> String,
    /// From the numbers, where it isn't given.
    pub(super) range: Option<(f64, f64)>,
}

/// Points that belong together, drawn in pieces where some can't be drawn.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) color: RGBColor,
    pub(super) points: Vec<(f64, f64)>,
}

/// A point that is seen by itself, in the first line's colour.
pub(super) struct Dot {
    pub(super) at: (f64, f64),
    /// In pixels.
    pub(super) radius: i32,
}

impl Axis {
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
        let (low, high) = self.range.unwrap_or((-LARGEST, LARGEST));
        (low..=high).contains(&number)
    }
}

impl Panel {
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

    /// Draws it, or says that there is nothing to draw.
    pub(super) fn draw<'a>(&self, area: &Area<'a>) -> Drawn<'a> {
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
