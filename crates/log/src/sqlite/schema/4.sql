-- Whose session it is. Until now all were the local user's.
ALTER TABLE session ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';
-- How many of its asks wait for an answer.
ALTER TABLE session ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;

CREATE INDEX session_by_asks ON session (asks) WHERE asks > 0;
