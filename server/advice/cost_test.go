package advice_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

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
func TestMostExpensiveMegabyte(t *testing.T) {
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
