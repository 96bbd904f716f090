package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

// pauses sends a create whose tries all end in the same way, on a fake clock, and returns the pauses between the
// tries and the error.
func pauses(t *testing.T, retries int, try doerFunc) ([]time.Duration, error) {
	t.Helper()
	var ended time.Time
	var found []time.Duration
	doer := &http.Client{Transport: doerFunc(func(request *http.Request) (*http.Response, error) {
		if !ended.IsZero() {
			found = append(found, time.Since(ended))
		}
		defer func() { ended = time.Now() }()
		return try(request)
	})}
	providers, err := client.New("http://example.com", secretToken, client.WithDoer(doer), client.WithRetries(retries))
	processtest.Must(t, err)
	_, err = providers.CreateOAuth2(t.Context(), oauth2Request())
	processtest.Expect(t, err != nil, "the create succeeded")
	return found, err
}

func answers(status int, retryAfter string) doerFunc {
	return func(*http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		recorder.Header().Set("Retry-After", retryAfter)
		recorder.WriteHeader(status)
		return recorder.Result(), nil
	}
}

func breaks(err error) doerFunc {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func hangs(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func dialing(err error) doerFunc {
	return breaks(&net.OpError{Op: "dial", Err: err})
}

func TestOnlyTemporaryErrorsAreRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		try     doerFunc
		retries int
	}{
		"429":         {answers(http.StatusTooManyRequests, ""), 3},
		"502":         {answers(http.StatusBadGateway, ""), 3},
		"503":         {answers(http.StatusServiceUnavailable, ""), 3},
		"504":         {answers(http.StatusGatewayTimeout, ""), 3},
		"refused":     {dialing(os.NewSyscallError("connect", syscall.ECONNREFUSED)), 3},
		"reset":       {breaks(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), 3},
		"closed":      {breaks(fmt.Errorf("read: %w", io.EOF)), 3},
		"cut":         {breaks(io.ErrUnexpectedEOF), 3},
		"name server": {dialing(&net.DNSError{IsTemporary: true}), 3},
		"own timeout": {breaks(os.ErrDeadlineExceeded), 3},
		"client's":    {breaks(context.DeadlineExceeded), 3},
		"body that stops": {func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(io.MultiReader(
				strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)))}, nil
		}, 3},
		"400":                  {answers(http.StatusBadRequest, "1"), 0},
		"500":                  {answers(http.StatusInternalServerError, "1"), 0},
		"redirect":             {answers(http.StatusTemporaryRedirect, "1"), 0},
		"unknown host":         {dialing(&net.DNSError{IsNotFound: true}), 0},
		"certificate":          {breaks(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), 0},
		"alert":                {breaks(&net.OpError{Op: "remote error", Err: tls.AlertError(40)}), 0},
		"unsupported protocol": {breaks(errors.New("unsupported protocol scheme")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				found, err := pauses(t, 3, c.try)
				isAdvised := strings.HasSuffix(err.Error(), "; start the server, or check the base URL")
				if len(found) != c.retries || isAdvised != (name == "refused") {
					t.Errorf("%d retries after %v", len(found), err)
				}
			})
		})
	}
}

func TestRetryAfterWithinLimits(t *testing.T) {
	t.Parallel()
	// The fake clock begins with the year 2000.
	for name, c := range map[string]struct {
		header  string
		asked   time.Duration
		retries int
	}{
		"seconds":             {"3", 3 * time.Second, 4},
		"a minute, twice":     {"60", time.Minute, 2},
		"beyond two minutes":  {"50", 50 * time.Second, 2},
		"beyond a minute":     {"61", 61 * time.Second, 0},
		"beyond a number":     {strings.Repeat("9", 99), (1<<63 - 1) / 1_000_000_000 * 1_000_000_000, 0},
		"a date":              {"Sat, 01 Jan 2000 00:00:40 GMT", 40 * time.Second, 1},
		"a date of RFC 850":   {"Saturday, 01-Jan-00 00:00:40 GMT", 40 * time.Second, 1},
		"a date of asctime":   {"Sat Jan  1 00:00:40 2000", 40 * time.Second, 1},
		"a date in a year":    {"Sun, 31 Dec 2000 00:00:00 GMT", 8760 * time.Hour, 0},
		"a date that is over": {"Fri, 31 Dec 1999 23:00:00 GMT", 0, 4},
		"nothing":             {"", 0, 4},
		"neither form":        {"5 minutes", 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				found, err := pauses(t, client.DefaultRetries, answers(http.StatusServiceUnavailable, c.header))
				refused, ok := errors.AsType[*client.Error](err)
				processtest.Expect(t, ok && (c.retries != 0 || refused.RetryAfter == c.asked),
					"error is %v, want it to ask for %s", err, c.asked)
				if c.retries == 1 { // A date that was waited for is over at the next try.
					found = found[:min(1, len(found))]
				}
				processtest.Expect(t, len(found) == c.retries, "%d retries, want %d", len(found), c.retries)
				for i, pause := range found {
					if step := min(250*time.Millisecond<<i, 10*time.Second); pause < c.asked || pause > c.asked+step {
						t.Errorf("pause %d is %s, want %s and at most %s more", i, pause, c.asked, step)
					}
				}
			})
		})
	}
}

