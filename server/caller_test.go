package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// A 401 says what it saw of the header, and nothing that its sender does not know.
func TestCallerMustShowAValidToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	expired := h.newToken(t, "x", -time.Second, oauth2Operation)
	body := encode(t, minimal(oauth2Path))
	for value, want := range map[string]struct {
		// reason is that of an invalid token, and more the text after it.
		reason, more string
	}{
		none: {"", "The request has no Authorization header. Send"},
		"":   {"", "The Authorization header is empty. Send"},
		"Bearer " + h.token + "\nBearer " + h.token: {"", "The request has several Authorization headers. Send"},
		"Basic " + h.token:                          {"", "The Authorization header has a scheme other than Bearer. Send"},
		h.token:                                     {"", "The Authorization header has no scheme before the token. Send"},
		"Bearer ":                                   {"", "The Authorization header has no token after Bearer. Send"},
		`"Bearer ` + h.token + `"`:                  {"", "The Authorization header is in quotation marks. Send"},
		"Bearer bearer " + h.token:                  {"unknown", " The Authorization header has the word Bearer twice;"},
		`Bearer "` + h.token + `"`:                  {"unknown", " It is in quotation marks;"},
		"Bearer " + h.token[:43]:                    {"unknown", " It is not a whole token,"},
		"Bearer x" + h.token[1:]:                    {"unknown", " It is not a whole token,"},
		"Bearer x":                                  {"unknown", " It is not a whole token,"},
		"Bearer " + h.token + " x":                  {"unknown", " It is not a whole token,"},
		mistypedToken:                               {"unknown", " Ask the operator"},
		"Bearer " + start(t).token:                  {"unknown", " Ask the operator"},
		"Bearer " + revokedToken(t, h):              {"revoked", " Ask the operator"},
		"Bearer " + expired:                         {"expired", " It was valid until 20"},
	} {
		got := h.post(t, oauth2Path, body, setLines("Authorization", value))
		problem := got.problem(t, http.StatusUnauthorized, "unauthorized")
		challenge, detail := `Bearer realm="providerd"`, ""
		if want.reason != "" {
			detail = "The access token is " + want.reason + "."
			challenge += `, error="invalid_token", error_description="` + detail + `"`
		}
		detail += want.more
		if got := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, challenge) || !strings.HasPrefix(problem.Detail, detail) {
			t.Errorf("challenge is %s, want %s; detail is %q, want %q first", got, challenge, problem.Detail, detail)
		}
	}
	// Only the log tells a mistyped token from an unknown one.
	if count := strings.Count(h.log.String(), "not a token, or mistyped"); count != 7 {
		t.Errorf("%d lines of the log report a mistyped token, want 7: %s", count, h.log)
	}
	h.post(t, oauth2Path+"?access_token="+h.token, body, set("Authorization")).
		problem(t, http.StatusUnauthorized, "unauthorized")
	h.post(t, oauth2Path, body, set("Authorization", "bearer  "+h.token)).record(t)
}

// An unknown token is refused by the same steps as a revoked one. The bound is loose, so that a busy machine passes.
func TestUnknownAndRevokedTokensTakeTheSameTime(t *testing.T) {
	t.Parallel()
	h := start(t)
	handler := target{handler: h.newServer(t)}
	unknown, revoked := start(t).token, revokedToken(t, h)
	const tries, requests, bound = 10, 15, 5 * time.Millisecond
	// fastest returns the shortest time of several refusals of a token.
	fastest := func(token string) time.Duration {
		least := time.Hour
		for range requests {
			begun := time.Now()
			if status := handler.post(oauth2Path, "{}", set("Authorization", "Bearer "+token)).status; status != http.StatusUnauthorized {
				t.Fatalf("status is %d", status)
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	for range tries {
		if difference := fastest(unknown) - fastest(revoked); difference.Abs() < bound {
			return
		}
	}
	t.Errorf("the times differ by more than %v", bound)
}

func revokedToken(t *testing.T, h *harness) string {
	t.Helper()
	text, token, err := h.database.CreateToken(t.Context(), store.TokenGrant{
		Name: "x", Operations: []string{oauth2Operation}, ExpiresIn: time.Hour,
	})
	if err == nil {
		err = h.database.RevokeToken(t.Context(), token.ID)
	}
	processtest.Must(t, err)
	return text
}

// A damaged token row is an error of the storage that affects no other caller. The log names it.
func TestDamagedToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	body := encode(t, minimal(oauth2Path))
	for id, statement := range []string{
		"operations = '{bad'", "operations = '7'", "operations = 'null'", "operations = ''",
	} {
		token := h.newToken(t, "x", time.Hour, oauth2Operation)
		storetest.Execute(t, h.path, fmt.Sprintf("UPDATE tokens SET %s WHERE id = %d", statement, id+2))
		got := h.post(t, oauth2Path, body, set("Authorization", "Bearer "+token))
		problem := got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
		if !strings.Contains(problem.Detail, "access token is damaged") || got.header.Get("Retry-After") != "86400" {
			t.Errorf("%s: Retry-After is %q, detail %s", statement, got.header.Get("Retry-After"), problem.Detail)
		}
		if want := fmt.Sprintf("token %d: its row is damaged", id+2); strings.Count(h.log.String(), want) != 1 {
			t.Errorf("%s: the log does not say %q: %s", statement, want, h.log)
		}
	}
	h.post(t, oauth2Path, body).record(t)
}

func TestTokenMustAllowTheOperation(t *testing.T) {
	t.Parallel()
	h := start(t)
	token := h.newToken(t, "x", time.Hour, oauth2Operation)
	authorize := set("Authorization", "Bearer "+token)
	h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), authorize).record(t)
	got := h.post(t, workspaceDirectoryPath, encode(t, minimal(workspaceDirectoryPath)), authorize)
	got.problem(t, http.StatusForbidden, "forbidden")
	want := `Bearer realm="providerd", error="insufficient_scope", scope="providers_workspace_directory_create"`
	if challenge := got.header.Get("WWW-Authenticate"); challenge != want {
		t.Errorf("challenge is %s, want %s", challenge, want)
	}
}
