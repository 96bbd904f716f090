package advice_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// A public client needs redirect URIs and a signing key: tokens cannot be signed with an empty secret.
func TestMissingFieldsGetAdvice(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		publicClient + `,"signing_key":null,"redirect_uris":""`: "signing_key_missing redirect_uris_missing",
		`"signing_key":null,"client_secret":""`:                 "client_secret_empty signing_key_missing",
	} {
		if got := strings.Join(codes(advice.OAuth2(client(t, members))), " "); got != want {
			t.Errorf("%s: %s, want %s", members, got, want)
		}
	}
}

func codes(given []advice.Advice) []string {
	var codes []string
	for _, item := range given {
		codes = append(codes, item.Code)
	}
	return codes
}

// Each rule gives one piece of advice, with at most ten line numbers, in the order of the fields.
func TestManyLinesGetOnePieceOfAdvice(t *testing.T) {
	t.Parallel()
	settings := client(t, "")
	settings.SubMode, settings.AccessCodeValidity = "user_upn", "hours=1"
	for count, want := range map[int]string{
		1:    "Line 1: ",
		2:    "Lines 1 and 2: ",
		11:   "Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1 more: ",
		1000: "Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more: ",
		1001: "Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more: ",
	} {
		var text strings.Builder
		for line := range count {
			fmt.Fprintf(&text, "http://%d.example.com/*\n", line)
		}
		settings.RedirectURIs = text.String()
		got := advice.OAuth2(settings)
		wantCodes := []string{
			"access_code_long_lived", "redirect_uri_http", "redirect_uri_wildcard", "sub_mode_reassignable",
		}
		if !slices.Equal(codes(got), wantCodes) {
			t.Fatalf("%d lines: %+v", count, got)
		}
		for _, item := range got[1:3] {
			if !strings.HasPrefix(item.Detail, want) {
				t.Errorf("%d lines: %s", count, item.Detail)
			}
		}
	}
}

// costly returns the most expensive bodies of 1 MiB that we know of.
func costly(t *testing.T) map[string]store.OAuth2Settings {
	t.Helper()
	const megabyte = 1 << 20
	texts := map[string]string{
		"short lines":     strings.Repeat("a:b\n", megabyte/4),
		"one line":        "http://" + strings.Repeat("a", megabyte-7),
		"escapes":         "http://a/" + strings.Repeat("%61", megabyte/3),
		"escaped host":    "http://" + strings.Repeat("%C3", megabyte/3),
		"query":           "http://a/?" + strings.Repeat("a&", megabyte/2),
		"stars at last":   "a:" + strings.Repeat("-", megabyte-3) + "*",
		"a kilobyte each": strings.Repeat("http://"+strings.Repeat("a.", 508)+"\n", 1000),
		"different lines": func() string {
			var text strings.Builder
			for line := range 1000 {
				fmt.Fprintf(&text, "http://%d.%s/*\n", line, strings.Repeat("%41", 340))
			}
			return text.String()
		}(),
	}
	result := map[string]store.OAuth2Settings{}
	for name, text := range texts {
		settings := client(t, "")
		settings.RedirectURIs = text
		result[name] = settings
	}
	settings := client(t, "")
	settings.RefreshTokenValidity = strings.TrimSuffix(strings.Repeat("days=0;", megabyte/7), ";")
	result["durations"] = settings
	settings.RefreshTokenValidity = strings.TrimSuffix(
		strings.Repeat("microseconds=999999999.999999999;", megabyte/33), ";")
	result["long durations"] = settings
	return result
}

// Advice for the largest bodies is short, and takes little memory.
func TestAdviceTakesLittleMemory(t *testing.T) {
	const mostBytes, longestDetail = 8 << 20, 320
	for name, settings := range costly(t) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		given := advice.OAuth2(settings)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > mostBytes {
			t.Errorf("%s: takes %d bytes", name, taken)
		}
		if len(given) > len(advice.OAuth2Rules()) {
			t.Errorf("%s: %d pieces of advice", name, len(given))
		}
		for _, item := range given {
			if len(item.Detail) > longestDetail {
				t.Errorf("%s: %d bytes: %s", name, len(item.Detail), item.Detail)
			}
		}
	}
}
