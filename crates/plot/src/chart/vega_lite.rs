//! Reads the description of a chart for Vega-Lite.
//!
//! Source: <https://vega.github.io/vega-lite/docs/encoding.html>.

use serde_json::{Map, Value};

use super::{Chart, MOST_POINTS, MOST_SERIES, Mark, Place, Scale, Trace, scaled, seconds};

/// Reads the chart; none where the description asks for anything that is not drawn here.
pub(super) fn vega_lite(chart: &Map<String, Value>) -> Option<Chart> {
    // What says how it looks changes nothing of what it says.
    const KNOWN: [&str; 14] = [
        "$schema",
        "autosize",
        "background",
        "config",
        "data",
        "datasets",
        "description",
        "encoding",
        "height",
        "mark",
        "name",
        "params",
        "title",
        "width",
    ];
    if !chart.keys().all(|key| KNOWN.contains(&key.as_str())) {
        return None;
    }
    let mark = read_mark(chart.get("mark")?)?;
    let encoding = chart.get("encoding")?.as_object()?;
    if !encoding.keys().all(|channel| ["x", "y", "color", "tooltip"].contains(&channel.as_str())) {
        return None;
    }
    let x = Channel::read(encoding.get("x")?)?;
    let y = Channel::read(encoding.get("y")?)?;
    let colour = match encoding.get("color") {
        Some(colour) if colour.get("field").is_some() => Some(Channel::read(colour)?),
        Some(_) | None => None,
    };
    // Coloured areas lie on each other, bars between two numbers stand or lie, and colours that are numbers run into each other.
    let is_stacked = colour.is_some() && [Mark::Area, Mark::Bars].contains(&mark);
    let is_unclear = mark == Mark::Bars && x.kind == "quantitative";
    let is_gradual =
        colour.as_ref().is_some_and(|colour| ["quantitative", "temporal"].contains(&colour.kind));
    let rows = rows(chart)?;
    if y.kind != "quantitative" || is_stacked || is_unclear || is_gradual || rows.len() > MOST_POINTS {
        return None;
    }
    let series = series_of(rows, mark, &x, &y, colour.as_ref())?;
    let (mut scale, mut series) = scaled(series, ["nominal", "ordinal"].contains(&x.kind), x.is_sorted);
    if x.kind == "temporal" {
        scale = Scale::Moments;
    }
    for series in &mut series {
        if mark != Mark::Points {
            series.points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        }
    }
    let title = chart.get("title").and_then(|title| title.as_str().or_else(|| title.get("text")?.as_str()));
    Some(Chart { title: title.map(str::to_owned), words: [x.title, y.title], scale, series })
}

/// Reads how the points are drawn.
fn read_mark(mark: &Value) -> Option<Mark> {
    const MARK: [&str; 8] = ["type", "point", "tooltip", "color", "opacity", "size", "filled", "strokeWidth"];
    let (mark, is_pointed) = match mark {
        Value::Object(mark) => {
            if !mark.keys().all(|key| MARK.contains(&key.as_str())) {
                return None;
            }
            let has_points = mark.get("point").is_some_and(|point| *point != Value::Bool(false));
            (mark.get("type")?.as_str()?, has_points)
        }
        mark => (mark.as_str()?, false),
    };
    Some(match (mark, is_pointed) {
        ("line", false) => Mark::Line,
        ("line", true) => Mark::LineWithPoints,
        ("point" | "circle" | "square", _) => Mark::Points,
        ("area", _) => Mark::Area,
        ("bar", _) => Mark::Bars,
        _ => return None,
    })
}

/// Returns the points of each colour. A point without a place or a value is left out, as Vega-Lite does.
fn series_of(
    rows: &[Value],
    mark: Mark,
    x: &Channel<'_>,
    y: &Channel<'_>,
    colour: Option<&Channel<'_>>,
) -> Option<Vec<Trace>> {
    let mut series: Vec<Trace> = Vec::new();
    for row in rows {
        let place = match x.kind {
            "temporal" => row.get(x.field).and_then(moment),
            _ => row.get(x.field).and_then(Place::read),
        };
        let (Some(place), Some(value)) = (place, row.get(y.field)?.as_f64()) else {
            continue;
        };
        let name = colour.and_then(|colour| Some(Place::read(row.get(colour.field)?)?.name()));
        match series.iter().position(|(of, _, _)| *of == name) {
            Some(at) => series[at].2.push((place, value)),
            None if series.len() == MOST_SERIES => return None,
            None => series.push((name, mark, vec![(place, value)])),
        }
    }
    Some(series)
}

/// What an axis or a colour stands for.
struct Channel<'a> {
    field: &'a str,
    kind: &'a str,
    /// What stands at it; none where nothing is to.
    title: Option<String>,
    is_sorted: bool,
}

impl<'a> Channel<'a> {
    /// None where it asks for something to be reckoned or ordered.
    fn read(channel: &'a Value) -> Option<Self> {
        let channel = channel.as_object()?;
        let is_known =
            |key: &String| ["field", "type", "title", "axis", "legend", "sort"].contains(&key.as_str());
        let (field, kind) = (channel.get("field")?.as_str()?, channel.get("type")?.as_str()?);
        let is_sorted = match channel.get("sort") {
            None => true,
            Some(Value::String(order)) if order == "ascending" => true,
            Some(Value::Null) => false,
            Some(_) => return None,
        };
        let has_plain_axis = channel.get("axis").is_none_or(|axis| {
            axis.as_object().is_some_and(|axis| {
                axis.keys().all(|key| key == "title" || key == "grid" || key.starts_with("label"))
            })
        });
        if !channel.keys().all(is_known)
            || !has_plain_axis
            || !["quantitative", "temporal", "nominal", "ordinal"].contains(&kind)
        {
            return None;
        }
        let title = channel.get("title").or_else(|| channel.get("axis")?.get("title"));
        let title = match title {
            Some(Value::Null) => None,
            Some(title) => Some(title.as_str()?.to_owned()),
            None => Some(field.to_owned()),
        };
        Some(Self { field, kind, title, is_sorted })
    }
}

/// The rows of its data, which is with it.
fn rows(chart: &Map<String, Value>) -> Option<&Vec<Value>> {
    let data = chart.get("data")?.as_object()?;
    if data.contains_key("format") {
        return None;
    }
    match data.get("values") {
        Some(values) => values.as_array(),
        None => chart.get("datasets")?.get(data.get("name")?.as_str()?)?.as_array(),
    }
}

/// A moment as Vega-Lite has it: as text, or in milliseconds.
fn moment(value: &Value) -> Option<Place> {
    match value {
        Value::Number(milliseconds) => {
            milliseconds.as_f64().map(|milliseconds| Place::Number(milliseconds / 1_000.0))
        }
        Value::String(text) => seconds(text).map(Place::Number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
