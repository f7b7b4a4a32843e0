package sqllocktest

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/locktest"
	"github.com/interlock-go/interlock/lock/sqllock"
)

const faultyTTL = time.Second

// faulty opens lockers of one tree with a line each, whose requests are cut at random. One
// line is down for a while, so that some sessions end.
func (o *opener) faulty(t testing.TB, c lock.Config) lock.Locker {
	o.stop() // the lockers before
	tree := newTree()
	var lockers []*sqllock.Locker
	var proxies []*proxy.Proxy
	for _, way := range o.lines {
		var l *sqllock.Locker
		eventually(t, func() (opened bool) { // a busy machine may be slow for the TTL
			var err error
			l, err = sqllock.Open(t.Context(), way.db, way.config, tree, &sqllock.Config{TTL: faultyTTL, MaxHolders: c.MaxHolders})
			return err == nil
		}, "it opens")
		lockers, proxies = append(lockers, l), append(proxies, way.Proxy)
	}
	calm := proxy.Storm(proxies, 12, 3*faultyTTL/2)
	o.stop = func() {
		calm()
		for _, l := range lockers {
			_ = l.Close()
		}
	}
	return locktest.Several(lockers...)
}

// unknown reports whether a call may have been executed: the engine has sent no error.
func unknown(err error) bool {
	_, answered := errors.AsType[*pgconn.PgError](err)
	_, refused := errors.AsType[*lock.ConflictError](err)
	return !answered && !refused && !errors.Is(err, lock.ErrInvalid) && !errors.Is(err, lock.ErrNotHeld)
}
