//! The software bill of materials: what the program is made of, as CycloneDX 1.5 in JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::dependencies::{CrateId, Dependency};
use super::facts::Facts;
use super::platform::Platform;

/// Returns the bill of materials of the program on a platform.
pub(crate) fn sbom(
    facts: &Facts,
    platform: &Platform,
    dependencies: &BTreeMap<CrateId, Dependency>,
) -> String {
    let is_program = |id: &CrateId| id.0 == facts.name;
    let component = |id: &CrateId, kind: &str| component(id, kind, &dependencies[id]);
    let program = dependencies.keys().find(|id| is_program(id)).map(|id| component(id, "application"));
    let libraries: Vec<_> =
        dependencies.keys().filter(|id| !is_program(id)).map(|id| component(id, "library")).collect();
    let uses: Vec<_> = dependencies
        .iter()
        .map(|(id, one)| json!({ "ref": reference(id), "dependsOn": one.uses.iter().map(reference).collect::<Vec<_>>() }))
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "serialNumber": serial_number(&format!("{uses:?}{libraries:?}{}", facts.archive_name(platform))),
        "metadata": {
            "timestamp": facts.style.time.to_string(),
            "component": program,
            "properties": [{ "name": "cdx:rustc:sbom:target:triple", "value": platform.triple }],
        },
        "components": libraries,
        "dependencies": uses,
    });
    format!("{bill:#}\n")
}

fn component(id: &CrateId, kind: &str, dependency: &Dependency) -> Value {
    let mut component = Map::new();
    let mut add = |key: &str, value: Value| drop(component.insert(key.to_owned(), value));
    add("type", kind.into());
    add("bom-ref", reference(id).into());
    add("name", id.0.clone().into());
    add("version", id.1.clone().into());
    add("scope", if dependency.is_part { "required" } else { "excluded" }.into());
    if let Some(licence) = &dependency.licence {
        add("licenses", json!([{ "expression": licence }]));
    }
    if let Some(checksum) = &dependency.checksum {
        add("hashes", json!([{ "alg": "SHA-256", "content": checksum }]));
        add("purl", reference(id).into());
    }
    Value::Object(component)
}

fn reference((name, version): &CrateId) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// A UUID that follows from the content, so that the same program has the same bill.
fn serial_number(content: &str) -> String {
    let hash = Sha256::digest(content);
    let mut bytes: [u8; 16] = std::array::from_fn(|index| hash[index]);
    // Version 8 of UUIDs is for those that are made by a rule of one's own.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::super::facts::sample;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_bill_has_each_crate_with_its_hash_licence_and_uses() {
        let id = |name: &str| (name.to_owned(), "1.2.3".to_owned());
        let one = |uses: &[&str], is_own: bool| Dependency {
            licence: Some("MIT".to_owned()),
            checksum: (!is_own).then(|| "ab".to_owned()),
            is_part: true,
            is_own,
            uses: uses.iter().map(|name| id(name)).collect::<BTreeSet<_>>(),
            authors: Vec::new(),
            texts: Vec::new(),
        };
        let all = BTreeMap::from([(id("mainstay"), one(&["serde"], true)), (id("serde"), one(&[], false))]);
        let platform = Platform::of_triple("x86_64-unknown-linux-gnu").unwrap();
        let bill: Value = serde_json::from_str(&sbom(&sample(), platform, &all)).unwrap();
        assert_eq!(bill["metadata"]["component"]["name"], "mainstay");
        assert_eq!(
            bill["components"],
            json!([{
                "type": "library", "bom-ref": "pkg:cargo/serde@1.2.3", "name": "serde", "version": "1.2.3", "scope": "required",
                "licenses": [{ "expression": "MIT" }], "hashes": [{ "alg": "SHA-256", "content": "ab" }], "purl": "pkg:cargo/serde@1.2.3"
            }])
        );
        assert_eq!(bill["dependencies"][0]["dependsOn"], json!(["pkg:cargo/serde@1.2.3"]));
        let serial = bill["serialNumber"].as_str().unwrap();
        assert_eq!(serial.split('-').map(str::len).collect::<Vec<_>>(), [17, 4, 4, 4, 12], "{serial}");
    }
}
