package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxContractBytes is how much is read of the contract of a server.
const maxContractBytes = 1 << 20

// checkCanValidate looks into the contract of the server. One that does not know validate_only would create what it is
// only asked about.
func (c *applyCommand) checkCanValidate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	text, err := readContract(ctx, c.Server)
	if err != nil {
		return fmt.Errorf("read the contract of the server: %w; nothing was sent", err)
	}
	if !bytes.Contains(text, []byte(`"validate_only"`)) {
		return errors.New("the server does not have validate_only in its contract, and cannot tell what it would do; " +
			"upgrade it, or leave out --server to check the file alone; nothing was sent")
	}
	return nil
}

func readContract(ctx context.Context, server string) ([]byte, error) {
	// The contract is beside the operations, with which the URL may end (client.New).
	root := strings.TrimSuffix(strings.TrimRight(server, "/"), "/api/v3")
	location, err := url.JoinPath(root, "openapi.json")
	if err != nil {
		return nil, fmt.Errorf("make the URL of the contract: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	asker := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := asker.Do(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the URL.
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %d; is this a providerd server?", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxContractBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(text) > maxContractBytes || !json.Valid(text):
		return nil, errors.New("it is not JSON of at most 1 MiB; is this a providerd server?")
	}
	return text, nil
}
