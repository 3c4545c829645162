//! Who is let in: principals, the issuers of signed tokens, and groups.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mainstay_gateway::client_certificate::ClientCertificate;
use mainstay_gateway::identities::{Identities, IssuedName};
use mainstay_gateway::introspection::Introspection;
use mainstay_gateway::issuers::{Issuers, KnownIssuer};
use mainstay_gateway::jwt::Issuer;
use mainstay_gateway::jwt_key::{JwtKey, SignatureAlgorithm};
use mainstay_gateway::key_cache::KeyCache;
use mainstay_gateway::outbound::{Address, Outbound};
use mainstay_gateway::tokens::{TokenHash, Tokens};
use mainstay_model::{Access, Error, NamePattern, Principal, Rights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use super::files::{read_file, unusable};
use crate::Home;

/// A principal, and how it shows who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrincipalConfig {
    /// The SHA-256 of the principal's token, as 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub token_sha256: Option<TokenHash>,
    /// What issuers call it, each as `ISSUER:SUBJECT`, with the issuer's name in these settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<IssuedName>,
    /// The names of its certificates, each with its kind: `email:`, `dns:`, `uri:`, `cn:`, or `sha256:` with the certificate's hash. See `client-ca-file` in `[remote]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<IssuedName>,
    /// Whether it may do everything that the user of the daemon may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admin: bool,
    /// Patterns for the names of the sessions it may see, besides those it may drive; `*` stands for any characters.
    #[serde(default)]
    pub see: Vec<NamePattern>,
    /// Patterns for the names of the sessions it may drive, besides the sessions it created.
    #[serde(default)]
    pub drive: Vec<NamePattern>,
}

/// An issuer of signed tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IssuerConfig {
    /// What its tokens have as `iss`.
    pub issuer: String,
    /// What its tokens must have as `aud`, or in the list that this is.
    pub audience: String,
    /// The algorithms with which its tokens may be signed: `HS256`, `RS256`, `ES256`, `EdDSA`. None is allowed unless it is named.
    #[serde(default)]
    pub algorithms: Vec<SignatureAlgorithm>,
    /// A file with the secret for `HS256`, of at least 32 bytes, which only you can read. A line end at its end does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
    /// Files with one public key each, in PEM. A path that is not absolute is one in Mainstay's home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_files: Vec<PathBuf>,
    /// A file with a JSON Web Key Set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_file: Option<PathBuf>,
    /// Where the issuer publishes its public keys as a JSON Web Key Set, over HTTPS. They are fetched every hour, and for a token with a key that is not known, at most once a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// Where the issuer says of a token whether it is good (RFC 7662), over HTTPS. An answer counts for a minute at most. Without keys every token of the issuer is asked about, otherwise those that are good by their signature. Where several issuers have this setting, clients write a token that is no JWT as `NAME:TOKEN`, with the issuer's name in these settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_url: Option<String>,
    /// As whom this daemon asks at `introspection-url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The file with the secret of `client-id`, which only you can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// The file with the certificates of the authorities that are trusted for these addresses, in PEM. Without it those that the system trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The claim that says whom a token is for, `sub` unless set.
    #[serde(default = "subject_claim")]
    pub subject_claim: String,
    /// The claim that lists the groups of the subject: a list, or a text with spaces in between; `groups` unless set.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// By how many seconds its clock may differ from this machine's, 30 unless set.
    #[serde(default = "leeway_sec")]
    pub leeway_sec: u32,
}

/// A group that issuers name in their tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GroupConfig {
    /// What issuers call it, each as `ISSUER:GROUP`, with the issuer's name in these settings.
    pub names: Vec<IssuedName>,
    /// Whether its members may do everything that the user of the daemon may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admin: bool,
    /// Patterns for the names of the sessions that its members may see, besides those they may drive.
    #[serde(default)]
    pub see: Vec<NamePattern>,
    /// Patterns for the names of the sessions that its members may drive, besides those that each has created.
    #[serde(default)]
    pub drive: Vec<NamePattern>,
}

/// Clients of this machine that show nothing. Without a principal there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AnonymousConfig {
    /// Whom a client on this machine stands for that shows no credentials. Without it such a client is rejected.
    #[schemars(with = "Option<String>")]
    pub principal: Option<Principal>,
    /// Patterns for the names of the sessions that it may see. Unless it may drive some it can only look, and creates no sessions.
    pub see: Vec<NamePattern>,
    /// Patterns for the names of the sessions that it may drive. If there are any it may create sessions, too: anybody on this machine then runs code as you.
    pub drive: Vec<NamePattern>,
}

