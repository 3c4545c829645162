-- A transaction costs a copy of each page it touches. So what appends write lies close together, however many sessions they
-- are for. Sessions have numbers because those are shorter than ids.

-- What seldom changes of a session. The projection's lastSeq and lastActivity are not kept up: `head` has them.
CREATE TABLE session_of_2 (
    number            INTEGER PRIMARY KEY,
    id                BLOB    NOT NULL UNIQUE,
    name              TEXT    NOT NULL,
    kind              TEXT    NOT NULL,
    state             TEXT    NOT NULL,
    working_directory TEXT    NOT NULL,
    project           TEXT,
    created_at        INTEGER NOT NULL, -- microseconds since 1970, UTC
    projection        TEXT    NOT NULL  -- JSON
) STRICT;

-- What each append changes of a session, in rows so short that those of many share a page.
CREATE TABLE head (
    session       INTEGER PRIMARY KEY,
    epoch         INTEGER NOT NULL,
    last_seq      INTEGER NOT NULL,
    last_activity INTEGER NOT NULL -- microseconds since 1970, UTC
) STRICT;

INSERT INTO session_of_2
SELECT rowid, id, name, kind, state, working_directory, project, created_at, projection FROM session;

INSERT INTO head SELECT rowid, epoch, last_seq, last_activity FROM session;

-- Events are never deleted, so that positions only ever grow.
CREATE TABLE event_of_2 (
    position    INTEGER PRIMARY KEY,
    session     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    at          INTEGER NOT NULL, -- microseconds since 1970, UTC
    kind        TEXT    NOT NULL,
    body        TEXT,             -- JSON; absent where the kind says it all
    source      TEXT    NOT NULL, -- JSON
    correlation TEXT,
    causation   INTEGER,
    environment TEXT              -- JSON
) STRICT;

INSERT INTO event_of_2
SELECT event.position, session.rowid, event.seq, event.at, event.kind, event.body, event.source, event.correlation,
       event.causation, event.environment
FROM event CROSS JOIN session ON session.id = event.session
ORDER BY event.position;

-- Where a session's events are. Each session has a page of its own here; hence it is filled some hundred events at a time,
-- and reads look through the events after `indexed`.
CREATE TABLE event_index (
    session  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

INSERT INTO event_index SELECT session, seq, position FROM event_of_2 ORDER BY session, seq;

-- One row: the last position that is in the index.
CREATE TABLE indexed (
    position INTEGER NOT NULL
) STRICT;

INSERT INTO indexed SELECT coalesce(max(position), 0) FROM event_of_2;

DROP TABLE event;
DROP TABLE session;
ALTER TABLE event_of_2 RENAME TO event;
ALTER TABLE session_of_2 RENAME TO session;

-- None by state: what is asked for is what is not at rest, and no index helps with that.
CREATE INDEX session_by_folder ON session (working_directory);
CREATE INDEX session_by_name ON session (name);
