package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// maxResponse is the most bytes of a response that are read, counted after decompression.
	maxResponse      = 16 << 20
	maxSmallResponse = 16 << 10
	// maxCommas is the most commas in a response, and so nearly the most values, which all take time to decode. Requests
	// and problem documents are at most 1 MiB, so no valid response has more.
	maxCommas = 1 << 20

	// The wait before a retry is a random part of a step, which doubles from firstStep up to maxStep.
	firstStep = 250 * time.Millisecond
	maxStep   = 10 * time.Second

	// The longest waits, regardless of what the server asks for: before one retry, and in total.
	maxWait      = time.Minute
	maxTotalWait = 2 * time.Minute
)

// send sends a create, with retries, and returns the record of a model. No error quotes the key or the response.
func send[Record, Params, Request any](
	ctx context.Context, p *Providers, chosen create, model string,
	newRequest func(string, *Params, Request) (*http.Request, error), params *Params, request Request,
) (*Record, error) {
	switch key := *chosen.params.IdempotencyKey; {
	case p == nil || p.api == nil:
		return nil, errors.New("create provider: Providers is the zero value; use one that New returned")
	case ctx == nil:
		return nil, errors.New("create provider: the context is nil; pass context.Background()")
	case len(key) > 255 || !visibleASCII.MatchString(key):
		return nil, errors.New("create provider: the idempotency key is not 1 to 255 visible ASCII characters; " +
			"write one without spaces, such as import-wiki")
	}
	post, err := newRequest(p.api.String(), params, request)
	if err != nil {
		// The error of encoding/json may contain a piece of the request.
		return nil, errors.New("create provider: cannot encode the request as JSON")
	}
	post.Header.Set("Authorization", "Bearer "+p.token.Reveal())
	status, leastPK := http.StatusCreated, int64(1)
	if chosen.params.ValidateOnly != nil {
		status, leastPK = http.StatusOK, 0
	}
	record := new(Record)
	err = p.retry(ctx, post, status, func(header http.Header, text []byte) error {
		if !isRecord(header, text, model, leastPK) || json.Unmarshal(text, record) != nil {
			return errors.New("the response is not the record of a provider of this kind; check the base URL")
		}
		// What the caller does not ask for goes to a variable that is not read.
		*cmp.Or(chosen.replayed, new(bool)) = header.Get("Idempotency-Replayed") != ""
		*cmp.Or(chosen.advice, new([]Advice)) = adviceIn(header)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("create provider: %w", err)
	}
	return record, nil
}

func isRecord(header http.Header, text []byte, model string, leastPK int64) bool {
	var identity struct {
		PK    int64  `json:"pk"`
		Model string `json:"meta_model_name"`
	}
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && mediaType == "application/json" && json.Unmarshal(text, &identity) == nil &&
		identity.Model == model && identity.PK >= leastPK
}

type decoder func(header http.Header, text []byte) error

// retry tries a create until it succeeds, its error is not temporary, or retries or waiting time run out. It waits for
// as long as the server asks and a random part of the step (full jitter), so that callers refused at the same time do
// not retry at the same time.
func (p *Providers) retry(ctx context.Context, post *http.Request, status int, decode decoder) error {
	waitLeft := maxTotalWait
	for tries := 0; ; tries++ {
		err := p.try(ctx, post, status, decode)
		refused, _ := errors.AsType[*Error](err)
		requested, longest := cmp.Or(refused, &Error{}).RetryAfter, min(maxWait, waitLeft)
		if err == nil || tries >= p.retries || ctx.Err() != nil || !IsTemporary(err) ||
			longest <= 0 || requested > longest {
			return err
		}
		step := min(firstStep<<min(tries, 10), maxStep)
		wait := min(requested+rand.N(step+1), longest) //nolint:gosec // Jitter needs no secrecy.
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return waitError{context.Cause(ctx), err}
		}
		waitLeft -= wait
	}
}

