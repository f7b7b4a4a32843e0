// Package private starts database servers from the binaries that are installed, for tests
// that kill a server, and for machines where no server runs.
//
// # Guarantees
//
//   - A [Server] has a directory, a port and a data set of its own. It runs as an ordinary
//     user, also where the caller is root.
//   - A commit that was acknowledged survives [Server.Kill], with [Config.Fast] too.
//   - Nothing is left after [Server.Close]. The processes of a server end with the process
//     that started it.
//
// # Limits
//
//   - Servers start on Linux only.
//   - A killed server shows nothing about a loss of power.
//   - The directory of a server whose starting process was killed is left in the directory
//     of temporary files.
package private

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
)

// ErrMissing is matched by the errors of [StartPostgres] and [StartMariaDB] where the
// engine is not installed, or cannot be started on this system.
var ErrMissing = errors.New("private: engine is missing")

// Config sets up a server. nil and the zero Config are valid.
type Config struct {
	// Fast does not wait for the disk. The default is durable.
	Fast bool
}

// patience is the longest time that anything may take.
const patience = time.Minute

// engine is what differs between the kinds of servers.
type engine struct {
	name   string
	driver string
	where  string                               // query: the directory of the data
	users  []string                             // that run it instead of root: the first that exists
	dsn    func(port int) string                // of a user with all rights
	create func(data string) []string           // command that creates the data
	serve  func(data string, port int) []string // command of the server
	stop   os.Signal                            // ends the server in order, with clients connected
}

// StartPostgres starts a PostgreSQL server on an empty data set. The caller calls
// [Server.Close]. The binaries are those of the directory in INTERLOCK_POSTGRES_BIN, or of
// PATH, or of the highest installed version. Errors: [ErrMissing], and one with the end of
// the server's log if the server does not answer within a minute; nothing is left then.
func StartPostgres(config *Config) (*Server, error) {
	programs, err := find("INTERLOCK_POSTGRES_BIN",
		[]string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"}, "initdb", "postgres")
	if err != nil {
		return nil, err
	}
	settings := []string{
		"--listen_addresses=127.0.0.1", "--unix_socket_directories=", // a path of a socket may be too long
		"--max_connections=200", "--shared_buffers=32MB",
	}
	if config != nil && config.Fast {
		settings = append(settings, "--fsync=off", "--full_page_writes=off")
	}
	return start(&engine{
		name: "PostgreSQL", driver: "pgx", where: "SHOW data_directory", users: []string{"postgres", "nobody"},
		dsn: func(port int) string {
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
		},
		create: func(data string) []string {
			return []string{
				programs[0], "--pgdata=" + data, "--auth=trust", "--username=postgres", "--no-sync",
				"--encoding=UTF8", "--locale=C",
			}
		},
		serve: func(data string, port int) []string {
			return append([]string{programs[1], "-D", data, "-p", strconv.Itoa(port)}, settings...)
		},
		stop: os.Interrupt,
	})
}

// StartMariaDB starts a MariaDB server as [StartPostgres] does. The binaries are those of
// the directories in INTERLOCK_MARIADB_BIN, of PATH, or where packages put them.
func StartMariaDB(config *Config) (*Server, error) {
	programs, err := find("INTERLOCK_MARIADB_BIN",
		[]string{"/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin", "/usr/local/mysql/scripts"}, "mariadb-install-db", "mariadbd")
	if err != nil {
		return nil, err
	}
	flush := "1"
	if config != nil && config.Fast {
		flush = "2"
	}
	settings := []string{
		"--bind-address=127.0.0.1", "--socket=mariadb.sock", "--pid-file=mariadb.pid", // below the data
		"--skip-name-resolve", "--max-connections=200",
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=" + flush,
	}
	return start(&engine{
		name: "MariaDB", driver: "mysql", where: "SELECT @@datadir", users: []string{"mysql", "nobody"},
		dsn: func(port int) string { return fmt.Sprintf("root@tcp(127.0.0.1:%d)/test", port) },
		// With "=", because both programs otherwise use the data of the machine's server.
		create: func(data string) []string {
			return []string{
				programs[0], "--no-defaults", "--datadir=" + data, "--skip-name-resolve",
				"--auth-root-authentication-method=normal", "--innodb-log-file-size=16M",
			}
		},
		serve: func(data string, port int) []string {
			return append([]string{programs[1], "--no-defaults", "--datadir=" + data, fmt.Sprintf("--port=%d", port)}, settings...)
		},
		stop: terminate,
	})
}

// find returns the paths of the programs of an engine. The variable of the environment, a
// list of directories, replaces PATH and the patterns if it is set. A pattern stands for
// the highest version first: all have two digits.
func find(variable string, patterns []string, names ...string) (paths []string, err error) {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("private: %w", err)
		}
		slices.Reverse(found)
		dirs = append(dirs, found...)
	}
	if chosen := os.Getenv(variable); chosen != "" {
		dirs = filepath.SplitList(chosen)
	}
	for _, name := range names {
		i := slices.IndexFunc(dirs, func(dir string) bool {
			_, err := exec.LookPath(filepath.Join(dir, name))
			return err == nil && filepath.IsAbs(dir)
		})
		if i < 0 {
			return nil, fmt.Errorf("%w: no program %s in PATH, %s or the directories of %s",
				ErrMissing, name, strings.Join(patterns, ", "), variable)
		}
		paths = append(paths, filepath.Join(dirs[i], name))
	}
	return paths, nil
}
