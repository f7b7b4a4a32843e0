-- The tables and functions of package pgqueue. Migrate runs this text, also if they exist. The
-- database's encoding is UTF8.

-- Migrations at the same time wait for each other.
SELECT pg_advisory_xact_lock(6001973321);

-- One row. Claims under class limits lock it, and count themselves.
CREATE TABLE IF NOT EXISTS interlock_queue_claims (id integer PRIMARY KEY, n bigint NOT NULL);
INSERT INTO interlock_queue_claims (id, n) VALUES (1, 0) ON CONFLICT DO NOTHING;

-- One row for each key that has actions in its lane. n is the number of its places, and
-- never 0. The lock of the row gives the places their order.
CREATE TABLE IF NOT EXISTS interlock_queue_lanes (
	key text COLLATE "C" PRIMARY KEY,
	n   bigint NOT NULL
) WITH (fillfactor = 50);

-- One row for each action that has not ended.
--   keys     sorted
--   seq      its place in all its lanes; NULL: it is delayed and has none
--   ahead    the number of its lanes in which it is not the first action
--   at       the time from which it may be claimed: the end of its delay or its pause, or,
--            while it runs, of its lease
--   token    the fencing token of its lease; 0: it does not run
--   attempt  the number of attempts begun
-- It may be claimed if ahead = 0 AND at is not in the future.
CREATE TABLE IF NOT EXISTS interlock_queue_actions (
	id        bigint PRIMARY KEY,
	keys      text[] NOT NULL,
	name      text NOT NULL,
	args      bytea NOT NULL,
	class     text COLLATE "C" NOT NULL,
	timeout   bigint NOT NULL, -- times are in nanoseconds
	attempts  bigint NOT NULL,
	delay     bigint NOT NULL,
	max_delay bigint NOT NULL,
	enqueued  timestamptz NOT NULL,
	seq       bigint,
	ahead     bigint NOT NULL,
	at        timestamptz NOT NULL,
	token     bigint NOT NULL DEFAULT 0,
	owner     text NOT NULL DEFAULT '',
	started   timestamptz,
	attempt   bigint NOT NULL DEFAULT 0,
	error     text NOT NULL DEFAULT ''
) WITH (fillfactor = 70);

-- CREATE INDEX IF NOT EXISTS waits for all transactions that have written the table, and
-- meanwhile all later ones wait, also if the index exists. The bad schedule: a process starts and
-- migrates, a producer is slow, and no worker can renew a lease.
DO $$
BEGIN
	IF (SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema()
		AND indexname IN ('interlock_queue_actions_at', 'interlock_queue_actions_delayed')) < 2 THEN
		CREATE INDEX IF NOT EXISTS interlock_queue_actions_at ON interlock_queue_actions (at) WHERE ahead = 0;
		CREATE INDEX IF NOT EXISTS interlock_queue_actions_delayed ON interlock_queue_actions (at) WHERE seq IS NULL;
	END IF;
END $$;

-- For operators: the actions and their states. Those of a key run in the order of seq. The
-- comment has the version of the view: CREATE OR REPLACE VIEW waits for all transactions that
-- have read it, and all later readers wait behind.
DO $$
BEGIN
	IF obj_description(to_regclass(quote_ident(current_schema()) || '.interlock_queue'), 'pg_class') IS DISTINCT FROM 'version 1' THEN
		CREATE OR REPLACE VIEW interlock_queue AS
		SELECT
			CASE
				WHEN token <> 0 AND at <= statement_timestamp() THEN 'expired'
				WHEN token <> 0 THEN 'running'
				WHEN seq IS NULL THEN 'delayed'
				WHEN at > statement_timestamp() THEN 'retrying'
				ELSE 'waiting'
			END AS state, *
		FROM interlock_queue_actions;
		COMMENT ON VIEW interlock_queue IS 'version 1';
	END IF;
END $$;

CREATE TABLE IF NOT EXISTS interlock_queue_places (
	key    text COLLATE "C" NOT NULL,
	seq    bigint NOT NULL,
	action bigint NOT NULL,
	PRIMARY KEY (key, seq)
);

-- Of the ids of actions and of the places.
CREATE SEQUENCE IF NOT EXISTS interlock_queue_order;

CREATE SEQUENCE IF NOT EXISTS interlock_queue_tokens;

