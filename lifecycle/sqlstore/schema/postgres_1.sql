-- Interlock, tables of version 1, for PostgreSQL. The database's encoding is UTF8.
-- Times are microseconds since 1970: to_timestamp(changed_at / 1e6) shows them.

-- One row. compatible: the oldest version whose programs can use the tables. floor: see
-- AfterRestore. trimmed_at, trimmed_to and trimmed_keep: see Trim.
CREATE TABLE "interlock_schema" (
	version      bigint NOT NULL PRIMARY KEY,
	compatible   bigint NOT NULL DEFAULT 1,
	floor        bigint NOT NULL DEFAULT 0,
	trimmed_at   bigint NOT NULL DEFAULT 0,
	trimmed_to   bigint NOT NULL DEFAULT 0,
	trimmed_keep bigint NOT NULL DEFAULT 0
);

-- One row for each object. admission is the token of the commit that started the operation,
-- change_token that of the last history row, and table_version the version of the caller's
-- table that wrote the record. A row without a state is an object that was removed,
-- or one that a commit required to be absent: its numbers continue.
CREATE TABLE "interlock_objects" (
	machine       text COLLATE "C" NOT NULL,
	id            text COLLATE "C" NOT NULL,
	state         text COLLATE "C" NOT NULL,
	origin        text COLLATE "C" NOT NULL,
	target        text COLLATE "C" NOT NULL,
	revision      bigint NOT NULL,
	sequence      bigint NOT NULL,
	operation     bigint NOT NULL,
	admission     bytea,
	change_token  bytea,
	table_version text COLLATE "C" NOT NULL DEFAULT '',
	owner         text COLLATE "C" NOT NULL,
	epoch         bigint NOT NULL,
	work          text NOT NULL,
	args          bytea,
	work_options  bytea,
	deadline      bigint,
	changed_at    bigint NOT NULL,
	actor         text NOT NULL,
	event         text NOT NULL,
	reason        text NOT NULL,
	payload       bytea,
	saved         bytea,
	token         bytea NOT NULL,
	PRIMARY KEY (machine, id)
);

CREATE INDEX "interlock_objects_state" ON "interlock_objects" (machine, state, id);

CREATE INDEX "interlock_objects_age" ON "interlock_objects" (machine, state, changed_at);

CREATE INDEX "interlock_objects_deadline" ON "interlock_objects" (machine, deadline) WHERE deadline IS NOT NULL;

CREATE INDEX "interlock_objects_owner" ON "interlock_objects" (machine, owner, epoch, deadline, state, id);

-- Many records are transitional, and many have no owner, but few are both. Without the
-- statistics the planner reads all records of a state.
CREATE STATISTICS "interlock_objects_owners" (mcv) ON state, owner, epoch, deadline FROM "interlock_objects";

-- One row for each change. Rows are never updated. request is that of a client, and most
-- rows have none.
CREATE TABLE "interlock_history" (
	machine       text COLLATE "C" NOT NULL,
	id            text COLLATE "C" NOT NULL,
	sequence      bigint NOT NULL,
	revision      bigint NOT NULL,
	token         bytea NOT NULL,
	operation     bigint NOT NULL,
	from_state    text NOT NULL,
	from_origin   text NOT NULL,
	to_state      text NOT NULL,
	origin        text NOT NULL,
	event         text NOT NULL,
	actor         text NOT NULL,
	reason        text NOT NULL,
	at            bigint NOT NULL,
	table_version text NOT NULL DEFAULT '',
	request       text COLLATE "C",
	fingerprint   text,
	PRIMARY KEY (machine, id, sequence)
);

CREATE INDEX "interlock_history_at" ON "interlock_history" (at);

CREATE UNIQUE INDEX "interlock_history_request" ON "interlock_history" (machine, request) WHERE request IS NOT NULL;

CREATE TABLE "interlock_messages" (
	number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	topic   text NOT NULL,
	subject text NOT NULL,
	payload bytea
);

-- The objects with readable times and payloads. A payload that a Manager has
-- written is JSON. The store does not use the view.
CREATE VIEW "interlock_readable" AS
	SELECT machine, id, state, origin, target, sequence, operation, owner, epoch, work,
		convert_from(args, 'UTF8') AS args, to_timestamp(deadline / 1e6) AS deadline, to_timestamp(changed_at / 1e6) AS changed_at,
		actor, event, reason, convert_from(payload, 'UTF8') AS payload
	FROM "interlock_objects" WHERE state <> '';

INSERT INTO "interlock_schema" (version) VALUES (1);
