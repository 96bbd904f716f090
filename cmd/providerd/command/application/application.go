// Package application implements "providerd application", which manages applications and their links to providers.
package application

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

// Commands has the commands of "providerd application".
type Commands struct {
	Create createCommand `cmd:"" synonyms:"add new" report:"" help:"Create an application and link providers to it."`
	List   listCommand   `cmd:"" aliases:"ls" help:"List all applications with their providers."`
	Link   linkCommand   `cmd:"" report:"" usage:"<slug> [--provider=PK] [--backchannel=PK ...] [flags]" help:"Link more providers to an application."`
	Unlink unlinkCommand `cmd:"" report:"" usage:"<slug> [--provider=PK] [--backchannel=PK ...] [flags]" help:"Remove links to providers from an application."`
	Delete deleteCommand `cmd:"" aliases:"rm" synonyms:"remove del destroy" help:"Delete applications, but not their providers."`
}

const listOfApplications = `"providerd application list"`

type createCommand struct {
	console.DatabaseFlags
	Slug console.Slug  `arg:"" placeholder:"SLUG" help:"Internal name, used in URLs; must be unique."`
	Name console.Label `required:"" placeholder:"NAME" help:"Display name."`
	linkFlags
}

type linkFlags struct {
	Provider    *console.Positive  `placeholder:"PK" help:"pk of the OAuth2 provider that serves the application."`
	Backchannel []console.Positive `sep:"none" placeholder:"PK" help:"pk of a provider that serves the application as a backchannel; repeatable."`
}

func (f linkFlags) application(slug console.Slug, name console.Label) records.Application {
	application := records.Application{Slug: string(slug), Name: string(name), ProviderPK: (*int64)(f.Provider)}
	for _, pk := range f.Backchannel {
		application.Backchannels = append(application.Backchannels, records.Backchannel{ProviderPK: int64(pk)})
	}
	return application
}

// Run creates the application.
func (c *createCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		application, err := database.Applications.Create(ctx, c.application(c.Slug, c.Name))
		return printChanged(out, messages, application, err)
	})
}

type listCommand struct{ console.ListFlags }

// Run lists the applications.
func (c *listCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		return applications().Print(out, messages, c.Output, database.Applications.List(ctx))
	})
}

type changedLinks struct {
	console.DatabaseFlags
	Slug console.Slug `arg:"" placeholder:"SLUG" help:"The application."`
	linkFlags
}

// Validate requires at least one link.
func (c *changedLinks) Validate() error {
	if c.Provider == nil && len(c.Backchannel) == 0 {
		return errors.New("missing flags: --provider=PK or --backchannel=PK")
	}
	return nil
}

type linkCommand struct{ changedLinks }

// Help is the long help text.
func (*linkCommand) Help() string {
	return "Creates all links or none. Links that already exist are left alone. An application has at most one OAuth2 " +
		"provider; unlink it before you link another."
}

// Run creates the links.
func (c *linkCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		application, err := database.Applications.Link(ctx, c.application(c.Slug, ""))
		return printChanged(out, messages, application, err)
	})
}

type unlinkCommand struct{ changedLinks }

// Help is the long help text.
func (*unlinkCommand) Help() string {
	return "Removes all links or none; a link that does not exist is an error. The providers stay."
}

// Run removes the links.
func (c *unlinkCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		application, err := database.Applications.Unlink(ctx, c.application(c.Slug, ""))
		return printChanged(out, messages, application, err)
	})
}

type deleteCommand struct {
	console.DatabaseFlags
	console.ConsentFlag
	Slugs []console.Slug `arg:"" name:"slug" help:"Slugs of the applications, from \"providerd application list\". If one does not exist, none is deleted."`
}

// Run deletes the applications.
func (c *deleteCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	var slugs []string
	for _, slug := range c.Slugs {
		slugs = append(slugs, string(slug))
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		what := console.Count(len(slugs), "application") + ": " + strings.Join(slugs, ", ")
		if err := c.Ask(out, "delete "+what); err != nil {
			return err
		}
		err := database.Applications.Delete(ctx, slugs)
		if err == nil {
			messages.Note("deleted %s", what)
		}
		return console.SuggestList(err, listOfApplications)
	})
}

type shownApplication struct {
	Slug         string  `json:"slug"`
	Name         string  `json:"name"`
	Provider     *int64  `json:"provider"`
	Backchannels []int64 `json:"backchannels"`
}

func applications() console.List[records.Application] {
	return console.List[records.Application]{
		Headings: "SLUG,NAME,PROVIDER,BACKCHANNELS",
		Rows: func(application records.Application) [][]string {
			provider, shown := "", show(application)
			if shown.Provider != nil {
				provider = fmt.Sprint(*shown.Provider)
			}
			backchannels := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(shown.Backchannels), "[]")), ",")
			return [][]string{{shown.Slug, shown.Name, provider, backchannels}}
		},
		Value: func(application records.Application) any { return show(application) },
	}
}

func show(application records.Application) shownApplication {
	shown := shownApplication{application.Slug, application.Name, application.ProviderPK, []int64{}}
	for _, link := range application.Backchannels {
		shown.Backchannels = append(shown.Backchannels, link.ProviderPK)
	}
	return shown
}

// printChanged prints an application after a change, or explains the error of the change.
func printChanged(out *console.Output, messages *console.Messages, changed records.Application, err error) error {
	if err != nil {
		return console.SuggestList(err, listOfApplications+` or "providerd provider list"`)
	}
	return applications().Print(out, messages, "", console.Values(changed))
}
