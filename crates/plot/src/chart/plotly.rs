//! Reads the description of a chart for Plotly.
//!
//! Source: <https://plotly.com/javascript/reference/>.

use mainstay_model::Base64;
use serde_json::{Map, Value};

use super::{Chart, MOST_POINTS, Mark, Place, Scale, Trace, scaled, seconds};

/// Reads the chart; none where the description asks for anything that is not drawn here.
pub(super) fn plotly(figure: &Map<String, Value>) -> Option<Chart> {
    let traces = figure.get("data")?.as_array()?;
    let series = traces.iter().map(|trace| read_trace(trace.as_object()?)).collect::<Option<Vec<_>>>()?;
    let layout = figure.get("layout");
    if has_more(figure, layout) || has_other_axes(layout) {
        return None;
    }
    let text = |title: &Value| title.as_str().or_else(|| title.get("text")?.as_str()).map(str::to_owned);
    let title = |of: Option<&Value>| of.and_then(|of| of.get("title")).and_then(text);
    let is_category = kind_of_axis(layout, "xaxis") == "category";
    let (scale, series) = match series.iter().map(at_moments).collect::<Option<Vec<Trace>>>() {
        Some(series) if !is_category => (Scale::Moments, scaled(series, false, false).1),
        Some(_) | None if series.iter().any(is_misread) => return None,
        Some(_) | None => scaled(series, is_category, false),
    };
    let words = ["xaxis", "yaxis"].map(|name| title(axis(layout, name)));
    Some(Chart { title: title(layout), words, scale, series })
}

/// Reads one trace; none where it asks for anything that is not drawn here.
fn read_trace(trace: &Map<String, Value>) -> Option<Trace> {
    // What a trace may say besides its points without meaning another chart.
    const PLAIN: [(&str, &str); 8] = [
        ("xaxis", "x"),
        ("yaxis", "y"),
        ("orientation", "v"),
        ("fill", "none"),
        ("stackgroup", ""),
        ("base", ""),
        ("error_x", ""),
        ("error_y", ""),
    ];
    if !PLAIN.iter().all(|(key, plain)| trace.get(*key).is_none_or(|value| value == plain)) {
        return None;
    }
    if trace.get("visible").is_some_and(|visible| *visible != Value::Bool(true)) {
        return None;
    }
    let shape = trace.get("line").and_then(|line| line.get("shape")).and_then(Value::as_str);
    let y = column(trace.get("y")?)?;
    let tells_more =
        |name: &str| trace.get("marker").and_then(|marker| marker.get(name)).is_some_and(is_column);
    if !matches!(shape, None | Some("linear"))
        || ["size", "color", "symbol"].into_iter().any(tells_more)
        || y.len() > MOST_POINTS
    {
        return None;
    }
    let mark = mark_of(trace, y.len())?;
    let x = match trace.get("x") {
        Some(x) => column(x)?,
        None => (0..y.len()).map(Value::from).collect(),
    };
    let points: Vec<(Place, f64)> =
        x.iter().zip(&y).filter_map(|(x, y)| Some((Place::read(x)?, y.as_f64()?))).collect();
    // A line has a gap where a value is missing.
    if [Mark::Line, Mark::LineWithPoints].contains(&mark) && points.len() < y.len() {
        return None;
    }
    let name = trace.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    Some((name.map(str::to_owned), mark, points))
}

/// Returns how a trace of so many points is drawn.
fn mark_of(trace: &Map<String, Value>, points: usize) -> Option<Mark> {
    let mode = trace.get("mode").and_then(Value::as_str);
    Some(match (trace.get("type").and_then(Value::as_str).unwrap_or("scatter"), mode) {
        ("bar", _) => Mark::Bars,
        ("scatter" | "scattergl", Some("lines")) => Mark::Line,
        ("scatter" | "scattergl", Some("markers")) => Mark::Points,
        ("scatter" | "scattergl", Some("lines+markers")) => Mark::LineWithPoints,
        ("scatter" | "scattergl", None) if points < 20 => Mark::LineWithPoints,
        ("scatter" | "scattergl", None) => Mark::Line,
        _ => return None,
    })
}

