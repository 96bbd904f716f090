package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
)

func createToken(t *testing.T, database *store.Store) (string, store.Token) {
	t.Helper()
	text, token, err := database.CreateToken(t.Context(), store.TokenGrant{
		Name: "ci", Operations: []string{"one", "two"}, ExpiresIn: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, token
}

func testTokens(t *testing.T, database *store.Store) {
	text, _ := createToken(t, database)
	createToken(t, database)
	found, err := database.FindToken(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if found.Name != "ci" || !slices.Equal(found.Operations, []string{"one", "two"}) {
		t.Errorf("found %+v", found)
	}
	if !strings.HasPrefix(text, found.Prefix) || len(found.Prefix) > len(text)/2 {
		t.Errorf("prefix %q does not match the token", found.Prefix)
	}
	for name, invalid := range map[string]string{
		"empty": "", "digest": string(found.Digest), "prefix": found.Prefix, "lower case": strings.ToLower(text),
		"well-formed": "pvd_" + strings.Repeat("0", 40),
	} {
		if _, err := database.FindToken(t.Context(), invalid); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: error is %v, want ErrNotFound", name, err)
		}
	}
	if tokens := Collect(t, database.Tokens(t.Context())); len(tokens) != 2 || tokens[0].ID >= tokens[1].ID {
		t.Errorf("tokens are %+v", tokens)
	}
}

func testTokenStates(t *testing.T, database *store.Store) {
	text, token := createToken(t, database)
	if state := token.State(token.ExpiresAt.Add(-time.Microsecond)); state != store.TokenActive {
		t.Errorf("state before the expiry is %s", state)
	}
	if state := token.State(token.ExpiresAt.Time); state != store.TokenExpired {
		t.Errorf("state at the expiry is %s", state)
	}
	if err := database.RevokeToken(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	revoked, err := database.FindToken(t.Context(), text)
	if err != nil || revoked.State(time.Now()) != store.TokenRevoked {
		t.Fatalf("token is %+v, %v", revoked, err)
	}
	if err := database.RevokeToken(t.Context(), token.ID); err != nil {
		t.Errorf("revoked twice: %v", err)
	}
	again, err := database.FindToken(t.Context(), text)
	if err != nil || !again.RevokedAt.Equal(revoked.RevokedAt.Time) {
		t.Errorf("the second revocation moved %v to %v, %v", revoked.RevokedAt, again.RevokedAt, err)
	}
	if err := database.RevokeToken(t.Context(), token.ID+1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
}

// testRenewedTokens renews tokens, whose old texts stay valid for the overlap.
func testRenewedTokens(t *testing.T, database *store.Store) {
	_, first := createToken(t, database)
	text, second, old, err := database.RenewToken(t.Context(), first.ID, 2*time.Hour, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if second.Name != first.Name || !slices.Equal(second.Operations, first.Operations) ||
		!second.ExpiresAt.Equal(second.CreatedAt.Add(2*time.Hour)) || !old.ExpiresAt.Equal(second.CreatedAt.Add(time.Minute)) {
		t.Errorf("%+v was renewed as %+v and is %+v", first, second, old)
	}
	if found, err := database.FindToken(t.Context(), text); err != nil || found.ID != second.ID {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, _, again, err := database.RenewToken(t.Context(), first.ID, time.Hour, time.Hour); err != nil || !again.ExpiresAt.Equal(old.ExpiresAt.Time) {
		t.Errorf("renewed again, the token is %+v, %v", again, err)
	}
	if _, _, revoked, err := database.RenewToken(t.Context(), second.ID, time.Hour, 0); err != nil || revoked.RevokedAt == nil {
		t.Errorf("without an overlap, the token is %+v, %v", revoked, err)
	}
	if _, _, _, err := database.RenewToken(t.Context(), second.ID, time.Hour, 0); !errors.Is(err, store.ErrTokenRevoked) {
		t.Errorf("error is %v, want ErrTokenRevoked", err)
	}
	if _, _, _, err := database.RenewToken(t.Context(), 99, time.Hour, 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
	counts := map[store.EventKind]int{}
	for _, event := range readEvents(t, database) {
		counts[event.Event]++
	}
	if counts[store.EventTokenRenewed] != 3 || counts[store.EventTokenCreated] != 4 || counts[store.EventTokenRevoked] != 1 {
		t.Errorf("events are %v", counts)
	}
	for _, want := range []int64{3, 0} {
		if revoked, err := database.RevokeTokens(t.Context(), first.Name); err != nil || revoked != want {
			t.Errorf("revoked %d tokens, %v, want %d", revoked, err, want)
		}
	}
}

// testTokenExpiry checks that the newest token of a caller counts, unless it is revoked or has a short lifetime.
func testTokenExpiry(t *testing.T, database *store.Store) {
	const day = 24 * time.Hour
	if expiry, err := database.TokenExpiry(t.Context(), day); err != nil || expiry != (store.TokenExpiry{}) {
		t.Errorf("without tokens it is %+v, %v", expiry, err)
	}
	tokens := map[string]store.Token{}
	for name, lengths := range map[string][]time.Duration{"a": {2 * day, 30 * day}, "b": {10 * day}, "c": {3 * day}, "d": {day}} {
		for _, length := range lengths {
			_, token, err := database.CreateToken(t.Context(), store.TokenGrant{
				Name: name, Operations: []string{"one"}, ExpiresIn: length,
			})
			if err != nil {
				t.Fatal(err)
			}
			tokens[name] = token
		}
	}
	if err := database.RevokeToken(t.Context(), tokens["c"].ID); err != nil {
		t.Fatal(err)
	}
	for notice, want := range map[time.Duration]time.Time{day: tokens["b"].ExpiresAt.Time, 12 * day: tokens["a"].ExpiresAt.Time, 40 * day: {}} {
		expiry, err := database.TokenExpiry(t.Context(), notice)
		if err != nil || expiry.Callers != 0 || !expiry.First.Equal(want) {
			t.Errorf("with notice %v it is %+v, %v, want %v", notice, expiry, err, want)
		}
	}
}

// testFirstToken fails the first callback that saves the token; the second succeeds.
func testFirstToken(t *testing.T, database *store.Store) {
	expectTokens := func(want bool) {
		t.Helper()
		if exist, err := database.HasTokens(t.Context()); err != nil || exist != want {
			t.Fatalf("the database has tokens: %v, %v, want %v", exist, err, want)
		}
	}
	expectTokens(false)
	grant := store.TokenGrant{Name: "initial", Operations: []string{"one"}, ExpiresIn: time.Hour}
	full := errors.New("disk is full")
	if err := database.CreateFirstToken(t.Context(), grant, func(string) error { return full }); !errors.Is(err, full) {
		t.Errorf("error is %v, want that of the callback", err)
	}
	expectTokens(false)
	var saved []string
	save := func(text string) error {
		saved = append(saved, text)
		return nil
	}
	if err := database.CreateFirstToken(t.Context(), grant, save); err != nil {
		t.Fatal(err)
	}
	if err := database.CreateFirstToken(t.Context(), grant, save); !errors.Is(err, store.ErrTokensExist) {
		t.Errorf("error is %v, want ErrTokensExist", err)
	}
	if len(saved) != 1 {
		t.Fatalf("%d tokens were saved, want 1", len(saved))
	}
	if _, err := database.FindToken(t.Context(), saved[0]); err != nil {
		t.Error(err)
	}
	expectTokens(true)
}
