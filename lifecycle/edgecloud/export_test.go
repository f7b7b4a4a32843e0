package edgecloud

import (
	"testing"

	"github.com/interlock-go/interlock/lifecycle"
)

// Deliver is the end of a repeated order that has read this report.
func Deliver(t testing.TB, r *ResourceManager, key lifecycle.Key, report Report) error {
	return r.deliver(t.Context(), key, report)
}

// SetRemembered changes how many removals a ResourceManager remembers. Call it before the
// first order.
func SetRemembered(r *ResourceManager, n int) { r.remember = n }

// Known returns the number of objects with a known order.
func Known(r *ResourceManager) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.last)
}
