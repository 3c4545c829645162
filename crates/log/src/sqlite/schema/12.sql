-- Content that clients store for each other, by name, for a time.
CREATE TABLE artifact (
    id         TEXT    PRIMARY KEY,
    principal  TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    sha256     TEXT    NOT NULL, -- in hexadecimal digits
    object     TEXT    NOT NULL, -- its hash
    size       INTEGER NOT NULL, -- bytes
    created_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    expires_at INTEGER NOT NULL  -- microseconds since 1970, UTC
) STRICT, WITHOUT ROWID;

CREATE INDEX artifact_by_expiry ON artifact (expires_at);
CREATE INDEX artifact_by_principal ON artifact (principal);
-- What has an object as its content.
CREATE INDEX artifact_by_object ON artifact (object);
