-- Interlock, tables of version 1, for PostgreSQL. The database's encoding is UTF8.
-- Times are microseconds since 1970: to_timestamp(changed_at / 1e6) shows them.

CREATE TABLE "interlock_schema" (
	version bigint NOT NULL
);

-- One row for each object. A row without a state is an object that was removed,
-- or one that a commit required to be absent: its numbers continue.
CREATE TABLE "interlock_objects" (
	machine      text COLLATE "C" NOT NULL,
	id           text COLLATE "C" NOT NULL,
	state        text COLLATE "C" NOT NULL,
	origin       text COLLATE "C" NOT NULL,
	target       text COLLATE "C" NOT NULL,
	revision     bigint NOT NULL,
	sequence     bigint NOT NULL,
	operation    bigint NOT NULL,
	owner        text COLLATE "C" NOT NULL,
	epoch        bigint NOT NULL,
	work         text NOT NULL,
	args         bytea,
	work_options bytea,
	deadline     bigint,
	changed_at   bigint NOT NULL,
	actor        text NOT NULL,
	event        text NOT NULL,
	reason       text NOT NULL,
	payload      bytea,
	saved        bytea,
	token        bytea NOT NULL,
	PRIMARY KEY (machine, id)
);

CREATE INDEX "interlock_objects_state" ON "interlock_objects" (machine, state, id);

CREATE INDEX "interlock_objects_age" ON "interlock_objects" (machine, state, changed_at);

CREATE INDEX "interlock_objects_deadline" ON "interlock_objects" (machine, deadline) WHERE deadline IS NOT NULL;

CREATE INDEX "interlock_objects_owner" ON "interlock_objects" (machine, owner, epoch, deadline, state, id);

-- Many records are transitional, and many have no owner, but few are both. Without the
-- statistics the planner reads all records of a state.
CREATE STATISTICS "interlock_objects_owners" (mcv) ON state, owner, epoch, deadline FROM "interlock_objects";

-- One row for each change. Rows are never updated.
CREATE TABLE "interlock_history" (
	machine     text COLLATE "C" NOT NULL,
	id          text COLLATE "C" NOT NULL,
	sequence    bigint NOT NULL,
	revision    bigint NOT NULL,
	token       bytea NOT NULL,
	operation   bigint NOT NULL,
	from_state  text NOT NULL,
	from_origin text NOT NULL,
	to_state    text NOT NULL,
	origin      text NOT NULL,
	event       text NOT NULL,
	actor       text NOT NULL,
	reason      text NOT NULL,
	at          bigint NOT NULL,
	PRIMARY KEY (machine, id, sequence)
);

CREATE TABLE "interlock_messages" (
	number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	topic   text NOT NULL,
	subject text NOT NULL,
	payload bytea
);

INSERT INTO "interlock_schema" (version) VALUES (1);
