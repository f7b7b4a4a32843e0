package private

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forget removes what a killed PostgreSQL leaves outside of its own memory: the
// file with its process id, which could be another process's at the next start,
// and the segment of shared memory that this file names, which nobody would
// remove if there is no next start.
func forget(data string) error {
	file := filepath.Join(data, "postmaster.pid")
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // killed before it was written
	}
	if err != nil {
		return err
	}
	// The seventh line is key and id of the segment. It comes late: a server
	// that was killed while it started has written fewer lines.
	if lines := strings.Split(string(content), "\n"); len(lines) > 6 {
		if fields := strings.Fields(lines[6]); len(fields) == 2 {
			id, err := strconv.Atoi(fields[1])
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
				return fmt.Errorf("shared memory %d: %w", id, err)
			}
		}
	}
	return os.Remove(file)
}
