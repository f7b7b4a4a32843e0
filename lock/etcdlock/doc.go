// Package etcdlock is a lock tree that several processes share on etcd: a [lock.Locker]
// with fencing tokens.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialKeepAliveTime: 5 * time.Second})
//	...
//	locker, err := etcdlock.Open(ctx, client, "locks/shop", nil)
//	...
//	defer locker.Close()
//	return lock.Do(ctx, locker, request, nil, func(ctx context.Context, g *lock.Grant) error {
//		held := g.Driver().(etcdlock.Guard).GuardCompare()
//		written, err := client.Txn(ctx).If(held).Then(clientv3.OpPut(key, value)).Commit()
//		if err == nil && !written.Succeeded {
//			err = lock.ErrLost
//		}
//		return err
//	})
//
// An acquisition, also one of several requests, is one key, a claim, on the lease of the
// process. The order of arrival is the order of the revisions that created the keys. Every
// process watches the tree, and finds out from its view of it which of its claims are held:
//
//	process A            etcd                       process B
//	Lock X /a   ------>  put claim 1 at revision 7
//	held        <------  event 7         ------>
//	                     put claim 2 at revision 8  <------  Lock X /a/b
//	                     event 8         ------>    waits: claim 1 arrived earlier
//	Unlock      ------>  delete claim 1
//	                     event 9         ------>    held
//
// A process decides a request that must not wait on its view, and writes it in a
// transaction. The transaction compares the revision of the latest request of the tree. If
// the revision has changed, the transaction returns the tree, and the process decides
// again.
//
// # Guarantees
//
// Those of package lock, for all processes together. Where engines differ:
//
//   - A pair of TryLock or Lock with Unlock takes two round trips at any depth and any
//     length of a list, if no other process writes a request at the same moment. A refusal
//     takes one. A wait sends nothing.
//   - A claim that arrived is held as soon as no earlier claim conflicts. Both are read
//     from the revisions of etcd, so all processes agree. A Lock takes its place in one
//     transaction, whatever other processes write meanwhile.
//   - A token follows from the revision of the acquisition or of the latest upgrade, which
//     is the token divided by 65,536. If an upgrade raises one request of a list while another
//     request waits for the rest of it, the claims that wait for it get new tokens in the same
//     transaction, up to 100 of them. The token of another grant never changes.
//   - A grant is lost before etcd can end its lease: it holds until 90 % of the TTL after
//     the last successful renewal was sent. Lost is closed then, and
//     [lock.Grant.Check] compares the clock itself, so it fails at once in a process that was paused.
//   - Revoke and Break work from every process. The holder is notified before Break deletes
//     its claim. A holder that cannot be reached has lost its grant by then.
//   - If a caller does not wait for the answer, its transaction cannot lock later: it fails
//     once the claim is removed.
//   - [Guard] is exact: a write that compares it is refused from the revision on at which
//     the claim is deleted.
//   - After the end of its session a Locker begins another one.
//
// # Limits
//
//   - The announcement of a loss depends on clocks whose rates differ by less than 10 %, and
//     that run while the process does not: not on a virtual machine that is suspended with
//     its clock. Guard and the token depend on no clock.
//   - A key that is deleted or a lease that is revoked by hand takes grants away before
//     their holders are notified. Use Break.
//   - A call that lost its connection before the answer fails, although etcd may have
//     granted the request. It is withdrawn then. A conversion whose answer is lost, also
//     because its context ended, loses the grant.
//   - Every change of the tree, and each refusal, costs every process time in proportion to
//     the number of claims. Snapshot costs at worst the square of that number.
//   - If etcd does not answer, a call whose context ends may return up to a second later.
//     In this time it tries to withdraw its claim and to list the holders. The withdrawal
//     continues after the call.
//   - While it has no session, because etcd does not answer, a Locker refuses TryLock with
//     [lock.ErrLost], and Lock waits until its context ends.
//   - Requests of several processes that do not wait, to one tree at the same moment,
//     are written one after the other, with one more round trip each time another one was faster.
//     Independent systems take a prefix each.
//   - The request that fills the storage of etcd fails, but etcd may have executed it. A new
//     claim is withdrawn then, and a conversion stands: Requests and Token show it.
//   - Some Locks are refused after they have arrived: those beyond MaxWaiters, and those
//     with an id that another process uses for other requests, if they come at the same
//     moment. Until the refusal, other requests conflict with their claims.
//   - Since is when a claim arrived or was upgraded, by the clock of its process, also
//     after a wait: no key is written when a wait ends.
//   - An id is joined within one Locker. For other processes, a claim with the same id and
//     requests conflicts.
//   - A list has to fit into one request of etcd, 1.5 MiB by default.
//   - etcd before 3.4.31 and 3.5.13 can end leases that are alive after a change of leader.
//     Its lease can last for another TTL after such a change. Prefer 3.5.23, 3.6.5 or later.
//   - A restored snapshot repeats revisions, and so tokens, unless it is restored with
//     etcdutl snapshot restore --bump-revision N --mark-compacted.
//   - One key per tree, and one per Locker, stay while no lock is held.
//   - Set DialKeepAliveTime of the client: without it a watch over a dead connection hangs, and
//     waits with it.
//
// # Rejected
//
//   - A key per request whose name has path and mode, so that a transaction compares the
//     ranges that conflict: it costs twice the comparisons of the depth, limits a list to
//     the operations of a transaction, and a downgrade needs a new key, which has lost its
//     place. In measurements a pair at depth 16 cost more than three times the processor time of
//     the mutex of etcd's client; here it costs 1.3 times at any depth.
//   - A document per tree: every pair writes all claims, and two processes at disjoint
//     paths always disturb each other. Here they disturb each other only if neither waits.
//   - A state "held" in the key: a handover would take one more write, and the moment
//     between two writes would be a further state.
//   - Watching the predecessor: a process has one watch, whatever it waits for, and it needs
//     that for revocations too.
//   - A mutex of etcd's client per node: 15 round trips at depth 4, and a waiter that does not
//     notice the end of its own session.
//   - A lease per grant: every acquisition would be two writes more.
//   - The keep-alive of etcd's client: it counts the TTL from the answer, and its answer does not
//     prove that the keys exist.
package etcdlock
