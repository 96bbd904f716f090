package application_test

import (
	"context"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/application"
	"example.com/providerd/store/database"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// links returns an application with its provider, 0 for none, and its backchannels.
func links(slug string, provider int64, backchannels ...int64) (a records.Application) {
	if a.Slug = slug; provider != 0 {
		a.ProviderPK = &provider
	}
	for _, pk := range backchannels {
		a.Backchannels = append(a.Backchannels, records.Backchannel{ProviderPK: pk})
	}
	return a
}

// What is refused changes nothing, and the error says which provider or application is to blame.
func TestRefusals(t *testing.T) {
	t.Parallel()
	opened := storetest.Create(t, filepath.Join(t.TempDir(), "test.db"))
	processtest.Must(t, storetest.Add(t.Context(), opened, "1"), storetest.Add(t.Context(), opened, "2"))
	_, _, err := opened.Providers.CreateWorkspaceDirectory(t.Context(), store.CreateRequest{}, storetest.FullWorkspaceDirectory())
	processtest.Must(t, err)
	create, link, unlink := opened.Applications.Create, opened.Applications.Link, opened.Applications.Unlink
	processtest.Try(create(t.Context(), links("shop", 1, 3))).Must(t)
	processtest.Try(create(t.Context(), links("other", 0, 2))).Must(t)
	processtest.Try(link(t.Context(), links("shop", 1, 3))).Must(t) // It has these links already.
	before := storetest.Collect(t, opened.Applications.List(t.Context()))
	for _, test := range []struct {
		do    func(context.Context, records.Application) (records.Application, error)
		links records.Application
		want  error
		says  string
	}{
		{create, links("shop", 0), application.ErrSlugTaken, "shop"},
		{create, links("x", 1), application.ErrProviderLinked, "provider 1: "},
		{create, links("x", 3), application.ErrWrongKind, "provider 3: "},
		{link, links("shop", 2), application.ErrLinked, "shop: "},
		{link, links("shop", 0, 1, 2), application.ErrProviderLinked, "provider 2: "},
		{link, links("shop", 0, 1, 9), database.ErrNotFound, "provider 9: "},
		{link, links("none", 2), database.ErrNotFound, "application none: "},
		{unlink, links("shop", 1, 2), application.ErrNotLinked, "provider 2: "},
		{unlink, links("shop", 3), application.ErrNotLinked, "provider 3: "},
	} {
		_, err := test.do(t.Context(), test.links)
		processtest.IsError(t, err, test.want, test.says)
	}
	processtest.IsError(t, opened.Applications.Delete(t.Context(), []string{"shop", "none"}), database.ErrNotFound)
	processtest.Equal(t, storetest.Collect(t, opened.Applications.List(t.Context())), before, "applications")
}
