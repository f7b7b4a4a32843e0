// Package etcdstore keeps the records of a [lifecycle.Manager] in etcd, for services that
// run an etcd already, or that keep their locks in it.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialKeepAliveTime: 10 * time.Second})
//	...
//	store, err := etcdstore.Open(ctx, client, nil)
//	if err != nil {
//		return err
//	}
//	vms := lifecycle.Must(VMs, store, nil)
//	go store.Listen(ctx, func(changed lifecycle.Key) { lifecycle.Wake(changed, vms) }) // wakes Watch and Await for changes of other processes
//
// # Guarantees
//
// In addition to the guarantees of [lifecycle.Store]:
//   - A commit is one transaction of etcd. It compares revision and state of every object,
//     the preconditions, the life of the owner, and the requests; it writes the records,
//     the history rows, the index and the messages. The record in a conflict is as of that
//     comparison, without another request.
//   - Reads are linearizable. Commit, Get, History and Requested need one request, one more
//     before a commit with messages, and one more if a required object is in another state
//     than the first one that is permitted.
//   - If an answer is lost, or a context ends meanwhile, the store searches the history for
//     the commit, and sends it again with its token. Commit returns
//     [lifecycle.ErrUnknownOutcome] if etcd does not answer the search either, if the search
//     finds no proof and the context has ended, after the third attempt, counted from the first
//     lost answer, and if the records do not show any more whether the commit was written.
//   - Without a connection, calls return [lifecycle.ErrUnavailable] at once. Without a quorum
//     they do after [Config.Timeout], and a commit returns ErrUnknownOutcome. A full
//     database (NOSPACE) is ErrUnavailable; nothing was written then.
//   - No revision of a commit repeats, also if etcd was restored from an older snapshot: it
//     contains the token of the commit.
//   - Names are compared byte by byte. They are UTF-8 without NUL.
//   - A commit under a lock of the same etcd ([lifecycle.Precondition].Grant) compares the
//     grant in its transaction. The driver of such a grant (lock.GrantDriver) has a method
//     GuardCompare() clientv3.Cmp. A grant of another etcd is not recognized as such, and
//     fails the precondition.
//   - List reads the index, and the records that it selects: by id, by state, by deadline for
//     Overdue, and by owner for NotOwnedBy, whose named owners it skips. The entries of
//     a state show age, owner and deadline, so that other conditions on a state read its
//     entries and no other records. A query by age alone, or by more states than
//     [Config.MaxTxnOps], reads all objects of the machine.
//
// # Limits
//
//   - etcd has no clock. ChangedAt and deadlines are of the clock of the process that
//     writes, and ages are computed with the clock of the process that reads. If a clock is
//     wrong, a sweep comes early or late. The comparison of the revision still decides
//     which writer wins.
//   - [lifecycle.Watch] finds a change by the writer's time, which is that of the
//     beginning of its commit. It misses the change, until the object changes again, if the
//     writer's clock is behind the reader's by more than 20 seconds less the time that the
//     commit took. A clock that is ahead does no harm. [Store.Listen] does not change this: it
//     only makes Watch read sooner. Await reads the object itself and misses nothing.
//   - A transaction of etcd has at most 128 operations (--max-txn-ops), and a change needs up
//     to 14: [lifecycle.Capabilities].Changes is 8. See [Config.MaxTxnOps]. A message needs
//     one: 16 messages always fit, and 114 in a commit of one change. No commit has more than
//     128 messages, also with a larger MaxTxnOps.
//   - A commit has at most 1.5 MiB (--max-request-bytes; above 2 MiB, the client's
//     MaxCallSendMsgSize too), and values are JSON, in which a payload takes 4/3 of its size.
//     A larger commit is [lifecycle.ErrInvalid].
//   - Pages of Overdue and NotOwnedBy read all entries of the condition.
//   - The history grows until the caller calls [Store.Trim]. A removed object keeps three
//     small keys for ever, and its newest eight history rows with their requests: etcd
//     grows with every id that is never used again. etcd keeps old versions of all keys until it
//     compacts: configure --auto-compaction-retention.
//   - The user of the client needs the right to read and write the prefix.
//   - Set DialKeepAliveTime of the client: without it, calls to a member that hangs fail after
//     [Config.Timeout] for as long as it hangs.
//   - After an outage, the client connects again when its own pause has ended. See the
//     options of grpc for the longest one.
//
// # After a restore
//
// An etcd that lost its newest commits, because it was restored from a snapshot or from a
// copy of its data, repeats operation ids, epochs of owners, and perhaps numbers of
// messages. A worker that still executes a lost operation could then end another one. The
// token of the commit that started the operation ([lifecycle.Record].Admission) prevents
// that for the outcomes of this library's own work, and for reports that carry it
// ([lifecycle.Change].Admission). For everything else:
//
//  1. Stop all processes that use the keys.
//  2. Restore etcd. With etcdutl snapshot restore, use --bump-revision 1000000000 and
//     --mark-compacted. Without them, the revisions of etcd repeat, and with them the tokens
//     of lock/etcdlock.
//  3. Open the store in one process, and call [Store.AfterRestore] once.
//  4. Start the processes. They join as owners again, and sweeps find the operations that
//     were in progress in the backup: their owners are dead.
//
// Reports about operations from before the restore are then stale, even if the backup has
// these operations. Compare the outside world by [lifecycle.Reconcile]. Changes that were
// lost stay lost.
//
// # Keys
//
// All keys begin with [Config.Prefix] and a kind; see keys.go. Parts are separated by NUL, so
// that the keys of one machine, state or owner are exactly one range. A revision contains
// what the index entries of its record depend on: a commit deletes them without reading the
// record first. The entry of the state has the revision as its value, and one comparison of
// this value covers revision and state.
//
// # Rejected
//
// Comparing ModRevision: it repeats after a restore from a snapshot, where a process that
// was running before would overwrite what it has not read. An index by age and state: it
// would make every commit write two more keys, and the entries of a state show the age. A
// counter for the numbers of messages: all commits with messages would conflict. Leases for
// deadlines: etcd extends them when its leader changes. Deleting old history rows in the
// commit: it would need the requests of these rows, and therefore a read.
package etcdstore
