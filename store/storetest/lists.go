package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/providerd/store"
)

// testPages creates more providers, tokens and applications than fit on two pages.
func testPages(t *testing.T, database *store.Store) {
	const count, providers = 510, 1203
	concurrently(providers, func(i int) {
		if i%3 == 0 {
			createWorkspaceDirectory(t, database)
		} else {
			createOAuth2(t, database, fmt.Sprint(i))
		}
	})
	records := stored(t, database)
	if len(records) != providers || !slices.IsSortedFunc(records, func(a, b store.Record) int { return int(a.Common().PK - b.Common().PK) }) {
		t.Errorf("%d providers, want %d ordered by pk", len(records), providers)
	}
	for i := range count {
		createToken(t, database)
		if _, err := database.CreateApplication(t.Context(), store.Application{Slug: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	tokens := Collect(t, database.Tokens(t.Context()))
	if len(tokens) != count || !slices.IsSortedFunc(tokens, func(a, b store.Token) int { return int(a.ID - b.ID) }) {
		t.Errorf("%d tokens, want %d ordered by id", len(tokens), count)
	}
	applications := Collect(t, database.Applications(t.Context()))
	if len(applications) != count ||
		!slices.IsSortedFunc(applications, func(a, b store.Application) int { return int(a.ID - b.ID) }) {
		t.Errorf("%d applications, want %d ordered by id", len(applications), count)
	}
}

func testFilters(t *testing.T, database *store.Store) {
	request := func(caller, name string) store.CreateRequest {
		return store.CreateRequest{Name: name, CreatedBy: caller, RequestID: "request"}
	}
	var last store.OAuth2Provider
	for i, create := range []store.CreateRequest{request("ci", "Shop"), request("ci", "shop"), request("cd", "Shop")} {
		var err error
		if last, _, err = database.CreateOAuth2Provider(t.Context(), create, FullOAuth2(fmt.Sprint("client ", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := database.CreateWorkspaceDirectoryProvider(t.Context(), request("cd", "Shop"), FullWorkspaceDirectory())
	if err != nil {
		t.Fatal(err)
	}
	createToken(t, database)
	for name, test := range map[string]struct {
		filter store.Filter
		after  int64
		want   []int64
	}{
		"all":                {store.Filter{}, 0, []int64{1, 2, 3, 4}},
		"after":              {store.Filter{}, 2, []int64{3, 4}},
		"kind":               {store.Filter{Kind: store.KindWorkspaceDirectory}, 0, []int64{4}},
		"name":               {store.Filter{Name: "Shop"}, 0, []int64{1, 3, 4}},
		"client_id":          {store.Filter{ClientID: "client 2"}, 0, []int64{2}},
		"client_id's case":   {store.Filter{ClientID: "Client 2"}, 0, nil},
		"created by":         {store.Filter{CreatedBy: "cd"}, 0, []int64{3, 4}},
		"kind, name, caller": {store.Filter{Kind: store.KindOAuth2, Name: "Shop", CreatedBy: "cd"}, 0, []int64{3}},
		"since":              {store.Filter{Since: last.CreatedAt.Time}, 2, []int64{3, 4}},
		"since in a zone":    {store.Filter{Since: last.CreatedAt.In(time.FixedZone("elsewhere", 3600))}, 2, []int64{3, 4}},
		"since later":        {store.Filter{Since: last.CreatedAt.Add(time.Hour)}, 0, nil},
	} {
		var pks []int64
		for _, record := range Collect(t, database.Providers(t.Context(), test.filter, test.after)) {
			pks = append(pks, record.Common().PK)
		}
		if !slices.Equal(pks, test.want) {
			t.Errorf("%s: pks are %v, want %v", name, pks, test.want)
		}
	}
	if err := database.DeleteProviders(t.Context(), []int64{2}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter store.EventFilter
		after  int64
		want   int
	}{
		"all":         {store.EventFilter{}, 0, 7},
		"after":       {store.EventFilter{}, 6, 1},
		"kind":        {store.EventFilter{Kind: store.KindWorkspaceDirectory}, 0, 1},
		"pk, deleted": {store.EventFilter{PK: 2}, 0, 2},
		"caller":      {store.EventFilter{By: "cd"}, 0, 2},
		"user":        {store.EventFilter{By: operator(t)}, 0, 3},
		"request":     {store.EventFilter{RequestID: "request", By: "ci"}, 0, 2},
		"since later": {store.EventFilter{Since: last.CreatedAt.Add(time.Hour)}, 0, 0},
	} {
		events := Collect(t, database.Events(t.Context(), test.filter, test.after))
		if len(events) != test.want {
			t.Errorf("%s: events are %+v, want %d", name, events, test.want)
		}
		logged := 0
		for page, err := range database.Log(t.Context(), test.filter, store.Cursor{ID: test.after}, func(string) {}) {
			if logged += len(page.Entries); err != nil {
				t.Error(err)
			}
		}
		if logged != test.want {
			t.Errorf("%s: %d events are logged, want %d", name, logged, test.want)
		}
	}
}

// testCursors reads from each event, and expects all later events.
func testCursors(t *testing.T, database *store.Store) {
	for i := range 20 {
		record := createOAuth2(t, database, fmt.Sprint(i))
		_, token := createToken(t, database)
		if i%3 == 0 {
			if err := database.DeleteProviders(t.Context(), []int64{record.PK}); err != nil {
				t.Fatal(err)
			}
			if err := database.RevokeToken(t.Context(), token.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := database.RotateKey(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	events := Collect(t, database.Events(t.Context(), store.EventFilter{}, 0))
	if len(events) != 1+2*20+3*7 {
		t.Errorf("%d events, want %d", len(events), 1+2*20+3*7)
	}
	for i, event := range events {
		later := Collect(t, database.Events(t.Context(), store.EventFilter{Since: event.At.Time}, event.ID))
		if !sameEvents(later, events[i+1:]) {
			t.Errorf("%d events after number %d, want %d", len(later), i, len(events)-i-1)
		}
	}
}
