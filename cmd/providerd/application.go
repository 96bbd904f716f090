package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"example.com/providerd/store"
)

type applicationCommands struct {
	Create applicationCreateCommand `cmd:"" help:"Make an application and link providers to it."`
	List   applicationListCommand   `cmd:"" help:"List all applications with their providers."`
}

type applicationCreateCommand struct {
	databaseFlag
	Slug        urlSlug `required:"" placeholder:"SLUG" help:"Internal name, used in URLs; unique."`
	Name        label   `required:"" placeholder:"NAME" help:"Display name."`
	Provider    *int32  `placeholder:"PK" help:"OAuth2 provider that serves the application."`
	Backchannel []int32 `sep:"none" placeholder:"PK" help:"Provider that serves the application as a backchannel. May be repeated."`
}

// Run makes the application.
func (c *applicationCreateCommand) Run(ctx context.Context, out *output) error {
	return c.withStore(ctx, func(database *store.Store) error {
		application := store.Application{Slug: string(c.Slug), Name: string(c.Name), ProviderPK: c.Provider}
		for _, pk := range c.Backchannel {
			application.Backchannels = append(application.Backchannels, store.Backchannel{ProviderPK: pk})
		}
		created, err := database.CreateApplication(ctx, application)
		if err != nil {
			return err
		}
		return listApplications(out, []store.Application{created})
	})
}

type applicationListCommand struct {
	databaseFlag
}

// Run lists the applications.
func (c *applicationListCommand) Run(ctx context.Context, out *output) error {
	return c.withStore(ctx, func(database *store.Store) error {
		applications, err := database.Applications(ctx)
		if err != nil {
			return err
		}
		return listApplications(out, applications)
	})
}

func listApplications(out io.Writer, applications []store.Application) error {
	list := newTable(out, "SLUG", "NAME", "PROVIDER", "BACKCHANNELS")
	for _, application := range applications {
		provider := ""
		if application.ProviderPK != nil {
			provider = fmt.Sprint(*application.ProviderPK)
		}
		var backchannels []string
		for _, link := range application.Backchannels {
			backchannels = append(backchannels, fmt.Sprint(link.ProviderPK))
		}
		list.row(application.Slug, application.Name, provider, strings.Join(backchannels, ","))
	}
	return list.flush()
}
