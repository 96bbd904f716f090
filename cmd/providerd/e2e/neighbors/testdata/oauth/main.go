// Command oauth is an OAuth server, or a client. A file lists the clients of the server, or the attempts of the client,
// each of which asks for authorization and sends a code.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/storage"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	zitadel "github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
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
	var clients []registered
	text, err := os.ReadFile(os.Args[2])
	must(err)
	must(json.Unmarshal(text, &clients))
	switch name := os.Args[1]; name {
	case "fosite", "zitadel":
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(err)
		url := "http://" + listener.Addr().String()
		handler := http.Handler(newFosite(clients))
		if name == "zitadel" {
			handler = newZitadel(url, clients)
		}
		fmt.Println(url)
		must(http.Serve(listener, handler))
	default:
		for _, c := range clients {
			request(name, c)
		}
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
	config := &fosite.Config{GlobalSecret: []byte("a secret of thirty-two characters")[:32], SendDebugMessagesToClients: true}
	provider := compose.Compose(config, memory, compose.NewOAuth2HMACStrategy(config), compose.OAuth2AuthorizeExplicitFactory)
	mux := http.NewServeMux()
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		requester, err := provider.NewAuthorizeRequest(r.Context(), r)
		if err != nil {
			provider.WriteAuthorizeError(r.Context(), w, requester, err)
			return
		}
		response, err := provider.NewAuthorizeResponse(r.Context(), requester, &fosite.DefaultSession{})
		if err != nil {
			provider.WriteAuthorizeError(r.Context(), w, requester, err)
			return
		}
		provider.WriteAuthorizeResponse(r.Context(), w, requester, response)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		requester, err := provider.NewAccessRequest(r.Context(), r, &fosite.DefaultSession{})
		provider.WriteAccessError(r.Context(), w, requester, err)
	})
	return mux
}

func newZitadel(url string, clients []registered) http.Handler {
	for _, c := range clients {
		zitadel.RegisterClients(zitadel.WebClient(c.ID, c.Secret, c.Redirect))
	}
	return exampleop.SetupServer(url, zitadel.NewStorage(zitadel.NewUserStore(url)), nil, true)
}

// request ignores errors: the test sees the responses.
func request(name string, c registered) {
	config := oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, RedirectURL: c.Redirect, Scopes: []string{"openid"},
		Endpoint: oauth2.Endpoint{AuthURL: c.Base + "/authorize", TokenURL: c.Base + "/token", AuthStyle: oauth2.AuthStyleInHeader},
	}
	const state = "some-state"
	if name == "x/oauth2" {
		get(config.AuthCodeURL(state))
		_, _ = config.Exchange(context.Background(), "code")
		return
	}
	config.Endpoint.AuthStyle = oauth2.AuthStyleAutoDetect
	party, err := rp.NewRelyingPartyOAuth(&config)
	must(err)
	get(rp.AuthURL(state, party))
	_, _ = rp.CodeExchange[*oidc.IDTokenClaims](context.Background(), "code", party)
}

func get(url string) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if response, err := client.Get(url); err == nil {
		_ = response.Body.Close()
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
