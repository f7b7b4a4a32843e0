-- Interlock, tables of version 1, for MariaDB and MySQL. Names are bytes: no
-- collation makes two of them equal, and no trailing blank is lost.
-- A run that ended half-way can be repeated: the version is written last. The user needs
-- the privilege CREATE VIEW.
-- Times are microseconds since 1970: FROM_UNIXTIME(changed_at / 1e6) shows them.

-- One row. compatible: the oldest version whose programs can use the tables. floor: see
-- AfterRestore. trimmed_at, trimmed_to and trimmed_keep: see Trim.
CREATE TABLE IF NOT EXISTS interlock_schema (
	version      bigint NOT NULL PRIMARY KEY,
	compatible   bigint NOT NULL DEFAULT 1,
	`floor`      bigint NOT NULL DEFAULT 0,
	trimmed_at   bigint NOT NULL DEFAULT 0,
	trimmed_to   bigint NOT NULL DEFAULT 0,
	trimmed_keep bigint NOT NULL DEFAULT 0
) ENGINE=InnoDB;

-- One row for each object. admission is the token of the commit that started the operation,
-- change_token that of the last history row, and table_version the version of the caller's
-- table that wrote the record. A row without a state is an object that was removed,
-- or one that a commit required to be absent: its numbers continue.
CREATE TABLE IF NOT EXISTS interlock_objects (
	machine       varbinary(255) NOT NULL,
	id            varbinary(255) NOT NULL,
	state         varbinary(255) NOT NULL,
	origin        varbinary(255) NOT NULL,
	target        varbinary(255) NOT NULL,
	revision      bigint NOT NULL,
	sequence      bigint NOT NULL,
	operation     bigint NOT NULL,
	admission     binary(16),
	change_token  binary(16),
	table_version varbinary(255) NOT NULL DEFAULT '',
	owner         varbinary(255) NOT NULL,
	epoch         bigint NOT NULL,
	work          varbinary(1023) NOT NULL,
	args          longblob,
	work_options  longblob,
	deadline      bigint,
	changed_at    bigint NOT NULL,
	actor         varbinary(1023) NOT NULL,
	event         varbinary(1023) NOT NULL,
	reason        mediumblob NOT NULL,
	payload       longblob,
	saved         longblob,
	token         binary(16) NOT NULL,
	PRIMARY KEY (machine, id),
	KEY interlock_objects_state (machine, state, id),
	KEY interlock_objects_age (machine, state, changed_at),
	KEY interlock_objects_deadline (machine, deadline),
	KEY interlock_objects_owner (machine, owner, epoch, deadline, state, id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- One row for each change. Rows are never updated. request is that of a client, and most
-- rows have none.
CREATE TABLE IF NOT EXISTS interlock_history (
	machine       varbinary(255) NOT NULL,
	id            varbinary(255) NOT NULL,
	sequence      bigint NOT NULL,
	revision      bigint NOT NULL,
	token         binary(16) NOT NULL,
	operation     bigint NOT NULL,
	from_state    varbinary(255) NOT NULL,
	from_origin   varbinary(255) NOT NULL,
	to_state      varbinary(255) NOT NULL,
	origin        varbinary(255) NOT NULL,
	event         varbinary(1023) NOT NULL,
	actor         varbinary(1023) NOT NULL,
	reason        mediumblob NOT NULL,
	at            bigint NOT NULL,
	table_version varbinary(255) NOT NULL DEFAULT '',
	request       varbinary(255),
	fingerprint   varbinary(255),
	PRIMARY KEY (machine, id, sequence),
	KEY interlock_history_at (at),
	UNIQUE KEY interlock_history_request (machine, request)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS interlock_messages (
	number  bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
	topic   mediumblob NOT NULL,
	subject mediumblob NOT NULL,
	payload longblob
) ENGINE=InnoDB;

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

INSERT INTO interlock_schema (version) VALUES (1);
