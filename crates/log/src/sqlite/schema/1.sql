-- Events are never deleted, so that positions only ever grow.
CREATE TABLE event (
    position    INTEGER PRIMARY KEY,
    session     BLOB    NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL, -- microseconds since 1970, UTC
    kind        TEXT    NOT NULL,
    body        TEXT,             -- JSON; absent where the kind says it all
    source      TEXT    NOT NULL, -- JSON
    correlation TEXT,
    causation   INTEGER,
    environment TEXT,             -- JSON
    UNIQUE (session, seq)
) STRICT;

CREATE TABLE outcome (
    principal   TEXT NOT NULL,
    command     TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    response    TEXT NOT NULL, -- JSON
    PRIMARY KEY (principal, command)
) STRICT, WITHOUT ROWID;

-- The projection is the session; the columns beside it are there to be searched, and to guard appends.
CREATE TABLE session (
    id                BLOB    NOT NULL UNIQUE,
    name              TEXT    NOT NULL,
    kind              TEXT    NOT NULL,
    state             TEXT    NOT NULL,
    working_directory TEXT    NOT NULL,
    project           TEXT,
    created_at        INTEGER NOT NULL, -- microseconds since 1970, UTC
    last_activity     INTEGER NOT NULL, -- microseconds since 1970, UTC
    last_seq          INTEGER NOT NULL,
    epoch             INTEGER NOT NULL,
    projection        TEXT    NOT NULL  -- JSON
) STRICT;

-- None of them has last_activity or last_seq: each append would write its pages anew.
CREATE INDEX session_by_folder ON session (working_directory);
CREATE INDEX session_by_state ON session (state);
CREATE INDEX session_by_name ON session (name);

CREATE TABLE object (
    hash  TEXT    NOT NULL PRIMARY KEY,
    size  INTEGER NOT NULL, -- bytes
    bytes BLOB              -- absent where they are in a file
) STRICT;
