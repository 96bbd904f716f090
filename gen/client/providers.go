// Package client is the Go SDK: New and Providers for everyday use, over the client generated from the contract.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultRetries is how often a create is sent again where nothing else is said.
const DefaultRetries = 4

// The wait before a retry where the server names none: the first, doubled for each further one up to the longest.
const (
	firstWait   = 250 * time.Millisecond
	longestWait = 10 * time.Second
)

const lenient = Prefer("handling=lenient")

// Providers creates providers. It is safe for concurrent use.
//
// A create that meets a lost connection, 429 or 503 is sent again, with the same idempotency key, so that it makes one
// record however often it is sent. ClientWithResponses is the generated client without any of this.
type Providers struct {
	generated *ClientWithResponses
	retries   int
}

// Option changes how Providers work.
type Option func(*settings)

type settings struct {
	doer    HttpRequestDoer
	retries int
}

// WithDoer sends requests through an HTTP client of the caller's. The default is http.DefaultClient.
func WithDoer(doer HttpRequestDoer) Option { return func(s *settings) { s.doer = doer } }

// WithRetries sets how often a create is sent again; 0 for never. The default is DefaultRetries.
func WithRetries(count int) Option { return func(s *settings) { s.retries = count } }

// New returns Providers of the server at baseURL, such as "http://127.0.0.1:8080", for the caller that an access token
// names. It returns an error when baseURL is not an absolute URL of HTTP or HTTPS, or the token is empty.
func New(baseURL, token string, options ...Option) (*Providers, error) {
	parsed, err := url.Parse(baseURL)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, errors.New("the base URL is not of the form http://HOST:PORT or https://HOST")
	}
	if token == "" {
		return nil, errors.New("the access token is empty")
	}
	chosen := settings{doer: http.DefaultClient, retries: DefaultRetries}
	for _, option := range options {
		option(&chosen)
	}
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	generated, err := NewClientWithResponses(
		parsed.JoinPath("api", "v3").String(), WithHTTPClient(chosen.doer), WithRequestEditorFn(authorize))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &Providers{generated: generated, retries: chosen.retries}, nil
}

// CreateOption changes one create.
type CreateOption func(*create)

type create struct {
	key      IdempotencyKey
	prefer   *Prefer
	replayed *bool
}

// WithIdempotencyKey lets a later call, of this program or another, find the record of this one: it is to have 1 to 255
// visible ASCII characters. The default is a random key, which holds for the retries of this call alone.
func WithIdempotencyKey(key string) CreateOption { return func(c *create) { c.key = key } }

// WithLenientHandling makes the server ignore fields that it does not know (RFC 7240).
func WithLenientHandling() CreateOption {
	preference := lenient
	return func(c *create) { c.prefer = &preference }
}

// WithReplayed tells in replayed, once the create has returned a record, whether an earlier request with the same
// idempotency key had made it: one of this program's own, when its answer was lost, or another's.
func WithReplayed(replayed *bool) CreateOption { return func(c *create) { c.replayed = replayed } }

// CreateOAuth2 creates an OAuth2 provider and returns the record, secrets included. Its error is an *Error where the
// server refused, and otherwise that of the connection or of ctx.
func (p *Providers) CreateOAuth2(
	ctx context.Context, request OAuth2ProviderRequest, options ...CreateOption,
) (*OAuth2Provider, error) {
	return send(ctx, p, options, func(c create) (*OAuth2Provider, answer, error) {
		params := &ProvidersOauth2CreateParams{IdempotencyKey: &c.key, Prefer: c.prefer}
		response, err := p.generated.ProvidersOauth2CreateWithResponse(ctx, params, request)
		if err != nil {
			return nil, answer{}, err
		}
		return response.JSON201, answer{response.StatusCode(), response.HTTPResponse.Header, response.Body}, nil
	})
}

// CreateWorkspaceDirectory creates a workspace directory-sync provider and returns the record, secrets included. Its
// error is an *Error where the server refused, and otherwise that of the connection or of ctx.
func (p *Providers) CreateWorkspaceDirectory(
	ctx context.Context, request WorkspaceDirectoryProviderRequest, options ...CreateOption,
) (*WorkspaceDirectoryProvider, error) {
	return send(ctx, p, options, func(c create) (*WorkspaceDirectoryProvider, answer, error) {
		params := &ProvidersWorkspaceDirectoryCreateParams{IdempotencyKey: &c.key, Prefer: c.prefer}
		response, err := p.generated.ProvidersWorkspaceDirectoryCreateWithResponse(ctx, params, request)
		if err != nil {
			return nil, answer{}, err
		}
		return response.JSON201, answer{response.StatusCode(), response.HTTPResponse.Header, response.Body}, nil
	})
}

// answer is what is known of an answer besides its record.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send carries out one create until it is answered for good, or has been sent often enough.
func send[Record any](
	ctx context.Context, p *Providers, options []CreateOption, try func(create) (*Record, answer, error),
) (*Record, error) {
	chosen := create{key: rand.Text()}
	for _, option := range options {
		option(&chosen)
	}
	for tries := 0; ; tries++ {
		record, answer, err := try(chosen)
		if err == nil && record != nil {
			if chosen.replayed != nil {
				*chosen.replayed = answer.header.Get("Idempotency-Replayed") != ""
			}
			return record, nil
		}
		if err == nil {
			err = newError(answer)
		}
		if tries >= p.retries || !isTemporary(ctx, err) {
			return nil, fmt.Errorf("create provider: %w", err)
		}
		if waitErr := wait(ctx, delay(err, tries)); waitErr != nil {
			return nil, fmt.Errorf("create provider: %w, after %w", waitErr, err)
		}
	}
}

// isTemporary tells whether the same request may fare better later. The idempotency key makes it safe to find out.
func isTemporary(ctx context.Context, err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusServiceUnavailable
	}
	_, isStranger := errors.AsType[*tls.CertificateVerificationError](err)
	return !isStranger && ctx.Err() == nil
}

func delay(err error, tries int) time.Duration {
	if refused, ok := errors.AsType[*Error](err); ok && refused.RetryAfter > 0 {
		return refused.RetryAfter
	}
	return min(firstWait<<min(tries, 10), longestWait)
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

// Error is a refusal: the problem document (RFC 9457) that the server answered.
type Error struct {
	Problem
	// RetryAfter is how long the server asks to wait; 0 where it does not.
	RetryAfter time.Duration
}

// Error says what is wrong in one line: the title, the detail, each violation, and the request id for the operator.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s: %s", e.Status, e.Title, e.Detail)
	for _, violation := range e.Violations() {
		fmt.Fprintf(&text, " %s %s.", violation.Pointer, violation.Detail)
	}
	fmt.Fprintf(&text, " (request %s)", e.RequestID)
	return text.String()
}

// Violations are all rules that the body breaks; none where something else is wrong.
func (e *Error) Violations() []Violation {
	if e.Errors == nil {
		return nil
	}
	return *e.Errors
}

// newError reads a problem document. Where a proxy answered something else, only the status is known.
func newError(answer answer) *Error {
	var refused Error
	if json.Unmarshal(answer.body, &refused.Problem) != nil || int(refused.Status) != answer.status {
		refused.Problem = Problem{
			Type:   "about:blank",
			Title:  http.StatusText(answer.status),
			Status: int32(answer.status), //nolint:gosec // It has three digits.
			Detail: "The answer is not a problem document. Does something stand between this program and the server?",
		}
	}
	if seconds, err := strconv.ParseUint(answer.header.Get("Retry-After"), 10, 16); err == nil {
		refused.RetryAfter = time.Duration(seconds) * time.Second
	}
	return &refused
}
