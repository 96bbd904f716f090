package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

type tokenCommands struct {
	Create tokenCreateCommand `cmd:"" help:"Create a token and print it on standard output; it cannot be shown again."`
	List   tokenListCommand   `cmd:"" help:"List all tokens, without their text."`
	Revoke tokenRevokeCommand `cmd:"" help:"Revoke a token; servers refuse it within one second."`
}

type tokenCreateCommand struct {
	flags.DatabaseFlags
	Name      flags.Label    `required:"" placeholder:"NAME" help:"Name of the caller. Tokens with the same name belong to the same caller."`
	Allow     []string       `required:"" sep:"none" enum:"${operations},all" placeholder:"OPERATION" help:"Operation that the token allows: ${enum}; repeatable."`
	ExpiresIn flags.Duration `default:"90d" placeholder:"TIME" help:"Lifetime of the token, such as 90d or 12h (default ${default})."`
}

// Validate refuses a token that would expire before it can be used.
func (c *tokenCreateCommand) Validate() error {
	if time.Duration(c.ExpiresIn) < time.Minute {
		return errors.New("--expires-in must be at least 1m")
	}
	return nil
}

// operations returns the operations that the token allows.
func (c *tokenCreateCommand) operations(contract *contract.Document) []string {
	if slices.Contains(c.Allow, "all") {
		return contract.OperationIDs()
	}
	return c.Allow
}

// Run creates a token, and revokes it if it cannot be printed.
func (c *tokenCreateCommand) Run(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) error {
	if console.IsNullDevice(os.Stdout) {
		return errors.New("standard output is closed or " + os.DevNull + ", so the token would be lost; nothing was created")
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		text, token, err := database.CreateToken(ctx, store.TokenGrant{
			Name: string(c.Name), Operations: c.operations(contract), ExpiresIn: time.Duration(c.ExpiresIn),
		})
		if err != nil {
			return err
		}
		if err := out.FlushLine(text); err != nil {
			messages.Error(revokeUnprinted(ctx, database, token.ID, err))
			return console.ErrReported
		}
		messages.Note("token %d for %s allows %s until %s",
			token.ID, token.Name, strings.Join(token.Operations, ", "), console.Timestamp(token.ExpiresAt))
		return nil
	})
}

// revokeUnprinted revokes a token that could not be printed, and returns what happened.
func revokeUnprinted(ctx context.Context, database *store.Store, id int32, cause error) error {
	if err := database.RevokeToken(ctx, id); err != nil {
		return fmt.Errorf("token %d could be neither printed nor revoked; run \"providerd token revoke %d\": %w",
			id, id, errors.Join(cause, err))
	}
	return fmt.Errorf("token %d could not be printed and was revoked: %w", id, cause)
}

type tokenListCommand struct {
	flags.DatabaseFlags
	flags.ListFormat
}

// shownToken is a token in JSON and YAML.
type shownToken struct {
	ID         int32            `json:"id"`
	Prefix     string           `json:"prefix"`
	Name       string           `json:"name"`
	Operations []string         `json:"operations"`
	CreatedAt  time.Time        `json:"created_at"`
	ExpiresAt  time.Time        `json:"expires_at"`
	RevokedAt  *time.Time       `json:"revoked_at"`
	State      store.TokenState `json:"state"`
}

// Run lists the tokens.
func (c *tokenListCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	tokens := console.List[store.Token]{
		Headings: "ID,PREFIX,NAME,ALLOWS,CREATED,EXPIRES,STATE",
		Rows: func(token store.Token) [][]string {
			return [][]string{{
				fmt.Sprint(token.ID), token.Prefix, token.Name, strings.Join(token.Operations, ","),
				console.Timestamp(token.CreatedAt), console.Timestamp(token.ExpiresAt), string(token.State(time.Now())),
			}}
		},
		Value: func(token store.Token) any {
			return shownToken{
				token.ID, token.Prefix, token.Name, token.Operations, token.CreatedAt, token.ExpiresAt, token.RevokedAt,
				token.State(time.Now()),
			}
		},
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		return tokens.Print(out, messages, c.Output, database.Tokens(ctx))
	})
}

type tokenRevokeCommand struct {
	flags.DatabaseFlags
	ID int32 `arg:"" help:"id of the token, from \"providerd token list\"."`
}

// Run revokes the token.
func (c *tokenRevokeCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		if err := database.RevokeToken(ctx, c.ID); err != nil {
			return console.SuggestList(err, `"providerd token list"`)
		}
		messages.Note("revoked token %d", c.ID)
		return nil
	})
}
