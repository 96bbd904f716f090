// Command oauth is an OAuth server, or a client. A list has the clients of the server, or the attempts of the client,
// each of which asks for authorization and sends a code.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/storage"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	zitadel "github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/oauth2"
)

// registered is a client, and where it sends its requests.
type registered struct {
	ID       string `json:"client_id"`
	Secret   string `json:"client_secret"`
	Redirect string `json:"redirect_uris"`
	Base     string `json:"base"`
}

func main() {
	var listed []registered
	if err := json.Unmarshal([]byte(os.Args[3]), &listed); err != nil {
		log.Fatal(err)
	}
	servers := map[string]func([]registered) http.Handler{"fosite": newFosite, "zitadel/oidc": newZitadel}
	if listed[0].Base == "" {
		fmt.Println("listening on", httptest.NewServer(servers[os.Args[1]](listed)).URL)
		select {}
	}
	for _, attempt := range listed {
		request(os.Args[1], attempt)
	}
}

func newFosite(clients []registered) http.Handler {
	memory := storage.NewMemoryStore()
	for _, c := range clients {
		// A secret of more than 72 bytes has no hash.
		hash, _ := bcrypt.GenerateFromPassword([]byte(c.Secret), bcrypt.MinCost)
		memory.Clients[c.ID] = &fosite.DefaultClient{
			ID: c.ID, Secret: hash, RedirectURIs: []string{c.Redirect}, Scopes: []string{"openid"},
			ResponseTypes: []string{"code"}, GrantTypes: []string{"authorization_code"},
		}
	}
	config := &fosite.Config{GlobalSecret: make([]byte, 32), SendDebugMessagesToClients: true}
	strategy := compose.NewOAuth2HMACStrategy(config)
	provider := compose.Compose(config, memory, strategy, compose.OAuth2AuthorizeExplicitFactory)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			requester, err := provider.NewAccessRequest(r.Context(), r, &fosite.DefaultSession{})
			provider.WriteAccessError(r.Context(), w, requester, err)
			return
		}
		var response fosite.AuthorizeResponder
		requester, err := provider.NewAuthorizeRequest(r.Context(), r)
		if err == nil {
			response, err = provider.NewAuthorizeResponse(r.Context(), requester, &fosite.DefaultSession{})
		}
		if err != nil {
			provider.WriteAuthorizeError(r.Context(), w, requester, err)
			return
		}
		provider.WriteAuthorizeResponse(r.Context(), w, requester, response)
	})
}

func newZitadel(clients []registered) http.Handler {
	for _, c := range clients {
		zitadel.RegisterClients(zitadel.WebClient(c.ID, c.Secret, c.Redirect))
	}
	const issuer = "http://127.0.0.1"
	return exampleop.SetupServer(issuer, zitadel.NewStorage(zitadel.NewUserStore(issuer)), nil, true,
		op.WithCustomAuthEndpoint(op.NewEndpoint("authorize")), op.WithCustomTokenEndpoint(op.NewEndpoint("token")))
}

// request ignores errors: the test sees the responses.
func request(client string, c registered) {
	config := oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, RedirectURL: c.Redirect, Scopes: []string{"openid"},
		Endpoint: oauth2.Endpoint{AuthURL: c.Base + "/authorize", TokenURL: c.Base + "/token"},
	}
	// A redirect leads to the application.
	http.DefaultClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	const state = "some-state"
	if client == "x/oauth2" {
		config.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
		_, _ = http.Get(config.AuthCodeURL(state))
		_, _ = config.Exchange(context.Background(), "code")
		return
	}
	party, _ := rp.NewRelyingPartyOAuth(&config)
	_, _ = http.Get(rp.AuthURL(state, party))
	_, _ = rp.CodeExchange[*oidc.IDTokenClaims](context.Background(), "code", party)
}
