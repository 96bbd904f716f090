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

var (
	errTooLarge = fmt.Errorf("the response is larger than %d MiB or has too many values; is this a providerd server?",
		maxResponse>>20)
	errNoRecord = errors.New("the response is not the record of a provider of this kind; is this a providerd server?")
)

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
	_, err = io.Copy(&buffer, io.LimitReader(body, maxResponse-maxSmallResponse+1))
	if err == nil && (buffer.Len() > maxResponse || bytes.Count(buffer.Bytes(), []byte(",")) > maxCommas) {
		err = errTooLarge
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("read response: %w", err)
	}
	return buffer.Bytes(), done, nil
}

// decodeRecord decodes the record of a successful response. The error does not quote the response.
func decodeRecord[Record any](header http.Header, text []byte, model string, leastPK int64) (*Record, error) {
	var identity struct {
		PK    int64  `json:"pk"`
		Model string `json:"meta_model_name"`
	}
	record := new(Record)
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || mediaType != jsonMediaType || json.Unmarshal(text, &identity) != nil ||
		identity.Model != model || identity.PK < leastPK || json.Unmarshal(text, record) != nil {
		return nil, errNoRecord
	}
	return record, nil
}
