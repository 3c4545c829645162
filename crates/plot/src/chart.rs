//! Charts as they are described for Vega-Lite and Plotly: the plain ones, of lines, areas, bars and points over two axes, which `plot.rs` draws.
//! What a description asks for besides is not passed over: then there is no chart of it here, and people see what it says.

mod plotly;
mod vega_lite;

use std::collections::{BTreeMap, BTreeSet};

use mainstay_model::Timestamp;
use serde_json::Value;

use self::plotly::plotly;
use self::vega_lite::vega_lite;

/// Points over two axes.
#[derive(Debug, PartialEq)]
pub struct Chart {
    /// The words above it.
    pub title: Option<String>,
    /// The words at its axes.
    pub words: [Option<String>; 2],
    /// What stands on the axis from left to right.
    pub scale: Scale,
    /// What is drawn, in the order in which it is drawn.
    pub series: Vec<Series>,
}

/// What stands on the axis from left to right.
#[derive(Debug, PartialEq)]
pub enum Scale {
    /// Numbers as they are.
    Numbers,
    /// Moments, in seconds since 1970.
    Moments,
    /// Names, each with a place of its own: the first has the number 0.
    Names(Vec<String>),
}

/// Points that belong together.
#[derive(Debug, PartialEq)]
pub struct Series {
    /// The name by which it is told apart.
    pub name: Option<String>,
    /// How its points are drawn.
    pub mark: Mark,
    /// The points, each as its place from left to right and its height.
    pub points: Vec<(f64, f64)>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// A line through the points, which are marked.
    LineWithPoints,
    /// The series shows its points alone.
    Points,
    /// A filled area below a line.
    Area,
    /// A bar for each point.
    Bars,
}

/// How many points are drawn at most.
const MOST_POINTS: usize = 10_000;
/// What is larger is nothing that anybody measured, and reckoning with it ends beyond all numbers.
const LARGEST: f64 = 1e100;
/// How many series are told apart.
const MOST_SERIES: usize = 8;

impl Chart {
    /// That of this description; none where it asks for anything else.
    pub fn read(kind: &str, description: &Value) -> Option<Self> {
        let description = description.as_object()?;
        let chart = if kind.starts_with("application/vnd.vegalite.") {
            vega_lite(description)
        } else if kind.starts_with("application/vnd.plotly.") {
            plotly(description)
        } else {
            None
        }?;
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let is_plain = (1..=MOST_POINTS).contains(&points().count())
            && chart.series.len() <= MOST_SERIES
            && points().all(|(x, y)| x.abs() < LARGEST && y.abs() < LARGEST);
        let mut standing =
            chart.series.iter().filter(|series| [Mark::Bars, Mark::Area].contains(&series.mark));
        // How they share a place is another question.
        let is_alone = standing.next().is_none_or(Series::has_one_at_each_place) && standing.next().is_none();
        (is_plain && is_alone).then_some(chart)
    }
}

impl Series {
    fn has_one_at_each_place(&self) -> bool {
        let mut places = BTreeSet::new();
        self.points.iter().all(|(place, _)| places.insert(place.to_bits()))
    }
}

/// A value on the axis from left to right.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Number(f64),
    Name(String),
}

