package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestCrowdedBodyGetsOneEntry(t *testing.T) {
	t.Parallel()
	h := start(t)
	list := func(count int, element string) string {
		return `{"name":"n","authorization_flow":"` + flow + `","property_mappings":[` +
			strings.Repeat(element+",", count-1) + element + `]}`
	}
	var unknown []string
	for i := range 11_000 {
		unknown = append(unknown, fmt.Sprintf(`"x%d":1`, i))
	}
	for name, test := range map[string]struct {
		body    string
		entries int
	}{
		"many":           {list(9_000, "1"), 9_000},
		"too many":       {list(500_000, "1"), 1},
		"unknown fields": {"{" + strings.Join(unknown, ",") + "}", 1},
	} {
		problem := h.post(t, oauth2Path, test.body).problem(t, http.StatusBadRequest, "validation-failed")
		if entries := len(violations(problem)); entries != test.entries {
			t.Errorf("%s: %d entries, want %d", name, entries, test.entries)
		}
	}
	record := h.post(t, oauth2Path, list(20_000, `"`+flow+`"`)).record(t)
	if mappings, ok := record["property_mappings"].([]any); !ok || len(mappings) != 20_000 {
		t.Errorf("%d mappings come back", len(mappings))
	}
	last := strings.TrimSuffix(list(20_000, `"`+flow+`"`), "]}") + `,"x"]}`
	problem := h.post(t, oauth2Path, last).problem(t, http.StatusBadRequest, "validation-failed")
	if got := violations(problem); !slices.Equal(got, []string{"/property_mappings/20000 invalid_uuid"}) {
		t.Errorf("entries are %q", got)
	}
}
