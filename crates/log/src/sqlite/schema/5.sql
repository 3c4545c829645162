-- What sessions have said, each thing once. It is made from events, up to the position in `transcribed`.
CREATE TABLE entry (
    number   INTEGER PRIMARY KEY,
    hash     BLOB    NOT NULL UNIQUE,
    role     TEXT    NOT NULL,
    text     TEXT,             -- absent where the content is an object
    object   TEXT,             -- its hash
    bytes    INTEGER,          -- its size
    preview  TEXT,             -- its beginning
    metadata TEXT    NOT NULL  -- JSON
) STRICT;

-- Each session's own entries, numbered from 0.
CREATE TABLE place (
    session   INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    entry     INTEGER NOT NULL,
    at        INTEGER NOT NULL, -- microseconds since 1970, UTC
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    origin_session BLOB,        -- the entry it was brought from
    origin_number  INTEGER,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX place_by_entry ON place (entry);

-- One row: the last position whose event has become part of an entry, or will with a later one.
CREATE TABLE transcribed (
    position INTEGER NOT NULL
) STRICT;

INSERT INTO transcribed VALUES (0);

-- The words of each entry, by its number. Objects are in it whole.
CREATE VIRTUAL TABLE entry_text USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 2 tokenchars '_'"
);

-- The session it was forked off.
ALTER TABLE session ADD COLUMN forked_from BLOB;

CREATE INDEX session_by_parent ON session (forked_from) WHERE forked_from IS NOT NULL;
