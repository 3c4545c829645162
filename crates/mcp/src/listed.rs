//! A tool as clients see it in the list of tools.

use mainstay_protocol::OperationId;
use rmcp::model::{JsonObject, MetaObject};
use serde_json::Value;

use super::clients::{ClientProfile, Results};
use super::names::Names;
use super::needs::{Needs, Waits};

/// The member of a tool's `_meta` by which Claude Code tells its model of it at once.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// A tool as clients see it.
pub(super) struct Listed {
    /// What it asks for.
    pub(super) needs: Needs,
    /// Who sees to it that it is answered in time.
    pub(super) waits: Waits,
    /// The operations that it carries out.
    pub(super) operations: &'static [OperationId],
    /// By its neutral name.
    pub(super) neutral: rmcp::model::Tool,
    /// What SageFs calls it.
    pub(super) seed_name: Option<&'static str>,
    /// Whether it is among those without which nothing can be done here.
    pub(super) is_basic: bool,
}

impl Listed {
    /// What it is called.
    pub(super) fn name(&self, names: Names) -> &str {
        match (names, self.seed_name) {
            (Names::Sagefs, Some(name)) => name,
            (Names::Neutral | Names::Sagefs, _) => &self.neutral.name,
        }
    }

    /// As it is listed for who is shown these names, and is given results in this form.
    pub(super) fn described(
        &self,
        names: Names,
        results: Results,
        habits: &ClientProfile,
    ) -> rmcp::model::Tool {
        let mut tool = self.neutral.clone();
        if habits.loads_what_is_marked && self.is_basic {
            tool.meta =
                Some(MetaObject(JsonObject::from_iter([(ALWAYS_LOAD.to_owned(), Value::Bool(true))])));
        }
        tool.name = self.name(names).to_owned().into();
        if results == Results::Text {
            // What has a schema must be structured.
            tool.output_schema = None;
        }
        tool
    }

    /// Whether it comes after what runs in its session.
    pub(super) fn is_in_turn(&self) -> bool {
        self.needs.works.is_in_turn()
    }

    /// By this name, where it has it.
    pub(super) fn called(&self, name: &str) -> Option<&rmcp::model::Tool> {
        (self.neutral.name == name || self.seed_name == Some(name)).then_some(&self.neutral)
    }
}
