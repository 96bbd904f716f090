package storetest

import (
	"errors"
	"fmt"
	"testing"

	"example.com/providerd/store"
)

func testApplications(t *testing.T, database *store.Store) {
	oauth2 := createOAuth2(t, database, "a")
	directory := createWorkspaceDirectory(t, database)
	other := createOAuth2(t, database, "b")
	created, err := database.CreateApplication(t.Context(), store.Application{
		Slug: "shop", Name: "Shop", ProviderPK: &oauth2.PK,
		Backchannels: []store.Backchannel{{ProviderPK: directory.PK}, {ProviderPK: other.PK}},
	})
	if err != nil || created.ID == 0 {
		t.Fatalf("created %+v, %v", created, err)
	}

	serving := read(t, database, oauth2.PK)
	if serving.Application.Slug != "shop" || serving.Application.Name != "Shop" || serving.Backchannel.ApplicationID != 0 {
		t.Errorf("provider is %+v", serving)
	}
	for _, pk := range []int32{directory.PK, other.PK} {
		backchannel := read(t, database, pk)
		if backchannel.Backchannel.Application.Slug != "shop" || backchannel.Application.ID != 0 {
			t.Errorf("backchannel is %+v", backchannel)
		}
	}
	applications := Collect(t, database.Applications(t.Context()))
	if len(applications) != 1 || len(applications[0].Backchannels) != 2 {
		t.Errorf("applications are %+v", applications)
	}
}

func testApplicationRefusals(t *testing.T, database *store.Store) {
	oauth2, free := createOAuth2(t, database, "a"), createOAuth2(t, database, "b")
	directory := createWorkspaceDirectory(t, database)
	missing := free.PK + 100
	link := func(pks ...int32) (links []store.Backchannel) {
		for _, pk := range pks {
			links = append(links, store.Backchannel{ProviderPK: pk})
		}
		return links
	}
	_, err := database.CreateApplication(t.Context(), store.Application{
		Slug: "shop", Name: "Shop", ProviderPK: &oauth2.PK, Backchannels: link(directory.PK),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		application store.Application
		want        error
	}{
		"slug taken":             {store.Application{Slug: "shop", ProviderPK: &free.PK}, store.ErrSlugTaken},
		"provider linked":        {store.Application{ProviderPK: &oauth2.PK}, store.ErrProviderLinked},
		"provider missing":       {store.Application{ProviderPK: &missing}, store.ErrNotFound},
		"provider of wrong kind": {store.Application{ProviderPK: &directory.PK}, store.ErrWrongKind},
		"backchannel linked":     {store.Application{Backchannels: link(directory.PK)}, store.ErrProviderLinked},
		"backchannel missing":    {store.Application{Backchannels: link(missing)}, store.ErrNotFound},
		"duplicate backchannel":  {store.Application{Backchannels: link(free.PK, free.PK)}, store.ErrProviderLinked},
	} {
		if _, err := database.CreateApplication(t.Context(), test.application); !errors.Is(err, test.want) {
			t.Errorf("%s: error is %v, want %v", name, err, test.want)
		}
	}
	if applications := Collect(t, database.Applications(t.Context())); len(applications) != 1 {
		t.Errorf("applications are %+v", applications)
	}
	if provider := read(t, database, free.PK); provider.Application.ID != 0 || provider.Backchannel.ApplicationID != 0 {
		t.Errorf("a refused application left a link: %+v", provider)
	}
}

func read(t *testing.T, database *store.Store, pk int32) store.Provider {
	t.Helper()
	record, err := database.Provider(t.Context(), pk)
	if err != nil {
		t.Fatal(err)
	}
	return record.Common()
}

// testConcurrentApplications has two operators create conflicting applications at the same time: one is created, and
// the other leaves nothing behind.
func testConcurrentApplications(t *testing.T, first, second *store.Store) {
	own := [2]int32{}
	for name, test := range map[string]struct {
		// application returns the application of an operator; shared is a provider that both use.
		application func(operator int, shared int32) store.Application
		refusal     error
	}{
		"slug": {func(operator int, _ int32) store.Application {
			return store.Application{Slug: "slug", Backchannels: []store.Backchannel{{ProviderPK: own[operator]}}}
		}, store.ErrSlugTaken},
		"provider": {func(operator int, shared int32) store.Application {
			return store.Application{Slug: fmt.Sprint("provider ", operator), ProviderPK: &shared}
		}, store.ErrProviderLinked},
		"backchannel": {func(operator int, shared int32) store.Application {
			return store.Application{
				Slug:         fmt.Sprint("backchannel ", operator),
				Backchannels: []store.Backchannel{{ProviderPK: own[operator]}, {ProviderPK: shared}},
			}
		}, store.ErrProviderLinked},
	} {
		for round := range 5 {
			shared := createOAuth2(t, first, fmt.Sprint(name, round, " shared")).PK
			var errs [2]error
			for operator := range own {
				own[operator] = createOAuth2(t, second, fmt.Sprint(name, round, operator)).PK
			}
			concurrently(2, func(operator int) {
				application := test.application(operator, shared)
				application.Slug += fmt.Sprint(" ", round)
				_, errs[operator] = []*store.Store{first, second}[operator].CreateApplication(t.Context(), application)
			})
			checkOperators(t, name, first, errs, own, test.refusal)
		}
	}
	if applications := Collect(t, second.Applications(t.Context())); len(applications) != 5*3 {
		t.Errorf("%d applications, want 15", len(applications))
	}
}

// checkOperators checks that one of two operators is refused and that nothing is linked for it.
func checkOperators(t *testing.T, name string, database *store.Store, errs [2]error, own [2]int32, refusal error) {
	t.Helper()
	refused := 0
	for operator, err := range errs {
		if err == nil {
			continue
		}
		refused++
		if !errors.Is(err, refusal) {
			t.Errorf("%s: error is %v, want %v", name, err, refusal)
		}
		if left := read(t, database, own[operator]); left.Application.ID != 0 || left.Backchannel.ApplicationID != 0 {
			t.Errorf("%s: the refused operator left %+v", name, left)
		}
	}
	if refused != 1 {
		t.Errorf("%s: %d operators were refused, want 1", name, refused)
	}
}
