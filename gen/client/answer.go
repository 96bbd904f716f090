package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

const (
	// maxResponse is the most bytes of a response that are read, counted after decompression.
	maxResponse = 16 << 20
	// maxSmallResponse is the size up to which responses are read concurrently. Larger ones are read one at a time,
	// because decoding can take many times their size.
	maxSmallResponse = 16 << 10
	// maxCommas is the most commas in a response: each may separate list elements, which take up to 24 times their bytes
	// when decoded. Requests and problem documents are at most 1 MiB, so no valid response has more.
	maxCommas = 1 << 20
)

const jsonMediaType = "application/json"

// read reads a complete response. The caller must call done after decoding it.
func (p *Providers) read(ctx context.Context, body io.Reader) (text []byte, done func(), err error) {
	var buffer bytes.Buffer
	if _, err := io.Copy(&buffer, io.LimitReader(body, maxSmallResponse)); err != nil {
		return nil, nil, fmt.Errorf("read response: %w", err)
	}
	if buffer.Len() < maxSmallResponse {
		return buffer.Bytes(), func() {}, nil
	}
	select {
	case p.largeResponse <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("read response: %w", context.Cause(ctx))
	}
	done = func() { <-p.largeResponse }
	if _, err := io.Copy(&buffer, io.LimitReader(body, maxResponse-maxSmallResponse+1)); err != nil {
		done()
		return nil, nil, fmt.Errorf("read response: %w", err)
	}
	return buffer.Bytes(), done, nil
}

// checkSize returns an error if a response is too large to decode.
func checkSize(text []byte) error {
	switch {
	case len(text) > maxResponse:
		return fmt.Errorf("the response is larger than %d MiB; is this a providerd server?", maxResponse>>20)
	case bytes.Count(text, []byte(",")) > maxCommas:
		return errors.New("the response has more values than a providerd server sends; is this one?")
	default:
		return nil
	}
}

// decode decodes a successful response. It returns an error, which does not quote the response, if that is not from a
// providerd server.
func decode[Result any](header http.Header, text []byte, what string) (*Result, error) {
	if mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || mediaType != jsonMediaType {
		return nil, errors.New("the response is not of the type " + jsonMediaType + "; is this a providerd server?")
	}
	result := new(Result)
	if json.Unmarshal(text, result) != nil {
		return nil, errors.New("the response is not " + what + "; is this a providerd server?")
	}
	return result, nil
}

// recordDecoder returns a function that decodes the record of a successful create. The identify function returns its pk
// and whether it is of the kind that was sent.
func recordDecoder[Record any](
	identify func(*Record) (pk int32, isOfKind bool),
) func(header http.Header, text []byte) (*Record, error) {
	return func(header http.Header, text []byte) (*Record, error) {
		record, err := decode[Record](header, text, "the record of a provider")
		if err != nil {
			return nil, err
		}
		pk, isOfKind := identify(record)
		switch {
		case pk <= 0:
			return nil, errors.New("the response has no pk; is this a providerd server?")
		case !isOfKind:
			return nil, errors.New("the response is not a record of the kind that was sent; is this a providerd server?")
		}
		return record, nil
	}
}

func decodeVerdict(header http.Header, text []byte) (*Verdict, error) {
	const what = "a verdict"
	verdict, err := decode[Verdict](header, text, what)
	if err != nil {
		return nil, err
	}
	hasPK := verdict.PK != nil && *verdict.PK > 0
	switch {
	case verdict.Outcome == "" || verdict.Advice == nil,
		verdict.Outcome.Valid() && hasPK != (verdict.Outcome == VerdictOutcomeAlreadyCreated):
		return nil, errors.New("the response is not " + what + "; is this a providerd server?")
	case !verdict.Outcome.Valid():
		return nil, errors.New("the verdict has an outcome that this client does not know; upgrade the client")
	default:
		return verdict, nil
	}
}
