//! Charts that code shows, drawn as SVG. Pure.
//!
//! [`Chart::read`] reads a description for Vega-Lite or Plotly, [`drawn`] draws it.

mod chart;
mod plot;

pub use chart::{Chart, Mark, Scale, Series};
pub use plot::drawn;
