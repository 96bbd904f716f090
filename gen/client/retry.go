package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"
)

// The step that the wait before a retry is a random part of: the first, doubled for each further one up to the longest.
const (
	firstStep   = 250 * time.Millisecond
	longestStep = 10 * time.Second
)

// How long a create waits, whatever the server asks for: before one retry, and in all.
const (
	longestWait = time.Minute
	allWaits    = 2 * time.Minute
)

// retry tries until that succeeds, fails for good, or was done often or for long enough. It returns the last error.
func (p *Providers) retry(ctx context.Context, try func() error) error {
	waitLeft := allWaits
	for tries := 0; ; tries++ {
		err := try()
		if err == nil {
			return nil
		}
		if tries >= p.retries || ctx.Err() != nil || !isTemporary(err) {
			return err
		}
		length, ok := delay(err, tries, min(longestWait, waitLeft))
		if !ok {
			return err
		}
		if waitErr := wait(ctx, length); waitErr != nil {
			return fmt.Errorf("%w, after %w", waitErr, err)
		}
		waitLeft -= length
	}
}

// isTemporary tells whether the same request may fare better later: after a connection that was lost or not made, a try
// that took too long, or a refusal for now. The idempotency key makes it safe to find out.
func isTemporary(err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		switch refused.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		default:
			return false
		}
	}
	if unresolved, ok := errors.AsType[*net.DNSError](err); ok {
		return unresolved.Temporary()
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return true
	}
	if _, isNetworkFault := errors.AsType[*os.SyscallError](err); isNetworkFault {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// delay is the wait before a retry: what the server asks for, and a random part of the step (full jitter), so that
// callers who were refused together do not come back together. It is not ok when the server asks for more than the
// longest.
func delay(err error, tries int, longest time.Duration) (length time.Duration, ok bool) {
	asked := time.Duration(0)
	if refused, isRefusal := errors.AsType[*Error](err); isRefusal {
		asked = refused.RetryAfter
	}
	if longest <= 0 || asked > longest {
		return 0, false
	}
	step := min(firstStep<<min(tries, 10), longestStep)
	return min(asked+rand.N(step+1), longest), true //nolint:gosec // What is random here keeps no secret.
}

func wait(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the next try: %w", context.Cause(ctx))
	}
}
