// Package sqllock is a lock driver on PostgreSQL: a [lock.Locker] whose holders are in several
// processes. Requests, modes, lists, ids and the order of arrival are those of [lock.Tree].
//
//	listen, err := pgx.ParseConfig(dsn)                         // of a direct connection, see Limits
//	err = sqllock.Migrate(ctx, db)                              // once, before the processes start
//	locker, err := sqllock.Open(ctx, db, listen, "shop", nil)   // in each process
//	defer locker.Close()
//	web := lock.Request{Path: lock.MustParse("/web"), Mode: lock.X}
//	grant, err := locker.Lock(ctx, web, &lock.Options{Owner: "deploy-7"})
//	if err != nil {
//		return err
//	}
//	defer grant.Unlock(ctx)
//	if err := grant.Check(); err != nil {
//		return err // the grant is lost: stop
//	}
//
// A row is a request, held or waiting. A function of the engine decides about a tree while
// it has the tree's latch, so decisions are made one after the other. A TryLock, granted or
// refused, is one round trip at any depth. So is a release. A release grants the requests
// that waited for it, in the engine, and notifies their sessions.
//
//	process                     engine
//	Lock      -- acquire -->    latch; conflicts? wait behind the latest
//	Unlock    -- release -->    latch; delete; grant what waited for these; notify
//	session   <-- notify --
//	          -- tick ----->    what was granted or broken; renewal; expired sessions
//
// A locker has a session, which it renews. If the engine receives no renewal within the
// TTL, it ends the session and grants the requests that waited for its grants.
//
// # Guarantees
//
//   - Those of package lock. Package locktest checks them, for one locker and for several of
//     one tree.
//   - A loss is announced before the engine grants again. A grant is valid for nine tenths
//     of the TTL after the moment at which the last successful renewal was sent. Check
//     compares the clock at every call: a process that was stopped finds the loss at its
//     first Check. Break waits until the process of the holder has announced the loss.
//   - A conflicting request that waits for a process that has died is granted within the TTL
//     and two seconds.
//   - An acquisition whose answer is lost leaves no lock, also if its statement arrives after
//     the locker has removed it.
//   - Tokens grow over all trees of a database, and survive a restart of the server.
//   - A transaction whose guard found the grant is committed before a conflicting request
//     is granted. The guard of a later transaction does not find the grant. No clock is
//     involved. The driver of a grant has the guard: [lock.Grant.Driver] implements
//     GuardStatement() (query string, args []any), which is a query for a transaction in
//     the same database, with $1 and so on. It returns a row if the grant is held.
//
// # Limits
//
//   - The engine measures the TTL with its time of day. If the server's clock steps
//     forward, or runs more than 10 % faster than the clock of the process, a session ends
//     early. The process notices this at its next renewal, after at most a third of the
//     TTL. If the server's clock steps back, a session ends late. The clock of a process
//     stands still while its machine is suspended. Use the guard where that matters.
//   - If the server loses a commit, the lock may be granted again. The functions switch
//     synchronous_commit from off to on. After a failover to a standby that replicates
//     asynchronously, or a restore of a copy, a granted lock may be free, a released lock
//     may be held, and tokens repeat. Close all lockers, raise the sequence
//     interlock_lock_numbers by setval above all tokens that were granted, and open them
//     again. If a process was killed instead, its session ends after its TTL.
//   - A guarded transaction that hangs keeps the locks that it has compared, and no others.
//     Set idle_in_transaction_session_timeout.
//   - An id belongs to one locker. In another locker, a request with the same id conflicts
//     until the first one is released.
//   - A conversion whose answer is lost loses the grant. After the end of a session all
//     grants are lost and waits return [lock.ErrLost].
//   - If the engine cannot be reached, Unlock returns [lock.ErrLost] when the session is over for
//     the locker. The engine frees the lock at the end of the TTL.
//   - If the engine does not answer, a call whose context ends may return up to four
//     seconds later. In this time it tries to remove its claim and to list the holders. The
//     removal continues after the call.
//   - While it has no session, because the engine does not answer, a Locker refuses TryLock
//     with [lock.ErrLost], and Lock waits until its context ends.
//   - Paths have up to 2,000 bytes.
//   - A tree makes one decision at a time, each with a commit. Independent systems take a
//     tree each.
//   - A request above many held requests reads all of them. So do Revoke, Break and
//     Snapshot.
//   - The server sends an answer before its commit. If a process is stopped or cut off
//     meanwhile, and the holders of a refusal exceed what the connection can hold, the tree
//     stands still for about a second. On a server that is not on Linux, or behind a Unix
//     socket, it stands still until the server notices: keep MaxHolders small there.
//   - A renewal needs a connection of the pool in time. LISTEN needs a direct connection, not
//     one of a pooler that shares connections between transactions.
//   - While a process receives no notification, for example because a firewall has dropped the
//     connection that listens, it notices a grant, a revocation and a Break at its next
//     renewal, after at most a third of the TTL.
//   - The connections have the isolation level READ COMMITTED. Others are refused.
//
// # Rejected
//
//   - Advisory locks of sessions for the paths: they need no rows and are faster, but have no
//     token, no holder's name and no order of arrival, and end with the connection.
//   - An exclusion constraint over ranges of paths: it has modes S and X only, and no queue.
//   - One statement that latches and decides: its snapshot is older than the latch.
//   - Waiting requests that check after every release whether they are granted: all of them
//     wake although one is granted, and a TryLock can overtake them.
//   - Time stamps of processes: their clocks differ by more than their rates.
package sqllock
