//! Where traces and metrics go, as the settings and OpenTelemetry's environment variables say. What the settings say goes first.

use std::path::Path;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::{Scheme, Uri};
use mainstay_home::config::TelemetryConfig;
use mainstay_model::Error;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
const METRICS_INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// How often metrics are exported where nothing says so.
const METRICS_EVERY: Duration = Duration::from_secs(60);
/// Longer than anyone waits for metrics.
const LONGEST_INTERVAL_MS: u64 = 24 * 60 * 60 * 1000;

/// What is exported, and where to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) endpoint: Endpoint,
    pub(super) headers: HeaderMap,
    pub(super) service_name: String,
    pub(super) sampling: Sampling,
    pub(super) metrics_every: Duration,
}

/// A collector of OTLP over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// What stands before `/v1/traces`.
    pub(super) path: String,
}

/// Which traces are exported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampling {
    /// This part of those that begin here, from 0 to 1.
    pub(super) ratio: f64,
    /// Those that begin elsewhere as was decided there.
    pub(super) follows_parent: bool,
}

/// A value, and what a person calls the place that it comes from.
struct SettingText {
    place: String,
    text: String,
}

impl SettingText {
    fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::InvalidArgument { argument: self.place.clone(), reason: reason.into() }
    }
}

/// What environment variables say; one that is empty says nothing.
struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    fn said(&self, name: &str) -> Option<SettingText> {
        let text = (self.0)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())?;
        Some(SettingText { place: name.to_owned(), text })
    }
}

impl Settings {
    /// None where nothing is exported, because nobody said where to.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the name of the setting or variable that nothing could work with.
    pub(super) fn of(
        config: &TelemetryConfig,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Error> {
        let TelemetryConfig { endpoint, headers_file, service_name, sampling_ratio } = config;
        let environment = Environment(environment);
        let of_config = sampling_ratio.map(of_ratio).transpose()?;
        let is_disabled =
            environment.said(DISABLED).is_some_and(|said| said.text.eq_ignore_ascii_case("true"));
        let endpoint = match (endpoint, environment.said(ENDPOINT)) {
            (Some(text), _) => SettingText { place: "telemetry.endpoint".to_owned(), text: text.clone() },
            (None, Some(said)) if !is_disabled => {
                check_protocol(environment.said(PROTOCOL))?;
                said
            }
            (None, Some(_) | None) => return Ok(None),
        };
        let headers = match headers_file {
            Some(file) => read_headers(file)?,
            None => environment.said(HEADERS).map_or(Ok(HeaderMap::new()), |said| headers(&said, ','))?,
        };
        let of_environment = || environment.said(SERVICE_NAME).map(|said| said.text);
        let sampling = match of_config {
            Some(sampling) => sampling,
            None => sampler(environment.said(SAMPLER), environment.said(SAMPLER_ARGUMENT))?,
        };
        Ok(Some(Self {
            endpoint: endpoint_of(&endpoint)?,
            headers,
            service_name: service_name.clone().or_else(of_environment).unwrap_or("mainstay".to_owned()),
            sampling,
            metrics_every: environment.said(METRICS_INTERVAL).map_or(Ok(METRICS_EVERY), interval)?,
        }))
    }
}

fn endpoint_of(said: &SettingText) -> Result<Endpoint, Error> {
    let uri: Uri = said
        .text
        .parse()
        .map_err(|_| said.wrong("it must be the address of a collector, as in `http://localhost:4318`"))?;
    if uri.scheme() == Some(&Scheme::HTTPS) {
        return Err(
            said.wrong("HTTPS is not spoken; let a collector on this machine pass on what it is sent")
        );
    }
    let (Some(host), true) = (uri.host(), uri.scheme() == Some(&Scheme::HTTP)) else {
        return Err(said.wrong("it must begin with `http://` and name a host, as in `http://localhost:4318`"));
    };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(said.wrong("it must have no password; a header may, by `headers-file`"));
    }
    if uri.query().is_some() {
        return Err(said.wrong("it must have no query"));
    }
    let path = uri.path().trim_end_matches('/').to_owned();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Endpoint { host, port: uri.port_u16().unwrap_or(80), path })
}

