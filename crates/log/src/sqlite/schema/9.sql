-- The lease of each owner of sessions: one for all of its sessions, so that renewing it is one write.
CREATE TABLE lease (
    number     INTEGER PRIMARY KEY,
    owner      TEXT    NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL -- microseconds since 1970, UTC; 0 where it was given up or does not count
) STRICT;

-- Under whose lease the session is; absent where nobody owns it.
ALTER TABLE head ADD COLUMN lease INTEGER;
