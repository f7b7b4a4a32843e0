package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Version is an earlier version of a machine's table and payload, whose records a manager
// reads and writes, see [Config].Older. It is a value.
//
// Events and actors have no map, because no decision depends on those of earlier changes.
// A history row keeps the names of the program that wrote it. Three comparisons use names
// of events across programs, and do not find one that has another name there:
//
//   - a repeated report ([Manager.Report]) is Refused, where it would be Repeated
//   - a repeated request ([Change].Request) is a different request, and [ErrInvalid]
//   - a history that is compared with the table of its version lacks the event
//
// To rename an event without that, let the table have rows for both names until the
// records are migrated and no client repeats a request with the old name.
type Version struct {
	// Name is the [Config].Version of the programs that wrote the records. Empty: they
	// had none.
	Name string
	// States has every state of the version, the absent one too, and the state of the
	// manager's table that it is. A record in another state is refused with [ErrForeign].
	// The command fsm diff writes this map.
	//
	// No two states are the same one. A name that the manager's table has too is that
	// state: to swap two names takes three versions. A name of two versions is the same
	// state in both, because [Manager.Require] and [Manager.List] compare names only.
	States map[string]string
	// Upgrade returns the payload of the manager's version for one of this version,
	// Downgrade the reverse. Both are JSON. They neither change nor keep their
	// argument. They run whenever a record of this version is read or written, also
	// concurrently. An empty payload stays empty. An error of Upgrade makes the record an
	// [ErrForeign], one of Downgrade is the error of the call. Set both or neither.
	// Default: the versions have the same payload.
	Upgrade, Downgrade func(payload []byte) ([]byte, error)
}

// older is a [Version] in use.
type older struct {
	Version
	names map[string]string // the names of this version by the present ones
}

// VersionError is the error about a record of a version that the manager does not have: its
// program is older than the one that wrote the record, or [Config].Older lacks the version.
// The record is not changed, and a process of another version can serve the request. It
// matches [ErrForeign].
type VersionError struct {
	Record  string // the version of the record
	Manager string // the [Config].Version of the manager
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: the record is of version %q, which this manager of version %q does not have", ErrForeign, e.Record, e.Manager)
}

// Is matches [ErrForeign].
func (e *VersionError) Is(target error) bool { return target == ErrForeign || target == errVersion }

// errVersion is a [VersionError] for [Problem].
var errVersion = errors.New("lifecycle: the record is of a version that this program does not have")

// newOlder checks the older versions of a configuration.
func newOlder[E comparable](table *fsm.Table, config *Config[E]) (list []older, err error) {
	refuse := func(v *Version, format string, args ...any) error {
		return fmt.Errorf("%w: New: Config.Older: version %q: %s", ErrInvalid, v.Name, fmt.Sprintf(format, args...))
	}
	if config.Switch && len(config.Older) == 0 {
		return nil, fmt.Errorf("%w: New: Config.Switch: there is no older version", ErrInvalid)
	}
	for _, v := range config.Older {
		if v.Name == config.Version || slices.ContainsFunc(list, func(o older) bool { return o.Name == v.Name }) {
			return nil, refuse(&v, "there are two of this name")
		}
		if (v.Upgrade == nil) != (v.Downgrade == nil) {
			return nil, refuse(&v, "Upgrade and Downgrade need each other")
		}
		o := older{v, map[string]string{}}
		o.States = maps.Clone(v.States)
		for _, was := range slices.Sorted(maps.Keys(v.States)) {
			is := v.States[was]
			if _, ok := table.StateIndex(is); !ok {
				return nil, refuse(&v, "state %q: machine %s has no state %q", was, table.Name, is)
			}
			if before, ok := o.names[is]; ok {
				return nil, refuse(&v, "states %q and %q are both %q", before, was, is)
			}
			if _, ok := table.StateIndex(was); ok && was != is {
				return nil, refuse(&v, "state %q is %q, and machine %s has a state %q too", was, is, table.Name, was)
			}
			for i := range list {
				if other, ok := list[i].States[was]; ok && other != is {
					return nil, refuse(&v, "state %q is %q, and in version %q it is %q", was, is, list[i].Name, other)
				}
			}
			o.names[is] = was
		}
		list = append(list, o)
	}
	return list, nil
}

// olderVersion returns the older version with this name, or nil.
func (c *core) olderVersion(name string) *older {
	for i := range c.older {
		if c.older[i].Name == name {
			return &c.older[i]
		}
	}
	return nil
}

// newVersion is the version of new objects.
func (c *core) newVersion() string {
	if len(c.older) == 0 || c.switched {
		return c.version
	}
	return c.older[len(c.older)-1].Name
}

