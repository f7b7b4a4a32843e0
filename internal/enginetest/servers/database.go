package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
)

// Variables of the environment that hold the DSNs of the servers.
const (
	postgresDSN = "INTERLOCK_POSTGRES_DSN"
	mysqlDSN    = "INTERLOCK_MYSQL_DSN"
)

// Postgres returns the DSN, for the driver pgx, of a database that is this test's own. It is
// dropped at the end of the test, connections or not. The parameters are those of the variable.
func Postgres(t testing.TB) (dsn string) {
	t.Helper()
	server := os.Getenv(postgresDSN)
	if server == "" {
		missing(t, "PostgreSQL", "set "+postgresDSN+", or call make engines")
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		t.Fatalf("%s is no URL: write postgres://USER@HOST:PORT/DATABASE", postgresDSN) // err has the password
	}
	name := newName()
	create(t, "pgx", server, "CREATE DATABASE "+name, "DROP DATABASE "+name+" WITH (FORCE)")
	u.Path = "/" + name
	return u.String()
}

// MySQL returns the DSN, for the driver mysql, of a database that is this test's
// own. It is dropped at the end of the test. The parameters are those of the variable.
func MySQL(t testing.TB) (dsn string) {
	t.Helper()
	server := os.Getenv(mysqlDSN)
	if server == "" {
		missing(t, "MySQL or MariaDB", "set "+mysqlDSN+", or call make engines")
	}
	config, err := mysql.ParseDSN(server)
	if err != nil {
		t.Fatalf("%s: %v", mysqlDSN, err)
	}
	name := newName()
	create(t, "mysql", server, "CREATE DATABASE "+name, "DROP DATABASE "+name)
	config.DBName = name
	return config.FormatDSN()
}

// newName returns a name that needs no quotes and is unique on a server that several test
// processes use.
func newName() string { return "interlock_" + strings.ToLower(rand.Text()) }

// create performs one statement now and another at the end of the test, on
// connections of their own, so that none is open in between.
func create(t testing.TB, driver, dsn, first, last string) {
	t.Helper()
	if err := perform(driver, dsn, first); err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	t.Cleanup(func() {
		if err := perform(driver, dsn, last); err != nil {
			t.Errorf("%s: %v", last, err)
		}
	})
}

func perform(driver, dsn, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := sql.Open(driver, dsn)
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(ctx, statement)
	}
	return err
}
