package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
	// DefaultRetries is how often a create is sent again where nothing else is said.
	DefaultRetries = 4
	// DefaultTryTimeout is how long one try of a create may take where nothing else is said.
	DefaultTryTimeout = 30 * time.Second
)

// What is asked of a server, in errors.
const (
	createName   = "create provider"
	validateName = "validate provider"
	contractName = "read the contract of the server"
)

const (
	lenient = Prefer("handling=lenient")
	// apiPath is where a server has its operations.
	apiPath = "/api/v3"
	// maxKeyLength is how long the contract lets an idempotency key be.
	maxKeyLength = 255
)

// Providers creates providers. It is safe for concurrent use.
//
// A create that meets a lost connection, a try that takes too long, or 429, 502, 503 or 504 is sent again, with the
// same idempotency key, so that it makes one record however often it is sent. Before, it waits for as long as the
// server asks, at most a minute each time and two minutes in all; where the server asks for more, the refusal is
// returned at once. No redirect is followed, since it would take the token and the secrets elsewhere, and at most
// 16 MiB of an answer are read. ClientWithResponses is the generated client without any of this.
type Providers struct {
	generated *Client
	// base is the URL that the operations are below.
	base       *url.URL
	retries    int
	tryTimeout time.Duration
	// largeAnswer is held by whoever reads and decodes a large answer.
	largeAnswer chan struct{}
}

// Option changes how Providers work.
type Option func(*settings)

type settings struct {
	doer       HttpRequestDoer
	retries    int
	tryTimeout time.Duration
}

// WithDoer sends requests through an HTTP client of the caller's. Of an *http.Client, a copy is used that follows no
// redirects; any other doer must follow none itself, and must end when the context of the request does. The default has
// the proxy of the environment, HTTP/1.1, and a bound of 64 KiB on the header of an answer.
func WithDoer(doer HttpRequestDoer) Option { return func(s *settings) { s.doer = doer } }

// WithRetries sets how often a create is sent again; 0 for never. The default is DefaultRetries.
func WithRetries(count int) Option { return func(s *settings) { s.retries = count } }

// WithTryTimeout sets how long one try may take, from connecting to the last byte of the answer, before it counts as
// lost. The default is DefaultTryTimeout.
func WithTryTimeout(length time.Duration) Option { return func(s *settings) { s.tryTimeout = length } }

// New returns Providers of the server at baseURL, such as "http://127.0.0.1:8080", with or without /api/v3, for the
// caller that an access token names. It returns an error when baseURL is not an absolute URL of HTTP or HTTPS, or has a
// query or a fragment, when the token is empty or has anything but visible ASCII characters, and when the timeout of a
// try is not positive. The error repeats none of them.
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
		return nil, errors.New("the access token has white space, line ends or other characters that no token has")
	case chosen.tryTimeout <= 0:
		return nil, errors.New("the timeout of a try is not positive")
	}
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	base := apiURL(parsed)
	generated, err := NewClient(base.String(),
		WithHTTPClient(withoutRedirects(chosen.doer)), WithRequestEditorFn(authorize))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &Providers{
		generated: generated, base: base, retries: chosen.retries, tryTimeout: chosen.tryTimeout,
		largeAnswer: make(chan struct{}, 1),
	}, nil
}

// apiURL is the URL of the operations, which a base URL may have already.
func apiURL(base *url.URL) *url.URL {
	if strings.HasSuffix(strings.TrimRight(base.EscapedPath(), "/"), apiPath) {
		return base.JoinPath()
	}
	return base.JoinPath(apiPath)
}

// root is the URL that the pages of the server are below.
func (p *Providers) root() *url.URL { return p.base.JoinPath("..", "..") }

// isVisibleASCII tells whether a header field takes a text as it stands.
func isVisibleASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

// CreateOption changes one create, or its validation.
type CreateOption func(*create)

type create struct {
	key      IdempotencyKey
	prefer   *Prefer
	replayed *bool
	// takesNilFlow lets the nil UUID be an authorization flow.
	takesNilFlow bool
}

// WithIdempotencyKey lets a later call, of this program or another, find the record of this one: it is to have 1 to 255
// visible ASCII characters, and nothing is sent with another. The default is a random key, which holds for the retries
// of this call alone.
func WithIdempotencyKey(key string) CreateOption { return func(c *create) { c.key = key } }

// WithLenientHandling makes the server ignore fields that it does not know (RFC 7240).
func WithLenientHandling() CreateOption {
	preference := lenient
	return func(c *create) { c.prefer = &preference }
}

// WithReplayed tells in replayed, once the create has returned a record, whether an earlier request with the same
// idempotency key had made it: one of this program's own, when its answer was lost, or another's. Of a validation, the
// verdict tells it.
func WithReplayed(replayed *bool) CreateOption { return func(c *create) { c.replayed = replayed } }

// WithNilAuthorizationFlow sends the nil UUID where that is the authorization flow of an OAuth2 provider. Without it,
// the nil UUID is taken for a field that nobody set: nothing is sent, and the error says so.
func WithNilAuthorizationFlow() CreateOption { return func(c *create) { c.takesNilFlow = true } }

