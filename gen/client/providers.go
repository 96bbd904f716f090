package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

const (
	// DefaultRetries is how often a create is retried by default.
	DefaultRetries = 4
	// DefaultTryTimeout is how long one attempt of a create may take by default.
	DefaultTryTimeout = 30 * time.Second

	apiPath = "/api/v3/"
)

// Providers creates providers. It is safe for concurrent use.
//
// After a lost connection, a timeout, or a response of 429, 502, 503 or 504, it retries the create with the same
// idempotency key, so that all attempts create at most one record. Before each retry, it waits for as long as the
// server asks, at most one minute each time and two minutes in total; if the server asks for more, it returns the
// refusal at once. It does not follow redirects, which would send the token and the secrets elsewhere, and reads at
// most 16 MiB of a response. ClientWithResponses is the generated client without any of this.
type Providers struct {
	doer HttpRequestDoer
	// api and token are not printed by fmt: api can have a password.
	api        *url.URL
	token      Secret
	retries    int
	tryTimeout time.Duration
	// large is a semaphore for large responses.
	large chan struct{}
}

// Option configures Providers.
type Option func(*Providers)

// WithDoer sets the HTTP client. Of an *http.Client, a copy that does not follow redirects is used. Any other doer must
// not follow redirects, and must return when the context of the request ends. The default client uses the proxy of the
// environment and HTTP/1.1, and limits response headers to 64 KiB.
func WithDoer(doer HttpRequestDoer) Option { return func(p *Providers) { p.doer = doer } }

// WithRetries sets how often a create is retried; 0 for never. The default is DefaultRetries.
func WithRetries(count int) Option { return func(p *Providers) { p.retries = count } }

// WithTryTimeout limits an attempt, from connecting to the last byte of the response. The default is DefaultTryTimeout.
func WithTryTimeout(length time.Duration) Option { return func(p *Providers) { p.tryTimeout = length } }

var (
	// placeholder matches tokens that come from an unset variable, a shell that did not expand it, or a template.
	placeholder = regexp.MustCompile("^(undefined|null|None|nil|TOKEN)?$|[$<>%`]|^\\{\\{")
	// pathOfFile does not match every slash, because the tokens of a gateway may be Base64.
	pathOfFile = regexp.MustCompile(`^(\.{0,2}/|[~@])|\\|(\.txt|[./-]token)$`)
	// visibleASCII matches what header fields accept unchanged.
	visibleASCII = regexp.MustCompile(`^[!-~]+$`)
	// joined matches a second URI on a line of redirect URIs.
	joined = regexp.MustCompile(`(?i)([,;|]|\\[rn]) *[a-z][a-z0-9+.-]*://`)
)

// New returns Providers of the server at baseURL, such as "http://127.0.0.1:8080", with or without /api/v3, with an
// access token. It returns an error, which quotes none of them, if an argument or an option is invalid.
func New(baseURL, token string, options ...Option) (*Providers, error) {
	p := &Providers{
		token: NewSecret(token), retries: DefaultRetries, tryTimeout: DefaultTryTimeout, large: make(chan struct{}, 1),
	}
	for _, option := range options {
		option(p)
	}
	p.doer = withoutRedirects(p.doer)
	parsed, err := url.Parse(baseURL)
	switch {
	case err != nil, parsed.Host == "", parsed.Scheme != "http" && parsed.Scheme != "https",
		strings.ContainsAny(baseURL, "?#"), strings.Contains(baseURL, apiPath+"providers"):
		return nil, errors.New("the base URL is not of the form http://HOST:PORT or https://HOST")
	case placeholder.MatchString(token):
		return nil, errors.New("the access token is empty, a placeholder or a variable that was not expanded; " +
			"set the variable or file that it comes from")
	case pathOfFile.MatchString(token):
		return nil, errors.New("the access token is the path of a file; pass what the file contains")
	case strings.HasPrefix(strings.ToLower(token), "bearer "):
		return nil, errors.New("the access token begins with Bearer; pass it without: the client adds it")
	case !visibleASCII.MatchString(token):
		return nil, errors.New("the access token contains white space, line breaks or other invalid characters; " +
			"pass it as it was issued, without the line break of its file")
	case p.retries < 0:
		return nil, errors.New("the number of retries is negative")
	case p.tryTimeout <= 0:
		return nil, errors.New("the timeout of an attempt is not positive")
	}
	p.api = parsed.JoinPath("/")
	if !strings.HasSuffix(p.api.EscapedPath(), apiPath) {
		p.api = parsed.JoinPath(apiPath)
	}
	return p, nil
}

// CreateOption configures one create.
type CreateOption func(*create)

type create struct {
	params      ProvidersOauth2CreateParams
	replayed    *bool
	advice      *[]Advice
	isUnchecked bool
}

// WithIdempotencyKey sets the key by which a later call, of this program or another, finds the record of this one. It
// must be 1 to 255 visible ASCII characters; otherwise nothing is sent. Quotation marks are part of a key. The default
// is a random key, which covers only the retries of this call: another call creates another record.
func WithIdempotencyKey(key string) CreateOption {
	return func(c *create) { c.params.IdempotencyKey = &key }
}

// WithLenientHandling makes the server ignore unknown fields (RFC 7240).
func WithLenientHandling() CreateOption {
	return func(c *create) { c.params.Prefer = new("handling=lenient") }
}

// WithReplayed sets replayed, when the call returns a record, to whether an earlier request with the same idempotency
// key had created it: an attempt of this call whose response was lost, or another request.
func WithReplayed(replayed *bool) CreateOption { return func(c *create) { c.replayed = replayed } }

