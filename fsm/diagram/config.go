package diagram

// Config selects what a picture shows. The zero Config and nil are the defaults. The
// functions do not modify it, and several may share it.
type Config struct {
	// LeftToRight draws from left to right. Default: from the top to the bottom,
	// which keeps most tables as narrow as a page.
	LeftToRight bool

	// HideActors omits the actors of a row. Default: every arrow names its actors. The
	// tables of [Markdown] and [Text] always name them.
	HideActors bool

	// ShowIgnored draws rows that ignore an event, as an arrow from the state to
	// itself. Default: only the tables list them.
	ShowIgnored bool

	// CollapseAny draws a row of [fsm.FromAny] as one arrow from a box that
	// names its sources ("any state but ..."). Default: one arrow per source.
	CollapseAny bool

	// Width is the number of columns after which [Text] breaks cells into several
	// lines. A longer word may exceed it. Default: 96.
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
