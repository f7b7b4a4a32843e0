package fsm

// MaxDenseCells is the limit beyond which a machine keeps its cells in a map.
const MaxDenseCells = maxDenseCells

// The limits that documents must not exceed.
const (
	MaxNesting = maxNesting
	MaxText    = maxText
)
