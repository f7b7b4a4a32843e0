// Sqlite keeps the clusters of an edge cloud in a SQLite file. The program starts the
// service as a process, kills the process with SIGKILL during its work, prints the
// content of the file, and starts the service again. The second process finds the
// operations that the first one left, observes the cloudlet, and completes them. At the
// end the program prints the history of one cluster.
//
// The program fails if a cluster is not Ready, or if the cloudlet has created a cluster
// twice.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	_ "modernc.org/sqlite" // driver sqlite

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var err error
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		err = serve(ctx, os.Stdout, os.Args[2], os.Args[3] == "slow")
	} else {
		err = run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sqlite:", err)
		os.Exit(1)
	}
}

// run runs the service twice, in a directory that it removes.
func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "interlock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, store, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer db.Close()
	clusters := lifecycle.Must(edgecloud.ClusterInst, store, nil)
	fmt.Fprintln(out, "the service starts, and its cloudlet does not answer")
	switch killed, err := process(ctx, out, dir, "slow"); {
	case err != nil:
		return err
	case !killed:
		return errors.New("the service has ended before it could be killed")
	}
	fmt.Fprintln(out, "the service is killed. The file contains:")
	if err := show(ctx, out, clusters); err != nil {
		return err
	}
	fmt.Fprintln(out, "the service starts again, on the same file")
	if _, err := process(ctx, out, dir, "fast"); err != nil {
		return err
	}
	fmt.Fprintln(out, "the service has ended. The file contains:")
	if err := show(ctx, out, clusters); err != nil {
		return err
	}
	return verify(ctx, out, clusters, cloudlet{dir: dir})
}

// process runs the service until it ends, and copies its output. It kills the
// service after the line waiting.
func process(ctx context.Context, out io.Writer, dir, pace string) (killed bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, self, "serve", dir, pace)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if lines.Text() == waiting {
			killed = true
			err = cmd.Process.Kill() // SIGKILL: kill -9
			continue
		}
		fmt.Fprintf(out, "  | %s\n", lines.Text())
	}
	if ended := cmd.Wait(); !killed {
		err = ended
	}
	return killed, err
}

// open opens the file and the store in it.
func open(ctx context.Context, dir string) (*sql.DB, *sqlstore.Store, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "clusters.db"))+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err == nil {
		err = sqlstore.Migrate(ctx, db, sqlstore.SQLite, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
	return db, store, err
}

// example is the cluster that the program explains.
var example = id(9)

// show prints the number of clusters in each state, and the explanation of one.
func show(ctx context.Context, out io.Writer, clusters *manager) error {
	count := map[edgecloud.State]int{}
	for c, err := range clusters.All(ctx, lifecycle.Select[edgecloud.State]{}) {
		if err != nil {
			return err
		}
		count[c.State]++
	}
	for _, s := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(out, "  %d are %s\n", count[s], s)
	}
	x, err := clusters.Explain(ctx, example)
	fmt.Fprintf(out, "%v", x)
	return err
}

// verify checks every cluster, in the file and at the cloudlet.
func verify(ctx context.Context, out io.Writer, clusters *manager, cloudlet cloudlet) error {
	for i := range wanted {
		c, err := clusters.Get(ctx, id(i))
		if err != nil {
			return err
		}
		if c.State != edgecloud.Ready || c.Payload.Nodes != nodes {
			return fmt.Errorf("%s ended in %s with %d nodes, not in Ready with %d", c.ID, c.State, c.Payload.Nodes, nodes)
		}
		executed, err := cloudlet.executed(c.ID)
		if err != nil {
			return err
		}
		if len(executed) != 1 {
			return fmt.Errorf("%s: the cloudlet executed %d creations, not one: %q", c.ID, len(executed), executed)
		}
	}
	fmt.Fprintf(out, "all %d clusters are Ready, and the cloudlet created each once. The history of %s:\n", wanted, example)
	rows, err := clusters.History(ctx, example, 0, 0)
	for _, row := range rows {
		fmt.Fprintf(out, "  %v\n", row)
	}
	return err
}
