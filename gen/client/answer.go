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
	// maxAnswer is how many bytes of an answer are read, counted after decompression.
	maxAnswer = 16 << 20
	// maxSmallAnswer is how many bytes of answers are read side by side. Decoded, an answer can take many times its size,
	// so that of larger ones there is one at a time.
	maxSmallAnswer = 16 << 10
	// maxCommas is how many commas an answer may have: each can be an element of a list, which decoded takes up to 24
	// times its bytes. Requests and problem documents have at most 1 MiB, so that no record and none of these has more.
	maxCommas = 1 << 20
)

const jsonMediaType = "application/json"

// read reads an answer whole. What is made of it is to be made before done is called.
func (p *Providers) read(ctx context.Context, body io.Reader) (text []byte, done func(), err error) {
	var buffer bytes.Buffer
	if _, err := io.Copy(&buffer, io.LimitReader(body, maxSmallAnswer)); err != nil {
		return nil, nil, fmt.Errorf("read answer: %w", err)
	}
	if buffer.Len() < maxSmallAnswer {
		return buffer.Bytes(), func() {}, nil
	}
	select {
	case p.largeAnswer <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("read answer: %w", context.Cause(ctx))
	}
	done = func() { <-p.largeAnswer }
	if _, err := io.Copy(&buffer, io.LimitReader(body, maxAnswer-maxSmallAnswer+1)); err != nil {
		done()
		return nil, nil, fmt.Errorf("read answer: %w", err)
	}
	return buffer.Bytes(), done, nil
}

// checkSize returns an error for an answer that is too large to be decoded.
func checkSize(text []byte) error {
	switch {
	case len(text) > maxAnswer:
		return fmt.Errorf("the answer has more than %d MiB; is this a providerd server?", maxAnswer>>20)
	case bytes.Count(text, []byte(",")) > maxCommas:
		return errors.New("the answer has more values than any of a providerd server; is this one?")
	default:
		return nil
	}
}

// decode reads an answer that is no refusal. What a server of something else answers is an error, which does not repeat
// it.
func decode[Answer any](header http.Header, text []byte, what string) (*Answer, error) {
	if mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || mediaType != jsonMediaType {
		return nil, errors.New("the answer is not of the type " + jsonMediaType + "; is this a providerd server?")
	}
	answer := new(Answer)
	if json.Unmarshal(text, answer) != nil {
		return nil, errors.New("the answer is not " + what + "; is this a providerd server?")
	}
	return answer, nil
}

// recordDecoder returns what reads the record of a create that has succeeded. Identify tells its pk, and whether it is
// of the kind that was sent.
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
			return nil, errors.New("the answer has no pk; is this a providerd server?")
		case !isOfKind:
			return nil, errors.New("the answer is not a record of the kind that was sent; is this a providerd server?")
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
		return nil, errors.New("the answer is not " + what + "; is this a providerd server?")
	case !verdict.Outcome.Valid():
		return nil, errors.New("the verdict has an outcome that this client does not know; upgrade the client")
	default:
		return verdict, nil
	}
}