impl Place {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_f64().map(Self::Number),
            Value::String(name) => Some(Self::Name(name.clone())),
            Value::Bool(truth) => Some(Self::Name(truth.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

/// A series whose places are on no scale yet.
type Trace = (Option<String>, Mark, Vec<(Place, f64)>);

/// Series whose places are on one scale: numbers where all are and names are not wanted.
fn scaled(series: Vec<Trace>, wants_names: bool, is_sorted: bool) -> (Scale, Vec<Series>) {
    let places = || series.iter().flat_map(|(_, _, points)| points.iter().map(|(place, _)| place));
    let are_numbers = !wants_names && places().all(|place| matches!(place, Place::Number(_)));
    let mut names: Vec<String> = Vec::new();
    if !are_numbers {
        let mut seen = BTreeSet::new();
        names = places().map(Place::name).filter(|name| seen.insert(name.clone())).collect();
        let by_number = |name: &String| name.parse::<f64>().unwrap_or(f64::INFINITY);
        if is_sorted {
            names.sort_by(|a, b| by_number(a).total_cmp(&by_number(b)).then_with(|| a.cmp(b)));
        }
    }
    let numbers: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
    let at = |place: &Place| match place {
        Place::Number(number) if are_numbers => *number,
        Place::Number(_) | Place::Name(_) => {
            numbers.get(place.name().as_str()).copied().unwrap_or_default() as f64
        }
    };
    let placed = |(name, mark, points): &Trace| Series {
        name: name.clone(),
        mark: *mark,
        points: points.iter().map(|(place, value)| (at(place), *value)).collect(),
    };
    let series: Vec<Series> = series.iter().map(placed).collect();
    (if are_numbers { Scale::Numbers } else { Scale::Names(names) }, series)
}

/// The seconds since 1970; of a day its beginning. What names no zone is taken as it is written.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let text = if text.len() == "2024-01-01".len() {
        format!("{text}T00:00:00")
    } else {
        text.replacen(' ', "T", 1)
    };
    let moment: Timestamp = text.parse().or_else(|_| format!("{text}Z").parse()).ok()?;
    Some(moment.as_millisecond() as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use mainstay_model::Base64;
    use serde_json::json;

    use super::*;

    const VEGA: &str = "application/vnd.vegalite.v5+json";
    const PLOTLY: &str = "application/vnd.plotly.v1+json";

    fn bars() -> Value {
        json!({
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "config": {},
            "data": { "name": "data-1" },
            "datasets": { "data-1": [{ "day": "Tue", "n": 7 }, { "day": "Mon", "n": 3 }] },
            "mark": { "type": "bar" },
            "encoding": { "x": { "field": "day", "type": "nominal" }, "y": { "field": "n", "type": "quantitative", "title": "Builds" } },
        })
    }

    #[test]
    fn a_chart_of_vega_lite_has_its_rows_as_points_and_its_names_in_order() {
        let read = Chart::read(VEGA, &bars()).unwrap();
        let points = vec![(0.0, 3.0), (1.0, 7.0)];
        assert_eq!(
            read,
            Chart {
                title: None,
                words: [Some("day".to_owned()), Some("Builds".to_owned())],
                scale: Scale::Names(vec!["Mon".to_owned(), "Tue".to_owned()]),
                series: vec![Series { name: None, mark: Mark::Bars, points }],
            }
        );
    }

    #[test]
    fn colours_part_the_points_of_vega_lite() {
        let row = |x: i32, y: i32, of: &str| json!({ "x": x, "y": y, "of": of });
        let field = |name: &str, kind: &str| json!({ "field": name, "type": kind });
        let read = Chart::read(
            VEGA,
            &json!({
                "mark": "line",
                "data": { "values": [row(2, 1, "a"), row(1, 5, "b"), row(1, 3, "a")] },
                "encoding": { "x": field("x", "quantitative"), "y": field("y", "quantitative"), "color": field("of", "nominal") },
            }),
        )
        .unwrap();
        let series: Vec<_> =
            read.series.into_iter().map(|series| (series.name.unwrap(), series.points)).collect();
        assert_eq!(
            series,
            [("a".to_owned(), vec![(1.0, 3.0), (2.0, 1.0)]), ("b".to_owned(), vec![(1.0, 5.0)])]
        );
    }

    #[test]
    fn a_figure_of_plotly_has_its_traces_also_where_they_are_bytes() {
        let bytes: Vec<u8> = [1.5_f64, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        let figure = json!({
            "data": [
                { "type": "scatter", "mode": "lines", "name": "a", "x": [0, 1], "y": { "dtype": "f8", "bdata": Base64::of(&bytes).as_str() } },
                { "mode": "markers", "y": [4, null, 6], "visible": true },
            ],
            "layout": { "title": { "text": "Both" }, "xaxis": { "title": { "text": "t" } }, "template": {} },
        });
        let read = Chart::read(PLOTLY, &figure).unwrap();
        assert_eq!((read.title.as_deref(), read.words[0].as_deref()), (Some("Both"), Some("t")));
        let told: Vec<_> = read.series.iter().map(|series| (series.mark, series.points.clone())).collect();
        let (line, points) = (vec![(0.0, 1.5), (1.0, -2.0)], vec![(0.0, 4.0), (2.0, 6.0)]);
        assert_eq!(told, [(Mark::Line, line), (Mark::Points, points)]);
    }

    #[test]
    fn moments_are_on_an_axis_of_time() {
        let figure =
            json!({ "data": [{ "mode": "lines", "x": ["1970-01-02", "1970-01-03 12:00"], "y": [1, 2] }] });
        let of_plotly = Chart::read(PLOTLY, &figure).unwrap();
        let mut chart = bars();
        chart["encoding"]["x"]["type"] = "temporal".into();
        chart["datasets"]["data-1"] = json!([{ "day": 216_000_000, "n": 2 }, { "day": "1970-01-02T00:00:00", "n": 1 }, { "day": null, "n": 7 }]);
        let of_vega = Chart::read(VEGA, &chart).unwrap();
        for read in [of_plotly, of_vega] {
            assert_eq!(read.scale, Scale::Moments);
            assert_eq!(read.series[0].points, [(86_400.0, 1.0), (216_000.0, 2.0)]);
        }
    }

    #[test]
    fn what_asks_for_more_than_is_drawn_is_no_chart() {
        let with = |pointer: &str, value: Value| {
            let mut chart = bars();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            chart.pointer_mut(parent).unwrap()[key] = value;
            Chart::read(VEGA, &chart)
        };
        assert!(with("/title", "it".into()).is_some());
        for (pointer, value) in [
            ("/transform", json!([])),
            ("/layer", json!([])),
            ("/mark", "arc".into()),
            ("/encoding/y/aggregate", "mean".into()),
            ("/encoding/y/scale", json!({ "type": "log" })),
            ("/encoding/x/type", "geojson".into()),
            ("/encoding/x/sort", "-y".into()),
            ("/encoding/size", json!({ "field": "n", "type": "quantitative" })),
            ("/encoding/color", json!({ "field": "day", "type": "nominal" })),
            ("/data", json!({ "url": "https://elsewhere" })),
            ("/datasets/data-1", json!([])),
            ("/datasets/data-1", json!([{ "day": "Mon", "n": 3 }, { "day": "Mon", "n": 4 }])),
            ("/encoding/x", json!({ "field": "n", "type": "quantitative" })),
            ("/mark", json!({ "type": "line", "interpolate": "step" })),
        ] {
            assert_eq!(with(pointer, value), None, "{pointer}");
        }
        let bar = json!({ "type": "bar", "x": ["a"], "y": [1] });
        for (data, layout) in [
            (json!([{ "type": "pie", "values": [1] }]), json!({})),
            (json!([bar, bar]), json!({})),
            (json!([{ "y": [1], "fill": "tozeroy" }]), json!({})),
            (json!([{ "y": [1], "visible": "legendonly" }]), json!({})),
            (json!([{ "y": [1], "line": { "shape": "hv" } }]), json!({})),
            (json!([{ "y": [1, null, 2], "mode": "lines" }]), json!({})),
            (json!([{ "y": [1, 2], "mode": "markers", "marker": { "size": [4, 8] } }]), json!({})),
            (json!([{ "x": ["2024-01-01", "later"], "y": [1, 2] }]), json!({})),
            (json!([{ "x": ["7"], "y": [1] }]), json!({})),
            (json!([{ "y": [1] }]), json!({ "yaxis": { "type": "log" } })),
            (json!([{ "y": { "dtype": "f8", "bdata": "?" } }]), json!({})),
            (json!([{ "y": [1e300] }]), json!({})),
        ] {
            let figure = json!({ "data": data, "layout": layout });
            assert_eq!(Chart::read(PLOTLY, &figure), None, "{figure}");
        }
    }
}
