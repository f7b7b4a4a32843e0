package lock

// For the tests from outside.
var (
	Long      = long
	CheckTree = checkTree
)

// SetIntentions puts the word of an Intention where it takes 2^63 calls to
// come to.
func SetIntentions(l *Intention, n uint64) { l.word.Store(n) }

const MaxIntentions = maxIntentions
