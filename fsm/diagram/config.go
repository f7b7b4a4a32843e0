package diagram

// Config says what a picture shows. The zero Config and nil mean the defaults.
// It is read only while a function runs and may be shared.
type Config struct {
	// LeftToRight draws from left to right. Default: from the top to the bottom,
	// which keeps most tables as narrow as a page.
	LeftToRight bool

	// HideActors leaves out who may fire a row. Default: every arrow names its
	// actors. The tables of [Markdown] and [Text] name them always.
	HideActors bool

	// ShowIgnored draws rows that accept an event and change nothing, as an
	// arrow from the state to itself. Default: they stand in the tables only.
	ShowIgnored bool

	// CollapseAny draws a row of [fsm.FromAny] as one arrow from a box that
	// names its sources ("any state but ..."). Default: one arrow per source.
	CollapseAny bool

	// Width is the width in columns that [Text] tries to keep by breaking cells
	// into several lines; one long word may exceed it. Zero or less: 96.
	Width int
}

const defaultWidth = 96

// orDefault returns the defaults for nil.
func (c *Config) orDefault() Config {
	if c == nil {
		c = &Config{}
	}
	full := *c
	if full.Width <= 0 {
		full.Width = defaultWidth
	}
	return full
}
