package explore

// handler is one function of a system without its types.
type handler struct {
	kind    StepKind
	actor   int
	channel int                     // of StepSend and StepDeliver
	label   string                  // in errors
	fair    func(label string) bool // reports whether its steps are fair; nil: none is
	// call calls the function and numbers its results, in a list that is not nil.
	call func(t *tables, local, message uint32) []allowed
}

// none is the message of a handler without messages.
type none struct{}

// result is one call that a function of a system makes.
type result[L, M comparable] struct {
	label   string
	fault   bool
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
	a *Actor[L], kind StepKind, c *Channel[M], label string, f func(l L, m M, emit func(result[L, M])),
) Action {
	h := &handler{kind: kind, actor: a.at, channel: -1, label: label}
	if c != nil && a.sys.same(label, c.sys) {
		h.channel = c.at
	}
	h.call = func(t *tables, local, message uint32) []allowed {
		locals := t.locals[a.at].(*interned[L])
		var messages *interned[M]
		var m M
		if c != nil {
			messages = t.messages[c.at].(*interned[M])
		}
		if kind == StepDeliver {
			m = messages.values[message]
		}
		list := []allowed{}
		f(locals.values[local], m, func(r result[L, M]) {
			next := allowed{next: locals.add(r.next), label: t.labels.add(r.label)}
			action := next.label
			if c != nil {
				next.message = messages.add(r.message)
				action = next.message
			}
			if r.fault {
				next.mark = isFault
			} else if h.fair != nil && h.fair(r.label) {
				next.mark = t.actions.add(fairAction{h, action}) + 1
			}
			list = append(list, next)
		})
		return list
	}
	a.sys.handlers = append(a.sys.handlers, h)
	return Action{h}
}
