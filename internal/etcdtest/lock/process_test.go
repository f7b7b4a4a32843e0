package lock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/interlock-go/interlock/internal/enginetest/child"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

// asHolder is the variable of the children that are holders.
const asHolder = "INTERLOCK_ETCDLOCK_HOLDER"

// orders are what a holder is to do: hold X at /a.
type orders struct {
	Endpoint, Prefix string
	TTL              time.Duration
}

// hold is the program of a holder. It prints "held TOKEN" and waits for a line. Then it prints
// the first answer of Check, and what becomes of its writes.
func hold(o orders) error {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{o.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	l, err := etcdlock.Open(ctx, client, o.Prefix, &etcdlock.Config{TTL: o.TTL})
	if err != nil {
		return err
	}
	g, err := l.Lock(ctx, at(lock.X, "/a"), by("holder"))
	if err != nil {
		return err
	}
	fmt.Println("held", g.Token())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err // the end of the parent
	}
	check := g.Check()
	guarded, err := writeGuarded(ctx, client, o.Prefix, g)
	if err != nil {
		return err
	}
	fenced, err := writeFenced(ctx, client, o.Prefix, g.Token())
	if err != nil {
		return err
	}
	<-g.Lost()
	_, err = fmt.Printf("lost %t, guarded write %t, fenced write %t\n", check != nil, guarded, fenced)
	return err
}

// writeGuarded writes if the claim of a grant exists.
func writeGuarded(ctx context.Context, client *clientv3.Client, prefix string, g *lock.Grant) (bool, error) {
	held := g.Driver().(etcdlock.Guard).GuardCompare()
	r, err := client.Txn(ctx).If(held).Then(clientv3.OpPut("guarded "+prefix, fmt.Sprint(g.Token()))).Commit()
	return err == nil && r.Succeeded, err
}

// writeFenced writes a token, unless one that is higher was written. It does not use the grant.
func writeFenced(ctx context.Context, client *clientv3.Client, prefix string, token lock.Token) (bool, error) {
	key, value := "fenced "+prefix, fmt.Sprintf("%016x", uint64(token))
	r, err := client.Txn(ctx).If(clientv3.Compare(clientv3.Value(key), ">", value)).Else(clientv3.OpPut(key, value)).Commit()
	return err == nil && !r.Succeeded, err
}

// startHolder starts a process and returns its token.
func startHolder(t *testing.T, o orders) (*child.Process, lock.Token) {
	t.Helper()
	p, err := child.Start(asHolder, o)
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	line, err := p.Line()
	require.NoError(t, err)
	var token lock.Token
	_, err = fmt.Sscanf(line, "held %d", &token)
	require.NoError(t, err)
	return p, token
}

const holderTTL = 2 * time.Second

// After kill -9 of the holder the next claim is granted when the lease has ended.
func TestKilledHolder(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client := server.Client(t)
	for range 3 {
		prefix := freshPrefix()
		p, token := startHolder(t, orders{server.Endpoint(), prefix, holderTTL})
		w := queue(t, open(t, client, prefix, nil), client, prefix, at(lock.X, "/a"), "next")
		p.Kill()
		killed := time.Now()
		g := w.granted(t)
		t.Logf("granted %v after the kill, with a TTL of %v", time.Since(killed).Round(time.Millisecond), holderTTL)
		require.Greater(t, g.Token(), token)
		require.NoError(t, g.Unlock(t.Context()))
	}
}

// A holder that was stopped for longer than its TTL finds at its first Check that its grant
// is lost. Its late writes are refused by the guard, and by the token of the next grant.
func TestStoppedHolder(t *testing.T) {
	server := etcdtest.Start(t, nil)
	client := server.Client(t)
	rounds := scale.Of(2, 20)
	for range rounds {
		prefix := freshPrefix()
		p, token := startHolder(t, orders{server.Endpoint(), prefix, holderTTL})
		w := queue(t, open(t, client, prefix, nil), client, prefix, at(lock.X, "/a"), "next")
		require.NoError(t, p.Pause())
		stopped := time.Now()
		require.NoError(t, p.Order("write")) // it gets this when it continues
		g := w.granted(t)
		t.Logf("granted %v after the stop, with a TTL of %v", time.Since(stopped).Round(time.Millisecond), holderTTL)
		require.Greater(t, g.Token(), token)
		written, err := writeFenced(t.Context(), client, prefix, g.Token())
		require.NoError(t, err)
		require.True(t, written)
		time.Sleep(time.Until(stopped.Add(holderTTL))) // the fault, which is longer than the TTL
		require.NoError(t, p.Continue())
		line, err := p.Line()
		require.NoError(t, err)
		require.Equal(t, "lost true, guarded write false, fenced write false", line)
		require.NoError(t, g.Unlock(t.Context()))
	}
}
