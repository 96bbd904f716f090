package main

import (
	"context"
	"fmt"
	"strings"

	"example.com/providerd/store"
)

type applicationCommands struct {
	Create applicationCreateCommand `cmd:"" help:"Make an application and link providers to it."`
	List   applicationListCommand   `cmd:"" help:"List all applications with their providers."`
}

type applicationCreateCommand struct {
	databaseFlag
	Slug urlSlug `required:"" placeholder:"SLUG" help:"Internal name, used in URLs; unique."`
	Name label   `required:"" placeholder:"NAME" help:"Display name."`
	linkFlags
}

// linkFlags name providers.
type linkFlags struct {
	Provider    *int32  `placeholder:"PK" help:"OAuth2 provider that serves the application."`
	Backchannel []int32 `sep:"none" placeholder:"PK" help:"Provider that serves the application as a backchannel. May be repeated."`
}

func (f linkFlags) application(slug urlSlug, name label) store.Application {
	application := store.Application{Slug: string(slug), Name: string(name), ProviderPK: f.Provider}
	for _, pk := range f.Backchannel {
		application.Backchannels = append(application.Backchannels, store.Backchannel{ProviderPK: pk})
	}
	return application
}

// Run makes the application.
func (c *applicationCreateCommand) Run(ctx context.Context, out *output) error {
	return c.withStore(ctx, func(database *store.Store) error {
		application, err := database.CreateApplication(ctx, c.application(c.Slug, c.Name))
		return printApplication(out, application, err)
	})
}

type applicationListCommand struct {
	databaseFlag
	listFlag
}

// Run lists the applications.
func (c *applicationListCommand) Run(ctx context.Context, out *output) error {
	return c.withStore(ctx, func(database *store.Store) error {
		return applications().print(out, c.Output, database.Applications(ctx))
	})
}

// shownApplication is what JSON and YAML have of an application.
type shownApplication struct {
	Slug         string  `json:"slug"`
	Name         string  `json:"name"`
	Provider     *int32  `json:"provider"`
	Backchannels []int32 `json:"backchannels"`
}

func applications() list[store.Application] {
	return list[store.Application]{
		headings: "SLUG,NAME,PROVIDER,BACKCHANNELS",
		rows: func(application store.Application) [][]string {
			provider := ""
			if application.ProviderPK != nil {
				provider = fmt.Sprint(*application.ProviderPK)
			}
			var backchannels []string
			for _, link := range application.Backchannels {
				backchannels = append(backchannels, fmt.Sprint(link.ProviderPK))
			}
			return [][]string{{application.Slug, application.Name, provider, strings.Join(backchannels, ",")}}
		},
		value: func(application store.Application) any {
			shown := shownApplication{application.Slug, application.Name, application.ProviderPK, []int32{}}
			for _, link := range application.Backchannels {
				shown.Backchannels = append(shown.Backchannels, link.ProviderPK)
			}
			return shown
		},
	}
}

// printApplication prints an application, unless it could not be changed.
func printApplication(out *output, application store.Application, err error) error {
	if err != nil {
		return err
	}
	return applications().print(out, "", func(yield func(store.Application, error) bool) { yield(application, nil) })
}
