package inspect_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// recorder is a response whose text can be read while it is written.
type recorder struct {
	header http.Header
	mu     sync.Mutex
	text   strings.Builder
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(int)     {}
func (r *recorder) Flush()              {}

func (r *recorder) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(data)
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// open asks for a stream. The result is its text so far; cancel ends the request and waits.
func open(t *testing.T, page *inspect.Page, url string) (text func() string, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &recorder{header: http.Header{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		page.ServeHTTP(w, httptest.NewRequest("GET", url, nil).WithContext(ctx))
	}()
	synctest.Wait()
	return func() string { synctest.Wait(); return w.String() }, func() { cancel(); <-done }
}

// TestEvents: a stream has the changes of all machines or of one, and a sign of life.
func TestEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all, endAll := open(t, w.page, "/events")
		disks, endDisks := open(t, w.page, "/events?machine=disk")
		require.Equal(t, ": watching\n\n", all())
		_, err := w.vms.Fire(t.Context(), "vm-up", "delete", "user", nil)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, ": watching\n\nevent: change\ndata: {\"machine\":\"vm\",\"id\":\"vm-up\",\"sequence\":3}\n\n", all())
		require.Equal(t, ": watching\n\n", disks())
		time.Sleep(15 * time.Second)
		require.Equal(t, ": watching\n\n: alive\n\n", disks())
		endAll()
		endDisks()
	})
}

// TestEventsClose: Close ends the streams, and new ones are refused.
func TestEventsClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, end := open(t, w.page, "/events")
		w.page.Close()
		w.page.Close()
		end()
		require.Equal(t, "closed", problem(t, ask(w.page, "GET", "/events", "Accept", "application/json")).Code)
		require.Equal(t, http.StatusOK, ask(w.page, "GET", "/").StatusCode)
	})
}

// TestEventsLimit: one stream more than the limit is refused until one has ended.
func TestEventsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, err := inspect.New(nil)
		require.NoError(t, err)
		_, end := open(t, page, "/events")
		for range 99 {
			_, end := open(t, page, "/events")
			defer end()
		}
		answer := ask(page, "GET", "/events", "Accept", "application/json")
		require.Equal(t, "too-many-streams", problem(t, answer).Code)
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		end()
		_, end = open(t, page, "/events")
		end()
	})
}

// TestEventsNotSupported: a stream that cannot be flushed is refused, so that a browser asks
// for pages instead.
func TestEventsNotSupported(t *testing.T) {
	page, err := inspect.New(nil)
	require.NoError(t, err)
	wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})
	answer := ask(wrapped, "GET", "/events", "Accept", "application/json")
	require.Equal(t, http.StatusNotImplemented, answer.StatusCode)
	require.Equal(t, "no-streams", problem(t, answer).Code)
}

// recent is a store whose changes cannot be read.
type recent struct {
	*lifecycle.MemoryStore
	err atomic.Value // an error, or errNone
}

var errNone = errors.New("no error")

func (s *recent) Recent(ctx context.Context, machine string, within time.Duration, after string, limit int) ([]lifecycle.ChangedObject, error) {
	if err := s.err.Load().(error); err != errNone {
		return nil, err
	}
	return s.MemoryStore.Recent(ctx, machine, within, after, limit)
}

// TestEventsOutage: an outage is an event, and the stream goes on after it. Another error
// of the store ends the stream.
func TestEventsOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recent{MemoryStore: lifecycle.NewMemoryStore()}
		store.err.Store(lifecycle.ErrUnavailable)
		var failed []error
		page, err := inspect.New(&inspect.Config{
			Machines: []inspect.Machine{inspect.Of(vms(store, lifecycle.Config[string]{}), nil)},
			Failed:   func(_ context.Context, err error) { failed = append(failed, err) },
		})
		require.NoError(t, err)
		text, end := open(t, page, "/events")
		require.Equal(t, 1, strings.Count(text(), "event: problem\ndata: {"))
		require.Contains(t, text(), `"code":"unavailable"`)
		require.ErrorIs(t, failed[0], lifecycle.ErrUnavailable)
		store.err.Store(errNone)
		time.Sleep(10 * time.Second)
		before := strings.Count(text(), "event: problem")
		store.err.Store(errBoom)
		time.Sleep(10 * time.Second)
		require.Equal(t, before+1, strings.Count(text(), "event: problem"))
		require.NotContains(t, text(), "boom")
		end()
	})
}

// panics is a store with a fault.
type panics struct{ *lifecycle.MemoryStore }

func (panics) Recent(context.Context, string, time.Duration, string, int) ([]lifecycle.ChangedObject, error) {
	panic(errBoom)
}

// TestEventsPanic: a panic of a store continues in the goroutine of the request, where
// net/http expects it.
func TestEventsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{
			inspect.Of(vms(panics{lifecycle.NewMemoryStore()}, lifecycle.Config[string]{}), nil),
		}})
		require.NoError(t, err)
		require.PanicsWithValue(t, errBoom, func() { ask(page, "GET", "/events") })
	})
}

// TestShutdown: a server with a stream ends, and a limit of time for whole answers does not
// end the stream.
func TestShutdown(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(vms(store, lifecycle.Config[string]{}), nil)}})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(page)
	server.Config.WriteTimeout = 30 * time.Second
	server.Config.RegisterOnShutdown(page.Close)
	server.Start()
	answer, err := http.Get(server.URL + "/events")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	first := make([]byte, len(": watching\n\n"))
	_, err = io.ReadFull(answer.Body, first)
	require.NoError(t, err)
	require.NoError(t, server.Config.Shutdown(t.Context()))
	_, err = io.ReadAll(answer.Body)
	require.True(t, err == nil || errors.Is(err, io.ErrUnexpectedEOF))
	http.DefaultClient.CloseIdleConnections()
}

// gone is a client that has left after its first bytes.
type gone struct {
	*recorder
	writes int
}

func (g *gone) Write(data []byte) (int, error) {
	if g.writes++; g.writes > 1 {
		return 0, errors.New("the connection is reset")
	}
	return g.recorder.Write(data)
}

// TestEventsClientGone: a stream ends when it cannot be written, and gives back its place.
func TestEventsClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, err := inspect.New(nil)
		require.NoError(t, err)
		for range 101 { // one more than may be open
			client := &gone{recorder: &recorder{header: map[string][]string{}}}
			page.ServeHTTP(client, httptest.NewRequest("GET", "/events", nil))
			require.Equal(t, ": watching\n\n", client.String())
			require.Equal(t, 2, client.writes)
		}
	})
}
