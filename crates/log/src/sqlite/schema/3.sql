-- In which session the command ended, and that session's version then.
ALTER TABLE outcome ADD COLUMN session INTEGER;
ALTER TABLE outcome ADD COLUMN version INTEGER NOT NULL DEFAULT 0;

-- The commands that came with an idempotency key.
CREATE TABLE idempotency (
    principal TEXT    NOT NULL,
    session   INTEGER NOT NULL,
    key       TEXT    NOT NULL,
    command   TEXT    NOT NULL,
    PRIMARY KEY (principal, session, key)
) STRICT, WITHOUT ROWID;
