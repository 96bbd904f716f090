package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/providerd/store"
)

// links returns an application with the slug shop; provider 0 means none.
func links(provider int64, backchannels ...int64) store.Application {
	application := store.Application{Slug: "shop", Name: "Shop"}
	if provider != 0 {
		application.ProviderPK = &provider
	}
	for _, pk := range backchannels {
		application.Backchannels = append(application.Backchannels, store.Backchannel{ProviderPK: pk})
	}
	return application
}

// testApplications creates, links, unlinks and deletes applications. What is refused changes nothing.
func testApplications(t *testing.T, database *store.Store) {
	a, b, c := createOAuth2(t, database, "a").PK, createOAuth2(t, database, "b").PK, createOAuth2(t, database, "c").PK
	directory := createWorkspaceDirectory(t, database).PK
	missing := directory + 100
	createOther := func(ctx context.Context, links store.Application) (store.Application, error) {
		links.Slug = "other"
		return database.CreateApplication(ctx, links)
	}
	for _, step := range []struct {
		change func(ctx context.Context, links store.Application) (store.Application, error)
		links  store.Application
		// want is the expected error, and after the links afterwards.
		want  error
		after store.Application
	}{
		{database.CreateApplication, links(a, directory, b), nil, links(a, directory, b)},
		{database.CreateApplication, links(c), store.ErrSlugTaken, links(a, directory, b)},
		{createOther, links(a), store.ErrProviderLinked, links(a, directory, b)},
		{createOther, links(missing), store.ErrNotFound, links(a, directory, b)},
		{createOther, links(directory), store.ErrWrongKind, links(a, directory, b)},
		{createOther, links(c, directory), store.ErrProviderLinked, links(a, directory, b)},
		{createOther, links(c, missing), store.ErrNotFound, links(a, directory, b)},
		{createOther, links(0, c, c), store.ErrProviderLinked, links(a, directory, b)},
		{database.Unlink, links(a, directory, b), nil, links(0)},
		{createOther, links(c), nil, links(0)},
		{database.Link, links(a, directory, a), nil, links(a, directory, a)},
		{database.Link, links(a, directory, b, b), nil, links(a, directory, a, b)},
		{database.Link, links(b), store.ErrApplicationLinked, links(a, directory, a, b)},
		{database.Link, links(c), store.ErrProviderLinked, links(a, directory, a, b)},
		{database.Link, links(directory), store.ErrWrongKind, links(a, directory, a, b)},
		{database.Link, links(0, missing), store.ErrNotFound, links(a, directory, a, b)},
		{database.Unlink, links(b, directory), store.ErrNotLinked, links(a, directory, a, b)},
		{database.Unlink, links(a, directory, c), store.ErrNotLinked, links(a, directory, a, b)},
		{database.Unlink, links(0, directory, b, b), nil, links(a, a)},
		{database.Unlink, links(a), nil, links(0, a)},
		{database.Link, links(b), nil, links(b, a)},
		{database.Unlink, store.Application{Slug: "none"}, store.ErrNotFound, links(b, a)},
	} {
		changed, err := step.change(t.Context(), step.links)
		if !errors.Is(err, step.want) || err == nil && (changed.ID == 0 || changed.Slug == "shop" && !hasLinks(changed, step.after)) {
			t.Errorf("%+v: %+v, %v, want %v", step.links, changed, err, step.want)
		}
		if found := Collect(t, database.Applications(t.Context()))[0]; !hasLinks(found, step.after) || found.Name != "Shop" {
			t.Errorf("%+v: stored %+v, want %+v", step.links, found, step.after)
		}
	}
	serving, backchannel := read(t, database, b), read(t, database, a)
	if serving.Application.Slug != "shop" || serving.Application.Name != "Shop" || serving.Backchannel.ApplicationID != 0 ||
		backchannel.Application.ID != 0 || backchannel.Backchannel.Application.Slug != "shop" {
		t.Errorf("providers are %+v and %+v", serving, backchannel)
	}
	expectDeletion(t, database, links(b, a))
}

// expectDeletion deletes the applications shop, with its links, and other.
func expectDeletion(t *testing.T, database *store.Store, linked store.Application) {
	t.Helper()
	if err := database.DeleteApplications(t.Context(), []string{"shop", "none"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
	if left := Collect(t, database.Applications(t.Context())); len(left) != 2 || !hasLinks(left[0], linked) {
		t.Errorf("a refused deletion leaves %+v", left)
	}
	if err := database.DeleteApplications(t.Context(), []string{"shop", "other", "shop"}); err != nil {
		t.Error(err)
	}
	if left := Collect(t, database.Applications(t.Context())); len(left) != 0 {
		t.Errorf("applications left: %+v", left)
	}
	if free := read(t, database, *linked.ProviderPK); free.Application.ID != 0 || free.Backchannel.ApplicationID != 0 {
		t.Errorf("provider is %+v", free)
	}
	if err := database.DeleteProviders(t.Context(), []int64{*linked.ProviderPK}); err != nil {
		t.Error(err)
	}
}

func hasLinks(application, want store.Application) bool {
	pks := func(application store.Application) []int64 {
		list := []int64{0}
		if application.ProviderPK != nil {
			list[0] = *application.ProviderPK
		}
		for _, link := range application.Backchannels {
			list = append(list, link.ProviderPK)
		}
		slices.Sort(list[1:])
		return list
	}
	return slices.Equal(pks(application), pks(want))
}

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
				application := links(0, own[operator])
				application.Slug = fmt.Sprint(name, round)
				switch name {
				case "slug":
					application.Slug = fmt.Sprint(name, round)
				case "provider":
					application.ProviderPK = &shared
				case "backchannel":
					application.Backchannels = links(0, own[operator], shared).Backchannels
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
