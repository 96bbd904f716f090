package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"example.com/providerd/store"
)

// links returns an application with the slug shop; provider 0 means none.
func links(provider int32, backchannels ...int32) store.Application {
	application := store.Application{Slug: "shop"}
	if provider != 0 {
		application.ProviderPK = &provider
	}
	for _, pk := range backchannels {
		application.Backchannels = append(application.Backchannels, store.Backchannel{ProviderPK: pk})
	}
	return application
}

func testLinks(t *testing.T, database *store.Store) {
	a, b, c := createOAuth2(t, database, "a").PK, createOAuth2(t, database, "b").PK, createOAuth2(t, database, "c").PK
	directory := createWorkspaceDirectory(t, database).PK
	for _, application := range []store.Application{{Slug: "shop", Name: "Shop"}, {Slug: "other", ProviderPK: &c}} {
		if _, err := database.CreateApplication(t.Context(), application); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		change func(ctx context.Context, links store.Application) (store.Application, error)
		links  store.Application
		// want is the expected error, and after the links afterwards.
		want  error
		after store.Application
	}{
		{database.Link, links(a, directory, a), nil, links(a, directory, a)},
		{database.Link, links(a, directory, b, b), nil, links(a, directory, a, b)},
		{database.Link, links(b), store.ErrApplicationLinked, links(a, directory, a, b)},
		{database.Link, links(c), store.ErrProviderLinked, links(a, directory, a, b)},
		{database.Link, links(directory), store.ErrWrongKind, links(a, directory, a, b)},
		{database.Link, links(0, c+100), store.ErrNotFound, links(a, directory, a, b)},
		{database.Unlink, links(b, directory), store.ErrNotLinked, links(a, directory, a, b)},
		{database.Unlink, links(a, directory, c), store.ErrNotLinked, links(a, directory, a, b)},
		{database.Unlink, links(0, directory, b, b), nil, links(a, a)},
		{database.Unlink, links(a), nil, links(0, a)},
		{database.Link, links(b), nil, links(b, a)},
		{database.Unlink, store.Application{Slug: "none"}, store.ErrNotFound, links(b, a)},
	} {
		changed, err := step.change(t.Context(), step.links)
		if !errors.Is(err, step.want) || err == nil && !hasLinks(changed, step.after) {
			t.Errorf("%+v: %+v, %v, want %v", step.links, changed, err, step.want)
		}
		if found := Collect(t, database.Applications(t.Context()))[0]; !hasLinks(found, step.after) || found.Name != "Shop" {
			t.Errorf("%+v: stored %+v, want %+v", step.links, found, step.after)
		}
	}
	if serving := read(t, database, a); serving.Application.ID != 0 || serving.Backchannel.Application.Slug != "shop" {
		t.Errorf("provider is %+v", serving)
	}
}

func hasLinks(application, want store.Application) bool {
	pks := func(application store.Application) []int32 {
		list := []int32{0}
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

func testDeletedApplications(t *testing.T, database *store.Store) {
	provider := createOAuth2(t, database, "a").PK
	linked := links(provider, provider)
	for _, application := range []store.Application{linked, {Slug: "other"}} {
		if _, err := database.CreateApplication(t.Context(), application); err != nil {
			t.Fatal(err)
		}
	}
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
	if free := read(t, database, provider); free.Application.ID != 0 || free.Backchannel.ApplicationID != 0 {
		t.Errorf("provider is %+v", free)
	}
	if err := database.DeleteProviders(t.Context(), []int32{provider}, operator); err != nil {
		t.Error(err)
	}
}
