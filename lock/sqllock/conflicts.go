package sqllock

import "github.com/interlock-go/interlock/lock"

// ranges are where requests conflict with others: in the paths from low to before high, with
// the modes of the mask. They are the arguments of interlock_lock_conflicts.
type ranges struct {
	low, high []string
	mask      []int32 // a bit for every mode
}

const allModes = 1<<(lock.X+1) - 1

func (r *ranges) add(low, high string, mask int32) {
	if mask != 0 {
		r.low, r.high, r.mask = append(r.low, low), append(r.high, high), append(r.mask, mask)
	}
}

// at adds a node. No path has a control character, so no other path is in the range.
func (r *ranges) at(p lock.Path, mask int32) { r.add(key(p), key(p)+"\x01", mask) }

func (r *ranges) above(p lock.Path, mask int32) {
	for parent, ok := p.Parent(); ok; parent, ok = parent.Parent() {
		r.at(parent, mask)
	}
}

// below adds what is below a node. The byte after the slash is the zero.
func (r *ranges) below(p lock.Path, mask int32) { r.add(key(p)+"/", key(p)+"0", mask) }

// conflicts returns where requests conflict.
func conflicts(rs []lock.Request) (all ranges) {
	for _, r := range rs {
		var at, above, below int32
		for _, other := range lock.Modes {
			if !lock.Compatible(r.Mode, other) {
				at |= 1 << other
			}
			if !lock.Compatible(r.Mode.Intent(), other) {
				above |= 1 << other
			}
			if !lock.Compatible(r.Mode, other.Intent()) {
				below |= 1 << other
			}
		}
		all.at(r.Path, at)
		all.above(r.Path, above)
		all.below(r.Path, below)
	}
	return all
}

// key is the text of a path in the tables: that of an ancestor is a prefix that ends before a
// slash.
func key(p lock.Path) string {
	if p == lock.Root() {
		return ""
	}
	return p.String()
}

// columns returns the paths and modes of requests.
func columns(rs []lock.Request) (paths []string, modes []int32) {
	for _, r := range rs {
		paths, modes = append(paths, key(r.Path)), append(modes, int32(r.Mode))
	}
	return paths, modes
}
