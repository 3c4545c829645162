-- What its creator calls it; absent where that is nothing.
ALTER TABLE session ADD COLUMN alias TEXT;

CREATE INDEX session_by_alias ON session (alias) WHERE alias IS NOT NULL;
