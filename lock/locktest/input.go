package locktest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

func inputDemands() []demand {
	return []demand{
		{
			name: "G12_bad_input/is_refused_before_any_effect", run: badInput,
			says: "A path, mode, list, text or scope that is not valid is ErrInvalid, also where the request would conflict, and nothing happens.",
		},
		{
			name: "G12_bad_input/a_bad_conversion_changes_nothing", run: badConversions,
			says: "A conversion to a mode that there is not, or down to one that is not covered, is ErrInvalid, and the grant is as it was.",
		},
		{
			name: "G12_bad_input/a_full_queue", run: fullQueue, needs: needMaxWaiters,
			setup: func(c *lock.Config) { c.MaxWaiters = 2 },
			says:  "One waiter more than MaxWaiters is refused with ErrQueueFull and names; tries and what need not wait are not counted; who leaves makes room.",
		},
	}
}

func (t *trial) invalid(what string, err error) {
	t.Helper()
	if !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("%s is to be ErrInvalid: %v", what, err)
	}
}

func badInput(t *trial) {
	held := t.take("holder", at(lock.X, "/a"))
	defer t.unlock(held)
	before := t.snapshot()
	good, taken := at(lock.X, "/free"), at(lock.X, "/a")
	tooLong := string(slices.Repeat([]byte{'x'}, lock.MaxText+1))
	for what, bad := range map[string]struct {
		rs []lock.Request
		o  *lock.Options
	}{
		"the zero path":           {rs: []lock.Request{{Mode: lock.X}}},
		"mode 0":                  {rs: []lock.Request{{Path: good.Path}}},
		"mode 6":                  {rs: []lock.Request{{Path: good.Path, Mode: lock.X + 1}}},
		"mode 9":                  {rs: []lock.Request{{Path: good.Path, Mode: 8 + lock.IS}}},
		"a list of nothing":       {rs: []lock.Request{}},
		"a list with a bad path":  {rs: []lock.Request{good, {Mode: lock.X}}},
		"a list with a bad mode":  {rs: []lock.Request{good, {Path: good.Path}}},
		"a bad one behind one":    {rs: []lock.Request{taken, {Mode: lock.X}}},
		"a list that is too long": {rs: slices.Repeat([]lock.Request{good}, lock.MaxRequests+1)},
		"an id that is too long":  {rs: []lock.Request{good}, o: &lock.Options{ID: tooLong}},
		"an owner with a NUL":     {rs: []lock.Request{good}, o: &lock.Options{Owner: "a\x00b"}},
		"a reason of other bytes": {rs: []lock.Request{good}, o: &lock.Options{Reason: "\xff"}},
		"a taken one, a bad id":   {rs: []lock.Request{taken}, o: &lock.Options{ID: "\x00"}},
	} {
		for _, wait := range []bool{false, true} {
			h, err := t.asks(t.Context(), wait, bad.rs, bad.o)
			t.invalid(what, err)
			if h != nil {
				t.Errorf("%s is granted", what)
			}
			t.unchanged(what, before)
		}
	}
	for _, scope := range []lock.Scope{0, 8, 15} {
		_, err := t.l.Holders(t.Context(), good.Path, scope)
		t.invalid(scope.String(), err)
	}
	_, err := t.l.Holders(t.Context(), lock.Path{}, lock.At)
	t.invalid("Holders at the zero path", err)
}

func badConversions(t *trial) {
	h := t.take("holder", at(lock.IX, "/a"), at(lock.SIX, "/b"))
	defer t.unlock(h)
	before, token := t.snapshot(), h.Token()
	for _, m := range []lock.Mode{0, lock.X + 1, 8 + lock.IS} {
		t.invalid(fmt.Sprintf("an upgrade to %s", m), h.Upgrade(t.Context(), m))
		t.invalid(fmt.Sprintf("a downgrade to %s", m), h.Downgrade(t.Context(), m))
	}
	for _, m := range []lock.Mode{lock.S, lock.SIX, lock.X} {
		t.invalid(fmt.Sprintf("a downgrade of IX to %s", m), h.Downgrade(t.Context(), m))
	}
	t.unchanged("bad conversions", before)
	if h.Token() != token {
		t.Errorf("bad conversions change the token from %d to %d", token, h.Token())
	}
}

func fullQueue(t *trial) {
	held := t.take("holder", at(lock.X, "/a"))
	first := t.waits("first", at(lock.X, "/a"))
	second := t.waits("second", at(lock.S, "/a/b"), at(lock.S, "/a/c"))
	before := t.snapshot()
	h, err := t.asks(t.Context(), true, []lock.Request{at(lock.S, "/a/c/d")}, by("third"))
	conflict := t.conflict("one waiter too many", h, err, lock.ErrQueueFull)
	t.names("one waiter too many", conflict.Holders, conflict.More,
		t.shown(held, by("holder"), at(lock.X, "/a")), t.shown(nil, by("first"), at(lock.X, "/a")))
	h, err = t.asks(t.Context(), true, []lock.Request{at(lock.X, "/free"), at(lock.S, "/a")}, by("list"))
	t.conflict("a list too many", h, err, lock.ErrQueueFull)
	t.unchanged("a full queue", before)
	free, err := t.asks(t.Context(), true, []lock.Request{at(lock.X, "/free")}, by("free"))
	if err != nil {
		t.Fatalf("a full queue, and a Lock that need not wait: %v", err)
	}
	t.unlock(free)
	t.givenUp(second)
	third := t.waits("third", at(lock.S, "/a"))
	t.unlock(held)
	t.unlock(t.granted(first))
	t.unlock(t.granted(third))
	t.idle("all was unlocked")
}