impl AnonymousConfig {
    fn access(&self) -> Option<Access> {
        let Self { principal, see, drive } = self.clone();
        let rights = match drive.is_empty() {
            true => Rights::ReadOnly { see },
            false => Rights::Some { see, drive },
        };
        principal.map(|principal| Access { principal, rights })
    }
}

fn subject_claim() -> String {
    "sub".to_owned()
}

fn groups_claim() -> String {
    "groups".to_owned()
}

const fn leeway_sec() -> u32 {
    30
}

fn rights(admin: bool, see: &[NamePattern], drive: &[NamePattern]) -> Rights {
    match admin {
        true => Rights::All,
        false => Rights::Some { see: see.to_vec(), drive: drive.to_vec() },
    }
}

impl PrincipalConfig {
    fn access(&self, principal: &Principal) -> Access {
        Access { principal: principal.clone(), rights: rights(self.admin, &self.see, &self.drive) }
    }
}

impl Config {
    /// The tokens that are accepted: the daemon's own, those of the principals, and those that issuers sign, whose keys are read.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the file of keys that cannot be used.
    pub fn tokens(&self, own: &str, home: &Home) -> Result<Tokens, Error> {
        let by_token = self
            .principals
            .iter()
            .filter_map(|(name, config)| Some((config.token_sha256.clone()?, config.access(name))));
        let read = |(name, config): (&String, &IssuerConfig)| config.read(name, home.folder());
        let issuers = self.issuers.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let certificates = self.principals.iter().flat_map(|(name, config)| {
            config.certificates.iter().map(|certificate| (certificate.clone(), config.access(name)))
        });
        let issuers = Issuers::new(issuers, self.identities());
        let tokens = Tokens::new(own, by_token).with_issuers(issuers).with_certificates(certificates);
        Ok(tokens.with_anonymous(self.anonymous.access()))
    }

    /// Whether somebody can come in as this principal by these settings, as far as that can be told: the subjects of an issuer are not listed anywhere.
    pub fn knows(&self, principal: &Principal) -> bool {
        let issuer = principal.as_str().split_once(':').map(|(issuer, _)| issuer);
        *principal == Principal::local()
            || self.principals.contains_key(principal)
            || self.anonymous.principal.as_ref() == Some(principal)
            || issuer.is_some_and(|issuer| self.issuers.contains_key(issuer))
    }

    /// How many principals may answer what is asked. None where members of groups may come as well, who are listed nowhere.
    pub fn answering_principals(&self) -> Option<u32> {
        if !self.groups.is_empty() {
            return None;
        }
        let may_answer = |access: &Access| !matches!(access.rights, Rights::ReadOnly { .. });
        let named = self.principals.iter().map(|(name, config)| config.access(name));
        let all = named.chain(self.anonymous.access()).chain([Access::local()]);
        u32::try_from(all.filter(may_answer).count()).ok()
    }

    fn identities(&self) -> Identities {
        let subjects = self.principals.iter().flat_map(|(name, config)| {
            config.subjects.iter().map(|subject| (subject.clone(), config.access(name)))
        });
        let groups = self.groups.values().flat_map(|group| {
            let rights = rights(group.admin, &group.see, &group.drive);
            group.names.iter().map(move |name| (name.clone(), rights.clone()))
        });
        Identities::new(subjects, groups)
    }
}

impl IssuerConfig {
    fn read(&self, name: &str, home: &Path) -> Result<KnownIssuer, Error> {
        let outbound = || {
            let trusted = self.ca_file.as_ref().map(|file| read_file(home, file, false)).transpose()?;
            Outbound::trusting(trusted.as_deref()).map_err(|error| refused("ca-file", &error))
        };
        let published = match &self.jwks_url {
            Some(url) => Some(KeyCache::new(address("jwks-url", url)?, outbound()?)),
            None => None,
        };
        let introspection = match (&self.introspection_url, &self.client_id, &self.client_secret_file) {
            (Some(url), Some(client), Some(file)) => {
                let secret = String::from_utf8_lossy(&read_file(home, file, true)?).trim_end().to_owned();
                let asked = address("introspection-url", url)?;
                let introspection = Introspection::new(asked, outbound()?, client, &secret);
                Some(introspection.ok_or_else(|| unusable(file, &"it is no secret that can be sent"))?)
            }
            _ => None,
        };
        Ok(KnownIssuer { issuer: self.issuer(name, home)?, published, introspection })
    }

