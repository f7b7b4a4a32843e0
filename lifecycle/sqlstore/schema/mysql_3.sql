-- Interlock, tables of version 3, from those of version 2, for MariaDB and MySQL. Programs that
-- use versions 1 and 2 can still use the tables. The user needs the privilege CREATE VIEW.
-- If a run ends half-way, continue after the last statement that was executed. The
-- function Migrate does so.

-- The token of the commit that wrote the last history row. A program of an older version
-- does not write it: the token is then that of an earlier row, or NULL.
ALTER TABLE interlock_objects ADD COLUMN change_token binary(16);

-- The request of a client that made a change, and what identifies it beside its id. Most
-- rows have none: the index is for the others.
ALTER TABLE interlock_history ADD COLUMN request varbinary(255);

ALTER TABLE interlock_history ADD COLUMN fingerprint varbinary(255);

CREATE UNIQUE INDEX interlock_history_request ON interlock_history (machine, request);

-- The objects with readable times and payloads, in the time zone of the
-- session. A payload that a Manager has written is JSON. The store does not use the view.
CREATE OR REPLACE VIEW interlock_readable AS
	SELECT CONVERT(machine USING utf8mb4) AS machine, CONVERT(id USING utf8mb4) AS id, CONVERT(state USING utf8mb4) AS state,
		CONVERT(origin USING utf8mb4) AS origin, CONVERT(target USING utf8mb4) AS target, sequence, operation,
		CONVERT(owner USING utf8mb4) AS owner, epoch, CONVERT(work USING utf8mb4) AS work, CONVERT(args USING utf8mb4) AS args,
		FROM_UNIXTIME(deadline / 1e6) AS deadline, FROM_UNIXTIME(changed_at / 1e6) AS changed_at,
		CONVERT(actor USING utf8mb4) AS actor, CONVERT(event USING utf8mb4) AS event, CONVERT(reason USING utf8mb4) AS reason,
		CONVERT(payload USING utf8mb4) AS payload
	FROM interlock_objects WHERE state <> '';

UPDATE interlock_schema SET version = 3;