impl Endpoint {
    /// As it stands in an address.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, path: _ } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

fn check_protocol(said: Option<SettingText>) -> Result<(), Error> {
    match said {
        Some(said) if said.text != "http/protobuf" => {
            Err(said.wrong("only `http/protobuf` is spoken, which collectors take on port 4318"))
        }
        Some(_) | None => Ok(()),
    }
}

/// A header a line, so that secrets stand in no setting.
fn read_headers(file: &Path) -> Result<HeaderMap, Error> {
    let place = "telemetry.headers-file".to_owned();
    match std::fs::read_to_string(file) {
        Ok(text) => headers(&SettingText { place, text }, '\n'),
        Err(error) => {
            let reason = format!("`{}` cannot be read: {error}", file.display());
            Err(Error::InvalidArgument { argument: place, reason })
        }
    }
}

/// `NAME=VALUE`, percent-encoded where that is needed. What is wrong with one is said without its value, which may be a secret.
fn headers(said: &SettingText, separator: char) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (index, pair) in said.text.split(separator).map(str::trim).enumerate() {
        if pair.is_empty() {
            continue;
        }
        let number = index + 1;
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| said.wrong(format!("header {number} is not of the form NAME=VALUE")))?;
        let name: HeaderName = name.trim().parse().map_err(|_| {
            said.wrong(format!("what stands before `=` in header {number} is no name of a header"))
        })?;
        let mut value = decoded(value.trim())
            .and_then(|bytes| HeaderValue::from_bytes(&bytes).ok())
            .ok_or_else(|| said.wrong(format!("the value of the header `{name}` cannot be sent")))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// Bytes, of which some are percent-encoded.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    Some(bytes)
}

fn of_ratio(ratio: f64) -> Result<Sampling, Error> {
    let said = SettingText { place: "telemetry.sampling-ratio".to_owned(), text: ratio.to_string() };
    Ok(Sampling { ratio: ratio_of(&said)?, follows_parent: true })
}

fn ratio_of(said: &SettingText) -> Result<f64, Error> {
    let ratio = said.text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| said.wrong(format!("it is {}; it must be from 0 to 1", said.text)))
}

fn sampler(sampler: Option<SettingText>, argument: Option<SettingText>) -> Result<Sampling, Error> {
    let Some(sampler) = sampler else { return Ok(Sampling { ratio: 1.0, follows_parent: true }) };
    let ratio = || argument.as_ref().map_or(Ok(1.0), ratio_of);
    let (ratio, follows_parent) = match sampler.text.as_str() {
        "always_on" => (1.0, false),
        "always_off" => (0.0, false),
        "traceidratio" => (ratio()?, false),
        "parentbased_always_on" => (1.0, true),
        "parentbased_always_off" => (0.0, true),
        "parentbased_traceidratio" => (ratio()?, true),
        _ => {
            return Err(sampler.wrong(
                "it must be `always_on`, `always_off`, `traceidratio`, or one of them behind `parentbased_`",
            ));
        }
    };
    Ok(Sampling { ratio, follows_parent })
}

