package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	// DefaultRetries is how often a create is retried by default.
	DefaultRetries = 4
	// DefaultTryTimeout is how long one try of a create may take by default.
	DefaultTryTimeout = 30 * time.Second
)

const (
	lenient = Prefer("handling=lenient")
	// apiPath is the path of the operations.
	apiPath = "/api/v3"
	// maxKeyLength is the contract's limit of an idempotency key.
	maxKeyLength = 255
)

// Providers creates providers. It is safe for concurrent use.
//
// After a lost connection, a timeout, or a response of 429, 502, 503 or 504, it retries the create with the same
// idempotency key, so that all tries create at most one record. Before each retry, it waits for as long as the server
// asks, at most one minute each time and two minutes in total; if the server asks for more, it returns the refusal at
// once. It does not follow redirects, which would send the token and the secrets elsewhere, and reads at most 16 MiB
// of a response. ClientWithResponses is the generated client without any of this.
type Providers struct {
	generated  *Client
	retries    int
	tryTimeout time.Duration
	// largeResponse is a semaphore for reading and decoding a large response.
	largeResponse chan struct{}
}

// Option configures Providers.
type Option func(*settings)

type settings struct {
	doer       HttpRequestDoer
	retries    int
	tryTimeout time.Duration
}

// WithDoer sets the HTTP client. Of an *http.Client, a copy that does not follow redirects is used. Any other doer must
// not follow redirects, and must return when the context of the request ends. The default client uses the proxy of the
// environment and HTTP/1.1, and limits response headers to 64 KiB.
func WithDoer(doer HttpRequestDoer) Option { return func(s *settings) { s.doer = doer } }

// WithRetries sets how often a create is retried; 0 for never. The default is DefaultRetries.
func WithRetries(count int) Option { return func(s *settings) { s.retries = count } }

// WithTryTimeout sets how long one try may take, from connecting to the last byte of the response. The default is
// DefaultTryTimeout.
func WithTryTimeout(length time.Duration) Option { return func(s *settings) { s.tryTimeout = length } }

// New returns Providers of the server at baseURL, such as "http://127.0.0.1:8080", with or without /api/v3, with an
// access token. It returns an error if baseURL is not an absolute HTTP or HTTPS URL or has a query or a fragment, if
// the token is empty or has characters other than visible ASCII, or if the try timeout is not positive. The error
// quotes none of them.
func New(baseURL, token string, options ...Option) (*Providers, error) {
	chosen := settings{retries: DefaultRetries, tryTimeout: DefaultTryTimeout}
	for _, option := range options {
		option(&chosen)
	}
	parsed, err := url.Parse(baseURL)
	switch {
	case err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https"),
		strings.ContainsAny(baseURL, "?#"):
		return nil, errors.New("the base URL is not of the form http://HOST:PORT or https://HOST")
	case token == "":
		return nil, errors.New("the access token is empty")
	case !isVisibleASCII(token):
		return nil, errors.New("the access token contains white space, line breaks or other invalid characters")
	case chosen.tryTimeout <= 0:
		return nil, errors.New("the try timeout is not positive")
	}
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	generated, err := NewClient(apiURL(parsed).String(),
		WithHTTPClient(withoutRedirects(chosen.doer)), WithRequestEditorFn(authorize))
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &Providers{
		generated: generated, retries: chosen.retries, tryTimeout: chosen.tryTimeout,
		largeResponse: make(chan struct{}, 1),
	}, nil
}

// apiURL returns the URL of the API for a base URL with or without apiPath.
func apiURL(base *url.URL) *url.URL {
	if strings.HasSuffix(strings.TrimRight(base.EscapedPath(), "/"), apiPath) {
		return base.JoinPath()
	}
	return base.JoinPath(apiPath)
}

// isVisibleASCII reports whether a text has only visible ASCII characters, which header fields accept unchanged.
func isVisibleASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

// CreateOption configures one create.
type CreateOption func(*create)

type create struct {
	key      IdempotencyKey
	prefer   *Prefer
	replayed *bool
	advice   *[]Advice
	// allowsNilFlow allows the nil UUID as an authorization flow.
	allowsNilFlow bool
	// validateOnly is nil for a create.
	validateOnly *ValidateOnly
}

