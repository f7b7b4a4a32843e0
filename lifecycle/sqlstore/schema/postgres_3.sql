-- Interlock, tables of version 3, from those of version 2, for PostgreSQL. Programs that
-- use versions 1 and 2 can still use the tables. CREATE INDEX
-- lets writers wait while it reads the history.

-- The token of the commit that wrote the last history row. A program of an older version
-- does not write it: the token is then that of an earlier row, or NULL.
ALTER TABLE "interlock_objects" ADD COLUMN change_token bytea;

-- The version of the caller's table that wrote the record or the row. A program of an older
-- version of these tables neither reads nor writes it: end such programs before records of
-- a second version are written.
ALTER TABLE "interlock_objects" ADD COLUMN table_version text COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE "interlock_history" ADD COLUMN table_version text NOT NULL DEFAULT '';

-- The request of a client that made a change, and what identifies it beside its id. Most
-- rows have none: the index is for the others.
ALTER TABLE "interlock_history" ADD COLUMN request text COLLATE "C";

ALTER TABLE "interlock_history" ADD COLUMN fingerprint text;

CREATE UNIQUE INDEX "interlock_history_request" ON "interlock_history" (machine, request) WHERE request IS NOT NULL;

-- The objects with readable times and payloads. A payload that a Manager has
-- written is JSON. The store does not use the view.
CREATE VIEW "interlock_readable" AS
	SELECT machine, id, state, origin, target, sequence, operation, owner, epoch, work,
		convert_from(args, 'UTF8') AS args, to_timestamp(deadline / 1e6) AS deadline, to_timestamp(changed_at / 1e6) AS changed_at,
		actor, event, reason, convert_from(payload, 'UTF8') AS payload
	FROM "interlock_objects" WHERE state <> '';

UPDATE "interlock_schema" SET version = 3;
