-- The tables and functions of package sqllock. Migrate runs this text.
--
-- Parameters of the functions, which a function that is replaced cannot rename:
--	t tree; s session; g generation; a attempt; n number of an acquisition; k token;
--	i id; o owner; y reason; l, h and m are lows, highs and masks, see interlock_lock_conflicts

-- Migrations at the same time wait for each other.
SELECT pg_advisory_xact_lock(hashtextextended('interlock_lock', 0));

-- Numbers of arrivals, tokens and sessions. A value is drawn once for ever, also by a
-- transaction that is rolled back.
CREATE SEQUENCE IF NOT EXISTS interlock_lock_numbers;

CREATE TABLE IF NOT EXISTS interlock_lock_sessions (
	tree       text COLLATE "C" NOT NULL,
	id         bigint NOT NULL,
	ttl        interval NOT NULL,
	expires    timestamptz NOT NULL,         -- -infinity: it has ended
	generation bigint NOT NULL DEFAULT 0,    -- attempts of a lower generation come too late
	PRIMARY KEY (tree, id)
);

-- A row is a request. The rows of one acquisition have the same number.
CREATE TABLE IF NOT EXISTS interlock_lock_requests (
	tree    text COLLATE "C" NOT NULL,
	path    text COLLATE "C" NOT NULL,       -- the root is empty
	number  bigint NOT NULL,                 -- the order of arrival
	mode    smallint NOT NULL,               -- 1 to 5: IS, IX, S, SIX, X
	token   bigint,                          -- NULL: the request waits
	blocker bigint,                          -- NULL, or the number of an acquisition that it waits for
	session bigint NOT NULL,
	attempt bigint NOT NULL,                 -- the number of the acquisition in its session
	id      text COLLATE "C" NOT NULL,
	owner   text NOT NULL,
	reason  text NOT NULL,
	since   timestamptz NOT NULL,
	mark    smallint NOT NULL DEFAULT 0,     -- 1: revoked, 2: broken
	why     text NOT NULL DEFAULT '',
	lows    text[],                          -- what a waiting acquisition conflicts with, see
	highs   text[],                          -- interlock_lock_conflicts; in one of its rows
	masks   integer[],
	PRIMARY KEY (tree, path, number)
);
CREATE INDEX IF NOT EXISTS interlock_lock_waiting ON interlock_lock_requests (tree, blocker) WHERE token IS NULL;
CREATE INDEX IF NOT EXISTS interlock_lock_ids ON interlock_lock_requests (tree, id) WHERE id <> '';
CREATE INDEX IF NOT EXISTS interlock_lock_marked ON interlock_lock_requests (tree, session) WHERE mark > 0;

-- durable makes the commit of the transaction wait until the server cannot lose it.
CREATE OR REPLACE FUNCTION interlock_lock_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('synchronous_commit') = 'off' THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

