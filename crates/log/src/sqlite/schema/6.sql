-- When it was deleted, microseconds since 1970, UTC.
ALTER TABLE head ADD COLUMN deleted_at INTEGER;

CREATE INDEX head_of_deleted ON head (session) WHERE deleted_at IS NOT NULL;

-- Whose entries are in whose transcript: of `session` those from `first` up to, not including, `until` in that of `holder`.
CREATE TABLE held (
    session INTEGER NOT NULL,
    holder  INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    PRIMARY KEY (session, holder, first)
) STRICT, WITHOUT ROWID;

CREATE INDEX held_by_holder ON held (holder);

INSERT INTO held
SELECT session.number, event.session, segment.value ->> 'from', max(segment.value ->> 'to')
FROM event
    JOIN json_each(event.body, '$.segments') AS segment
    JOIN session ON session.id = unhex(segment.value ->> 'session', '-')
WHERE event.kind = 'sessionForked'
GROUP BY session.number, event.session, segment.value ->> 'from';

-- What has an object as its content.
CREATE INDEX entry_by_object ON entry (object) WHERE object IS NOT NULL;
