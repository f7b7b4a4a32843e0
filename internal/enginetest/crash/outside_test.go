//go:build unix

package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock/lifecycle"
)

// outside is the world that operations change: a directory with a file for each disk,
// and a line in it for each operation that was executed. It refuses an operation that
// is older than one it has executed. The directory outlives the processes.
type outside string

// apply executes the operation whose work runs with the context.
func (o outside) apply(ctx context.Context) error {
	t := lifecycle.TaskOf(ctx)
	return o.note(t.ID, deed{t.Operation, t.Owner, t.Epoch})
}

// note writes a line.
func (o outside) note(id string, d deed) error {
	f, err := os.OpenFile(o.file(id), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // this unlocks the file too, as does the end of the process
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	before, err := o.done(id)
	if err != nil {
		return err
	}
	for _, b := range before {
		if b.operation > d.operation {
			return fmt.Errorf("%w: the newer operation %d of %s was executed before", lifecycle.ErrStale, b.operation, id)
		}
	}
	_, err = fmt.Fprintln(f, d.operation, strconv.Quote(d.owner), d.epoch)
	return err
}

func (o outside) file(id string) string { return filepath.Join(string(o), id) }

// deed is one line.
type deed struct {
	operation lifecycle.OpID
	owner     string
	epoch     uint64
}

// done returns the operations that were executed for a disk.
func (o outside) done(id string) (deeds []deed, err error) {
	text, err := os.ReadFile(o.file(id))
	if os.IsNotExist(err) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		var d deed
		if _, err := fmt.Sscanf(line, "%d %q %d\n", &d.operation, &d.owner, &d.epoch); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		deeds = append(deeds, d)
	}
	return deeds, err
}
