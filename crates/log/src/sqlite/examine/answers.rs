//! Every outcome, and every idempotency key that leads to one.

use rusqlite::Connection;

use super::super::failure::reason_of;
use super::super::rows::decode_outcome;
use super::Examiner;
use crate::examination::Stage;
use crate::finding::Finding;

const OUTCOMES: &str = "
    SELECT fingerprint, response, version, session.id, principal, command
    FROM outcome LEFT JOIN session ON session.number = outcome.session";

const KEYS_WITHOUT_OUTCOME: &str = "
    SELECT principal, key, command FROM idempotency
    WHERE NOT EXISTS (SELECT 1 FROM outcome
                      WHERE outcome.principal = idempotency.principal AND outcome.command = idempotency.command)";

impl Examiner<'_> {
    pub(super) fn outcomes(&mut self, connection: &Connection) {
        let examined = connection.prepare(OUTCOMES).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                self.progress(Stage::Outcomes, self.report.outcomes);
                match decode_outcome(row) {
                    Ok(_) => self.report.outcomes += 1,
                    Err(error) => {
                        let (principal, command) = (row.get(4)?, row.get(5)?);
                        let reason = reason_of(error);
                        self.found(Finding::OutcomeUnreadable { principal, command, reason });
                    }
                }
            }
            Ok(())
        });
        self.read("outcome", examined);
        let examined = connection.prepare(KEYS_WITHOUT_OUTCOME).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                let (principal, key, command) = (row.get(0)?, row.get(1)?, row.get(2)?);
                self.found(Finding::KeyWithoutOutcome { principal, key, command });
            }
            Ok(())
        });
        self.read("idempotency", examined);
    }
}
