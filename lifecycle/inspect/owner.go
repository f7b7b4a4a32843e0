package inspect

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// readOwners returns the owners of all machines' stores. A process that is an owner in
// several stores is listed once, unless it is dead in some of them.
func (p *Page) readOwners(ctx context.Context) (list []Owner, failed error) {
	type life struct {
		ref   lifecycle.OwnerRef
		alive bool
	}
	owners, errs := make([][]lifecycle.OwnerInfo, len(p.config.Machines)), make([]error, len(p.config.Machines))
	together(p.config.Machines, func(i int, m Machine) {
		var err error
		owners[i], err = lifecycle.Owners(ctx, m)
		errs[i] = late(storeOf(m.table().Name), err)
	})
	found := map[life]Owner{}
	for _, o := range slices.Concat(owners...) {
		o.Since, o.Heartbeat = o.Since.UTC(), o.Heartbeat.UTC()
		found[life{o.OwnerRef, o.Alive}] = Owner{o, o.TTL.Seconds()}
	}
	list = slices.SortedFunc(maps.Values(found), func(a, b Owner) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Epoch, b.Epoch), a.Since.Compare(b.Since))
	})
	return append([]Owner{}, list...), cmp.Or(errs...)
}

func (p *Page) ownerPage(ctx context.Context, _ *http.Request) (view, error) {
	owners, err := p.readOwners(ctx)
	doc := OwnerPage{Time: now(), Owners: owners}
	if len(owners) > 0 && err != nil {
		doc.Problem, err = p.problem(ctx, err), nil
	}
	return view{Heading: "Owners", Doc: doc}, err
}
