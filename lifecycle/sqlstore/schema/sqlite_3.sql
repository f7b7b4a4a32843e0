-- Interlock, tables of version 3, from those of version 2, for SQLite. Programs that
-- use versions 1 and 2 can still use the tables.

-- The token of the commit that wrote the last history row. A program of an older version
-- does not write it: the token is then that of an earlier row, or NULL.
ALTER TABLE interlock_objects ADD COLUMN change_token BLOB;

-- The request of a client that made a change, and what identifies it beside its id. Most
-- rows have none: the index is for the others.
ALTER TABLE interlock_history ADD COLUMN request TEXT;

ALTER TABLE interlock_history ADD COLUMN fingerprint TEXT;

CREATE UNIQUE INDEX interlock_history_request ON interlock_history (machine, request) WHERE request IS NOT NULL;

-- The objects with readable times and payloads. A payload that a Manager has
-- written is JSON. The store does not use the view.
CREATE VIEW interlock_readable AS
	SELECT machine, id, state, origin, target, sequence, operation, owner, epoch, work,
		CAST(args AS TEXT) AS args, datetime(deadline / 1000000, 'unixepoch') AS deadline, datetime(changed_at / 1000000, 'unixepoch') AS changed_at,
		actor, event, reason, CAST(payload AS TEXT) AS payload
	FROM interlock_objects WHERE state <> '';

UPDATE interlock_schema SET version = 3;
