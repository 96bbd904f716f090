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

// operation is how providers of one kind are created.
type operation[Record any] struct {
	post func(ctx context.Context, chosen create, body io.Reader) (*http.Response, error)
	// identify tells the pk of a record, and whether the record is of this kind.
	identify func(*Record) (pk int32, isOfKind bool)
}

// send carries out one create until it is answered for good, or has been sent often enough.
func send[Record any](
	ctx context.Context, p *Providers, request any, options []CreateOption, how operation[Record],
) (*Record, error) {
	chosen, err := newCreate(options)
	if err != nil {
		return nil, fmt.Errorf("create provider: %w", err)
	}
	body, err := json.Marshal(request)
	if err != nil {
		// The error of encoding/json can have a piece of the credentials.
		return nil, errors.New("create provider: the request is not JSON; the credentials must be one JSON object")
	}
	var record *Record
	err = p.retry(ctx, func() (err error) {
		record, err = try(ctx, p, chosen, body, how)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create provider: %w", err)
	}
	return record, nil
}

// try sends a create once, and reads its answer.
func try[Record any](
	ctx context.Context, p *Providers, chosen create, body []byte, how operation[Record],
) (*Record, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.tryTimeout,
		fmt.Errorf("no whole answer within %s: %w", p.tryTimeout, context.DeadlineExceeded))
	defer cancel()
	response, err := how.post(ctx, chosen, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if err := refusedUnread(response); err != nil {
		return nil, err
	}
	text, done, err := p.read(ctx, response.Body)
	if err != nil {
		return nil, err
	}
	defer done()
	if response.StatusCode != http.StatusCreated {
		return nil, newError(response, text)
	}
	record, err := decodeRecord(response.Header, text, how.identify)
	if err != nil {
		return nil, err
	}
	if chosen.replayed != nil {
		*chosen.replayed = response.Header.Get("Idempotency-Replayed") != ""
	}
	return record, nil
}
