-- What is removed from the words is merged with what comes to them. By itself it would have large parts merged in one transaction.
INSERT INTO entry_text (entry_text, rank) VALUES ('deletemerge', 0);

-- What people submitted at prompts. Numbers are never given twice: clients read on from the last they know.
CREATE TABLE history (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    principal TEXT    NOT NULL,
    id        BLOB    NOT NULL, -- the client's name for it
    at        INTEGER NOT NULL, -- microseconds since 1970, UTC
    folder    TEXT,             -- absent where it is not known: it counts to every folder
    session   BLOB,
    text      TEXT,             -- absent where the content is an object
    object    TEXT,             -- its hash
    bytes     INTEGER,          -- its size
    preview   TEXT,             -- its beginning
    UNIQUE (principal, id)
) STRICT;

CREATE INDEX history_by_principal ON history (principal, number);

-- What has an object as its content.
CREATE INDEX history_by_object ON history (object) WHERE object IS NOT NULL;
