//! Moments as people write them.

use jiff::{SignedDuration, Span, Timestamp};

/// Reads how long ago, a day, or a moment.
pub(super) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        return day
            .to_zoned(jiff::tz::TimeZone::system())
            .map(|day| day.timestamp())
            .map_err(|error| error.to_string());
    }
    let wrong = || "write it as 7d, 12h, 2026-11-01 or 2026-11-01T09:00:00Z".to_owned();
    if let Ok(span) = text.parse::<SignedDuration>() {
        return now.checked_sub(span).map_err(|_| wrong());
    }
    let span: Span = text.parse().map_err(|_| wrong())?;
    let ago = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    now.checked_sub(ago).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_four_ways() {
        let now = Timestamp::now();
        let hours = |text: &str| now.duration_since(moment(text, now).unwrap()).as_hours();
        assert_eq!((hours("12h"), hours("7d"), hours("2w")), (12, 7 * 24, 14 * 24));
        assert_eq!(moment("2026-11-01T09:00:00Z", now).unwrap().to_string(), "2026-11-01T09:00:00Z");
        assert!(moment("2026-11-01", now).is_ok());
        for bad in ["", "soon", "7", "2026-13-01"] {
            assert!(moment(bad, now).is_err(), "{bad}");
        }
    }
}
