//! How many mirrors there are, how long each stays, and what may run in it.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_model::TestPolicy;

/// How unsaved texts are dealt with.
#[derive(Clone, Debug)]
pub struct BufferTerms {
    /// How many mirrors there may be. The one that was used least recently ends for another.
    pub mirrors: usize,
    /// How long a mirror stays without a text.
    pub idle: Duration,
    /// How many texts a mirror takes before another takes its place; none where that has no limit.
    pub texts: Option<u64>,
    /// How long the tests of one text may take together.
    pub run: Duration,
    /// How long one of them may take.
    pub test: Duration,
    /// How much memory the machine must have available for a mirror. One that is there ends where it has less than half of it.
    pub memory_bytes: u64,
    /// How much memory the machine has available; none where that is not known.
    pub available_bytes: fn() -> Option<u64>,
    /// When tests of categories run.
    pub policies: BTreeMap<String, TestPolicy>,
    /// Whether the lines that tests run are measured in the background, where somebody asks for coverage.
    pub measures: bool,
    /// How long one measurement may take.
    pub measure: Duration,
    /// How long one test of it may take.
    pub measure_test: Duration,
}

impl Default for BufferTerms {
    fn default() -> Self {
        Self {
            mirrors: 2,
            idle: Duration::from_secs(600),
            texts: None,
            run: Duration::from_secs(10),
            test: Duration::from_secs(2),
            memory_bytes: 0,
            available_bytes: || None,
            policies: BTreeMap::new(),
            measures: false,
            measure: Duration::from_secs(600),
            measure_test: Duration::from_secs(10),
        }
    }
}

impl BufferTerms {
    /// Whether less memory is available. Where the machine does not tell, there is enough.
    pub(crate) fn has_less_than(&self, bytes: u64) -> bool {
        (self.available_bytes)().is_some_and(|available| available < bytes)
    }
}