// try sends a create once and decodes the response, which must have a status.
func (p *Providers) try(callers context.Context, post *http.Request, status int, decode decoder) (err error) {
	ctx, cancel := context.WithTimeout(callers, p.tryTimeout)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && callers.Err() == nil {
			err = fmt.Errorf("no complete response within %s: %w", p.tryTimeout, err)
		}
	}()
	request := post.Clone(ctx)
	// The body is in memory, so that repeating it cannot fail.
	request.Body, _ = post.GetBody()
	response, err := p.doer.Do(request)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w; if it is the intended server, use http://%s", err, p.api.Host)
	case err != nil:
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if err := unreadError(response); err != nil {
		return err
	}
	text, done, err := p.read(ctx, response.Body)
	defer done()
	switch {
	case err != nil:
		return fmt.Errorf("read response: %w", err)
	case len(text) > maxResponse || bytes.Count(text, []byte(",")) > maxCommas:
		return fmt.Errorf("the response is larger than %d MiB or has too many values; check the base URL", maxResponse>>20)
	case response.StatusCode >= http.StatusMultipleChoices:
		return newError(response, text)
	case response.StatusCode != status:
		return fmt.Errorf("the response has the status %d instead of %d; check the base URL", response.StatusCode, status)
	}
	return decode(response.Header, text)
}

// read reads a response. Large ones are read and decoded one at a time, until done, because that takes many times their
// size in memory.
func (p *Providers) read(ctx context.Context, body io.Reader) (text []byte, done func(), err error) {
	var buffer bytes.Buffer
	_, err = io.Copy(&buffer, io.LimitReader(body, maxSmallResponse))
	if err != nil || buffer.Len() < maxSmallResponse {
		return buffer.Bytes(), func() {}, err
	}
	select {
	case p.large <- struct{}{}:
	case <-ctx.Done():
		return nil, func() {}, fmt.Errorf("wait to read a large response: %w", context.Cause(ctx))
	}
	_, err = io.Copy(&buffer, io.LimitReader(body, maxResponse-maxSmallResponse+1))
	return buffer.Bytes(), func() { <-p.large }, err
}

// waitError is the end of a wait by the caller's context, after an error. The cause decides whether it is temporary.
type waitError struct{ cause, after error }

func (e waitError) Error() string {
	return fmt.Sprintf("wait for the next attempt: %v, after %v", e.cause, e.after)
}

func (e waitError) Unwrap() []error { return []error{e.cause, e.after} }

// IsTemporary reports whether the same request may succeed later: after a failed connection, a timeout or a temporary
// refusal. The idempotency key makes a retry safe. A canceled create is not temporary, in an attempt or between two.
func IsTemporary(err error) bool {
	if ended, ok := errors.AsType[waitError](err); ok {
		return IsTemporary(ended.cause)
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return slices.Contains([]int32{
			http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		}, refused.Status)
	}
	if unresolved, ok := errors.AsType[*net.DNSError](err); ok {
		return unresolved.Temporary()
	}
	late, ok := errors.AsType[net.Error](err)
	_, isNetworkFault := errors.AsType[*os.SyscallError](err)
	return ok && late.Timeout() || isNetworkFault || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Advice is what a standard advises about one field. It never causes a refusal.
type Advice struct {
	// Code identifies the rule, which the page /advice/#CODE of the server explains.
	Code string
	// Pointer leads to the field (JSON Pointer, RFC 6901).
	Pointer string
	// Detail says what could be improved, and how.
	Detail string
}

// adviceLink is a link of the contract's Link header; its title is a quoted string (RFC 9110, section 5.6.4).
var adviceLink = regexp.MustCompile(`</advice/#([a-z0-9_]+)>; rel="help"; anchor="#([^"]*)"; title="((?:[^"\\]|\\.)*)"`)

// adviceIn returns the advice in the Link header of a response (RFC 8288).
func adviceIn(header http.Header) (given []Advice) {
	for _, link := range adviceLink.FindAllStringSubmatch(strings.Join(header.Values("Link"), ", "), -1) {
		detail := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(link[3])
		given = append(given, Advice{Code: link[1], Pointer: link[2], Detail: detail})
	}
	return given
}