    fn issuer(&self, name: &str, home: &Path) -> Result<Issuer, Error> {
        Ok(Issuer {
            name: name.to_owned(),
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            algorithms: self.algorithms.clone(),
            keys: self.keys(home)?,
            subject_claim: self.subject_claim.clone(),
            groups_claim: self.groups_claim.clone(),
            leeway_sec: self.leeway_sec,
        })
    }

    fn keys(&self, home: &Path) -> Result<Vec<JwtKey>, Error> {
        let mut keys = Vec::new();
        if let Some(file) = &self.secret_file {
            let secret = read_file(home, file, true)?;
            let secret = secret.strip_suffix(b"\n").unwrap_or(&secret);
            keys.push(JwtKey::of_secret(secret).map_err(|error| unusable(file, &error))?);
        }
        for file in &self.key_files {
            let pem = String::from_utf8_lossy(&read_file(home, file, false)?).into_owned();
            keys.push(JwtKey::of_pem(&pem).map_err(|error| unusable(file, &error))?);
        }
        if let Some(file) = &self.jwks_file {
            let set = read_file(home, file, false)?;
            keys.extend(JwtKey::of_key_set(&set).map_err(|error| unusable(file, &error))?);
        }
        Ok(keys)
    }
}

fn address(setting: &str, url: &str) -> Result<Address, Error> {
    Address::parse(url).map_err(|error| refused(setting, &error))
}

fn refused(setting: &str, reason: &impl ToString) -> Error {
    Error::InvalidArgument { argument: setting.to_owned(), reason: reason.to_string() }
}

/// Rejects principals, issuers and groups that contradict each other, and says which.
pub(super) fn check(config: &Config) -> Result<(), String> {
    if config.principals.contains_key(&Principal::local()) {
        return Err(
            "`local` is the user the daemon runs as, and may do everything: it has no entry".to_owned()
        );
    }
    if let Some(principal) = &config.anonymous.principal {
        check_anonymous(principal, &config.principals)?;
    }
    check_issuers(&config.issuers)?;
    for (name, principal) in &config.principals {
        check_ways_in(name, principal)?;
        let issuer = name.as_str().split_once(':').map(|(issuer, _)| issuer);
        if issuer.is_some_and(|issuer| config.issuers.contains_key(issuer)) {
            return Err(format!(
                "the principal `{name}` is called like those of an issuer; choose another name"
            ));
        }
        let mut before = config.principals.iter().take_while(|(other, _)| *other != name);
        if let Some((other, _)) = before.find(|(_, other)| have_the_same(principal, other)) {
            return Err(format!(
                "the principals `{other}` and `{name}` have the same token, subject or certificate"
            ));
        }
    }
    let subjects = config.principals.values().flat_map(|principal| &principal.subjects);
    let mut names = subjects.chain(config.groups.values().flat_map(|group| &group.names));
    match names.find(|name| !config.issuers.contains_key(&name.issuer)) {
        Some(name) => Err(format!("`{name}` is of the issuer `{}`, which is not configured", name.issuer)),
        None => Ok(()),
    }
}

/// Rejects a name for clients that show nothing which is, or looks like, that of somebody who shows who it is: the user of the daemon, a principal, or
/// one that an issuer vouches for, now or once there is such an issuer.
fn check_anonymous(
    anonymous: &Principal,
    principals: &BTreeMap<Principal, PrincipalConfig>,
) -> Result<(), String> {
    if anonymous.as_str().contains(':') {
        return Err(format!(
            "`{anonymous}` of `[anonymous]` is called like a principal of an issuer, `ISSUER:SUBJECT`; choose a name without a colon"
        ));
    }
    let is_like =
        |known: &Principal| known.as_str().trim().to_lowercase() == anonymous.as_str().trim().to_lowercase();
    if is_like(&Principal::local()) {
        return Err(format!(
            "`{anonymous}` of `[anonymous]` is called like the user that the daemon runs as; choose another name"
        ));
    }
    match principals.keys().find(|known| is_like(known)) {
        Some(known) => Err(format!(
            "`{anonymous}` of `[anonymous]` is called like the principal `{known}`, who shows who it is; choose another name"
        )),
        None => Ok(()),
    }
}

