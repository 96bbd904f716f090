package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/providerd/store"
)

func read(t *testing.T, database *store.Store, pk int64) store.Provider {
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
	for round := range 5 {
		for name, refusal := range map[string]error{
			"slug": store.ErrSlugTaken, "provider": store.ErrProviderLinked, "backchannel": store.ErrProviderLinked,
		} {
			shared := createOAuth2(t, first, fmt.Sprint(name, round, " shared")).PK
			var own [2]int64
			for operator := range own {
				own[operator] = createOAuth2(t, second, fmt.Sprint(name, round, operator)).PK
			}
			var errs [2]error
			concurrently(2, func(operator int) {
				application := store.Application{
					Slug: fmt.Sprint(name, round), Name: "Shop", Backchannels: []store.Backchannel{{ProviderPK: own[operator]}},
				}
				switch name {
				case "provider":
					application.ProviderPK = &shared
				case "backchannel":
					application.Backchannels = append(application.Backchannels, store.Backchannel{ProviderPK: shared})
				}
				_, errs[operator] = []*store.Store{first, second}[operator].CreateApplication(t.Context(), application)
			})
			refused := slices.IndexFunc(errs[:], func(err error) bool { return err != nil })
			if refused < 0 || !errors.Is(errs[refused], refusal) || errs[1-refused] != nil {
				t.Fatalf("%s: errors are %v, want one %v", name, errs, refusal)
			}
			if left := read(t, first, own[refused]); left.Application.ID != 0 || left.Backchannel.ApplicationID != 0 {
				t.Errorf("%s: the refused operator left %+v", name, left)
			}
		}
	}
	if applications := Collect(t, second.Applications(t.Context())); len(applications) != 5*3 {
		t.Errorf("%d applications, want 15", len(applications))
	}
}