/// Whether the figure has an animation, words and forms that stand in the picture, or what one picks other data with.
fn has_more(figure: &Map<String, Value>, layout: Option<&Value>) -> bool {
    let is_there = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let more = ["annotations", "shapes", "images", "updatemenus", "sliders", "grid"];
    let mut of_layout = more.iter().filter_map(|name| layout?.get(*name));
    figure.get("frames").is_some_and(is_there) || of_layout.any(is_there)
}

/// Whether an axis is of a kind, or in an order, that is not drawn here.
fn has_other_axes(layout: Option<&Value>) -> bool {
    let kind = |name: &str| kind_of_axis(layout, name);
    let is_reversed =
        |name: &str| axis(layout, name).and_then(|axis| axis.get("autorange")?.as_str()) == Some("reversed");
    let is_ordered = |axis: &Value| axis.get("categoryorder").or(axis.get("categoryarray")).is_some();
    !["-", "linear", "date", "category"].contains(&kind("xaxis"))
        || !["-", "linear"].contains(&kind("yaxis"))
        || ["xaxis", "yaxis"].into_iter().any(is_reversed)
        || axis(layout, "xaxis").is_some_and(is_ordered)
}

fn axis<'a>(layout: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    layout.and_then(|layout| layout.get(name))
}

fn kind_of_axis<'a>(layout: Option<&'a Value>, name: &str) -> &'a str {
    axis(layout, name).and_then(|axis| axis.get("type")?.as_str()).unwrap_or("-")
}

/// The trace over time, where all its places are moments.
fn at_moments((name, mark, points): &Trace) -> Option<Trace> {
    let at = |(place, value): &(Place, f64)| match place {
        Place::Name(text) => Some((Place::Number(seconds(text)?), *value)),
        Place::Number(_) => None,
    };
    Some((name.clone(), *mark, points.iter().map(at).collect::<Option<_>>()?))
}

/// Whether Plotly takes one of its names for a number or a moment.
fn is_misread((_, _, points): &Trace) -> bool {
    let is_other = |text: &str| text.trim().parse::<f64>().is_ok() || seconds(text).is_some();
    points.iter().any(|(place, _)| matches!(place, Place::Name(text) if is_other(text)))
}

/// Whether it is one value for each point.
fn is_column(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Values, as a list or as the bytes of an array of numbers.
fn column(values: &Value) -> Option<Vec<Value>> {
    if let Value::Array(values) = values {
        return Some(values.clone());
    }
    let bytes = Base64::new(values.get("bdata")?.as_str()?)?.bytes();
    if values.get("shape").is_some() {
        return None;
    }
    fn numbers<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<Value> {
        bytes.as_chunks().0.iter().map(|bytes| Value::from(read(*bytes))).collect()
    }
    match values.get("dtype")?.as_str()? {
        "f8" => Some(numbers(&bytes, f64::from_le_bytes)),
        "f4" => Some(numbers(&bytes, |bytes| f32::from_le_bytes(bytes).into())),
        "i4" => Some(numbers(&bytes, |bytes| i32::from_le_bytes(bytes).into())),
        "u4" => Some(numbers(&bytes, |bytes| u32::from_le_bytes(bytes).into())),
        "i2" => Some(numbers(&bytes, |bytes| i16::from_le_bytes(bytes).into())),
        "u2" => Some(numbers(&bytes, |bytes| u16::from_le_bytes(bytes).into())),
        "i1" => Some(numbers(&bytes, |bytes| i8::from_le_bytes(bytes).into())),
        "u1" => Some(numbers(&bytes, |[byte]: [u8; 1]| byte.into())),
        _ => None,
    }
}