/// Rejects a principal that could never show who it is.
fn check_ways_in(name: &Principal, principal: &PrincipalConfig) -> Result<(), String> {
    let PrincipalConfig { token_sha256, subjects, certificates, .. } = principal;
    if token_sha256.is_none() && subjects.is_empty() && certificates.is_empty() {
        return Err(format!("the principal `{name}` needs `token-sha256`, `subjects` or `certificates`"));
    }
    match certificates.iter().find(|name| !ClientCertificate::KINDS.contains(&name.issuer.as_str())) {
        Some(certificate) => Err(format!(
            "`{certificate}` must begin with the kind of the name: {}",
            ClientCertificate::KINDS.map(|kind| format!("`{kind}:`")).join(", ")
        )),
        None => Ok(()),
    }
}

fn have_the_same(one: &PrincipalConfig, other: &PrincipalConfig) -> bool {
    let tokens = one.token_sha256.is_some() && one.token_sha256 == other.token_sha256;
    let certificates = one.certificates.iter().any(|name| other.certificates.contains(name));
    tokens || certificates || one.subjects.iter().any(|subject| other.subjects.contains(subject))
}

/// Rejects an issuer whose tokens could not be checked.
fn check_issuer(name: &str, issuer: &IssuerConfig) -> Result<(), String> {
    if issuer.issuer.is_empty() || issuer.audience.is_empty() {
        return Err(format!("the issuer `{name}` needs `issuer` and `audience`"));
    }
    let IssuerConfig { secret_file, key_files, jwks_file, jwks_url, introspection_url, .. } = issuer;
    let has_keys =
        secret_file.is_some() || jwks_file.is_some() || jwks_url.is_some() || !key_files.is_empty();
    if !has_keys && introspection_url.is_none() {
        let ways = "`secret-file`, `key-files`, `jwks-file`, `jwks-url` or `introspection-url`";
        return Err(format!("the issuer `{name}` needs {ways}"));
    }
    if has_keys == issuer.algorithms.is_empty() {
        return Err(format!("the issuer `{name}` needs `algorithms` for its keys, and none without keys"));
    }
    let asks = introspection_url.is_some();
    if asks != issuer.client_id.is_some() || asks != issuer.client_secret_file.is_some() {
        let together = "`introspection-url`, `client-id` and `client-secret-file`";
        return Err(format!("the issuer `{name}` needs {together} together"));
    }
    Ok(())
}

