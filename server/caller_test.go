package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
)

func TestCallerMustShowAValidToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	expired := h.newToken(t, "x", -time.Second, oauth2Operation)
	revoked, token, err := h.database.CreateToken(t.Context(), store.TokenGrant{
		Name: "x", Operations: []string{oauth2Operation}, ExpiresIn: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.database.RevokeToken(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	body := encode(t, minimal(oauth2Path))
	for name, test := range map[string]struct {
		authorization []string
		reason        string
	}{
		"none":          {nil, ""},
		"empty":         {[]string{""}, ""},
		"other scheme":  {[]string{"Basic " + h.token}, ""},
		"no scheme":     {[]string{h.token}, ""},
		"no token":      {[]string{"Bearer "}, ""},
		"two fields":    {[]string{"Bearer " + h.token, "Bearer " + h.token}, ""},
		"mistyped":      {[]string{mistypedToken}, "unknown"},
		"unknown":       {[]string{"Bearer " + start(t).token}, "unknown"},
		"not a token":   {[]string{"Bearer x"}, "unknown"},
		"expired":       {[]string{"Bearer " + expired}, "expired"},
		"revoked":       {[]string{"Bearer " + revoked}, "revoked"},
		"followed by x": {[]string{"Bearer " + h.token + " x"}, "unknown"},
	} {
		got := h.post(t, oauth2Path, body, set("Authorization", test.authorization...))
		problem := got.problem(t, http.StatusUnauthorized, "unauthorized")
		challenge, detail := `Bearer realm="providerd"`, ""
		if test.reason != "" {
			detail = "The access token is " + test.reason + "."
			challenge += `, error="invalid_token", error_description="` + detail + `"`
		}
		if got := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, challenge) || !strings.HasPrefix(problem.Detail, detail) {
			t.Errorf("%s: challenge is %s, want %s; detail is %s", name, got, challenge, problem.Detail)
		}
	}
	// Only the log tells a mistyped token from an unknown one.
	if count := strings.Count(h.log.String(), "not a token, or mistyped"); count != 3 {
		t.Errorf("%d lines of the log report a mistyped token, want 3: %s", count, h.log)
	}
	h.post(t, oauth2Path+"?access_token="+h.token, body, set("Authorization")).
		problem(t, http.StatusUnauthorized, "unauthorized")
	h.post(t, oauth2Path, body, set("Authorization", "bearer  "+h.token)).record(t)
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
		h.tamper(t, fmt.Sprintf("UPDATE tokens SET %s WHERE id = %d", statement, id+2))
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
