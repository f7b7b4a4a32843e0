-- Interlock, tables of version 2, from those of version 1, for SQLite. Programs that
-- use version 1 can still use the tables.

-- The token of the commit that started the operation. A program of version 1 does not
-- write it: the token is then that of an earlier operation, or NULL.
ALTER TABLE interlock_objects ADD COLUMN admission BLOB;

CREATE INDEX interlock_history_at ON interlock_history (at);

-- compatible: the oldest version whose programs can use the tables.
-- floor: see AfterRestore. trimmed_at, trimmed_to and trimmed_keep: see Trim.
ALTER TABLE interlock_schema ADD COLUMN compatible INTEGER NOT NULL DEFAULT 1;

ALTER TABLE interlock_schema ADD COLUMN floor INTEGER NOT NULL DEFAULT 0;

ALTER TABLE interlock_schema ADD COLUMN trimmed_at INTEGER NOT NULL DEFAULT 0;

ALTER TABLE interlock_schema ADD COLUMN trimmed_to INTEGER NOT NULL DEFAULT 0;

ALTER TABLE interlock_schema ADD COLUMN trimmed_keep INTEGER NOT NULL DEFAULT 0;

UPDATE interlock_schema SET version = 2;
