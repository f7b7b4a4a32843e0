package queue

// SetLimit replaces the limit of a class. The path is as in [Config.Classes]: "" is the
// root, and one that ends in "*" is a pattern, whose limit also applies to the classes
// that use it now. A class that the queue does not have is made, and so are the classes
// above it. Actions that run continue; if they are more than the limit allows, none starts
// until enough have ended. At the root a MaxRunning of 0 means 1,024.
//
// SetLimit returns an [*InvalidError] for a negative number and for a bad path, and
// changes nothing then. It does not change whether the class is paused: a class that its
// pattern has paused stays paused until it is resumed by its own path.
func (q *Queuer[K]) SetLimit(class string, limit Limit) error {
	if err := limit.check("Limit", class); err != nil {
		return err
	}
	q.once.Do(q.prepare)
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.withOwnRule(class)
	if c == &q.root && limit.MaxRunning == 0 {
		limit.MaxRunning = defaultMaxRunning
	}
	c.rule.limit = limit
	q.pump(q.now())
	return nil
}

// PauseClass keeps the actions of a class, and of all classes below, from starting, until
// [Queuer.ResumeClass]. Running actions continue. A paused class accepts actions, and
// [Queuer.Stop] and [Queuer.Terminate] wait for them. The class "" is the whole queue. A
// pattern such as "aws/*" pauses the classes that use it. A class that used a pattern has
// its own copy of the limit from then on. [Info.Paused] shows the pause.
//
// PauseClass returns an [*InvalidError] for a class that the queue does not have, and
// changes nothing then. To pause a class twice is not an error.
func (q *Queuer[K]) PauseClass(class string) error { return q.setPaused(class, true) }

// ResumeClass ends a pause: the actions of the class start in their turns. It returns an
// [*InvalidError] for a class that the queue does not have, and changes nothing then. To
// resume a class that is not paused is not an error. If a class above is paused too, the
// actions wait until that class is resumed.
func (q *Queuer[K]) ResumeClass(class string) error { return q.setPaused(class, false) }

func (q *Queuer[K]) setPaused(class string, paused bool) error {
	q.once.Do(q.prepare)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.ruleOf(class)
	if now == nil {
		return &InvalidError{"Class", noClass(class)}
	}
	if paused || now.paused {
		q.withOwnRule(class).rule.paused = paused
		q.pump(q.now())
	}
	return nil
}

// noClass is the problem of a class that the queue does not have.
func noClass(class string) string { return "neither Config.Classes nor SetLimit has " + class }

// Resume continues a lane that a failed action halted, and reports whether the lane
// was halted. The next action starts when the failed one has ended, also if Resume is called
// in [Observer].Halted.
func (q *Queuer[K]) Resume(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key]
	if l == nil || !l.halted {
		return false
	}
	l.halted = false
	if len(l.queue) > 0 {
		q.enqueue(l.queue[0])
	}
	q.pump(q.now())
	q.tidy(l)
	return true
}

// Abandon frees a key from an action that does not end although its context has ended.
// The action ends as [Abandoned], and later actions start. The queue ignores
// the late result. A goroutine cannot be killed; [Stats.Abandoned] counts it until it
// returns. Until then two actions may work on one object, unless the object refuses the
// late one; see [Ticket.Seq]. An action whose Settle hangs keeps its outcome. Abandon does
// not wait: an action whose context has not ended is abandoned too. Abandon reports whether
// there was an action to abandon.
func (q *Queuer[K]) Abandon(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key]
	if l == nil || len(l.queue) == 0 {
		return false
	}
	t := l.queue[0]
	if t.state != Running && t.state != Ending {
		return false
	}
	q.strays++
	if t.hasWorker() {
		q.workers--
	}
	if t.state == Ending { // Settle or an observer hangs
		q.end(t)
		return true
	}
	end := &EndError{Outcome: Abandoned}
	t.interrupt(end)
	t.decide(Abandoned, end)
	q.kept = append(q.kept, t) // Settle runs in this goroutine
	q.retire(t, false)
	return true
}
