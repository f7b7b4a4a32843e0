// Package pgnotify reports the commits of other processes on PostgreSQL at once, by LISTEN
// and NOTIFY. [lifecycle.Watch] and [lifecycle.Await] then need not wait
// for their next look, which they make every second.
//
//	err := pgnotify.Install(ctx, db, "", tables...)    // once, after sqlstore.Migrate
//	wake := func(changed lifecycle.Key) { lifecycle.Wake(changed, vms, disks) }
//	go pgnotify.Listen(ctx, config, "", wake)          // in each process, with its managers
//
// The tables are those of sqlstore.Config: an ExistingHistory needs a trigger of its own.
//
// # Guarantees
//
//   - A notification comes after its commit is visible, and never for a transaction
//     that was rolled back.
//   - While the connection is lost nothing is missed: Watch and Await look for changes as
//     without this package, and Listen wakes all of them when it listens again.
//
// # Limits
//
//   - PostgreSQL gives commits with notifications one after the other. Measure before
//     you install the trigger in a database with thousands of commits per second.
//   - An id in an ExistingHistory is reported as PostgreSQL writes its column. If the type
//     of the column has another text for it, Await of the object waits for its next look.
//   - LISTEN needs a connection of its own for each process, and does not work through a
//     pooler that shares connections between transactions.
package pgnotify
