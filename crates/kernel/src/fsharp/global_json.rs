//! What a `global.json` says of SDKs, and which one it means among those that are installed: as `dotnet`'s own host reads and resolves it.
//! Pure; `selection` finds the file and applies it.

use std::fmt;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::{Map, Value};

use super::version::SdkVersion;

/// The name of such a file.
pub(super) const FILE: &str = "global.json";
/// The entry of `paths` that stands for the SDKs that are found without it.
const HOST_PATH: &str = "$host$";

/// What one says of SDKs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GlobalJson {
    wanted: RequestedSdk,
    allow_prerelease: bool,
    /// Where SDKs are looked for, in order.
    pub(super) places: Vec<SdkPath>,
    /// What its author tells people who lack the SDK.
    pub(super) error_message: Option<String>,
}

/// A place where SDKs are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SdkPath {
    /// Where they are found without the file.
    Usual,
    /// A root, from the folder of the file.
    At(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestedSdk {
    /// The newest there is.
    Newest,
    /// This version, or what stands for it.
    Version(SdkVersion, RollForward),
}

/// Which SDKs stand for the wanted version. Each is at least as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RollForward {
    /// No other version than the named one.
    Disable,
    /// Itself where it is there, else the newest of its feature band.
    Patch,
    /// The newest of the nearest feature band, minor, or major version.
    Nearest(Reach),
    /// The newest of all.
    Latest(Reach),
}

/// How far from the wanted version an SDK may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Band,
    Minor,
    Major,
    Any,
}

/// Every policy by its name in the file. Case does not matter there.
const POLICIES: [(&str, RollForward); 9] = [
    ("disable", RollForward::Disable),
    ("patch", RollForward::Patch),
    ("feature", RollForward::Nearest(Reach::Minor)),
    ("minor", RollForward::Nearest(Reach::Major)),
    ("major", RollForward::Nearest(Reach::Any)),
    ("latestPatch", RollForward::Latest(Reach::Band)),
    ("latestFeature", RollForward::Latest(Reach::Minor)),
    ("latestMinor", RollForward::Latest(Reach::Major)),
    ("latestMajor", RollForward::Latest(Reach::Any)),
];

/// Why a file says nothing of SDKs that `dotnet` would obey.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Invalid {
    /// It is not JSON with comments.
    #[error("{0}")]
    Json(String),
    /// A value is of another type.
    #[error("`{name}` is not {expected}")]
    Type {
        /// The name of the value in the file.
        name: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// The version is none.
    #[error("`sdk.version` is `{0}`, which is not a whole version like 10.0.100")]
    Version(String),
    /// The policy is none.
    #[error("`sdk.rollForward` is `{0}`, which is no policy")]
    Policy(String),
    /// The policy is of use only with a version.
    #[error("`sdk.rollForward` is `{0}`, which needs an `sdk.version`")]
    PolicyWithoutVersion(&'static str),
}

impl GlobalJson {
    /// Reads one. Of JSON's extensions it may have comments, and nothing else.
    pub(super) fn parse(text: &str) -> Result<Self, Invalid> {
        let options = ParseOptions {
            allow_comments: true,
            allow_loose_object_property_names: false,
            allow_trailing_commas: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let json = CstRootNode::parse(text, &options).map_err(|error| Invalid::Json(error.to_string()))?;
        let Some(Value::Object(mut file)) = json.to_serde_value() else {
            return Err(Invalid::Type { name: "the file", expected: "an object" });
        };
        match file.remove("sdk") {
            None | Some(Value::Null) => Self::of(&Map::new()),
            Some(Value::Object(sdk)) => Self::of(&sdk),
            Some(_) => Err(Invalid::Type { name: "sdk", expected: "an object" }),
        }
    }

    fn of(sdk: &Map<String, Value>) -> Result<Self, Invalid> {
        let version = string(sdk, "version", "sdk.version")?;
        let version = version.map(|text| text.parse().map_err(|_| Invalid::Version(text.to_owned())));
        let policy = string(sdk, "rollForward", "sdk.rollForward")?.map(policy).transpose()?;
        let wanted = match (version.transpose()?, policy) {
            (Some(version), policy) => {
                RequestedSdk::Version(version, policy.map_or(RollForward::Patch, |(_, policy)| policy))
            }
            (None, None | Some((_, RollForward::Latest(Reach::Any)))) => RequestedSdk::Newest,
            (None, Some((name, _))) => return Err(Invalid::PolicyWithoutVersion(name)),
        };
        let allow_prerelease = match sdk.get("allowPrerelease") {
            None | Some(Value::Null) => true,
            Some(Value::Bool(allow)) => *allow || wanted.is_pre_release(),
            Some(_) => return Err(Invalid::Type { name: "sdk.allowPrerelease", expected: "true or false" }),
        };
        let place =
            |path: &str| if path == HOST_PATH { SdkPath::Usual } else { SdkPath::At(path.to_owned()) };
        let places = match sdk.get("paths") {
            None | Some(Value::Null) => vec![SdkPath::Usual],
            Some(Value::Array(paths)) => paths.iter().filter_map(Value::as_str).map(place).collect(),
            Some(_) => return Err(Invalid::Type { name: "sdk.paths", expected: "an array" }),
        };
        let error_message = string(sdk, "errorMessage", "sdk.errorMessage")?.map(str::to_owned);
        Ok(Self { wanted, allow_prerelease, places, error_message })
    }

    /// The version that it means among those that are installed at one place.
    pub(super) fn choose<'a>(&self, installed: &[&'a SdkVersion]) -> Option<&'a SdkVersion> {
        let allowed = || {
            let is_allowed = |version: &&SdkVersion| self.allow_prerelease || !version.is_pre_release();
            installed.iter().copied().filter(is_allowed)
        };
        let RequestedSdk::Version(wanted, policy) = &self.wanted else { return allowed().max() };
        let exact = || installed.iter().copied().find(|version| *version == wanted);
        let within = |reach: Reach| {
            allowed().filter(move |version| *version >= wanted && reach.covers(wanted, version))
        };
        match *policy {
            RollForward::Disable => exact(),
            RollForward::Patch => exact().or_else(|| within(Reach::Band).max()),
            RollForward::Latest(reach) => within(reach).max(),
            RollForward::Nearest(reach) => {
                let nearest = within(reach).map(SdkVersion::feature_band).min()?;
                within(reach).filter(|version| version.feature_band() == nearest).max()
            }
        }
    }
}

