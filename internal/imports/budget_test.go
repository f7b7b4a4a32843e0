package imports

import "strings"

const module = "github.com/interlock-go/interlock"

// line lists what the files of a package may import besides the standard library.
// Tests may import anything.
type line struct {
	pkg string   // below the module; "x/..." is x and everything below it
	may []string // packages below the module, or whole paths of others; "x/..." as above, "..." is anything
	kit bool     // a kit for tests: it may reach package testing, and only tests may import it
	why string
}

// budget is read from the most exact line to the least: "a/b" goes before
// "a/...". Every package has a line.
var budget = []line{
	// The foundation, in layers.
	{
		pkg: "fsm", may: []string{"fsm/internal/bitset", "internal/tee", "internal/visible"},
		why: "a user of tables alone gets no other package that is exported",
	},
	{
		pkg: "fsm/diagram", may: []string{"fsm", "internal/visible"},
		why: "a picture is a function of the table",
	},
	{
		pkg: "fsm/internal/bitset",
		why: "sets of small integers, for the packages that walk a table",
	},
	{
		pkg: "fsm/internal/prose",
		why: "lists of names in findings",
	},
	{
		pkg: "fsm/internal/tabletest", kit: true, may: []string{"fsm", "github.com/stretchr/testify/require", "pgregory.net/rapid"},
		why: "published and random tables for the tests of the packages below fsm",
	},
	{
		pkg: "fsm/check", may: []string{"fsm", "fsm/internal/bitset", "fsm/internal/prose", "internal/visible"},
		why: "findings are a function of the table",
	},
	{
		pkg: "fsm/evolve", may: []string{"fsm", "internal/visible"},
		why: "a verdict is a function of two tables",
	},
	{
		pkg: "fsm/explore", may: []string{"internal/visible", "golang.org/x/sync/..."},
		why: "explores protocols; x/sync runs its workers",
	},
	{
		pkg: "fsm/history", may: []string{"fsm", "fsm/internal/prose", "internal/visible"},
		why: "a verdict is a function of tables and rows",
	},
	{
		pkg: "fsm/tour", may: []string{"fsm", "internal/visible"},
		why: "paths are a function of the table",
	},
	{
		pkg: "fsm/cmd/fsm", may: []string{"fsm", "fsm/diagram", "fsm/check", "fsm/evolve", "fsm/explore", "fsm/tour", "fsm/history", "internal/tablemodel", "internal/terminal", "internal/visible"},
		why: "the command shows what the packages do, and explores any table as a protocol",
	},
	{
		pkg: "lock", may: []string{"internal/tee"},
		why: "a lock knows paths and holders, no tables: it is of use without the rest",
	},
	{
		pkg: "lock/sqllock", may: []string{"lock", "github.com/jackc/pgx/v5"},
		why: "a module of its own: notifications of PostgreSQL need its driver",
	},
	{
		pkg: "queue", may: []string{"internal/tee", "golang.org/x/sync/..."},
		why: "a queue knows keys and tasks, no tables; x/sync is the budget of the module",
	},
	{
		pkg: "lifecycle", may: []string{"fsm", "lock", "queue", "internal/decide", "internal/protect", "internal/storable", "internal/tee", "internal/visible"},
		why: "here, and only here, the three are put together",
	},
	{
		pkg: "lifecycle/aggregate", may: []string{"fsm", "lifecycle"},
		why: "the state of a parent is a function of machines and records",
	},
	{
		pkg: "lifecycle/relation", may: []string{"fsm", "lifecycle"},
		why: "combinations of states become preconditions of a commit",
	},
	{
		pkg: "lifecycle/sqlstore", may: []string{"lifecycle", "fsm", "lock", "golang.org/x/sync/semaphore"},
		why: "over database/sql: the drivers are the user's, or of internal/enginetest",
	},
	{
		pkg: "lifecycle/etcdstore", may: []string{
			"lifecycle", "fsm", "lock", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/api/v3/...",
			"google.golang.org/grpc/codes", "google.golang.org/grpc/connectivity", "google.golang.org/grpc/status",
		},
		why: "a module of its own: the client of etcd, whose errors are classified by their codes",
	},
	{
		pkg: "lifecycle/pgnotify", may: []string{"lifecycle", "lifecycle/sqlstore", "github.com/jackc/pgx/v5"},
		why: "a module of its own: notifications of PostgreSQL need its driver",
	},
	{
		pkg: "lifecycle/inspect", may: []string{"lifecycle", "fsm", "fsm/diagram", "lock", "queue", "internal/visible", "golang.org/x/sync/semaphore"},
		why: "shows what all of them hold",
	},
	{
		pkg: "lifecycle/cmd/interlock", may: []string{"..."},
		why: "a module of its own: the command for live objects, with the drivers of its stores",
	},
	{
		pkg: "internal/decide", may: []string{"fsm"},
		why: "decisions are pure functions of table, record and input; the checker explores the same",
	},

	{
		pkg: "internal/tablemodel", may: []string{"fsm", "fsm/explore", "internal/decide"},
		why: "any table as a model, with the decisions that are performed and nothing else of lifecycle",
	},
	{
		pkg: "internal/models",
		why: "tests only: the protocols of this repository as models; what checks models knows none of them",
	},

	// The five systems: tables and behaviour, each for itself.
	{
		pkg: "lifecycle/edgecloud", may: []string{"fsm", "lifecycle", "lock", "queue", "internal/storable"},
		why: "a system is written with the library, and knows no other system",
	},
	{
		pkg: "lifecycle/ovc", may: []string{"fsm", "lifecycle", "lock", "queue", "internal/outage"},
		why: "as edgecloud",
	},
	{
		pkg: "lifecycle/blazar", may: []string{"fsm", "lifecycle", "lifecycle/relation", "lock", "queue", "internal/outage", "internal/protect", "internal/storable", "internal/timeouts"},
		why: "as edgecloud",
	},
	{
		pkg: "lifecycle/lattice", may: []string{"fsm", "lifecycle", "lifecycle/aggregate", "lock", "queue", "internal/outage", "internal/protect", "internal/storable"},
		why: "as edgecloud",
	},
	{
		pkg: "lifecycle/tumblebug", may: []string{"fsm", "lifecycle", "lifecycle/aggregate", "lock", "queue", "internal/protect", "internal/storable", "internal/timeouts", "golang.org/x/sync/..."},
		why: "as edgecloud",
	},

	{
		pkg: "internal/storable",
		why: "the texts of errors are cut in one way",
	},
	{
		pkg: "internal/visible",
		why: "pictures and pages show hostile names in one way",
	},
	{
		pkg: "internal/outage", may: []string{"lifecycle", "queue"},
		why: "systems whose work reads and writes records outlast an outage of the store in one way",
	},
	{
		pkg: "internal/timeouts", may: []string{"fsm"},
		why: "systems with configurable timeouts change those of their tables in one way",
	},

	// Kits: imported by the tests of this repository and of others.
	{
		pkg: "fsm/fsmtest", kit: true, may: []string{"fsm", "fsm/tour", "internal/suitetest"},
		why: "tests of tables in other people's repositories",
	},
	{
		pkg: "fsm/diagram/diagramtest", kit: true, may: []string{"fsm", "fsm/diagram", "internal/suitetest"},
		why: "tests that documented tables are those that run",
	},
	{
		pkg: "lifecycle/storetest", kit: true,
		may: []string{
			"lifecycle", "lock", "github.com/stretchr/testify/require", "github.com/google/go-cmp/cmp/...", "golang.org/x/sync/errgroup",
			"github.com/anishathalye/porcupine", "pgregory.net/rapid", "internal/suitetest",
		},
		why: "the conformance suite of store drivers: it is imported by tests, and uses what tests use",
	},
	{
		pkg: "lock/locktest", kit: true,
		may: []string{
			"lock", "github.com/anishathalye/porcupine", "github.com/stretchr/testify/...", "golang.org/x/sync/errgroup",
			"internal/suitetest",
		},
		why: "the conformance suite of lock drivers: it is imported by tests, and uses what tests use; porcupine checks its histories",
	},

	// What users do not import.
	{
		pkg: "internal/conform", kit: true, may: []string{"fsm", "github.com/google/go-cmp/cmp"},
		why: "tests that compare a machine with the published document of its table",
	},
	{
		pkg: "internal/crashtest", kit: true, may: []string{"lifecycle", "fsm", "fsm/history", "queue"},
		why: "crashes at every write of a service, in the tests of the systems",
	},
	{
		pkg: "internal/scripttest", kit: true, may: []string{"lifecycle", "github.com/cockroachdb/datadriven"},
		why: "one harness for the script tests of the five systems",
	},
	{
		pkg: "internal/protect", may: []string{"queue"},
		why: "its error is that of an action that panics",
	},
	{
		pkg: "internal/tee",
		why: "joins the functions of observers, for the packages that have some",
	},
	{
		pkg: "internal/terminal",
		why: "one line on a terminal, for commands and for tests that run long",
	},
	{
		pkg: "internal/ratio",
		why: "benchmarks of every package call it, so it stands on nothing",
	},
	{
		pkg: "internal/imports",
		why: "tests only",
	},
	{
		pkg: "internal/suitetest", kit: true,
		why: "the tests of the suites watch tests that fail; nothing else does",
	},
	{
		pkg: "internal/teetest", kit: true, may: []string{"github.com/stretchr/testify/require"},
		why: "tests of the observers of four packages",
	},
	{
		pkg: "internal/doctest",
		why: "tests only",
	},
	{
		pkg: "internal/size",
		why: "a command that counts lines and identifiers in source files",
	},
	{
		pkg: "internal/bench/...", may: []string{"..."},
		why: "a module of its own: the peers that we are compared with stay there",
	},
	{
		pkg: "internal/etcdtest/...", kit: true, may: []string{"..."},
		why: "a module of its own, of tests on a real etcd: the only one with the server",
	},
	{
		pkg: "internal/enginetest/proxy", kit: true, may: []string{"lifecycle/storetest"},
		why: "the proxy of the tests of stores",
	},
	{
		pkg: "internal/browsertest", may: []string{"..."},
		why: "a module of its own: tests of the operator's page in a browser",
	},
	{
		pkg: "internal/enginetest/...", may: []string{"..."},
		why: "a module of its own: servers and drivers stay there",
	},
	{
		pkg: "examples/sqlite/...", may: []string{"..."},
		why: "a module of its own: shows a real driver",
	},
	{
		pkg: "examples/service/...", may: []string{"..."},
		why: "a module of its own: a whole service with its drivers",
	},
	{
		pkg: "examples/inspect", may: []string{"fsm", "lock", "queue", "lifecycle", "lifecycle/inspect", "lifecycle/prometheus", "github.com/prometheus/client_golang/...", "golang.org/x/sync/..."},
		why: "a module of its own: the page and the metrics are modules",
	},
	{
		pkg: "examples/ratelimit", may: []string{"queue", "golang.org/x/time/rate"},
		why: "a module of its own: shows a limiter that is not of the library",
	},
	{
		pkg: "examples/replicas/...", may: []string{"..."},
		why: "a module of its own: shows a real engine",
	},
	{
		pkg: "examples/quickstart", may: []string{"fsm", "lifecycle", "lifecycle/edgecloud", "internal/terminal", "golang.org/x/sync/..."},
		why: "a demonstration that shows on a terminal how far it is",
	},
	{
		pkg: "examples/...", may: []string{"fsm/...", "lock/...", "queue/...", "lifecycle/...", "golang.org/x/sync/..."},
		why: "what a user's program imports",
	},

	// Engines: modules of their own, so that their dependencies stay there.
	{
		pkg: "internal/instruments", may: []string{"fsm", "lifecycle", "lock", "queue", "internal/protect"},
		why: "metrics have one definition for both back ends",
	},
	{
		pkg: "lifecycle/otel", may: []string{"fsm", "lifecycle", "lock", "queue", "internal/instruments", "go.opentelemetry.io/otel/..."},
		why: "a module of its own: metrics and traces for OpenTelemetry, over its API packages only",
	},
	{
		pkg: "lifecycle/prometheus", may: []string{"fsm", "lifecycle", "lock", "queue", "internal/instruments", "github.com/prometheus/client_golang/prometheus"},
		why: "a module of its own: metrics for Prometheus need its client library",
	},
	{
		pkg: "lock/etcdlock", may: []string{"lock", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/api/v3/..."},
		why: "a module of its own: the client of etcd, and the types and errors of its protocol",
	},
	{
		pkg: "queue/pgqueue/...", may: []string{"queue", "github.com/jackc/..."},
		why: "the durable queue over PostgreSQL",
	},
}

// lineOf returns the line of the budget for a package below the module, nil if
// there is none.
func lineOf(budget []line, pkg string) *line {
	for i := range budget {
		if covers(budget[i].pkg, pkg) {
			return &budget[i]
		}
	}
	return nil
}

// allows reports whether the line permits an import, given as a whole path.
func (l *line) allows(path string) bool {
	for _, may := range l.may {
		if covers(may, path) || covers(module+"/"+may, path) {
			return true
		}
	}
	return false
}

// covers reports whether a path is the pattern, or below it where the pattern
// ends in "/...".
func covers(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	prefix, below := strings.CutSuffix(pattern, "/...")
	return path == prefix || below && strings.HasPrefix(path, prefix+"/")
}
