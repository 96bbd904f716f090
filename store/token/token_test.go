package token_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
	"example.com/providerd/store/token"
)

// A caller counts from 14 days before its newest token expires until 14 days after, unless it is renewed or revoked.
func TestExpiryOfOldTokens(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	path := filepath.Join(t.TempDir(), "test.db")
	database := storetest.Create(t, path)
	for name, left := range map[string]time.Duration{
		"later": 20 * day, "soon": 10 * day, "expired": -10 * day, "abandoned": -20 * day, "renewed": -time.Hour, "revoked": -time.Hour,
	} {
		_, created, err := database.Tokens.Create(t.Context(), token.Grant{Name: name, Operations: []string{"one"}, ExpiresIn: day})
		processtest.Must(t, err)
		storetest.Execute(t, path, fmt.Sprintf("UPDATE tokens SET created_at = 1, expires_at = %d WHERE id = %d",
			time.Now().Add(left).UnixMicro(), created.ID))
		switch name {
		case "renewed":
			_, _, _, err = database.Tokens.Renew(t.Context(), created.ID, 90*day, time.Hour)
		case "revoked":
			_, err = database.Tokens.RevokeAll(t.Context(), name)
		}
		processtest.Must(t, err)
	}
	expiry, err := database.Tokens.Expiry(t.Context(), 14*day)
	processtest.Expect(t, err == nil && expiry.Callers == 2 && time.Since(expiry.First).Round(time.Hour) == 10*day,
		"it is %+v, %v", expiry, err)
}

// Replacing, omitting or doubling a character, or swapping two neighbors, is detected without the database.
func TestTokenTextDetectsEverySingleError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := token.NewText()
		processtest.Require(t, regexp.MustCompile(`^pvd_[0-9A-Za-z]{40}$`).MatchString(text) && token.IsText(text),
			"%q does not have the form of a token", text)
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		var changed []string
		for with := range 256 {
			character := string([]byte{byte(with)})
			changed = append(changed, text[:at]+character+text[at+1:], text[:at]+character+text[at:])
		}
		changed = append(changed, text[:at], text[:at]+text[at+1:], text+text[at:], text[at:]+text[:at])
		if at > 0 {
			changed = append(changed, text[:at-1]+text[at:at+1]+text[at-1:at]+text[at+1:])
		}
		for _, typed := range changed {
			processtest.Expect(t, token.IsText(typed) == (typed == text), "%q is accepted for the token %q", typed, text)
		}
	})
}

// A token that is not in files that were changed may be valid.
func TestTokenInChangedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	text := token.NewText()
	database := storetest.Create(t, path)
	if _, err := database.Tokens.Find(t.Context(), text); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
	processtest.Must(t, os.Rename(path, path+".moved"))
	if _, err := database.Tokens.Find(t.Context(), text); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	processtest.Must(t, os.Rename(path+".moved", path))
}