impl fmt::Display for GlobalJson {
    /// What it asks for, as in "asks for …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wanted {
            RequestedSdk::Version(version, policy) => {
                write!(f, "the .NET SDK {version} (rollForward {})", policy.name())?;
            }
            RequestedSdk::Newest if self.allow_prerelease => f.write_str("a .NET SDK")?,
            RequestedSdk::Newest => f.write_str("a .NET SDK that is no preview")?,
        }
        if self.places != [SdkPath::Usual] { f.write_str(" in its `paths`") } else { Ok(()) }
    }
}

impl RequestedSdk {
    fn is_pre_release(&self) -> bool {
        matches!(self, Self::Version(version, _) if version.is_pre_release())
    }
}

impl RollForward {
    fn name(self) -> &'static str {
        POLICIES.iter().find(|(_, policy)| *policy == self).map_or("", |(name, _)| name)
    }
}

impl Reach {
    fn covers(self, wanted: &SdkVersion, version: &SdkVersion) -> bool {
        match self {
            Self::Band => version.feature_band() == wanted.feature_band(),
            Self::Minor => version.same_line(wanted),
            Self::Major => version.major() == wanted.major(),
            Self::Any => true,
        }
    }
}

fn policy(name: &str) -> Result<(&'static str, RollForward), Invalid> {
    let found = POLICIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| Invalid::Policy(name.to_owned()))
}