-- Puts an action at the ends of its lanes, and returns its place and the number of lanes in
-- which it is not the first.
--
-- The place is drawn when all lanes are locked, and they stay locked until the end of the
-- transaction. The bad schedule without the lock: A draws 1, B draws 2 and commits, B runs,
-- A commits. Whether the action is the first follows from n of the locked rows, and not from
-- a look at the places: a transaction above READ COMMITTED would see old ones.
--
-- The keys are sorted: all transactions lock the lanes of an action in their order, so two of
-- them never wait for each other.
CREATE OR REPLACE FUNCTION interlock_queue_enter(its text[], OUT place bigint, OUT blocked bigint) LANGUAGE plpgsql AS $$
DECLARE
	k text;
	places bigint;
BEGIN
	blocked := 0;
	FOREACH k IN ARRAY its LOOP
		INSERT INTO interlock_queue_lanes AS lane (key, n) VALUES (k, 1)
		ON CONFLICT (key) DO UPDATE SET n = lane.n + 1 RETURNING n INTO places;
		IF places > 1 THEN
			blocked := blocked + 1;
		END IF;
	END LOOP;
	place := nextval('interlock_queue_order');
END $$;

-- The functions below that search a table have enable_seqscan off. PL/pgSQL keeps the plan of
-- a statement. One that was made while the table was small must not read all of it later.

