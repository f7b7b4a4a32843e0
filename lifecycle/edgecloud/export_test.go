package edgecloud

// Remember changes how many deletes a CRM remembers. It has done nothing yet.
func Remember(r *ResourceManager, n int) { r.remember = n }

// Known is how many objects a CRM knows an order of.
func Known(r *ResourceManager) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known)
}
