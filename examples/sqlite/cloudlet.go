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
	dir   string
	hangs chan struct{} // receives a value for each call that does not return; nil: all calls return
}

// do executes an operation. If the calls hang, the cloudlet executes the operations of the
// first half of the clusters, and does not start those of the other half.
func (c cloudlet) do(ctx context.Context, cluster string, operation lifecycle.OpID) error {
	if c.hangs == nil {
		return c.execute(cluster, operation)
	}
	if cluster < id(wanted/2) {
		if err := c.execute(cluster, operation); err != nil {
			return err
		}
	}
	c.hangs <- struct{}{}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (c cloudlet) execute(cluster string, operation lifecycle.OpID) error {
	f, err := os.OpenFile(c.file(cluster), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "operation %d\n", operation)
	return errors.Join(err, f.Close())
}

func (c cloudlet) file(cluster string) string { return filepath.Join(c.dir, cluster) }

// executed returns the operations of a cluster that the cloudlet has executed.
func (c cloudlet) executed(cluster string) ([]string, error) {
	text, err := os.ReadFile(c.file(cluster))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), nil
}
