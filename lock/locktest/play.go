package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// play makes the calls of a script, a vector or a random sequence. At the end it releases
// all grants, until nothing waits. A failure shows the sentence of a script.
func (e *env) play(states string, steps []step) {
	at := ""
	defer func() {
		if e.Failed() {
			e.Log("in " + at + "\n" + states)
		}
	}()
	systems := map[string]*system{}
	for i, s := range steps {
		at = fmt.Sprintf("step %d, %s", i+1, s.text)
		require.Contains(e, operations, s.op, "the operation is unknown")
		if s.op == "count" || s.op == "idle" {
			s.count(e, systems)
			continue
		}
		if systems[s.system] == nil {
			systems[s.system] = e.newSystem()
		}
		systems[s.system].take(s)
	}
	at = "the release of all grants"
	for _, sys := range systems {
		sys.release()
	}
}

// count requires a stated count of the Tree of a system or of all, which agree with the
// lockers after every other step. Idle is a count of nothing.
func (s *step) count(e *env, systems map[string]*system) {
	held, waiting := 0, 0
	for name, sys := range systems {
		if s.system == "" || s.system == name {
			counts := sys.tree.Counts()
			held, waiting = held+counts.Held, waiting+counts.Waiting
		}
	}
	require.Equal(e, s.held, held, "grants that are held")
	require.Equal(e, s.waiting, waiting, "acquisitions that wait")
}

// system makes every call twice: of a [lock.Tree], which is the reference, and of a locker
// under test. It requires that both show the same after every call.
type system struct {
	*env
	tree      *lock.Tree
	want, got *player // of the Tree and of the locker
}

func (e *env) newSystem() *system {
	tree := lock.Must(&e.config)
	return &system{env: e, tree: tree, want: e.newPlayer(tree), got: e.newPlayer(e.fresh())}
}

// take makes the call of a step and requires the answer that it states.
func (sys *system) take(s step) {
	if a := sys.want.clients[s.client]; s.random && acquires(s.op) && a != nil && (!a.returned() || a.held()) {
		return
	}
	sys.want.start(s)
	sys.settle()
	sys.got.start(s)
	sys.compare()
	granted := sys.finish()
	if s.random {
		return
	}
	kind, names := sys.want.answer()
	require.Equal(sys, cmp.Or(s.want, "ok"), kind, "the answer")
	if s.with != nil {
		require.Equal(sys, sorted(s.with), sorted(names), "the names in the answer")
	}
	require.Equal(sys, strings.Join(s.granted, " "), strings.Join(granted, " "), "the waits that the step grants")
}

// compare requires that the calls have the same answers, and that the locker then shows what
// the Tree shows. A call has its effect before it returns. So a grant shows it before the waits
// that it ends return, and only the snapshot may come later: it shows a new wait.
func (sys *system) compare() {
	if sys.want.last.returned() {
		sys.wait(sys.got.last)
		require.Equal(sys, sys.want.outcome(sys.want.last), sys.got.outcome(sys.got.last), "the answers of the Tree and of the locker")
	}
	sys.compareCalls()
	require.Equal(sys, sys.want.scopes(), sys.got.scopes(), "Holders of the Tree and of the locker")
	want, got := sys.want.snapshot(), ""
	_ = sys.eventually(func() error {
		if got = sys.got.snapshot(); got != want {
			return errors.New("the snapshots differ")
		}
		return nil
	})
	if got != want {
		sys.compareCalls() // a wait may have failed meanwhile
	}
	require.Equal(sys, want, got, "the snapshots of the Tree and of the locker")
	require.Equal(sys, sys.want.show(sys.want.obstacle()), sys.got.show(sys.got.obstacle()), "the holders for which a call waits")
}

// compareCalls requires that each call and its grant show the same in both lockers, one after
// the other: a grant does so before the next call has returned.
func (sys *system) compareCalls() {
	sys.Helper()
	for i, a := range sys.want.all {
		if a.returned() {
			sys.wait(sys.got.all[i].call)
		}
		require.Equal(sys, sys.want.view(a), sys.got.view(sys.got.all[i]), "what a call of the Tree shows, and of the locker")
	}
}

// sorted returns every name once.
func sorted(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), " ")
}

// settle waits until the calls of the Tree have returned that no request blocks any more. No
// two calls wait for one id.
func (sys *system) settle() {
	require.NoError(sys, sys.eventually(func() error {
		waiting := 0
		for _, a := range sys.want.all {
			if !a.returned() {
				waiting++
			}
		}
		if counts := sys.tree.Counts(); counts.Waiting != waiting {
			return fmt.Errorf("the Tree has %d waits, and %d calls have not returned", counts.Waiting, waiting)
		}
		return nil
	}))
}

// finish ends a step, after which both lockers show the same. It returns the clients whose
// waits the step has granted, in the order of the Tree's tokens.
func (sys *system) finish() (granted []string) {
	sys.want.forget()
	sys.got.forget()
	former := len(sys.got.issued)
	for _, i := range sys.want.renewed() {
		want, got := sys.want.all[i], sys.got.all[i]
		if want.token == 0 && want.call != sys.want.last {
			granted = append(granted, want.client)
		}
		before := got.token
		want.token, got.token = want.grant.Token(), got.grant.Token()
		if before > 0 {
			sys.got.replaced(before, got.token)
		}
		if sys.got.number(got.token) == i+1 { // or an earlier acquisition has the same id
			sys.got.issue(issued{got.token, got.grant.Requests()}, former)
		}
	}
	return granted
}

// release releases all grants. What waits is granted before its turn.
func (sys *system) release() {
	for {
		i := slices.IndexFunc(sys.want.all, (*acquisition).held)
		if i < 0 {
			return
		}
		sys.want.clients["the suite"], sys.got.clients["the suite"] = sys.want.all[i], sys.got.all[i]
		sys.take(step{text: "unlock", client: "the suite", op: "unlock", random: true})
	}
}
