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

// operation is what is asked of a server with one body.
type operation[Answer any] struct {
	// name is for errors.
	name string
	// hasNilFlow tells that the authorization flow is the nil UUID.
	hasNilFlow bool
	post       func(ctx context.Context, chosen create, body io.Reader) (*http.Response, error)
	// status is that of an answer that is no refusal, which decode reads.
	status int
	decode func(header http.Header, text []byte) (*Answer, error)
}

// send carries out one operation until it is answered for good, or has been sent often enough.
func send[Answer any](
	ctx context.Context, p *Providers, request any, options []CreateOption, how operation[Answer],
) (*Answer, error) {
	chosen, err := newCreate(options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", how.name, err)
	}
	if how.hasNilFlow && !chosen.takesNilFlow {
		return nil, errors.New(how.name + ": AuthorizationFlow is not set; name the flow that authorizes this provider")
	}
	body, err := json.Marshal(request)
	if err != nil {
		// The error of encoding/json can have a piece of the credentials.
		return nil, errors.New(how.name + ": the request is not JSON; the credentials must be one JSON object")
	}
	var answer *Answer
	err = p.retry(ctx, func() (err error) {
		answer, err = try(ctx, p, chosen, body, how)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", how.name, err)
	}
	return answer, nil
}

// try sends a body once, and reads its answer.
func try[Answer any](
	ctx context.Context, p *Providers, chosen create, body []byte, how operation[Answer],
) (*Answer, error) {
	callers := ctx
	ctx, cancel := context.WithTimeout(callers, p.tryTimeout)
	defer cancel()
	response, err := how.post(ctx, chosen, bytes.NewReader(body))
	if err != nil {
		return nil, p.lost(callers, ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := refusedUnread(response); err != nil {
		return nil, err
	}
	text, done, err := p.read(ctx, response.Body)
	if err != nil {
		return nil, p.lost(callers, ctx, err)
	}
	defer done()
	if err := checkSize(text); err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode == how.status:
	case response.StatusCode == http.StatusCreated && how.name == validateName:
		return nil, errors.New("the server does not know validate_only, and has stored the provider; upgrade it")
	default:
		return nil, p.explained(newError(response, text), text)
	}
	answer, err := how.decode(response.Header, text)
	if err != nil {
		return nil, err
	}
	if chosen.replayed != nil {
		*chosen.replayed = response.Header.Get("Idempotency-Replayed") != ""
	}
	return answer, nil
}

// lost is the error of a try without a whole response. Neither the end of the caller's own time nor a redirect is a
// fault of the connection.
func (p *Providers) lost(callers, ctx context.Context, err error) error {
	if _, isRefusal := errors.AsType[*Error](err); isRefusal || callers.Err() != nil {
		return err
	}
	if ctx.Err() != nil {
		return timedOut(p.base, p.tryTimeout, err)
	}
	return connectionError(p.base, err)
}
