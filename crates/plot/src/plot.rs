//! A chart as SVG in the page: its colours are the page's, and all that is written in it is text.

use std::fmt::Write;

use mainstay_model::Timestamp;
use maud::{Markup, html};

use super::chart::{Chart, Mark, Scale, Series};

/// What is drawn on, in pixels of the drawing.
const SIZE: (f64, f64) = (640.0, 320.0);
/// Where the points are in it.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 628.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 270.0;
/// How many names or numbers stand at an axis at most.
const MOST_TICKS: usize = 12;

/// Draws a chart, with `words` for people who cannot see it.
pub fn drawn(chart: &Chart, words: &str) -> Markup {
    let frame = Frame::of(chart);
    let named =
        || chart.series.iter().enumerate().filter_map(|(at, series)| Some((at, series.name.as_ref()?)));
    html! {
        figure.chart {
            @if let Some(title) = &chart.title { figcaption { (title) } }
            svg viewBox={ "0 0 " (SIZE.0) " " (SIZE.1) } role="img" aria-label=(words) {
                @for (value, word) in frame.rows.ticks() {
                    @let y = short(frame.y(value));
                    line.grid x1=(LEFT) x2=(RIGHT) y1=(y) y2=(y) {}
                    text x=(LEFT - 8.0) y=(y) text-anchor="end" dominant-baseline="middle" { (word) }
                }
                @for (value, word) in frame.places(chart) {
                    text x=(short(frame.x(value))) y=(BOTTOM + 18.0) text-anchor="middle" { (word) }
                }
                @for (at, series) in chart.series.iter().enumerate() { g class=(colour(at)) { (marks(&frame, series)) } }
                line.axis x1=(LEFT) x2=(RIGHT) y1=(BOTTOM) y2=(BOTTOM) {}
                @if let Some(words) = &chart.words[0] {
                    text.words x=((LEFT + RIGHT) / 2.0) y=(SIZE.1 - 8.0) text-anchor="middle" { (words) }
                }
                @if let Some(words) = &chart.words[1] {
                    @let middle = (TOP + BOTTOM) / 2.0;
                    text.words x="12" y=(middle) text-anchor="middle" transform={ "rotate(-90 12 " (middle) ")" } { (words) }
                }
            }
            @if named().nth(1).is_some() {
                ul.legend { @for (at, name) in named() { li { span class=(colour(at)) aria-hidden="true" { "●" } " " (name) } } }
            }
        }
    }
}

/// A series' colour: the first is not the one of errors.
fn colour(at: usize) -> String {
    format!("h{}", (at + 1) % 8)
}

fn marks(frame: &Frame, series: &Series) -> Markup {
    let at = |(x, y): &(f64, f64)| (short(frame.x(*x)), short(frame.y(*y)));
    let zero = short(frame.y(frame.rows.nearest(0.0)));
    let line = || path(series.points.iter().map(at));
    let dots = || {
        html! { @for (x, y) in series.points.iter().map(at) { circle cx=(x) cy=(y) r="3" {} } }
    };
    match series.mark {
        Mark::Line => html! { path.line d=(line()) {} },
        Mark::LineWithPoints => html! { path.line d=(line()) {} (dots()) },
        Mark::Points => dots(),
        Mark::Area => {
            let ends = series.points.first().zip(series.points.last());
            let (first, last) = ends.map_or((0.0, 0.0), |(first, last)| (at(first).0, at(last).0));
            html! { path.area d={ (line()) "L" (last) " " (zero) "L" (first) " " (zero) "Z" } {} path.line d=(line()) {} }
        }
        Mark::Bars => {
            let width = frame.bar(series);
            html! {
                @for (x, y) in series.points.iter().map(at) {
                    rect x=(short(x - width / 2.0)) width=(short(width)) y=(y.min(zero)) height=(short((y - zero).abs())) {}
                }
            }
        }
    }
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let step = if path.is_empty() { 'M' } else { 'L' };
        // Writing to a text does not fail.
        write!(path, "{step}{x} {y}").ok();
    }
    path
}

/// No more digits than can be seen.
fn short(pixels: f64) -> f64 {
    (pixels * 10.0).round() / 10.0
}

/// The area of the plot that holds the values.
struct Frame {
    columns: Span,
    rows: Span,
}

