package sqlstore

import (
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// vector has the values of one change for any statement.
type vector [values]any

// of returns the arguments of a statement.
func (v *vector) of(st *statement) []any {
	args := make([]any, len(st.args))
	for i, a := range st.args {
		args[i] = v[a]
	}
	return args
}

// job is a commit on its way.
type job struct {
	c     *lifecycle.Commit
	steps []step // in the order of the changes
	keys  []lockKey
	at    []int64 // by change: when it was written; set on success
	// An answer was lost: what has this token may be of this very call, also where
	// a commit that is sent again would be a conflict.
	unsure bool
	// The history has no row any more at the place of a change, whoever's it was.
	gone   bool
	looked bool // the record was read once instead of waiting for a turn, see turn.late
}

// metadataOnly reports whether any change of the job is MetadataOnly.
func (j *job) metadataOnly() bool {
	return slices.ContainsFunc(j.steps, func(st step) bool { return st.ch.MetadataOnly })
}

// creates reports whether any change of the job may make a row.
func (j *job) creates() bool {
	return slices.ContainsFunc(j.steps, func(st step) bool { return st.ch.From == "" })
}

// step is one change.
type step struct {
	ch     *lifecycle.StoredChange
	index  int
	vals   vector
	expect int64 // number of the revision
	alien  bool  // the expected revision is none of this store's: it matches nothing
	stands error // why a first row was not made, if not for an error
}

// lockKey is an object that a commit of several has to hold still.
type lockKey struct {
	lifecycle.Key
	changes bool // or else it is only required
}

func (s *keeper) job(c *lifecycle.Commit) (*job, error) {
	if err := c.Check(s.has); err != nil {
		return nil, err
	}
	j := &job{c: c, steps: make([]step, len(c.Changes)), at: make([]int64, len(c.Changes))}
	for i := range c.Changes {
		st := &j.steps[i]
		st.ch, st.index = &c.Changes[i], i
		if err := s.checkNames(st.ch); err != nil {
			return nil, err
		}
		if err := s.l.takes(st.ch); err != nil {
			return nil, err
		}
		s.fill(st, c.Token)
	}
	for i := range c.Require {
		p := &c.Require[i]
		if err := s.checkKey(p.Key); err != nil {
			return nil, err
		}
	}
	if len(c.Changes)+len(c.Require) > 1 {
		j.keys = keysOf(c)
	}
	return j, nil
}

// fill makes the values of a change.
func (s *keeper) fill(st *step, token lifecycle.Token) {
	to := &st.ch.To
	var before []byte
	st.expect, before, st.alien = s.expected(st.ch)
	v := &st.vals
	*v = vector{
		vMachine: to.Machine, vID: to.ID, vState: to.State, vOrigin: to.Origin, vTarget: to.Target,
		vRevision: st.expect + 1, vSequence: int64(to.Sequence), vOperation: int64(to.Operation),
		vOwner: to.Owner, vEpoch: int64(to.Epoch), vWork: to.Work, vArgs: to.Args, vWorkOptions: to.WorkOptions,
		vActor: string(to.Actor), vEvent: to.Event, vReason: prose(to.Reason),
		vPayload: to.Payload, vSaved: to.Saved, vToken: token[:],
		vExpect: st.expect, vExpectToken: before, vFrom: s.named(st.ch.From), vWas: st.ch.From, vFromOrigin: st.ch.FromOrigin, vTo: to.State, vToOrigin: to.Origin,
	}
	if st.ch.Timeout > 0 {
		v[vWithin] = micros(st.ch.Timeout)
	}
	if st.ch.Remove {
		v[vState], v[vOrigin], v[vTarget] = s.l.removed, "", ""
		v[vPayload], v[vSaved], v[vWithin] = []byte(nil), []byte(nil), nil
		v[vOwner], v[vEpoch], v[vWork], v[vArgs], v[vWorkOptions] = "", int64(0), "", []byte(nil), []byte(nil)
	}
}

// named is a state as the table has it.
func (s *keeper) named(state string) string {
	if state == "" {
		return s.l.removed
	}
	return state
}

// expected reads the revision that a change expects.
func (s *keeper) expected(ch *lifecycle.StoredChange) (n int64, token []byte, alien bool) {
	if s.l.column[vRevision] == "" {
		return 0, nil, ch.Expect != stateRevision(ch.From) && (ch.From != "" || ch.Expect != absent)
	}
	n, token, ok := s.l.parse(ch.Expect)
	if token == nil {
		token = s.l.noToken()
	}
	return n, token, !ok
}

// first reports whether the change makes the first row of an object.
func (s *keeper) first(st *step) bool {
	return st.ch.From == "" && (st.expect == 0 || s.l.deletes)
}

// keysOf are the objects of a commit in the order in which all commits lock
// them: two commits that share some never wait for each other.
func keysOf(c *lifecycle.Commit) []lockKey {
	var keys []lockKey
	for i := range c.Changes {
		keys = append(keys, lockKey{c.Changes[i].To.Key, true})
	}
	for i := range c.Require {
		keys = append(keys, lockKey{c.Require[i].Key, false})
	}
	slices.SortFunc(keys, func(a, b lockKey) int {
		switch order := compareKeys(a.Key, b.Key); {
		case order != 0:
			return order
		case a.changes == b.changes:
			return 0
		case a.changes:
			return -1
		}
		return 1
	})
	return slices.CompactFunc(keys, func(a, b lockKey) bool { return a.Key == b.Key })
}

func compareKeys(a, b lifecycle.Key) int {
	if order := strings.Compare(a.Machine, b.Machine); order != 0 {
		return order
	}
	return strings.Compare(a.ID, b.ID)
}

// stamp fills what was written into the caller's commit.
func (s *keeper) stamp(j *job) {
	for i := range j.steps {
		st := &j.steps[i]
		rev := s.l.revision(st.expect+1, j.c.Token[:])
		if s.l.column[vRevision] == "" {
			rev = stateRevision(st.ch.To.State)
			if st.ch.Remove {
				rev = stateRevision("")
			}
		}
		st.ch.Stamp(rev, clock(j.at[i]))
		if st.ch.Timeout > 0 { // as it is kept
			st.ch.To.Deadline = clock(j.at[i] + micros(st.ch.Timeout))
		}
	}
}

// now notes the time at which a change was written, which is that of all.
func (j *job) now(micros int64) {
	for i := range j.steps {
		j.at[i], j.steps[i].vals[vNow] = micros, micros
	}
}

func (j *job) forgetNow() {
	for i := range j.steps {
		j.steps[i].vals[vNow] = nil
	}
}

func processNow() int64 { return time.Now().UnixMicro() }
