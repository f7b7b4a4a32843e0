package private

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
)

// engine is what differs between the kinds of servers.
type engine struct {
	name   string
	driver string
	where  string                               // query: the directory of data, as the server knows it
	users  []string                             // who runs it instead of root: the first that exists
	dsn    func(port int) string                // of a user who may do everything
	create func(data string) []string           // command that makes an empty directory of data
	serve  func(data string, port int) []string // command of the server
	end    func(p *process) error
	after  func(data string) error // tidies up when all of its processes were killed; nil: nothing to do
}

// StartPostgres starts a PostgreSQL server on an empty data set. The caller
// calls [Server.Close]. The binaries are those of the directory in
// INTERLOCK_POSTGRES_BIN, in PATH, or of the highest version where packages put
// them. Errors: [ErrMissing] where there are none; another when it does not
// answer within a minute, with what it wrote into its log. Nothing is left after
// an error.
func StartPostgres(config *Config) (*Server, error) {
	programs, err := find("INTERLOCK_POSTGRES_BIN",
		[]string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"}, "initdb", "postgres")
	if err != nil {
		return nil, err
	}
	c := config.withDefaults()
	settings := []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", // a path of a socket may be too long
		"max_connections=200", "shared_buffers=32MB", "fsync=on",
	}
	if c.Fast {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	settings = append(settings, c.assignments()...)
	return start(&engine{
		name:   "PostgreSQL",
		driver: "pgx",
		where:  "SHOW data_directory",
		users:  []string{"postgres", "nobody"},
		dsn: func(port int) string {
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
		},
		create: func(data string) []string {
			return []string{programs[0], "--pgdata=" + data, "--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"}
		},
		serve: func(data string, port int) []string {
			return command([]string{programs[1], "-D", data, "-p", fmt.Sprint(port)}, settings)
		},
		end:   (*process).interrupt, // rolls back what is open; its other way waits for clients
		after: forget,
	})
}

// StartMariaDB starts a MariaDB server on an empty data set, as [StartPostgres]
// does. The binaries are those of the directories in INTERLOCK_MARIADB_BIN, in
// PATH, or where packages put them.
func StartMariaDB(config *Config) (*Server, error) {
	programs, err := find("INTERLOCK_MARIADB_BIN",
		[]string{"/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin", "/usr/local/mysql/scripts"}, "mariadb-install-db", "mariadbd")
	if err != nil {
		return nil, err
	}
	c := config.withDefaults()
	settings := []string{
		"bind-address=127.0.0.1", "socket=mariadb.sock", "pid-file=mariadb.pid", // below the data, which may be a long path
		"skip-name-resolve", "max-connections=200",
		"innodb-buffer-pool-size=32M", "innodb-log-file-size=16M", "innodb-flush-log-at-trx-commit=1",
	}
	if c.Fast {
		settings = append(settings, "innodb-flush-log-at-trx-commit=2")
	}
	settings = append(settings, c.assignments()...)
	return start(&engine{
		name:   "MariaDB",
		driver: "mysql",
		where:  "SELECT @@datadir",
		users:  []string{"mysql", "nobody"},
		dsn: func(port int) string {
			return fmt.Sprintf("root@tcp(127.0.0.1:%d)/test", port)
		},
		// Without a directory of data, or where they do not understand how it is
		// given, both take the one of the server of the machine: therefore with "=".
		create: func(data string) []string {
			return []string{
				programs[0], "--no-defaults", "--datadir=" + data, "--skip-name-resolve",
				"--auth-root-authentication-method=normal", "--innodb-log-file-size=16M",
			}
		},
		serve: func(data string, port int) []string {
			return command([]string{programs[1], "--no-defaults", "--datadir=" + data, fmt.Sprintf("--port=%d", port)}, settings)
		},
		end: (*process).terminate,
	})
}

// command adds settings, as both engines understand them.
func command(words, settings []string) []string {
	for _, s := range settings {
		words = append(words, "--"+s)
	}
	return words
}

func (c *Config) withDefaults() Config {
	if c == nil {
		return Config{}
	}
	return *c
}

func (c *Config) assignments() []string {
	var assignments []string
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		assignments = append(assignments, name+"="+c.Settings[name])
	}
	return assignments
}

// same reports whether two paths name one directory.
func same(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }
