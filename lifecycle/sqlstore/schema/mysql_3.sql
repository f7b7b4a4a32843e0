-- Interlock, tables of version 3, from those of version 2, for MariaDB and MySQL. Programs that
-- use versions 1 and 2 can still use the tables.
-- If a run ends half-way, continue after the last statement that was executed. The
-- function Migrate does so.

-- The token of the commit that wrote the last history row. A program of an older version
-- does not write it: the token is then that of an earlier row, or NULL.
ALTER TABLE interlock_objects ADD COLUMN change_token binary(16);

-- The version of the caller's table that wrote the record or the row. A program of an older
-- version of these tables neither reads nor writes it: end such programs before records of
-- a second version are written.
ALTER TABLE interlock_objects ADD COLUMN table_version varbinary(255) NOT NULL DEFAULT '';

ALTER TABLE interlock_history ADD COLUMN table_version varbinary(255) NOT NULL DEFAULT '';

-- The request of a client that made a change, and what identifies it beside its id. Most
-- rows have none: the index is for the others.
ALTER TABLE interlock_history ADD COLUMN request varbinary(255);

ALTER TABLE interlock_history ADD COLUMN fingerprint varbinary(255);

CREATE UNIQUE INDEX interlock_history_request ON interlock_history (machine, request);

UPDATE interlock_schema SET version = 3;
