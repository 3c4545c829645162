-- Work that is to be submitted later.
CREATE TABLE schedule (
    id         TEXT    PRIMARY KEY,
    principal  TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    wakes_at   INTEGER,          -- when there is something to do for it, in the same; none once it has ended
    planned_to INTEGER NOT NULL, -- the moment up to which its runs are planned, in the same
    revision   INTEGER NOT NULL, -- how often it was changed
    schedule   TEXT    NOT NULL  -- JSON
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_by_moment ON schedule (wakes_at);
CREATE INDEX schedule_by_principal ON schedule (principal);