-- Adds an action. wait is in microseconds. Workers are notified when the transaction has
-- committed, if the action may be claimed at once.
CREATE OR REPLACE FUNCTION interlock_queue_enqueue(its text[], called text, with_args bytea, of_class text,
	limited bigint, tries bigint, pause bigint, longest bigint, wait bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	this bigint;
	blocked bigint := cardinality(its);
	k text;
BEGIN
	IF wait > 0 THEN
		this := nextval('interlock_queue_order');
	ELSE
		SELECT e.place, e.blocked INTO this, blocked FROM interlock_queue_enter(its) AS e;
		FOREACH k IN ARRAY its LOOP
			INSERT INTO interlock_queue_places (key, seq, action) VALUES (k, this, this);
		END LOOP;
	END IF;
	INSERT INTO interlock_queue_actions (id, keys, name, args, class, timeout, attempts, delay, max_delay, enqueued, seq, ahead, at)
	VALUES (this, its, called, with_args, of_class, limited, tries, pause, longest, clock_timestamp(),
		CASE WHEN wait = 0 THEN this END, blocked, clock_timestamp() + wait * interval '1 microsecond');
	IF blocked = 0 THEN
		PERFORM pg_notify('interlock_queue', '');
	END IF;
	RETURN this;
END $$;

-- Lets one action whose delay is over enter its lanes. It returns false if there is none.
-- One transaction enters one action: two would lock the lanes of the second after those of
-- the first, in any order. If a slow producer holds a lane, the action goes behind the other
-- ones whose delays are over. It is tried again at once, and producers that are never without one
-- another do not keep it out: the end of a transaction wakes all that wait for the lane, in any
-- order.
CREATE OR REPLACE FUNCTION interlock_queue_enter_due() RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET lock_timeout = '100ms' AS $$
DECLARE
	due record;
	entered record;
BEGIN
	SELECT id, keys INTO due FROM interlock_queue_actions
	WHERE seq IS NULL AND at <= statement_timestamp() ORDER BY at LIMIT 1 FOR UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	BEGIN
		SELECT place, blocked INTO entered FROM interlock_queue_enter(due.keys);
	EXCEPTION WHEN lock_not_available THEN
		UPDATE interlock_queue_actions SET at = clock_timestamp() WHERE id = due.id;
		RETURN true;
	END;
	INSERT INTO interlock_queue_places (key, seq, action) SELECT k, entered.place, due.id FROM unnest(due.keys) AS k;
	UPDATE interlock_queue_actions SET seq = entered.place, ahead = entered.blocked, at = clock_timestamp() WHERE id = due.id;
	IF entered.blocked = 0 THEN
		PERFORM pg_notify('interlock_queue', '');
	END IF;
	RETURN true;
END $$;

-- Removes those actions that have their tokens, lets the next ones of their lanes advance, and
-- returns the tokens. The caller has locked all lanes, and has set what the functions below
-- set. A lane has at most one of the actions.
--
-- The rows of the actions decide: a claim of an expired lease, or a worker that was fenced off,
-- finds another token or no row. Two transactions may let the same action advance in two of
-- its lanes: both lock such actions in the order of their ids.
CREATE OR REPLACE FUNCTION interlock_queue_remove(ids bigint[], tokens bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY WITH gone AS (
		DELETE FROM interlock_queue_actions AS a USING unnest(ids, tokens) AS e (id, token)
		WHERE a.id = e.id AND a.token = e.token RETURNING a.token, a.keys, a.seq
	), place AS (
		DELETE FROM interlock_queue_places AS p USING gone, unnest(gone.keys) AS k
		WHERE p.key = k AND p.seq = gone.seq RETURNING p.key, p.seq
	), emptied AS (
		DELETE FROM interlock_queue_lanes AS l USING place WHERE l.key = place.key AND l.n = 1
	), shortened AS (
		UPDATE interlock_queue_lanes AS l SET n = l.n - 1 FROM place WHERE l.key = place.key AND l.n > 1
	), head AS ( -- of the lanes whose first action is removed
		SELECT next.action AS id, count(*) AS lanes FROM place
		CROSS JOIN LATERAL (
			SELECT seq FROM interlock_queue_places WHERE key = place.key ORDER BY seq LIMIT 1) AS first
		CROSS JOIN LATERAL (
			SELECT action FROM interlock_queue_places WHERE key = place.key AND seq > place.seq ORDER BY seq LIMIT 1) AS next
		WHERE first.seq = place.seq GROUP BY next.action
	), locked AS (
		SELECT a.id FROM interlock_queue_actions AS a WHERE a.id IN (SELECT id FROM head) ORDER BY a.id FOR UPDATE
	), advanced AS (
		UPDATE interlock_queue_actions AS a SET ahead = a.ahead - head.lanes, at = clock_timestamp()
		FROM locked JOIN head USING (id) WHERE a.id = locked.id
	)
	SELECT token FROM gone;
END $$;

-- Removes an action and lets the next ones of its lanes advance. It returns false, and
-- changes nothing, if the action does not have the token.
--
-- First the lanes are locked, so that no enqueue is under way which has counted this action,
-- and whose own place is not yet visible. Only statements after the lock look at the places
-- and at the token. In this order, because a slow producer may hold a lane: while this waits,
-- the lease can be renewed.
CREATE OR REPLACE FUNCTION interlock_queue_leave(this bigint, its_token bigint) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	its record;
	k text;
BEGIN
	LOOP
		SELECT keys, seq INTO its FROM interlock_queue_actions WHERE id = this AND token = its_token;
		IF NOT FOUND THEN
			RETURN false;
		END IF;
		EXIT WHEN its.seq IS NOT NULL;
		DELETE FROM interlock_queue_actions WHERE id = this AND seq IS NULL;
		IF FOUND THEN
			RETURN true;
		END IF; -- otherwise its delay is over, and it has entered meanwhile
	END LOOP;
	FOREACH k IN ARRAY its.keys LOOP
		PERFORM FROM interlock_queue_lanes WHERE key = k FOR UPDATE;
	END LOOP;
	PERFORM FROM interlock_queue_remove(ARRAY[this], ARRAY[its_token]);
	RETURN FOUND;
END $$;

-- Does that for several running actions, and returns the tokens of those that it has removed.
-- It waits for no lane: an action with a lane that a producer holds is left alone. If a slow
-- transaction that has removed an action holds one that is to advance, all are left alone.
CREATE OR REPLACE FUNCTION interlock_queue_leave_all(ids bigint[], tokens bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '100ms' AS $$
DECLARE
	locked text[];
BEGIN
	locked := ARRAY(SELECT key FROM interlock_queue_lanes
		WHERE key IN (SELECT unnest(keys) FROM interlock_queue_actions WHERE id = ANY (ids)) FOR UPDATE SKIP LOCKED);
	RETURN QUERY SELECT interlock_queue_remove(array_agg(e.id), array_agg(e.token))
		FROM unnest(ids, tokens) AS e (id, token) JOIN interlock_queue_actions AS a USING (id) WHERE a.keys <@ locked;
EXCEPTION WHEN lock_not_available THEN
	RETURN;
END $$;

-- Ends an attempt, and the action keeps its places. After the pause, in microseconds, it can be
-- claimed again. Other workers are notified because this one may stop before. It returns
-- false, and changes nothing, if the action does not have the token.
CREATE OR REPLACE FUNCTION interlock_queue_put_back(this bigint, its_token bigint, reason text, uncounted bigint, pause bigint)
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
	UPDATE interlock_queue_actions SET token = 0, owner = '', error = left(reason, 1000), attempt = attempt - uncounted,
		at = statement_timestamp() + pause * interval '1 microsecond'
	WHERE id = this AND token = its_token;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM pg_notify('interlock_queue', '');
	RETURN true;
END $$;

-- Returns the classes that are full, and how many more actions may start in the others,
-- whatever classes they have: that is the least room of a limit. All limits hold if no more
-- start. NULL: no limit applies. An action whose lease is over is not counted: a class that is
-- full of such actions could otherwise never claim them again.
CREATE OR REPLACE FUNCTION interlock_queue_room(paths text[], limits bigint[], OUT full_classes text[], OUT room bigint)
LANGUAGE sql AS $$
	WITH entry AS (
		SELECT path, most FROM unnest(paths, limits) AS e (path, most)
	), total AS ( -- running actions of each class, with those of the classes below
		SELECT array_to_string(parts[1:depth], '/') AS path, count(*) AS n
		FROM interlock_queue_actions
		CROSS JOIN string_to_array(class, '/') AS parts
		CROSS JOIN generate_series(0, cardinality(parts)) AS depth
		WHERE ahead = 0 AND token <> 0 AND at > statement_timestamp()
		GROUP BY 1
	), used AS ( -- a class without an entry has that of "*" beside it
		SELECT total.path, n, coalesce(own.most, pattern.most) AS most
		FROM total
		LEFT JOIN entry AS own ON own.path = total.path
		LEFT JOIN entry AS pattern ON total.path <> '' AND pattern.path = regexp_replace(total.path, '[^/]*$', '*')
	)
	SELECT coalesce(array_agg(path) FILTER (WHERE n >= most), '{}'), least(
		min(most - n) FILTER (WHERE n < most),
		(SELECT min(most) FROM entry WHERE NOT EXISTS (SELECT FROM total WHERE total.path = entry.path))) -- idle classes
	FROM used
$$;

-- Starts up to most actions that have been claimable for the longest time: ready ones, and
-- running ones whose lease is over. The limits are those of the classes with the paths.
--
-- The row of the action decides. SKIP LOCKED checks the row's latest version after it has the
-- lock, so two workers never start one action. The subquery is in an array because it must
-- run once.
--
-- Claims with limits wait for each other. A statement after the lock sees every start that
-- another worker has committed. The bad schedule without the lock: two workers count one
-- running action each, and both start the last one that the limit allows. The lock is an
-- update, so that above READ COMMITTED the second claim fails, and does not count old rows.
--
-- A token that is drawn later is higher, and the next token of a key is drawn after the claim
-- before it was committed. So the tokens of a key grow.
--
-- A claim commits synchronously, whatever the default: a server that lost it could give the
-- token to another run.
--
-- The rows are sent before the commit, and may be more than the connection can hold. The bad
-- schedule: a worker is stopped or cut off, the server waits for it, and the claims of all other
-- workers with limits wait for the lock. tcp_user_timeout, in milliseconds, ends the connection
-- if the worker takes nothing for the time of a lease. A server that is not on Linux does not
-- have it, and writes that to its log.
--
-- The settings: the claim reads the index in its order, also if the table was small when the
-- plan was made. Such a plan looks expensive enough to be compiled each time.
CREATE OR REPLACE FUNCTION interlock_queue_claim(worker text, lease bigint, paths text[], limits bigint[], most bigint)
RETURNS SETOF interlock_queue_actions LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
	full_classes text[] := '{}';
	room bigint;
	started_now bigint;
BEGIN
	IF current_setting('synchronous_commit') = 'off' THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
	IF cardinality(paths) > 0 THEN
		UPDATE interlock_queue_claims SET n = n + 1;
	END IF;
	LOOP
		IF cardinality(paths) > 0 THEN
			SELECT r.full_classes, r.room INTO full_classes, room FROM interlock_queue_room(paths, limits) AS r;
		END IF;
		room := least(room, most);
		RETURN QUERY UPDATE interlock_queue_actions AS action SET
			token = nextval('interlock_queue_tokens'), owner = worker, attempt = action.attempt + 1,
			started = statement_timestamp(), at = statement_timestamp() + lease * interval '1 microsecond'
		WHERE id = ANY (ARRAY(
			SELECT a.id FROM interlock_queue_actions AS a
			WHERE a.ahead = 0 AND a.at <= statement_timestamp() AND NOT EXISTS (
				SELECT FROM unnest(full_classes) AS c WHERE c IN ('', a.class) OR starts_with(a.class, c || '/'))
			ORDER BY a.at LIMIT room FOR UPDATE SKIP LOCKED))
		RETURNING action.*;
		GET DIAGNOSTICS started_now = ROW_COUNT;
		IF started_now > 0 THEN
			PERFORM set_config('tcp_user_timeout', least(lease / 1000, 2147483647)::text, true);
		END IF;
		most := most - started_now;
		EXIT WHEN most = 0 OR started_now < room;
	END LOOP;
END $$;
