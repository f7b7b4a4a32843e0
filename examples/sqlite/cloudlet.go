package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// cloudlet simulates the infrastructure: a directory with a file for each cluster, and a
// line in it for each operation that was executed. The directory outlives the processes
// of the service.
type cloudlet struct {
	dir string
	// hangs receives a value for each call that does not return; nil: no call hangs.
	hangs chan<- struct{}
}

// do executes an operation that gives a cluster a number of nodes; 0 removes the
// cluster. If hangs is not nil, no call returns: the cloudlet executes the operations of
// the first half of the clusters, and does not start those of the other half.
func (c cloudlet) do(ctx context.Context, cluster string, operation lifecycle.OpID, nodes int) error {
	if c.hangs == nil || cluster < id(wanted/2) {
		if err := c.append(cluster, fmt.Sprintf("operation %d: %d nodes\n", operation, nodes)); err != nil || c.hangs == nil {
			return err
		}
	}
	c.hangs <- struct{}{}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (c cloudlet) append(cluster, line string) error {
	f, err := os.OpenFile(c.file(cluster), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

func (c cloudlet) file(cluster string) string { return filepath.Join(c.dir, cluster) }

// done reports whether the cloudlet has executed an operation.
func (c cloudlet) done(cluster string, operation lifecycle.OpID) (bool, error) {
	text, err := os.ReadFile(c.file(cluster))
	if os.IsNotExist(err) {
		return false, nil
	}
	return strings.Contains(string(text), fmt.Sprintf("operation %d:", operation)), err
}

// verify checks that a cluster has the number of nodes, and that no operation was
// executed twice.
func (c cloudlet) verify(cluster string, want int) error {
	text, err := os.ReadFile(c.file(cluster))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	last, executed := "0 nodes\n", map[string]bool{}
	for line := range strings.Lines(string(text)) {
		operation, nodes, _ := strings.Cut(line, ": ")
		if executed[operation] {
			return fmt.Errorf("the cloudlet executed %s of %s twice", operation, cluster)
		}
		last, executed[operation] = nodes, true
	}
	if want := fmt.Sprintf("%d nodes\n", want); last != want {
		return fmt.Errorf("%s has %q at the cloudlet, not %q", cluster, last, want)
	}
	return nil
}
