package diagram

// Config selects the form of a picture or list. The zero Config and nil are the
// defaults. The functions do not modify it, and several may share it.
type Config struct {
	// Labels are second lines below the names of states in a picture, by name of the state,
	// such as the number of objects in it. Default: none.
	Labels map[string]string

	// Current is the name of the state that is marked as the current one. A name that the
	// table does not have marks nothing. Default: none.
	Current string
}

// width is the number of columns after which [Text] breaks cells into several lines. A
// longer word may exceed it.
var width = 96
