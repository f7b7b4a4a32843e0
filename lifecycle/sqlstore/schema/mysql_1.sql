-- Interlock, tables of version 1, for MariaDB and MySQL. Names are bytes: no
-- collation makes two of them equal, and no trailing blank is lost.
-- A run that ended half-way can be repeated: the version is written last.
-- Times are microseconds since 1970: FROM_UNIXTIME(changed_at / 1e6) shows them.

CREATE TABLE IF NOT EXISTS interlock_schema (
	version bigint NOT NULL
) ENGINE=InnoDB;

-- One row for each object. A row without a state is an object that was removed,
-- or one that a commit required to be absent: its numbers continue.
CREATE TABLE IF NOT EXISTS interlock_objects (
	machine      varbinary(255) NOT NULL,
	id           varbinary(255) NOT NULL,
	state        varbinary(255) NOT NULL,
	origin       varbinary(255) NOT NULL,
	target       varbinary(255) NOT NULL,
	revision     bigint NOT NULL,
	sequence     bigint NOT NULL,
	operation    bigint NOT NULL,
	owner        varbinary(255) NOT NULL,
	epoch        bigint NOT NULL,
	work         varbinary(1023) NOT NULL,
	args         longblob,
	work_options longblob,
	deadline     bigint,
	changed_at   bigint NOT NULL,
	actor        varbinary(1023) NOT NULL,
	event        varbinary(1023) NOT NULL,
	reason       mediumblob NOT NULL,
	payload      longblob,
	saved        longblob,
	token        binary(16) NOT NULL,
	PRIMARY KEY (machine, id),
	KEY interlock_objects_state (machine, state, id),
	KEY interlock_objects_age (machine, state, changed_at),
	KEY interlock_objects_deadline (machine, deadline),
	KEY interlock_objects_owner (machine, owner, epoch, deadline, state, id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- One row for each change. Rows are never updated.
CREATE TABLE IF NOT EXISTS interlock_history (
	machine     varbinary(255) NOT NULL,
	id          varbinary(255) NOT NULL,
	sequence    bigint NOT NULL,
	revision    bigint NOT NULL,
	token       binary(16) NOT NULL,
	operation   bigint NOT NULL,
	from_state  varbinary(255) NOT NULL,
	from_origin varbinary(255) NOT NULL,
	to_state    varbinary(255) NOT NULL,
	origin      varbinary(255) NOT NULL,
	event       varbinary(1023) NOT NULL,
	actor       varbinary(1023) NOT NULL,
	reason      mediumblob NOT NULL,
	at          bigint NOT NULL,
	PRIMARY KEY (machine, id, sequence)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS interlock_messages (
	number  bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
	topic   mediumblob NOT NULL,
	subject mediumblob NOT NULL,
	payload longblob
) ENGINE=InnoDB;

INSERT INTO interlock_schema (version) VALUES (1);
