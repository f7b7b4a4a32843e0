package explore

// handler is one function of a system without its types.
type handler struct {
	kind    StepKind
	actor   int
	channel int                     // of StepSend and StepDeliver
	fault   string                  // name of the fault, of StepFault
	fair    func(label string) bool // reports whether its steps are fair; nil: none is
	// call calls the function. Several goroutines may do so at once. It returns a
	// function that numbers the results, which one goroutine calls.
	call func(t *tables, local, message uint32) func() []allowed
}

// none is the message of a handler without messages.
type none struct{}

// result is one call that a function of a system makes.
type result[L, M comparable] struct {
	label   string
	fault   bool
	fair    bool
	message M
	next    L
}

// allowed is a result in numbers.
type allowed struct {
	next    uint32 // local state of the actor
	message uint32
	label   uint32
	mark    uint32 // of its edge
}

// addHandler adds a function of an actor. c is nil if it has no channel.
func addHandler[L, M comparable](
	a *Actor[L], kind StepKind, c *Chan[M], f func(l L, m M, emit func(result[L, M])),
) Action {
	h := &handler{kind: kind, actor: a.at, channel: -1}
	if c != nil {
		h.channel = c.at
	}
	h.call = func(t *tables, local, message uint32) func() []allowed {
		locals := t.locals[a.at].(*interned[L])
		var messages *interned[M]
		var m M
		if c != nil {
			messages = t.messages[c.at].(*interned[M])
		}
		if kind == StepDeliver {
			m = messages.values[message]
		}
		var results []result[L, M]
		f(locals.values[local], m, func(r result[L, M]) {
			r.fair = h.fair != nil && h.fair(r.label)
			results = append(results, r)
		})
		return func() []allowed {
			list := make([]allowed, len(results))
			for i, r := range results {
				list[i] = allowed{next: locals.add(r.next), message: message, label: t.labels.add(r.label)}
				if kind == StepSend {
					list[i].message = messages.add(r.message)
				}
				switch {
				case r.fault:
					list[i].mark = isFault
				case r.fair && kind == StepAct:
					list[i].mark = t.actions.add(action{h, list[i].label}) + 1
				case r.fair:
					list[i].mark = t.actions.add(action{h, list[i].message}) + 1
				}
			}
			return list
		}
	}
	a.sys.handlers = append(a.sys.handlers, h)
	return Action{h}
}