fn interval(said: SettingText) -> Result<Duration, Error> {
    let ms = said.text.parse().ok().filter(|ms| (1..=LONGEST_INTERVAL_MS).contains(ms));
    ms.map(Duration::from_millis).ok_or_else(|| {
        said.wrong(format!("it must be a number of milliseconds from 1 to {LONGEST_INTERVAL_MS}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str, environment: &[(&str, &str)]) -> Result<Option<Settings>, Error> {
        let said = |name: &str| {
            environment.iter().find(|(other, _)| *other == name).map(|(_, text)| (*text).to_owned())
        };
        Settings::of(&toml::from_str(config).unwrap(), &said)
    }

    fn settings(config: &str, environment: &[(&str, &str)]) -> Settings {
        of(config, environment).unwrap().unwrap()
    }

    fn refused(config: &str, environment: &[(&str, &str)]) -> String {
        of(config, environment).unwrap_err().to_string()
    }

    const HERE: (&str, &str) = (ENDPOINT, "http://localhost:4318");

    #[test]
    fn nothing_is_exported_where_nobody_says_where_to() {
        assert_eq!(of("", &[]), Ok(None));
        assert_eq!(of("service-name = 'a'", &[(SAMPLER, "nonsense"), (ENDPOINT, " ")]), Ok(None));
        assert_eq!(of("", &[HERE, (DISABLED, "TRUE")]), Ok(None));
    }

    #[test]
    fn the_environment_says_what_the_settings_do_not() {
        let environment =
            [HERE, (SERVICE_NAME, "theirs"), (SAMPLER, "traceidratio"), (SAMPLER_ARGUMENT, "0.25")];
        let theirs = settings("", &environment);
        assert_eq!(
            theirs.endpoint,
            Endpoint { host: "localhost".to_owned(), port: 4318, path: String::new() }
        );
        assert_eq!(theirs.service_name, "theirs");
        assert_eq!(theirs.sampling, Sampling { ratio: 0.25, follows_parent: false });
        let own = "endpoint = 'http://[::1]:80/otlp/'\nservice-name = 'own'\nsampling-ratio = 0.5";
        let own = settings(own, &environment);
        assert_eq!(own.endpoint, Endpoint { host: "::1".to_owned(), port: 80, path: "/otlp".to_owned() });
        assert_eq!(own.endpoint.authority(), "[::1]:80");
        assert_eq!(own.service_name, "own");
        assert_eq!(own.sampling, Sampling { ratio: 0.5, follows_parent: true });
    }

    #[test]
    fn without_a_word_every_trace_is_exported_and_metrics_once_a_minute() {
        let Settings { service_name, sampling, metrics_every, headers, .. } = settings("", &[HERE]);
        assert_eq!(service_name, "mainstay");
        assert_eq!(sampling, Sampling { ratio: 1.0, follows_parent: true });
        assert_eq!(metrics_every, METRICS_EVERY);
        assert!(headers.is_empty());
    }

    #[test]
    fn what_nothing_could_work_with_is_refused_by_its_name() {
        let said = [
            refused("endpoint = 'https://collector.example'", &[]),
            refused("endpoint = 'localhost:4318'", &[]),
            refused("endpoint = 'http://me:secret@localhost'", &[]),
            refused("endpoint = 'not an address'", &[]),
            refused("sampling-ratio = 1.5", &[]),
            refused("endpoint = 'http://localhost'\nheaders-file = '/nowhere'", &[]),
            refused("", &[HERE, (PROTOCOL, "grpc")]),
            refused("", &[HERE, (SAMPLER, "sometimes")]),
            refused("", &[HERE, (SAMPLER, "traceidratio"), (SAMPLER_ARGUMENT, "often")]),
            refused("", &[HERE, (METRICS_INTERVAL, "0")]),
            refused("", &[HERE, (HEADERS, "authorization=Bearer%20secret,secret")]),
            refused("", &[HERE, (HEADERS, "authorization=%0Asecret")]),
        ];
        assert!(said.iter().all(|said| !said.contains("secret")), "{said:#?}");
        insta::assert_debug_snapshot!(said, @r#"
        [
            "telemetry.endpoint is not valid: HTTPS is not spoken; let a collector on this machine pass on what it is sent",
            "telemetry.endpoint is not valid: it must begin with `http://` and name a host, as in `http://localhost:4318`",
            "telemetry.endpoint is not valid: it must have no password; a header may, by `headers-file`",
            "telemetry.endpoint is not valid: it must be the address of a collector, as in `http://localhost:4318`",
            "telemetry.sampling-ratio is not valid: it is 1.5; it must be from 0 to 1",
            "telemetry.headers-file is not valid: `/nowhere` cannot be read: No such file or directory (os error 2)",
            "OTEL_EXPORTER_OTLP_PROTOCOL is not valid: only `http/protobuf` is spoken, which collectors take on port 4318",
            "OTEL_TRACES_SAMPLER is not valid: it must be `always_on`, `always_off`, `traceidratio`, or one of them behind `parentbased_`",
            "OTEL_TRACES_SAMPLER_ARG is not valid: it is often; it must be from 0 to 1",
            "OTEL_METRIC_EXPORT_INTERVAL is not valid: it must be a number of milliseconds from 1 to 86400000",
            "OTEL_EXPORTER_OTLP_HEADERS is not valid: header 2 is not of the form NAME=VALUE",
            "OTEL_EXPORTER_OTLP_HEADERS is not valid: the value of the header `authorization` cannot be sent",
        ]
        "#);
    }

    #[test]
    fn headers_are_decoded_and_are_not_shown() {
        let headers = settings("", &[HERE, (HEADERS, "authorization=Bearer%20abc, x-scope = a=b ")]).headers;
        assert_eq!(headers["authorization"], "Bearer abc");
        assert_eq!(headers["x-scope"], "a=b");
        assert!(!format!("{headers:?}").contains("abc"), "{headers:?}");
    }

    #[test]
    fn a_file_has_a_header_a_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "authorization=Bearer abc,def\n\nx-scope=a\n").unwrap();
        let config = format!("endpoint = 'http://localhost'\nheaders-file = '{}'", file.path().display());
        let headers = settings(&config, &[(HEADERS, "authorization=theirs")]).headers;
        assert_eq!(headers["authorization"], "Bearer abc,def");
        assert_eq!(headers["x-scope"], "a");
    }
}
