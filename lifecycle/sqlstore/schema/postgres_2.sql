-- Interlock, tables of version 2, from those of version 1, for PostgreSQL. Programs
-- that use version 1 can still use the tables. CREATE INDEX lets writers wait while it
-- reads the history.

-- The token of the commit that started the operation. A program of version 1 does not
-- write it: the token is then that of an earlier operation, or NULL.
ALTER TABLE "interlock_objects" ADD COLUMN admission bytea;

CREATE INDEX "interlock_history_at" ON "interlock_history" (at);

-- compatible: the oldest version whose programs can use the tables.
-- floor: see AfterRestore. trimmed_at, trimmed_to and trimmed_keep: see Trim.
ALTER TABLE "interlock_schema"
	ADD COLUMN compatible bigint NOT NULL DEFAULT 1,
	ADD COLUMN floor bigint NOT NULL DEFAULT 0,
	ADD COLUMN trimmed_at bigint NOT NULL DEFAULT 0,
	ADD COLUMN trimmed_to bigint NOT NULL DEFAULT 0,
	ADD COLUMN trimmed_keep bigint NOT NULL DEFAULT 0;

UPDATE "interlock_schema" SET version = 2;
