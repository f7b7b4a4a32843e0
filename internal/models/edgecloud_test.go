package models

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestDocument finds what is wrong with the protocol as the document has it: what
// a CRM reports about one operation is taken for the answer to another. The traces
// are the shortest: breadth first, a step is one send, one delivery, one action or
// one fault.
func TestDocument(t *testing.T) {
	for _, c := range []struct {
		name  string
		model EdgeCloud
		steps int
	}{
		{"document-disconnect", EdgeCloud{Ordered: true, Disconnect: 1}, 4},
		{"document-crash", EdgeCloud{Ordered: true, Crash: 1}, 5},
		{"document-duplicate", EdgeCloud{Duplicate: 1}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.model.Operations = 2
			v := explored(t, c.model.System())
			require.Equal(t, explore.Violated, v.Outcome, v)
			require.Len(t, v.Trace.Steps, c.steps)
			requireTrace(t, c.name, v)
		})
	}
}

// TestDocumentWithoutFaults: where nothing goes wrong, the document is right.
func TestDocumentWithoutFaults(t *testing.T) {
	const restart = `actor "crm" in action 1`
	requireHolds(t, EdgeCloud{Operations: 3, Failures: 1}.System(), 500, restart)
	requireHolds(t, EdgeCloud{Operations: 3, Failures: 1, Ordered: true, Absent: true}.System(), 150, restart)
}

// faulty has one of each fault.
func faulty(operations uint8) EdgeCloud {
	return EdgeCloud{Parts: Complete, Operations: operations, Loss: 1, Duplicate: 1, Disconnect: 1, Crash: 1}
}

// TestVerifyEdgeCloud explores the protocol as lifecycle runs it, completely: with
// three operations, one each of loss, duplicate, disconnect and crash, and
// unordered channels, nothing is violated and nothing gets stuck.
func TestVerifyEdgeCloud(t *testing.T) {
	t.Parallel()
	if !long {
		requireHolds(t, faulty(2).System(), 50_000)
		return
	}
	requireHolds(t, faulty(3).System(), 190_000)
	for _, absent := range []bool{false, true} {
		model := faulty(3)
		model.Failures, model.Capacity, model.Absent = 1, 3, absent
		requireHolds(t, model.System(), 3_000_000)
	}
}

// TestWithout takes away each of the four parts that the document does not have.
// What comes of it is wrong or gets stuck.
func TestWithout(t *testing.T) {
	for _, c := range []struct {
		name    string
		part    Part
		outcome explore.Outcome
	}{
		{"without-fence", Fence, explore.Violated},
		{"without-outcomes", Outcomes, explore.Violated},
		{"without-memory", Memory, explore.Violated},
		{"without-resend", Resend, explore.Stuck},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := faulty(3)
			model.Parts &^= c.part
			v := explored(t, model.System())
			require.Equal(t, c.outcome, v.Outcome, v)
			requireTrace(t, c.name, v)
		})
	}
}

// TestLateReport changes only the comparison of a report with a later operation. The
// protocol is complete, and the trace contains a late report with its operation id.
func TestLateReport(t *testing.T) {
	older := shipped
	olderReportsCount(&older)
	v := explored(t, EdgeCloud{Parts: Complete, Operations: 2, Duplicate: 1, Decisions: &older}.System())
	require.Equal(t, explore.Violated, v.Outcome, v)
	requireTrace(t, "late-report", v)
}

// TestLimits shows the limits of the protocol. A sweeper that abandons an operation sends
// no message to the CRM: the CRM may execute the operation after its undo. A CRM loses its
// memory by a crash, or because too many other objects were removed: it must not receive
// earlier orders then.
func TestLimits(t *testing.T) {
	for name, model := range map[string]EdgeCloud{
		"limit-deadline": {Parts: Complete, Operations: 1, Deadlines: 1},
		"limit-forgets":  {Parts: Complete, Operations: 2, Forgets: true},
		"limit-durable":  {Parts: Complete, Operations: 2, Crash: 1, Durable: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := explored(t, model.System())
			require.Equal(t, explore.Violated, v.Outcome, v)
			requireTrace(t, name, v)
		})
	}
}

// TestLimitsInOrder: on channels that keep the order, there is no order from before.
func TestLimitsInOrder(t *testing.T) {
	for _, model := range []EdgeCloud{
		{Parts: Complete, Ordered: true, Forgets: true, Operations: 3, Loss: 1, Duplicate: 1, Disconnect: 1, Crash: 1},
		{Parts: Complete, Ordered: true, Durable: true, Operations: 3, Loss: 1, Duplicate: 1, Disconnect: 1, Crash: 1},
	} {
		requireHolds(t, model.System(), 10_000)
	}
}

