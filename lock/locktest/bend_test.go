package locktest

import (
	"context"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

// bend is which fault is planted in a naive locker: none in the zero bend.
type bend struct {
	// In what is granted.
	readersIntend, tryBarges, lockBarges, lastFirst, grantsOne, queueBlocksAll bool
	looksThenTakes, looksThenRaises, marksNodes, listsOneByOne, listAsWritten  bool
	// In what is given back, or is not.
	unlockTwice, unlockTwiceAtOnce, unlockByOwner, unlockNeedsContext, forgetsRequests bool
	rollsBackTooMuch, cancelledStay, cancelledKeepGrant, cancelsTheFirst, panicsStay   bool
	endsWithContext, nodesStay, grantedKeepNode                                        bool
	// In what is told.
	namesNobody, namesOne, namesLaterOnes, namesItself, nobodyIsMine, moreIsNotSaid bool
	waitsNameNobody, waitersHide, countsMembers                                     bool
	// In tokens, losses and ids.
	tokensRepeat, tokensByPath, firstTokenIsOne, upgradesKeepToken                bool
	tellsLate, revokeTakes, breaksNobody, reasonIsLost                            bool
	idsAreNotKnown, idWhatever, looksThenTakesID, waitingIDQueues, oneCallIsAll   bool
	upgradesWait, upgradesStay, upgradesReplace, downgradesSleep, downgradesRaise bool
	// In what is looked at before.
	triesInVain, textsUnchecked, endlessQueue bool
}

// mark is what a locker does that stores an intention at the nodes above before
// it looks at the node itself. Others can see it.
func (n *naive) mark(r lock.Request, o *lock.Options) *place {
	p := n.enter([]lock.Request{{Path: lock.Root(), Mode: r.Mode.Intent()}}, o)
	p.token = 1
	n.pause(true)
	return p
}

// rollback undoes what a refused attempt has not done: marks are taken off where
// it would have set them, whoever has set them.
func (n *naive) rollback(rs []lock.Request, o *lock.Options) {
	if !n.bend.rollsBackTooMuch {
		return
	}
	for _, p := range slices.Clone(n.all) {
		same := slices.ContainsFunc(p.has, func(r lock.Request) bool { return slices.Contains(rs, r) })
		if !p.waiting && (same || p.o.Owner == o.Owner) {
			n.drop(p)
		}
	}
}

// oneByOne waits for the members of a list while it holds those before.
func (n *naive) oneByOne(ctx context.Context, rs []lock.Request, o *lock.Options) (*lock.Held, error) {
	asked, err := lock.Normalize(rs)
	if err != nil {
		return nil, err
	}
	var taken []*lock.Held
	for _, r := range rs {
		h, err := n.acquire(ctx, []lock.Request{r}, o, true)
		if err != nil {
			for _, h := range taken {
				_ = h.Unlock(ctx)
			}
			return nil, err
		}
		taken = append(taken, h)
		n.mu.Lock()
		n.pause(true)
		n.mu.Unlock()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = slices.DeleteFunc(n.all, func(p *place) bool { return slices.Contains(taken, p.held) })
	p := n.enter(asked, o)
	n.grant(p)
	return p.held, nil
}
