package fsm

// index finds the number of a state or event by its value. The zero index finds
// nothing.
type index[K comparable] map[K]int32

// newIndex numbers the keys in their order. Of equal keys, the first counts.
func newIndex[K comparable](keys []K) index[K] {
	x := make(index[K], len(keys))
	for i, k := range keys {
		if _, taken := x[k]; !taken {
			x[k] = int32(i)
		}
	}
	return x
}

// of returns the number of k, or -1.
func (x index[K]) of(k K) int {
	if i, ok := x[k]; ok {
		return int(i)
	}
	return -1
}