-- latch makes the transaction the only one that decides about a tree, until it ends. The next
-- statement has a new snapshot, with all that was decided before. Other isolation levels keep
-- their first snapshot, which may be older than the latch.
CREATE OR REPLACE FUNCTION interlock_lock_latch(t text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE 'sqllock requires transactions that are READ COMMITTED';
	END IF;
	IF current_setting('synchronous_commit') = 'off' THEN -- durable, without the cost of a call
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
	PERFORM pg_advisory_xact_lock(hashtextextended('interlock_lock_' || t, 0));
END $$;

-- conflicts returns the requests from lows[i] to before highs[i] whose mode has its bit in
-- masks[i], and those with the id. A row can appear more than once.
CREATE OR REPLACE FUNCTION interlock_lock_conflicts(t text, l text[], h text[], m integer[], i text)
RETURNS SETOF interlock_lock_requests LANGUAGE sql STABLE AS $$
	SELECT r.* FROM unnest(l, h, m) AS q (low, high, mask), LATERAL (
		SELECT f.* FROM interlock_lock_requests f
		WHERE f.tree = t AND f.path >= q.low AND f.path < q.high AND (q.mask >> f.mode) & 1 = 1 OFFSET 0) r
	UNION ALL
	SELECT r.* FROM interlock_lock_requests r WHERE i <> '' AND r.tree = t AND r.id = i AND r.id <> ''
$$;

-- impatient ends the connection if the process takes nothing of a large result for a second. The
-- result is sent before the commit. Bad schedule without it: the process is stopped or cut off,
-- the server waits for it, and all others wait for the latch. A renewal would keep the row of its
-- session: no later renewal changes it, and no sweep. A server that is not on Linux does not have
-- this timeout, and writes that to its log.
CREATE OR REPLACE FUNCTION interlock_lock_impatient() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('tcp_user_timeout', '1000', true);
END $$;

-- report lists conflicts that arrived before a number, without an acquisition, as JSON. The
-- place sorts as a walk of the tree does: a slash comes before all other bytes.
CREATE OR REPLACE FUNCTION interlock_lock_report(t text, l text[], h text[], m integer[], i text, before bigint, own bigint, most integer)
RETURNS json LANGUAGE sql STABLE AS $$
	SELECT json_agg(f) FROM (
		SELECT DISTINCT c.number, translate(c.path, '/', chr(1)) AS place, CASE c.path WHEN '' THEN '/' ELSE c.path END AS path, (ARRAY['IS', 'IX', 'S', 'SIX', 'X'])[c.mode] AS mode,
			c.id, c.owner, c.reason, coalesce(c.token, 0) AS token, c.since, c.token IS NULL AS waiting
		FROM interlock_lock_conflicts(t, l, h, m, i) c WHERE c.number < before AND c.number <> own
		ORDER BY number, place LIMIT most) f
$$;

-- settle looks again at the acquisitions that wait for those that have gone or have become
-- weaker. It grants those that no earlier one conflicts with, and notifies their sessions.
-- The others wait for the latest conflict, which is likely the last one to go. The latch is held.
CREATE OR REPLACE FUNCTION interlock_lock_settle(t text, gone bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	w record;
	drawn bigint;
BEGIN
	FOR w IN
		SELECT q.number, q.session, (
			SELECT max(c.number) FROM interlock_lock_conflicts(t, q.lows, q.highs, q.masks, q.id) c
			WHERE c.number < q.number) AS blocker
		FROM interlock_lock_requests q
		WHERE q.tree = t AND q.blocker = ANY (gone) AND q.token IS NULL AND q.lows IS NOT NULL
		ORDER BY q.number
	LOOP
		drawn := NULL;
		IF w.blocker IS NULL THEN
			drawn := nextval('interlock_lock_numbers');
			PERFORM pg_notify('interlock_lock_' || w.session, '');
		END IF;
		UPDATE interlock_lock_requests r
		SET blocker = w.blocker, token = drawn, since = CASE WHEN drawn IS NULL THEN r.since ELSE clock_timestamp() END
		WHERE r.tree = t AND r.blocker = ANY (gone) AND r.token IS NULL AND r.number = w.number;
	END LOOP;
END $$;

-- sweep ends the sessions that have expired, and one more, for ever, and removes what no other
-- session holds and waits for. It returns whether it ended or removed something: what the caller has
-- read before may be over. A row that a transaction has locked, see GuardStatement, stays for
-- a later sweep, and so does its session: waiting for it here would stop the tree.
-- All sessions are notified, and sweep every second then, see tick. Bad schedule otherwise: a
-- guarded grant is closed, its transaction ends, and what waits for the grant waits for the
-- next renewal of a session.
CREATE OR REPLACE FUNCTION interlock_lock_sweep(t text, s bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	ended boolean;
	gone bigint[];
BEGIN
	IF NOT EXISTS (SELECT FROM interlock_lock_sessions e WHERE e.tree = t AND (e.expires < clock_timestamp() OR e.id = s)) THEN
		RETURN false;
	END IF;
	-- Bad schedule without it: Close leaves a renewal behind, SKIP LOCKED below skips the row that
	-- the renewal has locked, and the session lives for another TTL.
	PERFORM FROM interlock_lock_sessions e WHERE e.tree = t AND e.id = s FOR UPDATE;
	PERFORM interlock_lock_latch(t);
	UPDATE interlock_lock_sessions e SET expires = '-infinity' WHERE e.tree = t AND e.id IN (
		SELECT f.id FROM interlock_lock_sessions f
		WHERE f.tree = t AND (f.expires < clock_timestamp() OR f.id = s) AND f.expires > '-infinity' FOR UPDATE SKIP LOCKED);
	ended := FOUND;
	PERFORM pg_notify('interlock_lock_' || e.id, '') FROM interlock_lock_sessions e WHERE e.tree = t AND e.expires = '-infinity';
	WITH free AS (
		SELECT r.path, r.number FROM interlock_lock_requests r
		WHERE r.tree = t
		AND NOT EXISTS (SELECT FROM interlock_lock_sessions e WHERE e.tree = t AND e.id = r.session AND e.expires > '-infinity')
		FOR UPDATE SKIP LOCKED
	), deleted AS (
		DELETE FROM interlock_lock_requests r USING free f
		WHERE r.tree = t AND r.path = f.path AND r.number = f.number RETURNING r.number
	)
	SELECT array_agg(DISTINCT d.number) INTO gone FROM deleted d;
	-- Bad schedule without SKIP LOCKED: a renewal has waited for the end of its session, has
	-- locked the row that it left, and waits for the latch.
	DELETE FROM interlock_lock_sessions e WHERE e.tree = t AND e.id IN (
		SELECT f.id FROM interlock_lock_sessions f WHERE f.tree = t AND f.expires = '-infinity'
		AND NOT EXISTS (SELECT FROM interlock_lock_requests r WHERE r.tree = t AND r.session = f.id) FOR UPDATE SKIP LOCKED);
	IF ended AND EXISTS (SELECT FROM interlock_lock_sessions e WHERE e.tree = t AND e.expires = '-infinity') THEN
		PERFORM pg_notify('interlock_lock_' || e.id, '') FROM interlock_lock_sessions e WHERE e.tree = t;
	END IF;
	PERFORM interlock_lock_settle(t, gone);
	RETURN ended OR gone IS NOT NULL;
END $$;

-- begin begins a session in the place of another one. 0: of none. It notifies the sessions that
-- live longer. Bad schedule otherwise: a session of an hour looks, one of a second begins and its
-- process dies, and what waits for it in the first one waits for the next renewal there.
CREATE OR REPLACE FUNCTION interlock_lock_begin(t text, former bigint, milliseconds bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	s bigint := nextval('interlock_lock_numbers');
BEGIN
	PERFORM interlock_lock_sweep(t, former); -- before the latch: it waits for a row
	PERFORM interlock_lock_latch(t);
	INSERT INTO interlock_lock_sessions (tree, id, ttl, expires)
	VALUES (t, s, milliseconds * interval '1 millisecond', clock_timestamp() + milliseconds * interval '1 millisecond');
	PERFORM pg_notify('interlock_lock_' || e.id, '') FROM interlock_lock_sessions e
	WHERE e.tree = t AND e.ttl > milliseconds * interval '1 millisecond';
	RETURN s;
END $$;

-- tick renews a session if it is to, and sweeps. It returns whether the session lives, the
-- seconds until a session may expire or is to be swept again, and of the given acquisitions
-- those that were granted, and all that are marked. paths[i] is one of attempts[i].
CREATE OR REPLACE FUNCTION interlock_lock_tick(t text, s bigint, renew boolean, attempts bigint[], paths text[],
	OUT alive boolean, OUT due double precision, OUT news json)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
	IF renew THEN
		-- Bad schedule without it: the server loses the renewal, starts again before the grants
		-- that it renewed are over, and ends the session.
		PERFORM interlock_lock_durable();
		UPDATE interlock_lock_sessions e SET expires = clock_timestamp() + e.ttl
		WHERE e.tree = t AND e.id = s AND e.expires > clock_timestamp();
	ELSE
		PERFORM FROM interlock_lock_sessions e WHERE e.tree = t AND e.id = s AND e.expires > clock_timestamp();
	END IF;
	alive := FOUND;
	PERFORM interlock_lock_sweep(t, 0);
	SELECT coalesce(min(CASE WHEN e.expires > '-infinity' THEN extract(epoch FROM e.expires - clock_timestamp()) ELSE 1 END), 0) INTO due
	FROM interlock_lock_sessions e WHERE e.tree = t;
	SELECT json_agg(f) INTO news FROM (
		SELECT r.attempt, r.number, r.token, r.mark, r.why FROM unnest(attempts, paths) AS q (attempt, path)
		JOIN interlock_lock_requests r ON r.tree = t AND r.path = q.path
		WHERE r.session = s AND r.attempt = q.attempt AND r.token IS NOT NULL
		UNION
		SELECT r.attempt, r.number, r.token, r.mark, r.why FROM interlock_lock_requests r
		WHERE r.tree = t AND r.session = s AND r.mark > 0) f;
	-- A sweep may have the latch, also if it has ended nothing, and a renewal has its session.
	IF news IS NOT NULL THEN
		PERFORM interlock_lock_impatient();
	END IF;
END $$;

-- acquire grants or refuses requests, or lets them wait.
CREATE OR REPLACE FUNCTION interlock_lock_acquire(t text, s bigint, g bigint, a bigint, wait boolean, paths text[], modes integer[],
	l text[], h text[], m integer[], i text, o text, y text, most_waiting integer, most integer,
	OUT outcome text, OUT drawn bigint, OUT at timestamptz, OUT holders json)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	late boolean;
	b bigint;
BEGIN
	PERFORM interlock_lock_latch(t);
	-- Bad schedule without the second look at the session: it expires after the first one, the
	-- sweep deletes it, and the row that is inserted then belongs to no session. Nothing would
	-- remove it.
	LOOP
		SELECT (SELECT e.generation > g FROM interlock_lock_sessions e WHERE e.tree = t AND e.id = s AND e.expires > clock_timestamp()),
			(SELECT max(c.number) FROM interlock_lock_conflicts(t, l, h, m, i) c) INTO late, b;
		IF late IS DISTINCT FROM false THEN
			outcome := CASE WHEN late THEN 'late' ELSE 'ended' END;
			RETURN;
		END IF;
		EXIT WHEN b IS NULL OR NOT interlock_lock_sweep(t, 0);
	END LOOP;
	outcome := CASE
		WHEN b IS NULL THEN 'granted'
		WHEN NOT wait THEN 'conflict'
		WHEN most_waiting > 0 AND most_waiting <= (
			SELECT count(DISTINCT r.number) FROM interlock_lock_requests r WHERE r.tree = t AND r.token IS NULL) THEN 'full'
		ELSE 'waiting' END;
	IF outcome IN ('conflict', 'full') THEN
		PERFORM interlock_lock_impatient();
		holders := interlock_lock_report(t, l, h, m, i, 9223372036854775807, 0, most);
		RETURN;
	END IF;
	drawn := nextval('interlock_lock_numbers');
	at := clock_timestamp();
	INSERT INTO interlock_lock_requests (tree, path, number, mode, token, blocker, session, attempt, id, owner, reason, since)
	SELECT t, q.path, drawn, q.mode, CASE WHEN b IS NULL THEN drawn END, b, s, a, i, o, y, at FROM unnest(paths, modes) AS q (path, mode);
	IF b IS NOT NULL THEN
		UPDATE interlock_lock_requests r SET lows = l, highs = h, masks = m WHERE r.tree = t AND r.path = paths[1] AND r.number = drawn;
	END IF;
END $$;

-- release removes an acquisition. With a generation it may be one that waits, whose number the
-- locker does not have, or whose attempt comes later: that one is refused then. Without one it
-- is held. Its rows may be locked by a transaction, see GuardStatement, and release waits for
-- that without the latch. Others that need the latch and these rows take the rows first, or
-- skip them. A request that begins to wait for these meanwhile is found after the latch. The
-- locker repeats what the timeout or NOWAIT ends, so that server processes do not pile up.
CREATE OR REPLACE FUNCTION interlock_lock_release(t text, s bigint, g bigint, a bigint, n bigint, paths text[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '1s' AS $$
BEGIN
	IF g > 0 THEN
		PERFORM set_config('lock_timeout', '0', true);
		PERFORM interlock_lock_latch(t);
		PERFORM set_config('lock_timeout', '1s', true); -- no wait for a row may keep the latch for long
		-- Bad schedule without NOWAIT: a renewal has locked the row, and its sweep waits for the latch.
		PERFORM FROM interlock_lock_sessions e WHERE e.tree = t AND e.id = s FOR UPDATE NOWAIT;
		UPDATE interlock_lock_sessions e SET generation = g
		WHERE e.tree = t AND e.id = s AND e.generation < g AND e.expires > clock_timestamp();
		SELECT r.number INTO n FROM interlock_lock_requests r
		WHERE r.tree = t AND r.path = ANY (paths) AND r.session = s AND r.attempt = a LIMIT 1;
	END IF;
	DELETE FROM interlock_lock_requests r WHERE r.tree = t AND r.path = ANY (paths) AND r.number = n;
	-- No timeout for the latch, here and above: the release would lose its place in the queue for
	-- it, and here the DELETE. Where decisions wait for longer, it would never be made.
	PERFORM set_config('lock_timeout', '0', true);
	PERFORM interlock_lock_latch(t);
	IF EXISTS (SELECT FROM interlock_lock_requests r WHERE r.tree = t AND r.blocker = n AND r.token IS NULL) THEN
		PERFORM interlock_lock_settle(t, ARRAY[n]);
	END IF;
END $$;

-- convert changes the modes of what is held. An upgrade has conflicts to look for, and gets a
-- new token. What is marked as broken is gone. Bad schedule otherwise: Break marks a grant, an
-- upgrade gives it a new token, and Break, which finds no row with its token, returns before the
-- holder is notified.
CREATE OR REPLACE FUNCTION interlock_lock_convert(t text, s bigint, a bigint, up boolean, paths text[], modes integer[],
	l text[], h text[], m integer[], most integer, OUT outcome text, OUT drawn bigint, OUT at timestamptz, OUT holders json)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	n bigint;
BEGIN
	SELECT max(f.number) INTO n FROM (
		SELECT r.number, r.mark FROM interlock_lock_requests r
		WHERE r.tree = t AND r.path = ANY (paths) AND r.session = s AND r.attempt = a FOR UPDATE) f
	HAVING max(f.mark) < 2;
	outcome := 'gone';
	IF n IS NULL THEN
		RETURN;
	END IF;
	PERFORM interlock_lock_latch(t);
	IF up THEN
		LOOP
			holders := interlock_lock_report(t, l, h, m, '', 9223372036854775807, n, most);
			EXIT WHEN holders IS NULL OR NOT interlock_lock_sweep(t, 0);
		END LOOP;
		outcome := 'conflict';
		IF holders IS NOT NULL THEN
			PERFORM interlock_lock_impatient();
			RETURN;
		END IF;
		drawn := nextval('interlock_lock_numbers');
		at := clock_timestamp();
	END IF;
	UPDATE interlock_lock_requests r SET mode = q.mode, token = coalesce(drawn, r.token), since = coalesce(at, r.since)
	FROM unnest(paths, modes) AS q (path, mode) WHERE r.tree = t AND r.path = q.path AND r.number = n;
	outcome := CASE WHEN FOUND THEN 'granted' ELSE 'gone' END; -- the sweep may have ended this session
	IF NOT up THEN
		PERFORM interlock_lock_settle(t, ARRAY[n]);
	END IF;
END $$;

-- mark orders the session of a token to revoke or break its grant, and returns which session and
-- acquisition that is.
CREATE OR REPLACE FUNCTION interlock_lock_mark(t text, k bigint, how integer, y text, OUT s bigint, OUT a bigint) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM interlock_lock_durable();
	UPDATE interlock_lock_requests r SET why = CASE WHEN r.mark > how THEN r.why ELSE y END, mark = greatest(r.mark, how)
	WHERE r.tree = t AND r.token = k
	AND r.path = (SELECT min(f.path) FROM interlock_lock_requests f WHERE f.tree = t AND f.token = k)
	RETURNING r.session, r.attempt INTO s, a;
	IF s IS NOT NULL THEN
		PERFORM pg_notify('interlock_lock_' || s, '');
	END IF;
END $$;

-- snapshot returns a report of everything, and the numbers of acquisitions.
CREATE OR REPLACE FUNCTION interlock_lock_snapshot(t text, l text[], h text[], m integer[],
	OUT holders json, OUT held bigint, OUT waiting bigint, OUT latest bigint) LANGUAGE sql STABLE AS $$
	SELECT interlock_lock_report(t, l, h, m, '', 9223372036854775807, 0, 2147483647),
		count(DISTINCT r.number) FILTER (WHERE r.token IS NOT NULL), count(DISTINCT r.number) FILTER (WHERE r.token IS NULL),
		(SELECT n.last_value FROM interlock_lock_numbers n)
	FROM interlock_lock_requests r WHERE r.tree = t
$$;
