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

// The wait before a retry is a random part of a step. The first step is firstStep, and each is twice the last, up to
// maxStep.
const (
	firstStep = 250 * time.Millisecond
	maxStep   = 10 * time.Second
)

// The longest waits, whatever the server asks for: before one retry, and in total.
const (
	maxWait      = time.Minute
	maxTotalWait = 2 * time.Minute
)

// retry calls try until it succeeds, its error is not temporary, or retries or waiting time run out. It returns the
// last error.
func (p *Providers) retry(ctx context.Context, try func() error) error {
	waitLeft := maxTotalWait
	for tries := 0; ; tries++ {
		err := try()
		if err == nil {
			return nil
		}
		if tries >= p.retries || ctx.Err() != nil || !IsTemporary(err) {
			return err
		}
		length, ok := delay(err, tries, min(maxWait, waitLeft))
		if !ok {
			return err
		}
		if waitErr := wait(ctx, length); waitErr != nil {
			return fmt.Errorf("%w, after %w", waitErr, err)
		}
		waitLeft -= length
	}
}

// IsTemporary reports whether the same request may succeed later: after a failed connection, a timeout or a temporary
// refusal. The idempotency key makes a retry safe.
func IsTemporary(err error) bool {
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

// delay returns the wait before a retry: what the server asks for plus a random part of the step (full jitter), so
// that callers refused at the same time do not retry at the same time. It is not ok if the server asks for more than
// longest.
func delay(err error, tries int, longest time.Duration) (length time.Duration, ok bool) {
	requested := time.Duration(0)
	if refused, isRefusal := errors.AsType[*Error](err); isRefusal {
		requested = refused.RetryAfter
	}
	if longest <= 0 || requested > longest {
		return 0, false
	}
	step := min(firstStep<<min(tries, 10), maxStep)
	return min(requested+rand.N(step+1), longest), true //nolint:gosec // Jitter needs no secrecy.
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