func newCreate(options []CreateOption) (create, error) {
	chosen := create{key: rand.Text()}
	for _, option := range options {
		option(&chosen)
	}
	if chosen.key == "" || len(chosen.key) > maxKeyLength || !isVisibleASCII(chosen.key) {
		return create{}, fmt.Errorf("the idempotency key does not have 1 to %d visible ASCII characters", maxKeyLength)
	}
	return chosen, nil
}

// CreateOAuth2 creates an OAuth2 provider and returns the record, the secret included. Its error is an *Error where the
// server refused, a *ConnectionError where it gave no usable response, and otherwise that of ctx, or of what cannot be
// sent, such as a request without an AuthorizationFlow, or understood. Neither the token nor the request is in it.
func (p *Providers) CreateOAuth2(
	ctx context.Context, request OAuth2ProviderRequest, options ...CreateOption,
) (*OAuth2Provider, error) {
	return send(ctx, p, request, options, operation[OAuth2Provider]{
		name: createName, hasNilFlow: request.AuthorizationFlow == uuid.Nil,
		post: p.postOAuth2(nil), status: http.StatusCreated,
		decode: recordDecoder(func(record *OAuth2Provider) (int32, bool) {
			return record.PK, record.MetaModelName.Valid()
		}),
	})
}

// CreateWorkspaceDirectory creates a workspace directory-sync provider and returns the record, the credentials
// included. Its errors are those of CreateOAuth2.
func (p *Providers) CreateWorkspaceDirectory(
	ctx context.Context, request WorkspaceDirectoryProviderRequest, options ...CreateOption,
) (*WorkspaceDirectoryProvider, error) {
	return send(ctx, p, request, options, operation[WorkspaceDirectoryProvider]{
		name: createName, post: p.postWorkspaceDirectory(nil), status: http.StatusCreated,
		decode: recordDecoder(func(record *WorkspaceDirectoryProvider) (int32, bool) {
			return record.PK, record.MetaModelName.Valid()
		}),
	})
}

// ValidateOAuth2 asks what CreateOAuth2 would do with the same request and options, and stores nothing. Its errors are
// those of CreateOAuth2, all refusals included. A server that is too old to know validate_only stores the provider all
// the same, which the error says. A verdict whose outcome this package does not know is an error, too, since a caller
// that took it for one of the others would be wrong.
func (p *Providers) ValidateOAuth2(
	ctx context.Context, request OAuth2ProviderRequest, options ...CreateOption,
) (*Verdict, error) {
	return send(ctx, p, request, options, operation[Verdict]{
		name: validateName, hasNilFlow: request.AuthorizationFlow == uuid.Nil,
		post: p.postOAuth2(new(true)), status: http.StatusOK, decode: decodeVerdict,
	})
}

// ValidateWorkspaceDirectory asks what CreateWorkspaceDirectory would do with the same request and options, as
// ValidateOAuth2 does.
func (p *Providers) ValidateWorkspaceDirectory(
	ctx context.Context, request WorkspaceDirectoryProviderRequest, options ...CreateOption,
) (*Verdict, error) {
	return send(ctx, p, request, options, operation[Verdict]{
		name: validateName, post: p.postWorkspaceDirectory(new(true)), status: http.StatusOK, decode: decodeVerdict,
	})
}

// Contract returns the OpenAPI document of the server, as JSON. Its errors are those of CreateOAuth2.
func (p *Providers) Contract(ctx context.Context) (json.RawMessage, error) {
	contract, err := send(ctx, p, nil, nil, operation[json.RawMessage]{
		name: contractName, post: p.getContract, status: http.StatusOK,
		decode: func(header http.Header, text []byte) (*json.RawMessage, error) {
			return decode[json.RawMessage](header, text, "a contract")
		},
	})
	if err != nil {
		return nil, err
	}
	return *contract, nil
}

// getContract gets what is beside the operations. It is for everyone, so the token stays here.
func (p *Providers) getContract(ctx context.Context, _ create, _ io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.root().JoinPath("openapi.json").String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	return p.generated.Client.Do(request)
}

type postFunc = func(ctx context.Context, chosen create, body io.Reader) (*http.Response, error)

func (p *Providers) postOAuth2(validateOnly *ValidateOnly) postFunc {
	return func(ctx context.Context, c create, body io.Reader) (*http.Response, error) {
		params := &ProvidersOauth2CreateParams{ValidateOnly: validateOnly, IdempotencyKey: &c.key, Prefer: c.prefer}
		return p.generated.ProvidersOauth2CreateWithBody(ctx, params, jsonMediaType, body)
	}
}

func (p *Providers) postWorkspaceDirectory(validateOnly *ValidateOnly) postFunc {
	return func(ctx context.Context, c create, body io.Reader) (*http.Response, error) {
		params := &ProvidersWorkspaceDirectoryCreateParams{
			ValidateOnly: validateOnly, IdempotencyKey: &c.key, Prefer: c.prefer,
		}
		return p.generated.ProvidersWorkspaceDirectoryCreateWithBody(ctx, params, jsonMediaType, body)
	}
}
