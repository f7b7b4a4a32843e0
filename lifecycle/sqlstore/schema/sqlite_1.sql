-- Interlock, tables of version 1, for SQLite.
-- Times are microseconds since 1970: datetime(changed_at / 1000000, 'unixepoch')
-- shows them.

CREATE TABLE interlock_schema (
	version INTEGER NOT NULL
);

-- One row for each object. A row without a state is an object that was removed:
-- its numbers continue.
CREATE TABLE interlock_objects (
	machine      TEXT NOT NULL,
	id           TEXT NOT NULL,
	state        TEXT NOT NULL,
	origin       TEXT NOT NULL,
	target       TEXT NOT NULL,
	revision     INTEGER NOT NULL,
	sequence     INTEGER NOT NULL,
	operation    INTEGER NOT NULL,
	owner        TEXT NOT NULL,
	epoch        INTEGER NOT NULL,
	work         TEXT NOT NULL,
	args         BLOB,
	work_options BLOB,
	deadline     INTEGER,
	changed_at   INTEGER NOT NULL,
	actor        TEXT NOT NULL,
	event        TEXT NOT NULL,
	reason       TEXT NOT NULL,
	payload      BLOB,
	saved        BLOB,
	token        BLOB NOT NULL,
	PRIMARY KEY (machine, id)
);

CREATE INDEX interlock_objects_state ON interlock_objects (machine, state, id);

CREATE INDEX interlock_objects_age ON interlock_objects (machine, state, changed_at);

CREATE INDEX interlock_objects_deadline ON interlock_objects (machine, deadline) WHERE deadline IS NOT NULL;

CREATE INDEX interlock_objects_owner ON interlock_objects (machine, owner, epoch, deadline, state, id);

-- One row for each change. Rows are never updated.
CREATE TABLE interlock_history (
	machine     TEXT NOT NULL,
	id          TEXT NOT NULL,
	sequence    INTEGER NOT NULL,
	revision    INTEGER NOT NULL,
	token       BLOB NOT NULL,
	operation   INTEGER NOT NULL,
	from_state  TEXT NOT NULL,
	from_origin TEXT NOT NULL,
	to_state    TEXT NOT NULL,
	origin      TEXT NOT NULL,
	event       TEXT NOT NULL,
	actor       TEXT NOT NULL,
	reason      TEXT NOT NULL,
	at          INTEGER NOT NULL,
	PRIMARY KEY (machine, id, sequence)
) WITHOUT ROWID;

CREATE TABLE interlock_messages (
	number  INTEGER PRIMARY KEY AUTOINCREMENT,
	topic   TEXT NOT NULL,
	subject TEXT NOT NULL,
	payload BLOB
);

INSERT INTO interlock_schema (version) VALUES (1);