// However many retries are allowed, the waits add up to at most two minutes, and the last one is not cut to zero.
func TestTotalWaitIsBounded(t *testing.T) {
	t.Parallel()
	for _, retryAfter := range []string{"", "7", "60"} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			found, err := pauses(t, 1_000_000, answers(http.StatusServiceUnavailable, retryAfter))
			if waited := time.Since(begun); waited > 2*time.Minute || waited < time.Minute || len(found) > 1_000 {
				t.Errorf("Retry-After %q: %d waits take %s: %v", retryAfter, len(found), waited, err)
			}
		})
	}
}

// Full jitter: pauses are between zero and their step, so that callers do not retry at the same time.
func TestPausesAreSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const creates = 200
		var thirds [3][3]int
		for range creates {
			found, err := pauses(t, 3, breaks(io.EOF))
			processtest.Require(t, len(found) == 3, "%d retries: %v", len(found), err)
			for i, pause := range found {
				step := 250 * time.Millisecond << i
				processtest.Require(t, pause >= 0 && pause <= step, "pause %d is %s, want at most %s", i, pause, step)
				thirds[i][min(2, pause*3/step)]++
			}
		}
		for i, counts := range thirds {
			processtest.Expect(t, counts[0] >= creates/10 && counts[2] >= creates/10,
				"of %d pauses %d, %v are in each third of the step", creates, i, counts)
		}
	})
}

func TestTryEndsAfterThirtySeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		found, err := pauses(t, 1, hangs)
		if took := time.Since(begun) - found[0]; took != time.Minute || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two tries took %s: %v", took, err)
		}
	})
}

// The end of the caller's context ends a create, in a try or in the wait after a refusal, which the error has. Whether it
// is temporary depends on how the context ended, not on when.
func TestCallersContextEndsCreate(t *testing.T) {
	t.Parallel()
	for cause, isTemporary := range map[error]bool{
		context.DeadlineExceeded: true, context.Canceled: false, errors.New("shut down"): false,
	} {
		for name, try := range map[string]doerFunc{
			"in a try": func(request *http.Request) (*http.Response, error) {
				<-request.Context().Done()
				return nil, context.Cause(request.Context())
			},
			"in the wait": answers(http.StatusServiceUnavailable, "60"),
		} {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				providers, err := client.New("http://example.com", "t", client.WithDoer(doerFunc(
					func(request *http.Request) (*http.Response, error) {
						tries++
						return try(request)
					})))
				processtest.Must(t, err)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				_, err = providers.CreateOAuth2(ctx, oauth2Request())
				if !errors.Is(err, cause) || tries != 1 || errors.Is(err, client.ErrForeign) != (name == "in the wait") {
					t.Errorf("%s: %d tries: %v", name, tries, err)
				}
				if client.IsTemporary(err) != isTemporary || client.IsTemporary(fmt.Errorf("x: %w", err)) != isTemporary {
					t.Errorf("%s: temporary is %t: %v", name, !isTemporary, err)
				}
			})
		}
	}
}

// A create whose response is lost or temporarily refused is sent again with the same key. So is a validation.
func TestTemporaryFaultsAreRetriedWithOneKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	lost := breaks(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)})
	r.instead = []doerFunc{lost, answers(http.StatusServiceUnavailable, "1"), answers(http.StatusTooManyRequests, "1")}
	begun := time.Now()
	record, err := r.CreateOAuth2(t.Context(), oauth2Request())
	processtest.Must(t, err)
	if waited := time.Since(begun); waited < 2*time.Second {
		t.Errorf("the two Retry-After of a second took %s", waited)
	}
	processtest.Expect(t, record.PK == 1, "pk is %d: the lost create was stored twice", record.PK)
	if keys := slices.Compact(slices.Clone(r.keys)); len(r.keys) != 4 || len(keys) != 1 || keys[0] == "" {
		t.Errorf("keys are %v", r.keys)
	}
	if next, err := r.CreateOAuth2(t.Context(), oauth2Request()); err != nil || next.PK != 2 {
		t.Errorf("the next create gives %v, %v", next, err)
	}
	r.instead = []doerFunc{lost, answers(http.StatusServiceUnavailable, "0")}
	_, err = r.CreateOAuth2(t.Context(), oauth2Request(), client.WithValidateOnly())
	processtest.Must(t, err)
	if keys := slices.Compact(r.keys[5:]); len(r.keys) != 8 || len(keys) != 1 {
		t.Errorf("keys are %q", r.keys)
	}
}
