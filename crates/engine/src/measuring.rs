//! Has the lines measured that the tests of a session run, where somebody asks or the settings say so. What is measured is kept by the session's
//! worker, which knows how the lines have moved since.

use std::collections::BTreeMap;

use mainstay_model::{CodeMark, Error, ReachedLines, SessionId, TestPolicy};
use mainstay_runner::query::KernelQuery;

use crate::engine::Engine;
use crate::mirror::Stage;
use crate::sync::task::spawn;
use crate::unsaved::memory_is_short;

/// What is to be measured of a session.
#[derive(Clone)]
pub(crate) struct ToMeasure {
    code: CodeMark,
    /// When tests of categories run, by the session's own code; else the settings say it.
    policies: BTreeMap<String, TestPolicy>,
}

impl ToMeasure {
    /// Measures the code that a worker has told of; none where it cannot tell what its code is, as one of an older version.
    pub(crate) fn of(reached: &ReachedLines) -> Option<Self> {
        let policy =
            |(category, policy): (&String, &String)| Some((category.clone(), TestPolicy::named(policy)?));
        let policies = reached.policies.iter().filter_map(policy).collect();
        (!reached.code.0.is_empty()).then(|| Self { code: reached.code.clone(), policies })
    }
}

impl Engine {
    /// Measures which lines the tests of a session run, unless that was done for the code as it is. Dropping the future ends the process that
    /// runs them.
    pub(crate) async fn measure(&self, session: SessionId, what: ToMeasure) -> Result<(), Error> {
        let measurement = self.shared.measurements.of(session);
        measurement.once(what.code.clone(), self.measure_now(session, what)).await
    }

    /// Measures in the background, where the settings say so and that was not tried for the code as it is. Gives how far it is then.
    pub(crate) fn measure_in_background(&self, session: SessionId, what: ToMeasure) -> Stage {
        let measurement = self.shared.measurements.of(session);
        let stage = measurement.stage(&what.code);
        if stage != Stage::Due || !self.shared.mirrors.terms().measures {
            return stage;
        }
        let engine = self.clone();
        spawn(async move {
            if let Err(error) = engine.measure(session, what).await {
                tracing::warn!(%session, %error, "the lines that tests run are not measured");
            }
        });
        Stage::UnderWay
    }

    /// Waits for the end of the measurement that goes on for a session, where one does.
    pub(crate) async fn wait_for_measurement(&self, session: SessionId) {
        self.shared.measurements.of(session).ended().await;
    }

    async fn measure_now(&self, session: SessionId, what: ToMeasure) -> Result<(), Error> {
        let (beginning, visible) = self.mirror_beginning(session).await?;
        let terms = &beginning.terms;
        if terms.has_less_than(terms.memory_bytes) {
            return Err(memory_is_short());
        }
        let ToMeasure { code, policies } = what;
        let categories = policies.keys().map(|category| category.to_lowercase()).collect::<Vec<_>>();
        let of_settings =
            terms.policies.iter().filter(|(category, _)| !categories.contains(&category.to_lowercase()));
        let policies =
            of_settings.map(|(category, policy)| (category.clone(), *policy)).chain(policies).collect();
        let measurement = self.shared.measurements.run(&beginning, visible, &policies).await?;
        let taken = self.query(session, KernelQuery::TakeMeasurement { code, measurement }).await?;
        if taken.measurement_taken()? {
            return Ok(());
        }
        let reason =
            "the session's project was built or loaded anew while its tests were measured: ask again"
                .to_owned();
        Err(Error::WorkerFailed { reason })
    }
}
