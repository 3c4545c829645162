//! What a series of measurements comes to.

use std::time::Duration;

/// Middle and near-worst of a series.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
}

pub(crate) fn spread(mut series: Vec<Duration>) -> Spread {
    series.sort_unstable();
    Spread { median: series[series.len() / 2], p99: series[series.len() * 99 / 100] }
}

pub(crate) fn print_row(what: &str, spread: Spread) {
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    println!("| {what} | {:.2} ms | {:.2} ms |", ms(spread.median), ms(spread.p99));
}
