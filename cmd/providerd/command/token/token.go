// Package token implements "providerd token", which creates, lists, renews and revokes access tokens.
package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/token"
)

// Commands has the commands of "providerd token".
type Commands struct {
	Create createCommand `cmd:"" synonyms:"add new" help:"Create a token and print it. It cannot be printed again."`
	List   listCommand   `cmd:"" aliases:"ls" help:"List all tokens with their prefixes."`
	Renew  renewCommand  `cmd:"" synonyms:"rotate refresh" help:"Replace a token with a new one, and print the new one."`
	Revoke revokeCommand `cmd:"" aliases:"rm" synonyms:"remove delete del" usage:"(<id> | --name=NAME) [flags]" help:"Revoke tokens."`
}

type tokenFlags struct {
	ExpiresIn console.Duration `default:"90d" placeholder:"TIME" help:"Lifetime of the token, such as 90d or 12h (default ${default})."`
	Output    string           `short:"o" default:"text" enum:"text,json" help:"Output format: ${enum} (default ${default})."`
}

// Validate refuses a token that would expire before it can be used.
func (f tokenFlags) Validate() error {
	if time.Duration(f.ExpiresIn) < time.Minute {
		return errors.New("--expires-in must be at least 1m")
	}
	return nil
}

type createCommand struct {
	console.DatabaseFlags
	Name  console.Label `required:"" placeholder:"NAME" help:"Name of the caller; all tokens of this name belong to it."`
	Allow []string      `required:"" enum:"${operations},all" placeholder:"OPERATION" help:"Operation that the token allows: ${listed} or all; repeatable."`
	tokenFlags
}

// Run creates a token, and revokes it if it cannot be printed.
func (c *createCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	if err := checkTokenKept(); err != nil {
		return err
	}
	if slices.Contains(c.Allow, "all") {
		c.Allow = apply.Operations()
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		text, token, err := database.Tokens.Create(ctx, token.Grant{
			Name: string(c.Name), Operations: c.Allow, ExpiresIn: time.Duration(c.ExpiresIn),
		})
		if err != nil {
			return err
		}
		return c.print(ctx, database, out, messages, text, token)
	})
}

// checkTokenKept refuses to create a token whose text would be lost.
func checkTokenKept() error {
	if console.IsOutputUnread() {
		return errors.New("standard output is closed or " + os.DevNull + ", so the token would be lost; nothing was " +
			"created; redirect standard output to a file")
	}
	return nil
}

type newToken struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	ExpiresAt time.Time `json:"expires_at"`
	Token     string    `json:"token"`
}

// print prints a new token, and revokes it if that fails.
func (f tokenFlags) print(
	ctx context.Context, database *store.Store, out *console.Output, messages *console.Messages, text string,
	token token.Token,
) error {
	var err error
	if f.Output == console.FormatJSON {
		err = out.JSON(newToken{token.ID, token.Name, token.ExpiresAt.Time, text}, "")
	} else {
		err = out.Line(text)
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		if failure := database.Tokens.Revoke(ctx, token.ID); failure != nil {
			err = fmt.Errorf("token %d could be neither printed nor revoked; run \"providerd token revoke %[1]d\": %w",
				token.ID, errors.Join(err, failure))
		} else {
			err = fmt.Errorf("token %d could not be printed and was revoked: %w", token.ID, err)
		}
		messages.Error(err)
		return console.ErrReported
	}
	messages.Note("token %d for %s allows %s until %s",
		token.ID, token.Name, strings.Join(token.Operations, ", "), console.Timestamp(token.ExpiresAt.Time))
	return nil
}

type renewCommand struct {
	console.DatabaseFlags
	ID      console.Positive `arg:"" help:"id of the token, from \"providerd token list\"."`
	Overlap console.Duration `default:"24h" placeholder:"TIME" help:"How long the old token stays valid, at most until it expires; 0s revokes it immediately (default ${default})."`
	tokenFlags
}

// Run creates the new token and ends the old one.
func (c *renewCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	if err := checkTokenKept(); err != nil {
		return err
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		text, renewed, old, err := database.Tokens.Renew(
			ctx, int64(c.ID), time.Duration(c.ExpiresIn), time.Duration(c.Overlap),
		)
		if err != nil {
			return console.SuggestList(err, listOfTokens)
		}
		failure := c.print(ctx, database, out, messages, text, renewed)
		state := string(old.State(time.Now()))
		if state == string(token.Active) {
			state = "valid until " + console.Timestamp(old.ExpiresAt.Time)
			if time.Until(old.ExpiresAt.Time) < time.Duration(c.Overlap)-time.Minute {
				state += ", when it expires anyway"
			}
		}
		if failure != nil {
			messages.Warn("token %d of %s is %s, and was not replaced; create another with \"providerd token create\"",
				old.ID, old.Name, state)
			return failure
		}
		messages.Note("token %d is %s", old.ID, state)
		return nil
	})
}

const listOfTokens = `"providerd token list"`

type revokeCommand struct {
	console.DatabaseFlags
	ID   console.Positive `arg:"" optional:"" help:"id of the token, from \"providerd token list\"."`
	Name console.Label    `placeholder:"NAME" help:"Revoke all tokens of this caller instead."`
}

// Validate requires either an id or a name.
func (c *revokeCommand) Validate() error {
	if (c.ID == 0) == (c.Name == "") {
		return errors.New("pass either an id or --name")
	}
	return nil
}

// Run revokes the token, or the tokens of a caller.
func (c *revokeCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		if c.Name != "" {
			revoked, err := database.Tokens.RevokeAll(ctx, string(c.Name))
			if err == nil && revoked == 0 {
				const maxBytes = 100
				var names []string
				if names, err = console.TokenNames(ctx, database); err == nil {
					others := console.Truncate(strings.Join(names, ", "), maxBytes)
					err = fmt.Errorf("no active token is named %s; tokens are named %s", c.Name, others)
				}
			}
			if err == nil {
				messages.Note("revoked %s of %s", console.Count(int(revoked), "token"), c.Name)
			}
			return err
		}
		err := database.Tokens.Revoke(ctx, int64(c.ID))
		if err == nil {
			messages.Note("revoked token %d", c.ID)
		}
		return console.SuggestList(err, listOfTokens)
	})
}

type listCommand struct{ console.ListFlags }

type shownToken struct {
	token.Token
	// Digest hides the digest of the token.
	Digest any         `json:"digest,omitempty"`
	State  token.State `json:"state"`
}

// Run lists the tokens.
func (c *listCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	all := strings.Join(apply.Operations(), ",")
	short := strings.NewReplacer(all, "all", "providers_", "", "workspace_", "", "_create", "")
	tokens := console.List[token.Token]{
		Headings: "ID,PREFIX,NAME,ALLOWS,CREATED,EXPIRES,STATE",
		Rows: func(token token.Token) [][]string {
			return [][]string{{
				fmt.Sprint(token.ID), token.Prefix, token.Name, short.Replace(strings.Join(token.Operations, ",")),
				console.Timestamp(token.CreatedAt.Time), console.Timestamp(token.ExpiresAt.Time), string(token.State(time.Now())),
			}}
		},
		Value: func(token token.Token) any { return shownToken{Token: token, State: token.State(time.Now())} },
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		return tokens.Print(out, messages, c.Output, database.Tokens.List(ctx))
	})
}
