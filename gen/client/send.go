package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// operation describes a request and how to read its response.
type operation[Result any] struct {
	// name is used in errors.
	name string
	// hasNilFlow reports whether the authorization flow is the nil UUID.
	hasNilFlow bool
	post       func(ctx context.Context, chosen create, body io.Reader) (*http.Response, error)
	// status is the status of a success, whose body decode reads.
	status int
	decode func(header http.Header, text []byte) (*Result, error)
}

// send performs an operation, with retries.
func send[Result any](
	ctx context.Context, p *Providers, request any, options []CreateOption, op operation[Result],
) (*Result, error) {
	chosen, err := newCreate(options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op.name, err)
	}
	if op.hasNilFlow && !chosen.allowsNilFlow {
		return nil, errors.New(op.name + ": AuthorizationFlow is not set; set it to the flow that authorizes this provider")
	}
	body, err := json.Marshal(request)
	if err != nil {
		// The error of encoding/json may contain a piece of the credentials.
		return nil, errors.New(op.name + ": the request cannot be encoded as JSON; the credentials must be one JSON object")
	}
	var result *Result
	err = p.retry(ctx, func() (err error) {
		result, err = try(ctx, p, chosen, body, op)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op.name, err)
	}
	return result, nil
}

// try sends a body once and reads the response.
func try[Result any](
	ctx context.Context, p *Providers, chosen create, body []byte, op operation[Result],
) (*Result, error) {
	callers := ctx
	ctx, cancel := context.WithTimeout(callers, p.tryTimeout)
	defer cancel()
	response, err := op.post(ctx, chosen, bytes.NewReader(body))
	if err != nil {
		return nil, p.tryError(callers, ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := unreadError(response); err != nil {
		return nil, err
	}
	text, done, err := p.read(ctx, response.Body)
	if err != nil {
		return nil, p.tryError(callers, ctx, err)
	}
	defer done()
	if err := checkSize(text); err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode == op.status:
	case response.StatusCode == http.StatusCreated && op.name == validateName:
		return nil, errors.New("the server does not support validate_only and stored the provider; upgrade it")
	default:
		return nil, p.explain(newError(response, text), text)
	}
	result, err := op.decode(response.Header, text)
	if err != nil {
		return nil, err
	}
	if chosen.replayed != nil {
		*chosen.replayed = response.Header.Get("Idempotency-Replayed") != ""
	}
	return result, nil
}

// tryError returns the error of a try without a complete response: a *ConnectionError, except for a redirect or if the
// caller's own context has ended.
func (p *Providers) tryError(callers, ctx context.Context, err error) error {
	if _, isRefusal := errors.AsType[*Error](err); isRefusal || callers.Err() != nil {
		return err
	}
	if ctx.Err() != nil {
		return timedOut(p.base, p.tryTimeout, err)
	}
	return connectionError(p.base, err)
}
