// Package private starts database servers of its own from the binaries that are
// installed, for tests that kill, stop or pause one and for machines where none
// runs.
//
// What it guarantees:
//   - A [Server] has a directory, a port and a data set of its own. No other
//     server is spoken to, and none that runs is changed.
//   - It runs as an ordinary user, also where the caller is root.
//   - A commit that was acknowledged survives [Server.Kill], with
//     [Config.Fast] too.
//   - Killed or paused means all of its processes, those of its connections
//     included.
//   - Nothing is left behind, neither processes nor files: not after
//     [Server.Close], and not when the process that started it panics, exits or is
//     killed.
//
// What it does not guarantee:
//   - Anything on other systems than Linux: there is no engine there,
//     [ErrMissing].
//   - That a killed server says anything about a loss of power: what the
//     operating system was given is still there.
package private

import (
	"errors"
	"time"
)

// ErrMissing is matched by what [StartPostgres] and [StartMariaDB] return where
// the engine is not installed, or cannot be started on this system.
var ErrMissing = errors.New("private: engine is missing")

// ErrState is matched by what the methods of a [Server] return when it does not
// run, or runs already. Nothing was done.
var ErrState = errors.New("private: server is in another state")

// Config says how a server is set up. Nil and the zero Config mean the defaults.
type Config struct {
	// Fast leaves out what protects from a loss of power: commits are written,
	// but nobody waits for the disk. Default: durable, as the engine's own
	// defaults are.
	Fast bool

	// Settings are variables of the server by name, such as max_connections.
	// They come after those that this package sets.
	Settings map[string]string
}

// patience bounds every wait for a server: long, because a slow machine that
// does other work is no failure.
const patience = time.Minute
