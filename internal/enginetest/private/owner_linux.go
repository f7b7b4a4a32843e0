package private

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner is the user that runs a server. The zero owner is the user that we are.
type owner struct {
	credential *syscall.Credential
}

// ordinary returns the first of the users that exists if we are root, whom
// servers refuse; else the user that we are.
func ordinary(names []string) (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	errs := make([]error, 0, len(names))
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return owner{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return owner{}, err
		}
		return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return owner{}, fmt.Errorf("no ordinary user to run it: %w", errors.Join(errs...))
}

// own gives a directory to the owner.
func (o owner) own(dir string) error {
	if o.credential == nil {
		return nil
	}
	return os.Chown(dir, int(o.credential.Uid), int(o.credential.Gid))
}
