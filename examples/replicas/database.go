package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os/exec"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

type (
	// payload is the columns of a VM that are for users.
	payload = map[string]any
	manager = lifecycle.Manager[string, string, payload]
	record  = lifecycle.Record[string, payload]
)

// table is that of examples/service. Open refuses it if the columns differ.
var table = sqlstore.ExistingTable{
	Machine: "vm", Table: "vms",
	Columns: sqlstore.ColumnMap{
		ID: "name", State: "state", Version: "version", Origin: "origin", Revision: "revision", Token: "token",
		Sequence: "sequence", ChangeToken: "change_token", Operation: "operation", Admission: "admission",
		Owner: "owner", Epoch: "epoch", Work: "work", Args: "args", WorkOptions: "work_options",
		Deadline: "deadline", ChangedAt: "changed_at", Event: "event", Actor: "actor", Reason: "reason",
	},
	Fields: map[string]string{"image": "image", "cpus": "cpus", "memory": "memory", "address": "address"},
	Types:  map[string]sqlstore.Type{"cpus": sqlstore.Integer, "memory": sqlstore.Integer},
	Micros: true,
}

// createDatabase creates a database on the server of -db, or on a private one, until the run
// ends.
func (w *world) createDatabase(ctx context.Context) (*url.URL, error) {
	dsn := *serverURL
	if dsn == "" {
		server, err := private.StartPostgres(&private.Config{Fast: true})
		if err != nil {
			return nil, fmt.Errorf("no -db: %w", err)
		}
		w.atEnd(server.Close)
		dsn = server.DSN()
	}
	db, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	w.atEnd(admin.Close)
	name := "replicas_" + strings.ToLower(rand.Text())
	if _, err = admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	w.atEnd(func() error {
		_, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		return err
	})
	db.Path = "/" + name
	return db, nil
}

// reader reads the VMs of the replicas. It changes nothing.
type reader struct {
	db           *sql.DB
	vms          *manager
	transitional []string // states
}

// open opens the database of the replicas. The machine is that of the program.
func (r *reader) open(ctx context.Context, program, url string) error {
	text, err := exec.CommandContext(ctx, program, "-table").Output()
	if err != nil {
		return err
	}
	life, err := fsm.ReadTable(bytes.NewReader(text))
	if err != nil {
		return err
	}
	// The reader fires nothing, so that the quota needs no guard.
	quota := fsm.When("quota", func(context.Context, *payload, *payload) error { return nil })
	machine, err := fsm.Bind[payload, string, string](life, quota)
	if err != nil {
		return err
	}
	for state := range machine.States() {
		if machine.Kind(state) == fsm.Transitional {
			r.transitional = append(r.transitional, state)
		}
	}
	if r.db, err = sql.Open("pgx", url); err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, r.db, sqlstore.Postgres, &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}})
	if err != nil {
		return err
	}
	r.vms, err = lifecycle.New(machine, store, &lifecycle.Config[string]{Version: "1"})
	return err
}

// moving returns the VMs that are in transition, up to [lifecycle.MaxPage].
func (r *reader) moving(ctx context.Context) ([]record, error) {
	return r.vms.List(ctx, lifecycle.Select[string]{States: r.transitional, WithoutPayload: true})
}
