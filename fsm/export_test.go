package fsm

// The limits beyond which a machine changes its representation.
const (
	MaxDenseCells = maxDenseCells
	MaxRefusals   = maxRefusals
)
