package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/lifecycle"
)

const (
	mostLost  = 3   // times that a request is sent whose answers are lost
	mostTries = 100 // times that a commit is sent that other commits interfere with
)

var (
	// errNoConnection: nothing was sent.
	errNoConnection = errors.New("no connection to etcd")
	// errAgain: the commit was not written, and nothing contradicts it.
	errAgain = errors.New("etcd has refused the commit repeatedly, and the records show no reason")
)

// codeOf returns the code of an error of the client.
func codeOf(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}

// refused reports whether etcd has answered that it does not execute a request. After any
// other error it may have executed the request, or execute it later. NOSPACE is no
// refusal: the first request beyond the quota is executed and gets this answer too.
func refused(err error) bool {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated,
		codes.NotFound, codes.OutOfRange, codes.Unimplemented:
		return true
	case codes.ResourceExhausted:
		return !errors.Is(err, rpctypes.ErrNoSpace)
	}
	return errors.Is(err, errNoConnection)
}

// failed returns the error of a request that has written nothing.
func failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return lifecycle.Ended(ctx)
	case !refused(err), errors.Is(err, errNoConnection), errors.Is(err, rpctypes.ErrTooManyRequests):
		err = fmt.Errorf("%w: %w", lifecycle.ErrUnavailable, err)
	case codeOf(err) == codes.ResourceExhausted, errors.Is(err, rpctypes.ErrRequestTooLarge): // for the client, or for etcd
		err = fmt.Errorf("%w: %w", lifecycle.ErrInvalid, err)
	case errors.Is(err, rpctypes.ErrTooManyOps):
		err = fmt.Errorf("%w: %w: see Config.MaxTxnOps", errors.ErrUnsupported, err)
	}
	return fmt.Errorf("etcdstore: %w", err)
}

// unknown returns the error of a commit whose answer was lost, and which the store could
// neither find nor send again.
func (p *plan) unknown(ctx context.Context) error {
	lost := p.lost
	if ctx.Err() != nil {
		lost = lifecycle.Ended(ctx)
	}
	return &lifecycle.UnknownOutcomeError{Token: p.commit.Token, Err: fmt.Errorf("etcdstore: %w", lost)}
}
