package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	random "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestMain is the service in the processes that the scripts start.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"service": main})
}

func TestSQLite(t *testing.T) {
	runScripts(t, "vms.db")
}

func TestPostgres(t *testing.T) {
	server := os.Getenv("INTERLOCK_POSTGRES_DSN")
	if server == "" {
		require.Empty(t, os.Getenv("REQUIRE_ENGINES"), "INTERLOCK_POSTGRES_DSN names no server")
		t.Skip("set INTERLOCK_POSTGRES_DSN")
	}
	db, err := sql.Open("pgx", server)
	require.NoError(t, err)
	name := "service_" + strings.ToLower(rand.Text())
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		require.NoError(t, err)
		require.NoError(t, db.Close())
	})
	own, err := url.Parse(server)
	require.NoError(t, err)
	own.Path = "/" + name
	runScripts(t, own.String())
}

// runScripts runs the scripts on a database: $A and $B are the addresses of two replicas.
func runScripts(t *testing.T, db string) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("DB", db)
			env.Values[streams{}] = &bufio.Scanner{}
			for _, name := range []string{"A", "B"} {
				l, err := net.Listen("tcp", loopback()+":0")
				if err != nil {
					return err
				}
				env.Setenv(name, l.Addr().String())
				if err := l.Close(); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"http": request, "until": until, "stream": streamed},
	})
}

// loopback returns an address of this machine that no other program listens at. The bad schedule
// at 127.0.0.1: before a replica starts, another program gets its port, or the client that waits for
// it gets the port for its own side, and is connected to itself. Only Linux has more than one such
// address.
func loopback() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+random.N(254), random.N(256), 1+random.N(254))
}

// The scripts wait so long for a service to answer and to act, and look so often.
const (
	patience = time.Minute
	interval = 20 * time.Millisecond
)

// request is the command
//
//	http METHOD URL [BODY] [HEADER: VALUE]...
//
// It writes the status code, the header and the body to the standard output, and the ETag
// to $ETAG. While no service listens, it tries again.
func request(ts *testscript.TestScript, _ bool, args []string) {
	var body string
	header := http.Header{}
	for _, arg := range args[2:] {
		if name, value, ok := strings.Cut(arg, ": "); ok && !strings.HasPrefix(arg, "{") {
			header.Set(name, value)
		} else {
			body = arg
		}
	}
	code, answer, text := send(ts, args[0], args[1], header, body)
	ts.Setenv("ETAG", answer.Get("ETag"))
	fmt.Fprintln(ts.Stdout(), code)
	ts.Check(answer.Write(ts.Stdout()))
	fmt.Fprintf(ts.Stdout(), "\n%s", text)
}

// until is the command
//
//	until PATTERN URL
//
// which gets the URL until the body matches the pattern.
func until(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[0])
	for end := time.Now().Add(patience); ; {
		_, _, body := send(ts, http.MethodGet, args[1], nil, "")
		if pattern.MatchString(body) {
			fmt.Fprint(ts.Stdout(), body)
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not match %q: %s", args[1], args[0], body)
		}
		<-time.After(interval)
	}
}

// streamed is the commands
//
//	stream start URL
//	stream until PATTERN
//	stream end
//
// The first begins to read a stream. The others write it to the standard output, up to a
// line that matches the pattern, and up to its end.
func streamed(ts *testscript.TestScript, _ bool, args []string) {
	open := ts.Value(streams{}).(*bufio.Scanner)
	if args[0] == "start" {
		answer, err := http.Get("http://" + args[1]) // the end of the service ends it
		ts.Check(err)
		*open = *bufio.NewScanner(answer.Body)
		return
	}
	for open.Scan() {
		fmt.Fprintln(ts.Stdout(), open.Text())
		if args[0] == "until" && regexp.MustCompile(args[1]).MatchString(open.Text()) {
			return
		}
	}
	ts.Check(open.Err())
	if args[0] == "until" {
		ts.Fatalf("the stream has ended without %q", args[1])
	}
}

// streams is the key of the stream that a script reads.
type streams struct{}

// send sends a request until it is answered.
func send(ts *testscript.TestScript, method, address string, header http.Header, body string) (int, http.Header, string) {
	for end := time.Now().Add(patience); ; {
		r, err := http.NewRequest(method, "http://"+address, strings.NewReader(body))
		ts.Check(err)
		for name, values := range header {
			r.Header[name] = values
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(end) {
				ts.Fatalf("%s %s: %v", method, address, err)
			}
			<-time.After(interval)
			continue
		}
		var text bytes.Buffer
		_, err = io.Copy(&text, answer.Body)
		ts.Check(errors.Join(err, answer.Body.Close()))
		return answer.StatusCode, answer.Header, text.String()
	}
}