/// From the least to the greatest of what is on an axis.
#[derive(Clone, Copy)]
struct Span {
    least: f64,
    greatest: f64,
}

impl Frame {
    fn of(chart: &Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let has = |marks: &[Mark]| chart.series.iter().any(|series| marks.contains(&series.mark));
        let columns = match &chart.scale {
            // Half a place at each side.
            Scale::Names(names) => Span { least: -0.5, greatest: names.len() as f64 - 0.5 },
            Scale::Numbers | Scale::Moments if has(&[Mark::Bars]) => {
                let span = Span::of(points().map(|(x, _)| *x));
                let half = chart.series.iter().map(gap).fold(f64::INFINITY, f64::min).min(1e9) / 2.0;
                Span { least: span.least - half, greatest: span.greatest + half }
            }
            Scale::Numbers | Scale::Moments => Span::of(points().map(|(x, _)| *x)),
        };
        // The length of a bar is seen from nothing on.
        let zero = has(&[Mark::Bars, Mark::Area]).then_some(0.0);
        let rows = Span::of(points().map(|(_, y)| *y).chain(zero)).rounded();
        Self { columns, rows }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.columns.part(value) * (RIGHT - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - self.rows.part(value) * (BOTTOM - TOP)
    }

    /// How wide a bar is.
    fn bar(&self, series: &Series) -> f64 {
        let place = (RIGHT - LEFT) * gap(series) / (self.columns.greatest - self.columns.least);
        (place * 0.8).max(1.0)
    }

    /// What stands at the lower axis, and where.
    fn places(&self, chart: &Chart) -> Vec<(f64, String)> {
        match &chart.scale {
            Scale::Numbers => self.columns.ticks(),
            Scale::Moments => self.columns.moments(),
            Scale::Names(names) => {
                let step = names.len().div_ceil(MOST_TICKS).max(1);
                let room = 96 / names.len().clamp(1, MOST_TICKS);
                let cut = |name: &String| match name.char_indices().nth(room) {
                    Some((end, _)) => format!("{}…", &name[..end]),
                    None => name.clone(),
                };
                names.iter().enumerate().step_by(step).map(|(at, name)| (at as f64, cut(name))).collect()
            }
        }
    }
}

/// How far its places are apart where they are nearest.
fn gap(series: &Series) -> f64 {
    let mut places: Vec<f64> = series.points.iter().map(|(x, _)| *x).collect();
    places.sort_by(f64::total_cmp);
    let apart = |pair: &[f64]| pair[1] - pair[0];
    let nearest = places.windows(2).map(apart).filter(|apart| *apart > 0.0).fold(f64::INFINITY, f64::min);
    if nearest.is_finite() { nearest } else { 1.0 }
}

impl Span {
    /// That of these; one value is in the middle of it.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (least, greatest) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), value| {
                (least.min(value), greatest.max(value))
            });
        match greatest - least {
            apart if apart > 0.0 && apart.is_finite() => Self { least, greatest },
            _ if least.is_finite() && greatest.is_finite() => {
                let half = (least.abs() * 0.1).max(0.5);
                Self { least: least - half, greatest: greatest + half }
            }
            _ => Self { least: 0.0, greatest: 1.0 },
        }
    }

    /// Which part of it lies below a value.
    fn part(self, value: f64) -> f64 {
        (value - self.least) / (self.greatest - self.least).max(f64::MIN_POSITIVE)
    }

    fn nearest(self, value: f64) -> f64 {
        value.clamp(self.least, self.greatest)
    }

    /// How far its ticks are apart: one, two or five of a power of ten.
    fn step(self) -> f64 {
        let rough = (self.greatest - self.least) / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= rough);
        digit.unwrap_or(10.0) * power
    }

    /// It, up to the next ticks.
    fn rounded(self) -> Self {
        let step = self.step();
        Self { least: (self.least / step).floor() * step, greatest: (self.greatest / step).ceil() * step }
    }

    /// Round numbers in it, and what is written at them.
    fn ticks(self) -> Vec<(f64, String)> {
        let step = self.step();
        let first = (self.least / step).ceil();
        let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let values = (0..MOST_TICKS).map(|at| (first + at as f64) * step);
        let word = |value: f64| match value.abs() {
            size if size >= 1e9 || size > 0.0 && size < 1e-6 => format!("{value:e}"),
            _ => format!("{:.digits$}", value + 0.0),
        };
        values
            .take_while(|value| *value <= self.greatest + step * 1e-9)
            .map(|value| (value, word(value)))
            .collect()
    }
}

