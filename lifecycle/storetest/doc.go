// Package storetest is the conformance suite of [lifecycle.Store]. The author of a
// store runs it in a test:
//
//	func open(t testing.TB, dir string) lifecycle.Store {
//		store, err := mystore.Open(dir)
//		if err != nil {
//			t.Fatal(err)
//		}
//		return store
//	}
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) lifecycle.Store {
//			return open(t, t.TempDir())
//		}, &storetest.Config{
//			Second: func(t testing.TB, store lifecycle.Store) lifecycle.Store {
//				return open(t, store.(*mystore.Store).Dir())
//			},
//		})
//	}
//
// Every demand uses two stores over the same data, as two processes do: each call goes to
// one of them. A store that compares under a lock of its process, or reads a cache of its
// process, is right alone and wrong in production. If only one store can use the data, the
// test declares Config.Exclusive instead.
//
// Every demand is a subtest, Group/demand, and a line of the table in storetest.go. The
// comment of its function states the demand:
//
//	Model            model.go         random commits against a naive model
//	Capabilities     capabilities.go  what a store declares
//	Commit           capabilities.go  commits that are refused, the largest one, and grants of locks
//	Names            records.go       which names and sizes a store keeps
//	Numbers          numbers.go       which numbers are never reused
//	Time             time.go          ages, deadlines and recent changes
//	Context, Close   context.go       calls that are cancelled or come too late
//	Kill             context.go       the process of a store is killed
//	                 series.go        calls that are disturbed at every place
//	Outage           outage.go        lost connections and restarts of the engine
//	Concurrent       concurrent.go    many callers
//	                 readers.go       lists and messages that are read meanwhile
//
// Read model.go first. The demand Model/random_commits_agree sends random commits, from
// callers in sequence, and decides about all that follows from the contract without time,
// faults and concurrency: conflicts, preconditions, owners, requests, tokens, histories,
// lists and messages.
// A sequence that fails is shortened by package rapid, whose flags apply: -rapid.checks=1000
// draws ten times as many sequences, -rapid.shrinktime=2s shortens for two seconds and not for
// thirty, and -rapid.nofailfile writes no file to testdata/rapid. The other demands state what
// no random sequence shows.
//
// The functions of [Config] enable further demands: a clock that moves, a connection that
// breaks, an engine that is killed.
//
// # Guarantees
//
//   - Every demand can fail. The tests of this package plant at least one fault for
//     each demand and require that the demand finds it.
//   - A demand that needs a capability of the store or a function of [Config] is
//     skipped without it, and the skipped subtest states the reason.
//   - No demand measures a duration. A demand waits at most a minute for anything.
//
// # Limits
//
//   - A store that passes may still have races. Run the suite with the race detector,
//     repeatedly, and with more [Config.Attempts].
//   - Without [Config.Network] and [Config.Restart], nothing is known about lost
//     answers and killed engines. An exclusive store may lose what its process buffers.
//   - Without [Config.Age], Config.Synctest and Config.WrongClock, ages and deadlines are
//     tested for a millisecond and an hour only.
//   - Config.Restart ends processes. What the operating system has not yet written to the
//     disk survives that, and would not survive a power failure.
//   - A revision that is a time is found with [Config.Synctest] or [Config.WrongClock], and
//     only if it is the time of this process.
//   - Numbers/never_repeat finds a store that forgets the numbers of a removed
//     object after up to 2,000 others, or 200 if it takes fewer than 20 changes in one
//     commit.
//
// # Beyond the interface
//
// The suite assumes what the interface does not state:
//   - A store with History keeps at least the last eight rows of an object, and the
//     history and numbers of at least the last eight removed objects.
//   - A store without History recognizes the token of a commit until the next commit of
//     its object.
//   - A store may return nil for a payload without bytes, and a payload without bytes
//     for nil. For Saved the two are different.
//   - If a commit has both a conflict and a failed precondition, it returns either
//     error. The error about its owner comes after both. A conflict comes before a repeated
//     request.
//   - Lists are in the bytewise order of ids. A store with another order fails
//     Names/any_id_machine_and_state.
//   - A removed object's record has no other fields than StoredChange.Result keeps. Without its
//     fence, or without its event and actor, it passes: a table without its row has none.
//   - The numbers of an object that does not exist may grow. Its revision then
//     changes.
//   - Names of machines and states follow the rule of ids: 1 to 255 bytes of UTF-8
//     without NUL. A store refuses an id with NUL with ErrInvalid, or keeps it like any
//     other.
package storetest
