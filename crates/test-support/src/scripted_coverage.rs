//! What the scripted kernel says of the lines that tests reach.

use mainstay_model::ReachedLines;

/// A file of two functions, one of which a test reaches.
pub(crate) fn pets() -> ReachedLines {
    serde_json::from_value(serde_json::json!({
        "tests": [{ "assembly": "Pets.Tests", "names": ["Pets.bark"] }],
        "unknown": 0,
        "assemblies": { "Pets.Tests": "1" },
        "changed": [],
        "sets": [{ "tests": [0] }, { "tests": [] }],
        "files": [{ "path": "/pets/Pets.fs", "lines": [
            { "first": 3, "last": 4, "count": 2, "name": "Pets.bark", "set": 0 },
            { "first": 6, "last": 6, "count": 1, "name": "Pets.sleep", "set": 1 }] }],
        "callers": [], "callees": [], "notes": [],
    }))
    .expect("it has the form of an answer")
}
