//! Draws plots as SVG text: panels side by side, with axes, lines, boxes and a legend. Plots are readable on
//! light and on dark backgrounds.

use std::fmt::Write;

const PANEL_WIDTH: f64 = 460.0;
const PLOT_HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
/// Distance from the x axis to the legend, in pixels.
const AXIS_ROOM: f64 = 52.0;
const LEGEND_ROW: f64 = 18.0;

/// Style sheet. The colours are those of Okabe and Ito, which colour-blind people can tell apart. Some
/// colours differ on a dark background.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;font-size:13px}.axis{stroke:#666;fill:none}\
.grid{stroke:#ddd;fill:none}.line{fill:none;stroke-width:2}.mark{stroke-dasharray:2 4;stroke:#666;fill:none}\
.dashed{stroke-dasharray:7 4}.box{fill:#888;fill-opacity:.06}.c0{stroke:#0072b2}.c1{stroke:#d55e00}.c2{stroke:#009e73}.c3{stroke:#cc79a7}\
.c4{stroke:#b07d00}.c5{stroke:#444}\
@media (prefers-color-scheme:dark){text{fill:#ddd}.axis,.mark{stroke:#999}.grid{stroke:#3a3a3a}\
.c0{stroke:#56b4e9}.c4{stroke:#f0e442}.c5{stroke:#ccc}}";
const COLOURS: usize = 6;

/// A line of a plot through points.
#[derive(Debug, Clone)]
pub struct PlotSeries {
    /// Name of the line in the legend.
    pub name: String,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// Points of the line as (x, y), in ascending order of x.
    pub points: Vec<(f64, f64)>,
}

/// A rectangle in a plot. Its corners are values of the x axis and the y axis.
#[derive(Debug, Clone)]
pub struct Rectangle {
    /// Text that a browser shows while the mouse is over the rectangle.
    pub name: String,
    /// Number that chooses the colour. Rectangles with equal numbers have the same colour; colours repeat.
    pub group: usize,
    /// The corner with the smallest x and y.
    pub least: (f64, f64),
    /// The corner with the greatest x and y.
    pub greatest: (f64, f64),
}

/// One plot with its own axes. Values that are not finite are left out. On a logarithmic axis, so are values
/// that are not positive.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// Title above the plot.
    pub title: String,
    /// Label of the x axis.
    pub x: String,
    /// Label of the y axis.
    pub y: String,
    /// Whether the x axis is logarithmic.
    pub logarithmic_x: bool,
    /// Whether the ticks of a logarithmic x axis are powers of two, not of ten.
    pub powers_of_two: bool,
    /// Whether the y axis is logarithmic.
    pub logarithmic_y: bool,
    /// Lines of the plot.
    pub series: Vec<PlotSeries>,
    /// Rectangles, which are drawn below the lines.
    pub boxes: Vec<Rectangle>,
    /// Horizontal lines for comparison: the y value and the label of each.
    pub marks: Vec<(f64, String)>,
}

/// The scaling of an axis. The ticks of a logarithmic axis are powers of two or of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axis {
    Linear,
    PowersOfTwo,
    PowersOfTen,
}

/// Maps values of an axis to positions from 0 to 1.
struct Scale {
    axis: Axis,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

/// Draws the panels as an SVG document.
#[must_use]
pub fn document(panels: &[Panel]) -> String {
    let rows = panels.iter().map(|panel| panel.series.len() + panel.marks.len()).max().unwrap_or(0);
    let width = PANEL_WIDTH * panels.len() as f64;
    let height = TOP + PLOT_HEIGHT + AXIS_ROOM + LEGEND_ROW * rows as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n\
         <style>{STYLE}</style>\n"
    );
    for (number, panel) in panels.iter().enumerate() {
        push(&mut svg, format_args!("<g transform=\"translate({} 0)\">\n", PANEL_WIDTH * number as f64));
        panel.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

impl Panel {
    fn draw(&self, svg: &mut String) {
        let corners = || self.boxes.iter().flat_map(|one| [one.least, one.greatest]);
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied()).chain(corners());
        let axis = |logarithmic, two| match (logarithmic, two) {
            (false, _) => Axis::Linear,
            (true, true) => Axis::PowersOfTwo,
            (true, false) => Axis::PowersOfTen,
        };
        let x = Scale::over(points().map(|(x, _)| x), axis(self.logarithmic_x, self.powers_of_two));
        let marks = self.marks.iter().map(|(value, _)| *value);
        let y = Scale::over(points().map(|(_, y)| y).chain(marks), axis(self.logarithmic_y, false));
        let bottom = TOP + PLOT_HEIGHT;
        let across = |value| LEFT + x.place(value) * (PANEL_WIDTH - LEFT - RIGHT);
        let up = |value| bottom - y.place(value) * PLOT_HEIGHT;
        text(svg, (LEFT, 20.0), "start", "title", &self.title);
        for tick in &y.ticks {
            let at = up(*tick);
            line(svg, "grid", &[(LEFT, at), (PANEL_WIDTH - RIGHT, at)]);
            text(svg, (LEFT - 6.0, at + 4.0), "end", "", &label(*tick));
        }
        for tick in &x.ticks {
            let at = across(*tick);
            line(svg, "axis", &[(at, bottom), (at, bottom + 4.0)]);
            text(svg, (at, bottom + 18.0), "middle", "", &label(*tick));
        }
        for one in &self.boxes {
            let (left, top) = (across(one.least.0), up(one.greatest.1));
            let (width, height) = (across(one.greatest.0) - left, up(one.least.1) - top);
            let class = one.group % COLOURS;
            push(
                svg,
                format_args!(
                    "<rect class=\"box c{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>"
                ),
            );
            escape(svg, &one.name);
            svg.push_str("</title></rect>\n");
        }
        line(svg, "axis", &[(LEFT, TOP), (LEFT, bottom), (PANEL_WIDTH - RIGHT, bottom)]);
        text(svg, ((LEFT + PANEL_WIDTH - RIGHT) / 2.0, bottom + 36.0), "middle", "", &self.x);
        text(svg, (LEFT, TOP - 7.0), "start", "", &self.y);
        let mut legend = bottom + AXIS_ROOM;
        let mut entry = |svg: &mut String, class: &str, name: &str| {
            line(svg, class, &[(LEFT, legend - 4.0), (LEFT + 28.0, legend - 4.0)]);
            text(svg, (LEFT + 36.0, legend), "start", "", name);
            legend += LEGEND_ROW;
        };
        for (number, series) in self.series.iter().enumerate() {
            let dashed = if series.dashed { " dashed" } else { "" };
            let class = format!("line c{}{dashed}", number % COLOURS);
            let drawn = series.points.iter().filter(|(a, b)| x.has(*a) && y.has(*b));
            line(svg, &class, &drawn.map(|(a, b)| (across(*a), up(*b))).collect::<Vec<_>>());
            entry(svg, &class, &series.name);
        }
        for (value, name) in &self.marks {
            line(svg, "mark", &[(LEFT, up(*value)), (PANEL_WIDTH - RIGHT, up(*value))]);
            entry(svg, "mark", name);
        }
    }
}

impl Scale {
    /// Creates a scale that contains all values. A linear scale also contains 0.
    fn over(values: impl Iterator<Item = f64>, axis: Axis) -> Self {
        let all = Self { axis, from: 0.0, to: 0.0, ticks: Vec::new() };
        let values: Vec<f64> = values.filter(|value| all.has(*value)).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match axis {
            _ if values.is_empty() => Self::linear(0.0, 1.0),
            Axis::Linear => Self::linear(least.min(0.0), most.max(0.0)),
            Axis::PowersOfTwo => Self::logarithmic(axis, 2.0, least.log2(), most.log2()),
            Axis::PowersOfTen => Self::logarithmic(axis, 10.0, least.log10(), most.log10()),
        }
    }

    fn linear(least: f64, most: f64) -> Self {
        let most = if most > least { most } else { 1.0 };
        // A step between ticks is 1, 2 or 5 times a power of ten. The axis has three to seven steps, or up to
        // eight if it extends to both sides of 0.
        let range = most - least;
        let power = 10_f64.powf((range / 3.0).log10().floor());
        let step = [5.0, 2.0, 1.0].into_iter().map(|n| n * power).find(|step| range / step >= 2.5);
        let step = step.unwrap_or(power);
        let (first, last) = ((least / step + 1e-9).floor(), (most / step - 1e-9).ceil());
        let ticks = (first as i32..=last as i32).map(|n| f64::from(n) * step).collect();
        Self { axis: Axis::Linear, from: first * step, to: last * step, ticks }
    }

    /// Creates a logarithmic scale. `least` and `most` are exponents of `base`, and the scale extends to
    /// whole powers.
    fn logarithmic(axis: Axis, base: f64, least: f64, most: f64) -> Self {
        let powers = least.floor() as i32..=most.ceil() as i32;
        let ticks: Vec<f64> = powers.map(|power| base.powi(power)).collect();
        let from = ticks.first().copied().unwrap_or(1.0);
        let to = ticks.last().copied().unwrap_or(1.0);
        Self { axis, from, to: if to > from { to } else { from * base }, ticks }
    }

    fn has(&self, value: f64) -> bool {
        value.is_finite() && (self.axis == Axis::Linear || value > 0.0)
    }

    /// Position of a value on the axis: 0 at the beginning of the axis, and 1 at its end.
    fn place(&self, value: f64) -> f64 {
        match self.axis {
            Axis::Linear => (value - self.from) / (self.to - self.from),
            Axis::PowersOfTwo | Axis::PowersOfTen => {
                (value / self.from).log10() / (self.to / self.from).log10()
            }
        }
    }
}

/// Formats the number at a tick as briefly as possible: `300k`, `0.05`.
fn label(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", value / 1e6),
        1e4.. => format!("{}k", value / 1e3),
        // Digits behind the sixth are errors of adding up steps.
        _ => ((value * 1e6).round() / 1e6).to_string(),
    }
}

fn line(svg: &mut String, class: &str, points: &[(f64, f64)]) {
    push(svg, format_args!("<polyline class=\"{class}\" points=\""));
    for (x, y) in points {
        push(svg, format_args!("{x:.1},{y:.1} "));
    }
    svg.push_str("\"/>\n");
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
    push(svg, format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">"));
    escape(svg, text);
    svg.push_str("</text>\n");
}

fn escape(svg: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => svg.push_str("&lt;"),
            '&' => svg.push_str("&amp;"),
            // Below the space XML allows only line breaks and tabs.
            c if c < ' ' => svg.push(' '),
            c => svg.push(c),
        }
    }
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = svg.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        for (most, ticks) in [
            (100.0, vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
            (7.3, vec![0.0, 2.0, 4.0, 6.0, 8.0]),
            (0.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ] {
            let scale = Scale::over([0.0, most].into_iter(), Axis::Linear);
            assert_eq!(
                scale.ticks.iter().map(|t| label(*t)).collect::<Vec<_>>(),
                ticks.iter().map(|t| label(*t)).collect::<Vec<_>>()
            );
            assert!((0.0..=1.0).contains(&scale.place(most)));
        }
        let scale = Scale::over([-300.0, 450.0].into_iter(), Axis::Linear);
        assert_eq!(scale.ticks, [-400.0, -200.0, 0.0, 200.0, 400.0, 600.0]);
        assert!((0.0..=1.0).contains(&scale.place(-300.0)) && (0.0..=1.0).contains(&scale.place(450.0)));
        let scale = Scale::over([300.0, 0.0, f64::NAN, 300_000.0].into_iter(), Axis::PowersOfTen);
        assert_eq!(scale.ticks, [100.0, 1e3, 1e4, 1e5, 1e6]);
        let scale = Scale::over([2.0, 0.0, 16.0, 5.0].into_iter(), Axis::PowersOfTwo);
        assert_eq!(scale.ticks, [2.0, 4.0, 8.0, 16.0]);
        assert!((scale.place(8.0) - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_plot_has_its_lines_and_escaped_names() {
        let series =
            PlotSeries { name: "a < b & c".to_owned(), dashed: false, points: vec![(0.0, 0.0), (10.0, 4.0)] };
        let panel = Panel { title: "t".to_owned(), series: vec![series], ..Panel::default() };
        let svg = document(&[panel]);
        assert!(svg.contains("a &lt; b &amp; c") && !svg.contains("a < b"));
        // The first point is at the origin, the last at the upper right corner.
        assert!(svg.contains("<polyline class=\"line c0\" points=\"64.0,280.0 440.0,40.0 \"/>"), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        let one = Rectangle { name: "p<1>".to_owned(), group: 7, least: (0.0, 0.0), greatest: (10.0, 4.0) };
        let svg = document(&[Panel { boxes: vec![one], ..Panel::default() }]);
        let drawn =
            "<rect class=\"box c1\" x=\"64.0\" y=\"40.0\" width=\"376.0\" height=\"240.0\"><title>p&lt;1>";
        assert!(svg.contains(drawn), "{svg}");
    }
}