// WithValidateOnly stores nothing: the call returns the record as it would be stored, or the refusal of a create. Its
// PK is 0, a ClientID that the server would choose is empty, and so are the secret and the credentials. If the
// idempotency key already created a record, the call returns that one.
func WithValidateOnly() CreateOption { return func(c *create) { c.params.ValidateOnly = new(true) } }

// WithAdvice sets advice to what the server advises about the settings when a validation returns a record.
func WithAdvice(advice *[]Advice) CreateOption { return func(c *create) { c.advice = advice } }

// WithUnchecked sends what is an error without it, because it is probably a mistake: the nil UUID as an authorization
// flow, an empty or masked secret, text other than UTF-8, an empty or joined redirect URI, or a validity below 1 s.
func WithUnchecked() CreateOption { return func(c *create) { c.isUnchecked = true } }

func newCreate(options []CreateOption) create {
	chosen := create{params: ProvidersOauth2CreateParams{IdempotencyKey: new(rand.Text())}}
	for _, option := range options {
		option(&chosen)
	}
	return chosen
}

// CreateOAuth2 creates an OAuth2 provider, or validates one, and returns the record with the secret. It returns an
// *Error if the server refused, the error of ctx, the error of net/http if there was no complete response, or an error
// if the request cannot be sent, such as one without an AuthorizationFlow, or the response cannot be decoded. Errors
// quote neither the token nor the request.
func (p *Providers) CreateOAuth2(
	ctx context.Context, request OAuth2ProviderRequest, options ...CreateOption,
) (*OAuth2Provider, error) {
	chosen := newCreate(options)
	if mistake := mistakeIn(request); mistake != "" && !chosen.isUnchecked {
		return nil, errors.New("create provider: " + mistake)
	}
	return send[OAuth2Provider](ctx, p, chosen, "providers_oauth2.oauth2provider",
		NewProvidersOauth2CreateRequest, &chosen.params, request)
}

func mistakeIn(request OAuth2ProviderRequest) string {
	isShort := func(validity *string) bool { return validity != nil && strings.HasPrefix(*validity, "seconds=0.") }
	secret := cmp.Or(request.ClientSecret, new(NewSecret("omitted"))).Reveal()
	switch {
	case request.AuthorizationFlow == uuid.Nil:
		return "AuthorizationFlow is not set; set it to the flow that authorizes this provider"
	case secret == "":
		return "ClientSecret is empty; set the variable or file that it comes from, or omit ClientSecret"
	case secret == mask:
		return "ClientSecret is the mask of a printed secret; pass the secret itself"
	case !utf8.ValidString(request.Name + secret):
		return "Name or ClientSecret is not UTF-8, so JSON would change it; encode it, for example as Base64"
	case joined.MatchString(*cmp.Or(request.RedirectUris, new(string))):
		return "RedirectUris has two URIs on a line; pass each as an argument of RedirectURIs"
	case strings.Contains("\n"+*cmp.Or(request.RedirectUris, new(string)), "\n\n"):
		return "RedirectUris has an empty URI; set the variable or file that it comes from, or omit the URI"
	case isShort(request.AccessCodeValidity), isShort(request.AccessTokenValidity), isShort(request.RefreshTokenValidity):
		return "a validity is shorter than a second; pass Duration a number with its unit, such as 3600*time.Second"
	}
	return ""
}

// CreateWorkspaceDirectory creates a workspace directory-sync provider, or validates one, and returns the record,
// including the credentials. It returns the errors of CreateOAuth2.
func (p *Providers) CreateWorkspaceDirectory(
	ctx context.Context, request WorkspaceDirectoryProviderRequest, options ...CreateOption,
) (*WorkspaceDirectoryProvider, error) {
	chosen := newCreate(options)
	if text := bytes.TrimSpace(request.Credentials.Reveal()); !bytes.HasPrefix(text, []byte("{")) || !json.Valid(text) {
		return nil, errors.New("create provider: Credentials is not a JSON object; pass the contents of a file, not its path")
	}
	params := ProvidersWorkspaceDirectoryCreateParams(chosen.params)
	return send[WorkspaceDirectoryProvider](ctx, p, chosen, "providers_workspace_directory.workspacedirectoryprovider",
		NewProvidersWorkspaceDirectoryCreateRequest, &params, request)
}

// RedirectURIs returns the value of RedirectUris for URIs, one per line. It is invalid if one is empty. A string may
// have several lines: check one that someone else wrote.
func RedirectURIs(uris ...string) string {
	lines := make([]string, len(uris))
	for i, uri := range uris {
		lines[i] = cmp.Or(strings.TrimSuffix(strings.TrimSuffix(uri, "\n"), "\r"), "\n")
	}
	return strings.Join(lines, "\n")
}

// Duration returns the value of AccessCodeValidity, AccessTokenValidity and RefreshTokenValidity for a duration,
// exact to the nanosecond: "hours=1;minutes=30" for 90 minutes. The server refuses a negative one.
func Duration(length time.Duration) string {
	seconds := strconv.FormatFloat((length % time.Minute).Seconds(), 'f', -1, 64)
	text := fmt.Sprintf("hours=%d;minutes=%d;seconds=%s", length/time.Hour, length%time.Hour/time.Minute, seconds)
	return strings.TrimSuffix(strings.NewReplacer("hours=0;", "", "minutes=0;", "").Replace(text), ";seconds=0")
}
