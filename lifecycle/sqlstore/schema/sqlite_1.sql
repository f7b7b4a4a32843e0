-- Interlock, tables of version 1, for SQLite.
-- Times are microseconds since 1970: datetime(changed_at / 1000000, 'unixepoch')
-- shows them.

-- One row. compatible: the oldest version whose programs can use the tables. floor: see
-- AfterRestore. trimmed_at, trimmed_to and trimmed_keep: see Trim.
CREATE TABLE interlock_schema (
	version      INTEGER NOT NULL PRIMARY KEY,
	compatible   INTEGER NOT NULL DEFAULT 1,
	floor        INTEGER NOT NULL DEFAULT 0,
	trimmed_at   INTEGER NOT NULL DEFAULT 0,
	trimmed_to   INTEGER NOT NULL DEFAULT 0,
	trimmed_keep INTEGER NOT NULL DEFAULT 0
);

-- One row for each object. admission is the token of the commit that started the operation,
-- change_token that of the last history row, and table_version the version of the caller's
-- table that wrote the record. A row without a state is an object that was removed:
-- its numbers continue.
CREATE TABLE interlock_objects (
	machine       TEXT NOT NULL,
	id            TEXT NOT NULL,
	state         TEXT NOT NULL,
	origin        TEXT NOT NULL,
	target        TEXT NOT NULL,
	revision      INTEGER NOT NULL,
	sequence      INTEGER NOT NULL,
	operation     INTEGER NOT NULL,
	admission     BLOB,
	change_token  BLOB,
	table_version TEXT NOT NULL DEFAULT '',
	owner         TEXT NOT NULL,
	epoch         INTEGER NOT NULL,
	work          TEXT NOT NULL,
	args          BLOB,
	work_options  BLOB,
	deadline      INTEGER,
	changed_at    INTEGER NOT NULL,
	actor         TEXT NOT NULL,
	event         TEXT NOT NULL,
	reason        TEXT NOT NULL,
	payload       BLOB,
	saved         BLOB,
	token         BLOB NOT NULL,
	PRIMARY KEY (machine, id)
);

CREATE INDEX interlock_objects_state ON interlock_objects (machine, state, id);

CREATE INDEX interlock_objects_age ON interlock_objects (machine, state, changed_at);

CREATE INDEX interlock_objects_deadline ON interlock_objects (machine, deadline) WHERE deadline IS NOT NULL;

CREATE INDEX interlock_objects_owner ON interlock_objects (machine, owner, epoch, deadline, state, id);

-- One row for each change. Rows are never updated. request is that of a client, and most
-- rows have none.
CREATE TABLE interlock_history (
	machine       TEXT NOT NULL,
	id            TEXT NOT NULL,
	sequence      INTEGER NOT NULL,
	revision      INTEGER NOT NULL,
	token         BLOB NOT NULL,
	operation     INTEGER NOT NULL,
	from_state    TEXT NOT NULL,
	from_origin   TEXT NOT NULL,
	to_state      TEXT NOT NULL,
	origin        TEXT NOT NULL,
	event         TEXT NOT NULL,
	actor         TEXT NOT NULL,
	reason        TEXT NOT NULL,
	at            INTEGER NOT NULL,
	table_version TEXT NOT NULL DEFAULT '',
	request       TEXT,
	fingerprint   TEXT,
	PRIMARY KEY (machine, id, sequence)
) WITHOUT ROWID;

CREATE INDEX interlock_history_at ON interlock_history (at);

CREATE UNIQUE INDEX interlock_history_request ON interlock_history (machine, request) WHERE request IS NOT NULL;

CREATE TABLE interlock_messages (
	number  INTEGER PRIMARY KEY AUTOINCREMENT,
	topic   TEXT NOT NULL,
	subject TEXT NOT NULL,
	payload BLOB
);

-- The objects with readable times and payloads. A payload that a Manager has
-- written is JSON. The store does not use the view.
CREATE VIEW interlock_readable AS
	SELECT machine, id, state, origin, target, sequence, operation, owner, epoch, work,
		CAST(args AS TEXT) AS args, datetime(deadline / 1000000, 'unixepoch') AS deadline, datetime(changed_at / 1000000, 'unixepoch') AS changed_at,
		actor, event, reason, CAST(payload AS TEXT) AS payload
	FROM interlock_objects WHERE state <> '';

INSERT INTO interlock_schema (version) VALUES (1);
