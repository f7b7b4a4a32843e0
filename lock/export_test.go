package lock

// For the tests in package lock_test.
var (
	Long         = long
	CheckTree    = checkTree
	ComparePaths = Path.compare
)

// SetIntentions sets the word of an Intention to a value that takes 2^63 calls to
// reach.
func SetIntentions(l *Intention, n uint64) { l.word.Store(n) }

const MaxIntentions = maxIntentions