// storedNames returns the names that a state has in records: the present one, and those of
// older versions.
func (c *core) storedNames(state string) []string {
	names := []string{state}
	for i := range c.older {
		if was, ok := c.older[i].names[state]; ok && !slices.Contains(names, was) {
			names = append(names, was)
		}
	}
	return names
}

// recognize brings a record of an older version into the form of the manager's version. Every
// decision is made on this form. It returns the part that decisions depend on, and the record
// in the form of its own version: r, if that is the manager's. A record that another program
// has written without a version is of the version of new objects, see [Adopt], and the origin
// of a state at rest is that state. The error matches [ErrForeign], and state and payload are
// then unchanged.
func (c *core) recognize(r *StoredRecord) (rec decide.Record, stored *StoredRecord, err error) {
	if r.Exists() && r.Sequence == 0 && r.Version == "" && c.olderVersion("") == nil {
		r.Version = c.newVersion()
	}
	if c.resting(r) { // the program may have written the state alone
		r.Origin = r.State
	}
	rec = decide.Record{
		Exists: r.Exists(), Sequence: r.Sequence, Operation: uint64(r.Operation),
		Work: r.Work != "", Owner: r.Owner, Epoch: r.Epoch, Saved: r.Exists() && r.Saved != nil,
	}
	if !r.Exists() {
		return rec, r, nil
	}
	stored = r
	if r.Version != c.version {
		was := *r
		stored = &was
		if err := c.upgrade(r); err != nil {
			return rec, stored, err
		}
	}
	if rec.State, rec.Origin, err = c.table.ParseStatus(r.State, r.Origin); err != nil {
		err = fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return rec, stored, err
}

// resting reports whether an object is in a state that is declared and not
// transitional. The record may be in the form of an older version.
func (c *core) resting(r *StoredRecord) bool {
	state := r.State
	if v := c.olderVersion(r.Version); v != nil {
		state = v.States[state]
	}
	i, ok := c.table.StateIndex(state)
	return ok && c.table.States[i].Kind.Resting()
}

// upgrade brings a record of an older version into the form of the manager's version.
func (c *core) upgrade(r *StoredRecord) error {
	v, to := c.olderVersion(r.Version), *r
	if v == nil {
		return &VersionError{Record: r.Version, Manager: c.version}
	}
	if err := v.rename(&to, v.States); err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if err := convert(&to, v.Upgrade); err != nil {
		return fmt.Errorf("%w: Upgrade of version %q: %w", ErrForeign, v.Name, err)
	}
	to.Version = c.version
	*r = to
	return nil
}

// downgrade brings a change of a record of this version into the form of the version.
func (v *older) downgrade(ch *StoredChange) error {
	if err := v.rename(&ch.To, v.names); err != nil {
		return err
	}
	if err := convert(&ch.To, v.Downgrade); err != nil {
		return fmt.Errorf("downgrade to version %q: %w", v.Name, err)
	}
	ch.To.Version = v.Name
	return nil
}

// fit returns a decision about a record of the version. It refuses a state that the version
// does not have.
func (v *older) fit(table *fsm.Table, d decide.Decision, exists bool) decide.Decision {
	if !d.Write || d.MetadataOnly {
		return d
	}
	for _, state := range []int{d.State, d.Origin} {
		name := table.States[state].Name
		if _, ok := v.names[name]; !ok {
			err := fmt.Errorf("%w: version %q of the record has no state %q until it is migrated", fsm.ErrNotAllowed, v.Name, name)
			if !exists {
				err = fmt.Errorf("%w: Config.Older: version %q, which new objects have until Config.Switch is set, has no state %q",
					fsm.ErrNotAllowed, v.Name, name)
			}
			return decide.Decision{Row: d.Row, Verdict: decide.Refused, Err: err}
		}
	}
	return d
}

// rename replaces the names of states in a record.
func (v *older) rename(r *StoredRecord, names map[string]string) error {
	for _, state := range []*string{&r.State, &r.Origin} {
		name, ok := names[*state]
		if !ok {
			return fmt.Errorf("Config.Older: version %q has no state %q", v.Name, *state)
		}
		*state = name
	}
	r.Target = names[r.Target]
	return nil
}

// convert converts the payloads of a record.
func convert(r *StoredRecord, f func([]byte) ([]byte, error)) (err error) {
	if f == nil {
		return nil
	}
	for _, payload := range []*[]byte{&r.Payload, &r.Saved} {
		if len(*payload) == 0 {
			continue
		}
		if *payload, err = f(*payload); err != nil {
			return err
		}
	}
	return nil
}