/// The text of this key, where it has one.
fn string<'a>(
    sdk: &'a Map<String, Value>,
    key: &str,
    name: &'static str,
) -> Result<Option<&'a str>, Invalid> {
    match sdk.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Invalid::Type { name, expected: "a text" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTALLED: &str = "8.0.404 9.0.100 9.0.105 9.0.308 10.0.100-rc.1 10.0.101 10.0.205 10.0.401";

    fn chosen(installed: &str, sdk: &str) -> Option<String> {
        let versions: Vec<SdkVersion> = installed.split(' ').map(|text| text.parse().unwrap()).collect();
        let file = GlobalJson::parse(&format!("{{ \"sdk\": {{ {sdk} }} }}")).unwrap();
        file.choose(&versions.iter().collect::<Vec<_>>()).map(ToString::to_string)
    }

    /// Each case was put to the host of SDK 10.0.401, which says under `COREHOST_TRACE` what it resolves to.
    #[test]
    fn the_sdk_is_the_one_that_dotnet_takes() {
        let cases = [
            ("", Some("10.0.401")),
            (r#""rollForward": "latestMajor""#, Some("10.0.401")),
            (r#""version": "9.0.100""#, Some("9.0.100")),
            (r#""version": "9.0.101""#, Some("9.0.105")),
            (r#""version": "9.0.200""#, None),
            (r#""version": "9.0.1""#, None),
            (r#""version": "9.0.100", "rollForward": "patch""#, Some("9.0.100")),
            (r#""version": "9.0.100", "rollForward": "latestPatch""#, Some("9.0.105")),
            (r#""version": "9.0.100", "rollForward": "disable""#, Some("9.0.100")),
            (r#""version": "9.0.101", "rollForward": "disable""#, None),
            (r#""version": "9.0.100", "rollForward": "feature""#, Some("9.0.105")),
            (r#""version": "9.0.106", "rollForward": "feature""#, Some("9.0.308")),
            (r#""version": "9.0.400", "rollForward": "feature""#, None),
            (r#""version": "9.0.400", "rollForward": "minor""#, None),
            (r#""version": "8.1.100", "rollForward": "minor""#, None),
            (r#""version": "9.0.400", "rollForward": "major""#, Some("10.0.101")),
            (r#""version": "7.0.100", "rollForward": "major""#, Some("8.0.404")),
            (r#""version": "10.0.100", "rollForward": "feature""#, Some("10.0.101")),
            (r#""version": "10.0.100", "rollForward": "latestFeature""#, Some("10.0.401")),
            (r#""version": "9.0.100", "rollForward": "latestMinor""#, Some("9.0.308")),
            (r#""version": "9.0.100", "rollForward": "latestMajor""#, Some("10.0.401")),
            (r#""version": "9.0.100", "rollForward": "LATESTMAJOR""#, Some("10.0.401")),
            (r#""version": "11.0.100", "rollForward": "latestMajor""#, None),
            (r#""version": "10.0.100-rc.1""#, Some("10.0.100-rc.1")),
            (r#""version": "10.0.100-rc.1", "rollForward": "latestPatch""#, Some("10.0.101")),
        ];
        for (sdk, expected) in cases {
            assert_eq!(chosen(INSTALLED, sdk).as_deref(), expected, "{sdk}");
        }
    }

    #[test]
    fn previews_are_taken_unless_the_file_says_otherwise() {
        let installed = "10.0.101 10.0.200-rc.1";
        assert_eq!(chosen(installed, "").as_deref(), Some("10.0.200-rc.1"));
        assert_eq!(chosen(installed, r#""allowPrerelease": false"#).as_deref(), Some("10.0.101"));
        let previews = "9.0.100-rc.1 9.0.101-preview.1";
        assert_eq!(chosen(previews, r#""version": "9.0.100""#).as_deref(), Some("9.0.101-preview.1"));
        assert_eq!(chosen(previews, r#""version": "9.0.100", "allowPrerelease": false"#), None);
        let asked = r#""version": "9.0.100-beta", "allowPrerelease": false"#;
        assert_eq!(
            chosen(previews, asked).as_deref(),
            Some("9.0.101-preview.1"),
            "the version is one itself"
        );
    }

    #[test]
    fn comments_are_read_over_and_nothing_else_that_is_no_json() {
        let wanted = |text: &str| GlobalJson::parse(text).map(|file| file.wanted);
        let nine = Ok(RequestedSdk::Version(SdkVersion::release(9, 0, 100), RollForward::Patch));
        assert_eq!(wanted("{ // why\n \"sdk\": { /* what */ \"version\": \"9.0.100\" } }"), nine);
        assert_eq!(wanted("\u{feff}{ \"sdk\": { \"version\": \"9.0.100\" } }"), nine);
        for nothing in
            [r#"{ "sdk": null }"#, r#"{ "SDK": { "version": "9.0.100" } }"#, r#"{"sdk":{"version":null}}"#]
        {
            assert_eq!(wanted(nothing), Ok(RequestedSdk::Newest), "{nothing}");
        }
        assert!(matches!(wanted(r#"{ "sdk": { "version": "9.0.100", } }"#), Err(Invalid::Json(_))));
        assert!(matches!(wanted("{"), Err(Invalid::Json(_))));
    }

    #[test]
    fn what_dotnet_does_not_obey_is_refused_with_the_reason() {
        let reason = |text: &str| GlobalJson::parse(text).unwrap_err().to_string();
        for (text, expected) in [
            ("[]", "`the file` is not an object"),
            (r#"{ "sdk": 1 }"#, "`sdk` is not an object"),
            (r#"{ "sdk": { "version": 9 } }"#, "`sdk.version` is not a text"),
            (
                r#"{ "sdk": { "version": "9.0" } }"#,
                "`sdk.version` is `9.0`, which is not a whole version like 10.0.100",
            ),
            (
                r#"{ "sdk": { "version": "9.0.100", "rollForward": "newest" } }"#,
                "`sdk.rollForward` is `newest`, which is no policy",
            ),
            (
                r#"{ "sdk": { "rollForward": "feature" } }"#,
                "`sdk.rollForward` is `feature`, which needs an `sdk.version`",
            ),
            (r#"{ "sdk": { "allowPrerelease": "no" } }"#, "`sdk.allowPrerelease` is not true or false"),
            (r#"{ "sdk": { "paths": "local" } }"#, "`sdk.paths` is not an array"),
        ] {
            assert_eq!(reason(text), expected);
        }
    }

    #[test]
    fn paths_are_looked_at_in_order_and_the_host_stands_for_what_is_found_without() {
        let file = GlobalJson::parse(r#"{ "sdk": { "paths": [".dotnet", 1, "$host$"] } }"#).unwrap();
        assert_eq!(file.places, [SdkPath::At(".dotnet".to_owned()), SdkPath::Usual]);
        assert_eq!(file.to_string(), "a .NET SDK in its `paths`");
    }
}
