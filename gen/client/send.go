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

// poster sends the body of a create once.
type poster func(ctx context.Context, chosen create, body io.Reader) (*http.Response, error)

// send sends a create, with retries, and returns a record of a model.
func send[Record any](
	ctx context.Context, p *Providers, request any, chosen create, model string, post poster,
) (*Record, error) {
	body, err := json.Marshal(request)
	if err != nil {
		// The error of encoding/json may contain a piece of the credentials.
		return nil, errors.New("create provider: cannot encode the request as JSON; the credentials must be one JSON object")
	}
	var record *Record
	err = p.retry(ctx, func() (err error) {
		record, err = attempt[Record](ctx, p, chosen, body, model, post)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create provider: %w", err)
	}
	return record, nil
}

// attempt sends a body once and reads the response.
func attempt[Record any](
	callers context.Context, p *Providers, chosen create, body []byte, model string, post poster,
) (*Record, error) {
	ctx, cancel := context.WithTimeout(callers, p.tryTimeout)
	defer cancel()
	status, leastPK := http.StatusCreated, int64(1)
	if chosen.validateOnly != nil {
		status, leastPK = http.StatusOK, 0
	}
	response, err := post(ctx, chosen, bytes.NewReader(body))
	if err != nil {
		return nil, p.lateError(callers, ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := unreadError(response); err != nil {
		return nil, err
	}
	text, done, err := p.read(ctx, response.Body)
	if err != nil {
		return nil, p.lateError(callers, ctx, err)
	}
	defer done()
	switch {
	case response.StatusCode >= http.StatusMultipleChoices:
		return nil, newError(response, text)
	case response.StatusCode != status:
		return nil, fmt.Errorf("the response has the status %d instead of %d; is this a providerd server?",
			response.StatusCode, status)
	}
	record, err := decodeRecord[Record](response.Header, text, model, leastPK)
	if err != nil {
		return nil, err
	}
	if chosen.replayed != nil {
		*chosen.replayed = response.Header.Get("Idempotency-Replayed") != ""
	}
	if chosen.advice != nil {
		*chosen.advice = adviceIn(response.Header)
	}
	return record, nil
}

// lateError explains the error of an attempt that exceeded its timeout, and returns others unchanged.
func (p *Providers) lateError(callers, ctx context.Context, err error) error {
	if callers.Err() != nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("no complete response within %s: %w", p.tryTimeout, err)
}