impl Span {
    /// Moments in it, in steps that people count time in, and what is written at them.
    fn moments(self) -> Vec<(f64, String)> {
        const MOST: f64 = 7.0;
        const DAY: f64 = 86_400.0;
        const STEPS: [f64; 17] = [
            1.0,
            5.0,
            15.0,
            60.0,
            300.0,
            900.0,
            3_600.0,
            10_800.0,
            21_600.0,
            43_200.0,
            DAY,
            2.0 * DAY,
            7.0 * DAY,
            30.0 * DAY,
            90.0 * DAY,
            180.0 * DAY,
            365.0 * DAY,
        ];
        let rough = (self.greatest - self.least) / MOST;
        let years = || (rough / (365.0 * DAY)).ceil() * 365.0 * DAY;
        let step = STEPS.into_iter().find(|step| *step >= rough).unwrap_or_else(years);
        let word = |seconds: f64| {
            let written =
                Timestamp::from_second(seconds as i64).map(|moment| moment.to_string()).unwrap_or_default();
            let part = if step >= DAY {
                0..10
            } else if step >= 60.0 {
                5..16
            } else {
                11..19
            };
            written.get(part).unwrap_or_default().replace('T', " ")
        };
        let first = (self.least / step).ceil() * step;
        let moments = (0..=MOST as usize).map(|at| first + at as f64 * step);
        moments.take_while(|moment| *moment <= self.greatest).map(|moment| (moment, word(moment))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(mark: Mark, scale: Scale, points: &[(f64, f64)]) -> Chart {
        let series = vec![Series { name: None, mark, points: points.to_vec() }];
        Chart { title: Some("<T>".to_owned()), words: [None, Some("n".to_owned())], scale, series }
    }

    #[test]
    fn bars_stand_at_their_names_and_begin_at_nothing() {
        let names = Scale::Names(vec!["Mon".to_owned(), "<Tue>".to_owned()]);
        let shown = drawn(&chart(Mark::Bars, names, &[(0.0, 3.0), (1.0, 7.0)]), "bars").into_string();
        insta::assert_snapshot!(shown.replace('>', ">\n"));
    }

    #[test]
    fn a_line_goes_from_edge_to_edge_and_its_ticks_are_round() {
        let shown =
            drawn(&chart(Mark::Line, Scale::Numbers, &[(0.0, 0.0), (5.0, 1.0)]), "a line").into_string();
        assert!(shown.contains(r#"d="M64 270L628 10""#), "{shown}");
        let words = |least, greatest| -> Vec<String> {
            Span { least, greatest }.ticks().into_iter().map(|(_, word)| word).collect()
        };
        assert_eq!(words(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(words(-7.0, 22.0), ["0", "10", "20"]);
        let moments = |least, greatest| -> Vec<String> {
            Span { least, greatest }.moments().into_iter().map(|(_, word)| word).collect()
        };
        assert_eq!(
            moments(0.0, 172_800.0),
            ["01-01 00:00", "01-01 12:00", "01-02 00:00", "01-02 12:00", "01-03 00:00"]
        );
        assert_eq!(
            moments(0.0, 500_000.0),
            ["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04", "1970-01-05", "1970-01-06"]
        );
        assert_eq!(words(0.0, 4e9), ["0", "1e9", "2e9", "3e9", "4e9"]);
    }

    #[test]
    fn extremes_are_drawn_somewhere() {
        for points in [
            vec![(1.0, 1.0)],
            vec![(0.0, 1e99), (1.0, -1e99)],
            vec![(1e17, 1e17), (1e17 + 32.0, 1e17 + 32.0)],
            vec![(3.0, 0.0), (3.0, 0.0)],
        ] {
            for mark in [Mark::Line, Mark::LineWithPoints, Mark::Points, Mark::Area, Mark::Bars] {
                let shown = drawn(&chart(mark, Scale::Numbers, &points), "").into_string();
                assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
                drawn(&chart(mark, Scale::Moments, &points), "");
            }
        }
    }
}
