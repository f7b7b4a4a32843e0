package edgecloud

// SetRemembered changes how many removals a ResourceManager remembers. Call it before the
// first order.
func SetRemembered(r *ResourceManager, n int) { r.remember = n }

// Known returns the number of objects with a known order.
func Known(r *ResourceManager) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.last)
}
