package history

// KeepEnded sets the number of ended objects that Check remembers, and returns a function
// that restores it.
func KeepEnded(n int) (restore func()) {
	before := keepEnded
	keepEnded = n
	return func() { keepEnded = before }
}

const (
	MaxLine = maxLine
	MaxID   = maxID
)
