// Package locktest is the conformance suite of [lock.Locker]. The author of a lock
// driver runs it; a driver that passes keeps the guarantees of package lock.
//
//	func TestLocker(t *testing.T) {
//		open := func(t testing.TB, c lock.Config) lock.Locker {
//			driver, err := mydriver.Open(t.Context(), t.Name(), &c) // obeys MaxWaiters, MaxHolders and FirstToken
//			if err != nil {
//				t.Fatal(err)
//			}
//			t.Cleanup(driver.Close)
//			return driver
//		}
//		locktest.Run(t, open, &locktest.Config{FirstToken: true})
//	}
//
// Every demand is a subtest. Its name begins with the guarantee of package lock to which
// it belongs, G1 to G12: -run 'TestLocker/G5' runs the demands of guarantee 5. Most
// demands are scripts in testdata/demands.txt, each with a sentence that describes it. The
// others are listed in demands.go. A script makes calls as named clients and states their
// answers:
//
//	a try X /a/b
//	b lock S /a                   : waiting a
//	c try IS /a                   : conflict a
//	a unlock                      ; grants b
//
// The vectors in testdata/locktree.json are the same in JSON, and the demand Model plays
// random scripts. The suite repeats every call of a script, vector or random sequence on a
// [lock.Tree], which is the reference. After every step it compares the two lockers: refusals
// with all their details, the snapshot, tokens, and Check, Lost and Requests of every grant.
//
// # Guarantees
//
//   - Every demand can fail: the tests of this package plant a fault for each in a
//     simple locker, and the demand finds it.
//   - The names of demands are stable.
//   - Scripts and vectors state their answers, the matrix of modes included. Elsewhere
//     they are those of the Tree, which the tests of this package compare with a simple
//     locker. Histories compute conflicts by [lock.Request.Conflicts], which the tests of
//     package lock compare with a rule of their own.
//   - A random sequence that fails is shortened first, and its seed is reported.
//   - A demand that needs an undeclared field of [Config] is skipped with a reason.
//   - No demand asserts a duration, except that a call which waits for no other
//     request returns: see [Config].Patience.
//
// # Limits
//
//   - The suite finds races by trying. Run it with the race detector, often, and
//     with more Histories and Attempts.
//   - It does not test how a driver closes. Look for goroutines with goleak, and for requests
//     that stay with a second locker of the tree.
//   - A TryLock that waits for a holder passes if it returns within the patience.
//   - It causes no faults of servers, connections, sessions or clocks, except through
//     [Config].Faulty. Elsewhere only Break and Revoke cause a loss.
//   - All grants come from one process. [Several] makes one Locker of several.
//   - It does not test the methods of [lock.Tree] that are not those of Locker.
//   - It requires that Since is set and does not compare it: a driver may document that
//     it is when a wait began.
//
// # Beyond the interface
//
// The suite requires what the interface does not state:
//   - Waiters that one call grants have tokens in the order of their arrival, also
//     if they do not conflict.
//   - No two grants have the same token.
//   - A conversion, Revoke and Break have their effect before they return: the grant shows it.
//   - All grants of one id report the end at the first release.
//   - A refusal is of one moment: it lists exactly the requests that conflict then.
//   - A refused try leaves the snapshot unchanged, except for the last token.
//   - An upgrade keeps the place of the grant in the order of arrival.
//   - A call that is cancelled in flight may leave its request for a moment after it has
//     returned: the suite polls.
//
// # Rejected
//
//   - A clock that the suite hands to the locker: the driver would have to support it.
//   - Bubbles of testing/synctest: a locker that does I/O cannot run in them.
//   - A wait that reports when it has joined the queue: the driver would have to
//     support it, too. The suite takes snapshots.
package locktest