fn check_issuers(issuers: &BTreeMap<String, IssuerConfig>) -> Result<(), String> {
    for (name, issuer) in issuers {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 24 || !name.chars().all(is_plain) {
            return Err(format!("the issuer `{name}` must be called by 1 to 24 letters, digits, `-` or `_`"));
        }
        check_issuer(name, issuer)?;
        let mut before = issuers.iter().take_while(|(other, _)| *other != name);
        if let Some((other, _)) = before.find(|(_, other)| other.issuer == issuer.issuer) {
            return Err(format!("the issuers `{other}` and `{name}` have the same `issuer`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        check(&config).map(|()| config)
    }

    const CORP: &str = "[issuers.corp]\nissuer = 'https://id.example'\naudience = 'mainstay'\n\
        algorithms = ['HS256']\nsecret-file = 'secret'\n";

    #[test]
    fn what_contradicts_itself_is_named() {
        let hash = "ab".repeat(32);
        for (text, said) in [
            (format!("{CORP}[principals.ada]\nsubjects = ['corp:ada@example.com']"), None),
            (format!("{CORP}[groups.dev]\nnames = ['corp:dev']\nadmin = true"), None),
            ("[principals.ada]".to_owned(), Some("needs `token-sha256`, `subjects` or")),
            ("[principals.ada]\nsubjects = ['corp:ada']".to_owned(), Some("which is not configured")),
            (format!("{CORP}[groups.dev]\nnames = ['other:dev']"), Some("which is not configured")),
            (format!("{CORP}[groups.dev]\nnames = ['dev']"), Some("`ISSUER:NAME`")),
            (format!("{CORP}[principals.'corp:a']\ntoken-sha256 = '{hash}'"), Some("choose another name")),
            (
                format!("{CORP}[principals.a]\nsubjects = ['corp:x']\n[principals.b]\nsubjects = ['corp:x']"),
                Some("`a` and `b` have the same"),
            ),
            ("[principals.ada]\ncertificates = ['email:ada@example.com']".to_owned(), None),
            ("[principals.ada]\ncertificates = ['ou:x']".to_owned(), Some("kind of the name")),
            (CORP.replace("corp", "a:b"), Some("expected")),
            (CORP.replace("corp", "'a:b'"), Some("letters, digits")),
            (CORP.replace("['HS256']", "[]"), Some("needs `algorithms` for its keys")),
            (format!("{CORP}introspection-url = 'https://id.example/i'"), Some("together")),
            (format!("{CORP}jwks-url = 'https://id.example/keys'"), None),
            (CORP.replace("HS256", "none"), Some("none")),
            (CORP.replace("secret-file = 'secret'\n", ""), Some("needs `secret-file`")),
            (format!("{CORP}{}", CORP.replace("corp", "two")), Some("have the same `issuer`")),
            (format!("{CORP}leeway-sec = 601"), None),
        ] {
            match (config(&text), said) {
                (Ok(_), None) => {}
                (Err(refused), Some(said)) => assert!(refused.contains(said), "{refused}"),
                (Ok(_), Some(said)) => panic!("{said}: {text}"),
                (Err(refused), None) => panic!("{refused}: {text}"),
            }
        }
        let late = toml::from_str(&format!("{CORP}leeway-sec = 601")).unwrap();
        assert!(super::super::check(&late).unwrap_err().starts_with("`leeway-sec` is 601"));
    }

    #[test]
    fn who_shows_nothing_is_nobody_unless_that_is_allowed_and_then_only_looks() {
        let of = |text: &str| config(text).unwrap().anonymous.access();
        assert_eq!(of(""), None);
        assert_eq!(of("[anonymous]\nsee = ['*']"), None);
        let guest = |rights| Some(Access { principal: Principal::new("guest").unwrap(), rights });
        let all: Vec<NamePattern> = vec!["*".parse().unwrap()];
        let read = Rights::ReadOnly { see: all.clone() };
        assert_eq!(of("[anonymous]\nprincipal = 'guest'\nsee = ['*']"), guest(read));
        let drives = Rights::Some { see: Vec::new(), drive: all };
        assert_eq!(of("[anonymous]\nprincipal = 'guest'\ndrive = ['*']"), guest(drives));
        let hash = "ab".repeat(32);
        for (name, is_called_like) in [
            ("local", "the user that the daemon runs as"),
            ("Local", "the user that the daemon runs as"),
            ("ada", "the principal `ada`"),
            ("ADA", "the principal `ada`"),
            ("corp:guest", "a principal of an issuer"),
            ("new:guest", "a principal of an issuer"),
            ("corp:", "a principal of an issuer"),
        ] {
            let taken =
                format!("{CORP}[principals.ada]\ntoken-sha256 = '{hash}'\n[anonymous]\nprincipal = '{name}'");
            let refused = config(&taken).unwrap_err();
            assert!(refused.contains(&format!("is called like {is_called_like}")), "{refused}");
        }
    }

    #[test]
    fn a_principal_is_known_by_its_own_name_or_that_of_its_issuer() {
        let hash = "ab".repeat(32);
        let known = config(&format!(
            "{CORP}[principals.ada]\ntoken-sha256 = '{hash}'\n[anonymous]\nprincipal = 'guest'"
        ));
        let known = known.unwrap();
        let knows = |name: &str| known.knows(&Principal::new(name).unwrap());
        assert!(["local", "ada", "guest", "corp:bob"].into_iter().all(knows));
        assert!(!["bea", "other:bob", "corp"].into_iter().any(knows));
    }

    #[test]
    fn a_secret_that_others_can_read_or_that_is_short_is_refused_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let issuer = config(CORP).unwrap().issuers["corp"].clone();
        let file = folder.path().join("secret");
        let keys = || issuer.keys(folder.path()).map(|keys| keys.len()).map_err(|error| error.to_string());
        assert!(keys().unwrap_err().contains("secret"));
        std::fs::write(&file, "a secret of thirty-two bytes, all\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(keys().unwrap_err().contains("others can read this secret"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(keys(), Ok(1));
        std::fs::write(&file, "a secret of thirty-one bytes!!!\n").unwrap();
        assert!(keys().unwrap_err().contains("at least 32 bytes"));
    }
}
