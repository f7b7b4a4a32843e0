package lifecycle

import (
	"context"
	"errors"
	"maps"
)

// The carrier of an operation are the values of the caller's context that its work
// needs. The record keeps it in the work options, so that another process that does the
// work has it too.

// carrierOf returns the values of a caller's context.
func (c *core) carrierOf(ctx context.Context) map[string]string {
	if c.inject == nil {
		return nil
	}
	return maps.Clone(c.inject(ctx)) // the user may change its map
}

// carry returns a context with the values of a carrier.
func (c *core) carry(ctx context.Context, carrier map[string]string) context.Context {
	if c.extract == nil || len(carrier) == 0 {
		return ctx
	}
	return c.extract(ctx, maps.Clone(carrier))
}

// checkCarrier refuses a carrier above the limit, and text that JSON would change.
func (l *Limits) checkCarrier(carrier map[string]string) error {
	size, err := 0, error(nil)
	for key, value := range carrier {
		size += len(key) + len(value)
		err = errors.Join(err, checkText("key of Config.Inject", key), checkText("value of Config.Inject", value))
	}
	return errors.Join(err, checkSize("values of Config.Inject", size, l.Carrier))
}
