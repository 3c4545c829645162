-- Connections that a client may resume after it lost them, or the daemon. What a protocol keeps of one is its own.
CREATE TABLE resumable_connection (
    id         TEXT    PRIMARY KEY,
    principal  TEXT    NOT NULL,
    protocol   TEXT    NOT NULL,
    opened_at  INTEGER NOT NULL, -- microseconds since 1970, UTC
    expires_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    state      TEXT    NOT NULL  -- JSON
) STRICT, WITHOUT ROWID;

CREATE INDEX resumable_connection_by_expiry ON resumable_connection (expires_at);