// TestWorkers: the verdict, the counts and the counterexample do not depend on how
// many explore.
func TestWorkers(t *testing.T) {
	without := faulty(3)
	without.Parts &^= Memory
	for _, model := range []EdgeCloud{faulty(2), without} {
		var all []*explore.Verdict
		for _, workers := range []int{1, 2, 5} {
			v, err := model.System().Explore(t.Context(), &explore.Config{Workers: workers})
			require.NoError(t, err)
			v.Bytes = 0
			all = append(all, v)
		}
		require.Equal(t, all[0], all[1])
		require.Equal(t, all[0], all[2])
	}
}

func TestControllerHears(t *testing.T) {
	e := &EdgeCloud{Parts: Complete, Operations: 1}
	ready, _ := e.begin()
	var asked controller
	e.asks(ready, func(label string, c controller) {
		if label == string(edgecloud.Update) {
			asked = c
		}
	})
	require.Equal(t, "UpdateRequested, version 2, operation 2", asked.String())
	for _, c := range []struct {
		say  info
		want string // empty: nothing changes
	}{
		{info{edgecloud.Updating, 2}, "Updating, version 2, operation 2"},
		{info{edgecloud.Ready, 2}, "Ready, version 2"},
		{info{edgecloud.UpdateError, 2}, "UpdateError, version 2"},
		{info{edgecloud.Ready, 1}, ""},       // of the operation before
		{info{edgecloud.Ready, 0}, ""},       // it is there: no answer
		{info{edgecloud.NotPresent, 2}, ""},  // an update cannot lead there
		{info{edgecloud.DeleteError, 2}, ""}, // nor there
		{info{edgecloud.Creating, 2}, ""},    // nor there
	} {
		t.Run(c.say.String(), func(t *testing.T) {
			got := ""
			e.receives(asked, c.say, func(_ string, c controller) { got = c.String() })
			require.Equal(t, c.want, got)
		})
	}
}

func TestWorkerTakes(t *testing.T) {
	e := &EdgeCloud{Parts: Complete}
	_, a := e.begin()
	take := func(a agent, o order) (next agent, changed bool) {
		e.takes(a, o, func(_ string, n agent) { next, changed = n, true })
		return next, changed
	}
	second, ok := take(a, order{edgecloud.Update, 2})
	require.True(t, ok)
	require.Equal(t, "version 1 there, Update 2: working", second.String())
	_, ok = take(second, order{edgecloud.Update, 1})
	require.False(t, ok, "older than its last order")
	second.At, second.There, second.Reported = done, 2, true
	again, ok := take(second, order{edgecloud.Update, 2})
	require.True(t, ok)
	require.Equal(t, done, again.At, "what is done is not done again")
	require.False(t, again.Reported, "the CRM reports it again")
	second.Link = crashed
	_, ok = take(second, order{edgecloud.Update, 3})
	require.False(t, ok)
}

// TestWrittenAsDecided: what an object looks like after a commit is what decide
// reports, and content that was saved comes back.
func TestWrittenAsDecided(t *testing.T) {
	ask := func(o versioned, e edgecloud.Event, q decide.Request, content uint8) versioned {
		q.Event = event(e)
		next, decision := new(EdgeCloud).ask(o, q, content)
		require.NoError(t, decision.Err)
		require.True(t, decision.Write)
		return next
	}
	o := ask(versioned{}, edgecloud.Create, decide.Request{Verb: decide.Create, Actor: edgecloud.User}, 1)
	require.Equal(t, uint8(1), o.Content)
	o = ask(o, edgecloud.Done, decide.Request{Verb: decide.Report, Actor: edgecloud.CRM, Operation: 1}, 0)
	o = ask(o, edgecloud.Update, decide.Request{Verb: decide.Fire, Actor: edgecloud.User, Edits: true}, 2)
	require.Equal(t, versioned{o.object, 2, 1}, o)
	require.True(t, o.Saved)
	o = ask(o, edgecloud.Fail, decide.Request{Verb: decide.Report, Actor: edgecloud.CRM, Operation: 2}, 0)
	o = ask(o, edgecloud.Undo, decide.Request{Verb: decide.Fire, Actor: edgecloud.Controller, Undo: true}, 0)
	require.Equal(t, versioned{o.object, 1, 0}, o)
	o = ask(o, edgecloud.Delete, decide.Request{Verb: decide.Fire, Actor: edgecloud.User}, 0)
	o = ask(o, edgecloud.Prepared, decide.Request{Verb: decide.Fire, Actor: edgecloud.Controller}, 0)
	o = ask(o, edgecloud.Done, decide.Request{Verb: decide.Report, Actor: edgecloud.CRM, Operation: 3}, 0)
	require.Equal(t, versioned{object: object{Record: decide.Record{Operation: 3}}}, o)
}