// WithIdempotencyKey sets the key by which a later call, of this program or another, finds the record of this one. It
// must be 1 to 255 visible ASCII characters; otherwise nothing is sent. The default is a random key, which covers
// only the retries of this call.
func WithIdempotencyKey(key string) CreateOption { return func(c *create) { c.key = key } }

// WithLenientHandling makes the server ignore unknown fields (RFC 7240).
func WithLenientHandling() CreateOption {
	preference := lenient
	return func(c *create) { c.prefer = &preference }
}

// WithReplayed sets replayed, when the call returns a record, to whether an earlier request with the same idempotency
// key had created it: an attempt of this call whose response was lost, or another request.
func WithReplayed(replayed *bool) CreateOption { return func(c *create) { c.replayed = replayed } }

// WithValidateOnly stores nothing: the call returns the record as it would be stored, or the refusal of a create. Its
// PK is 0, a ClientID that the server would choose is empty, and so are the secret and the credentials. If the
// idempotency key already created a record, the call returns that one.
func WithValidateOnly() CreateOption { return func(c *create) { c.validateOnly = new(true) } }

// WithAdvice sets advice to what the server advises about the settings when a validation returns a record.
func WithAdvice(advice *[]Advice) CreateOption { return func(c *create) { c.advice = advice } }

// WithNilAuthorizationFlow allows the nil UUID as the authorization flow of an OAuth2 provider. Without it, the nil
// UUID counts as a field that is not set, which is an error, and nothing is sent.
func WithNilAuthorizationFlow() CreateOption { return func(c *create) { c.allowsNilFlow = true } }

func newCreate(options []CreateOption) (create, error) {
	chosen := create{key: rand.Text()}
	for _, option := range options {
		option(&chosen)
	}
	if chosen.key == "" || len(chosen.key) > maxKeyLength || !isVisibleASCII(chosen.key) {
		return chosen, fmt.Errorf("create provider: the idempotency key is not 1 to %d visible ASCII characters",
			maxKeyLength)
	}
	return chosen, nil
}

// CreateOAuth2 creates an OAuth2 provider, or validates one, and returns the record with the secret. It returns an
// *Error if the server refused, the error of ctx, the error of net/http if there was no complete response, or an error
// if the request cannot be sent, such as one without an AuthorizationFlow, or the response cannot be decoded. Errors
// quote neither the token nor the request.
func (p *Providers) CreateOAuth2(
	ctx context.Context, request OAuth2ProviderRequest, options ...CreateOption,
) (*OAuth2Provider, error) {
	chosen, err := newCreate(options)
	if err == nil && request.AuthorizationFlow == uuid.Nil && !chosen.allowsNilFlow {
		err = errors.New("create provider: AuthorizationFlow is not set; set it to the flow that authorizes this provider")
	}
	if err != nil {
		return nil, err
	}
	return send[OAuth2Provider](ctx, p, request, chosen, "providers_oauth2.oauth2provider",
		func(ctx context.Context, c create, body io.Reader) (*http.Response, error) {
			params := &ProvidersOauth2CreateParams{ValidateOnly: c.validateOnly, IdempotencyKey: &c.key, Prefer: c.prefer}
			return p.generated.ProvidersOauth2CreateWithBody(ctx, params, jsonMediaType, body)
		})
}

// CreateWorkspaceDirectory creates a workspace directory-sync provider, or validates one, and returns the record,
// including the credentials. It returns the errors of CreateOAuth2.
func (p *Providers) CreateWorkspaceDirectory(
	ctx context.Context, request WorkspaceDirectoryProviderRequest, options ...CreateOption,
) (*WorkspaceDirectoryProvider, error) {
	chosen, err := newCreate(options)
	if err != nil {
		return nil, err
	}
	return send[WorkspaceDirectoryProvider](ctx, p, request, chosen,
		"providers_workspace_directory.workspacedirectoryprovider",
		func(ctx context.Context, c create, body io.Reader) (*http.Response, error) {
			params := &ProvidersWorkspaceDirectoryCreateParams{
				ValidateOnly: c.validateOnly, IdempotencyKey: &c.key, Prefer: c.prefer,
			}
			return p.generated.ProvidersWorkspaceDirectoryCreateWithBody(ctx, params, jsonMediaType, body)
		})
}
