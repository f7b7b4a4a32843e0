-- The service's own table, for SQLite and PostgreSQL.
CREATE TABLE IF NOT EXISTS vms (
	name TEXT NOT NULL PRIMARY KEY,
	image TEXT,
	cpus BIGINT,
	memory BIGINT, -- in MB, since version 2 of the VMs
	address TEXT,
	state TEXT NOT NULL,
	version TEXT, -- of the VM, see versions.go
	changed_at BIGINT, -- microseconds since 1970
	event TEXT,
	actor TEXT,
	reason TEXT,
	-- The library compares and sets these.
	revision BIGINT NOT NULL,
	token BYTEA,
	sequence BIGINT NOT NULL,
	change_token BYTEA,
	-- Operations: the origin, the work and its owner, and when the sweeper acts.
	origin TEXT,
	operation BIGINT,
	admission BYTEA,
	owner TEXT,
	epoch BIGINT,
	work TEXT,
	args BYTEA,
	work_options BYTEA,
	deadline BIGINT
);
