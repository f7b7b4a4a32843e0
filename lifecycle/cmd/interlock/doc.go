// Command interlock shows the live objects of a service: what is stuck and why, what moves
// an object next, what waits in the queues, and which locks are held. It changes nothing.
// The handler of [inspect.Page.Admin] changes objects, queues and locks, in a service that
// has it:
//
//	curl -u ann -d 'machine=vm&id=vm-1&to=failed&reason=its host is gone' \
//	    localhost:8080/admin/override
//
// It is a module of its own: run "go install ." in its directory.
//
// "interlock help" prints:
//
//	usage: interlock <command> [flags] [arguments]
//
//	  top                 all machines, owners, queues and locks in short
//	  list    MACHINE     the objects of a machine
//	  get     MACHINE ID  an object and its payload
//	  explain MACHINE ID  what moves an object next, and why events are not possible
//	  history MACHINE ID  the last changes of an object, the newest first
//	  stuck   [MACHINE]   the stuck objects of a machine, or of all
//	  queues              the limits and the keys of the queues of a service
//	  locks               the holders of locks of a service, and waiting requests
//
//	flags, before the arguments:
//
//	  -addr URL               URL of the inspect page of a service; default: environment variable INTERLOCK_ADDR
//	  -dsn database           instead of -addr: database of a store, a SQLite file or postgres:// or mysql:// URL; default: environment variable INTERLOCK_DSN
//	  -every pause            with -watch: pause between two rounds
//	  -limit many             list: at most this many objects; 0: all
//	  -o form                 form of the output: table or json
//	  -prefix prefix          with -dsn: prefix of the tables of the store; default: interlock_
//	  -state state            list: only objects in this state; repeatable
//	  -table [VERSION=]FILE   with -dsn: [VERSION=]FILE of the table of a machine; repeatable
//	  -watch                  repeat until an interrupt
//
//	With -dsn there are no queues, no locks, and no objects in tables of the service
//	(sqlstore.ExistingTable), stuck or not: read them with -addr.
//
//	exit codes:
//
//	  0  success
//	  1  failure: the service or the store does not answer, or refuses
//	  2  wrong usage
//	  3  the machine or the object does not exist
//	  4  stuck: there are stuck objects
//
// # Sources
//
// With -addr the command reads the JSON documents of the page of package
// [github.com/interlock-go/interlock/lifecycle/inspect], which the service has mounted at
// this URL. The service decides what is shown of payloads. A user and password in the URL
// are sent as basic authentication.
//
// With -dsn the command reads a store of package
// [github.com/interlock-go/interlock/lifecycle/sqlstore]:
//
//	-dsn postgres://user:password@host/database     PostgreSQL
//	-dsn mysql://user:password@tcp(host)/database   MariaDB or MySQL: the DSN of its driver
//	-dsn vms.db                                     a file of SQLite
//
// The command only reads. PostgreSQL and SQLite also refuse writes in its connections; MariaDB
// and MySQL need a user that may write, because they refuse other users when the store
// prepares its statements. The command makes and migrates no tables: tables of a version that
// it cannot read are an error. It needs the table of every machine
// as a lifecycle-table/1 file, which [fsm.WriteTable] writes. VERSION is the
// [lifecycle.Config].Version of the service; records of other versions are unreadable.
// Prefer the environment variable to the flag for a DSN with a password: other users of the
// computer can read the flags of a process.
//
// A store alone does not have everything:
//
//   - Guards run only in the service. An event with a guard is not possible here, and the
//     reason is that the guard is unknown.
//   - An owner counts as alive until it leaves or a sweeper declares it dead.
//   - Queues and locks are not in the store.
//   - Objects in tables of the service ([sqlstore.ExistingTable]) are not found: only
//     the service can describe these tables. top, list and stuck omit the objects, and
//     succeed.
//
// # Output
//
// Columns are aligned, in an order that does not change. AGE is the time since the last
// change, and DEADLINE the time until the deadline, negative if it has passed. A number with a
// plus is a lower bound. A cell of more than 120 characters ends in an ellipsis, except the
// last one of its row. The page shows at most 200 keys of a queue, 200 holders of a lock and 50
// changes of an object; a last row then notes that there are more. If a machine, the owners or
// a lock tree cannot be read, top, stuck and locks print the others, and fail. Characters that
// are not printable are escaped, so that no name can control the terminal.
//
// With -o json the output is the document of the page: for top, queues and locks the
// Overview, QueuePage and LockPage; for list the ObjectList of all pages; for stuck an array
// of them, one of each machine; for get and explain the ObjectPage; for history its rows.
// Later versions only add fields.
//
// With -watch the command clears the terminal before each round. Elsewhere a line --- ends a
// round, and JSON documents follow one another. An error does not end it. The exit code is
// that of the last round.
package main
