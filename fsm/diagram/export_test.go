package diagram

// SetWidth sets the number of columns of [Text], and returns a function that restores it.
func SetWidth(n int) (restore func()) {
	before := width
	width = n
	return func() { width = before }
}
