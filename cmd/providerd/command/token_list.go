package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

type tokenListCommand struct {
	flags.DatabaseFlags
	flags.ListFormat
}

// shownToken is a token in JSON and YAML.
type shownToken struct {
	ID         int64            `json:"id"`
	Prefix     string           `json:"prefix"`
	Name       string           `json:"name"`
	Operations []string         `json:"operations"`
	CreatedAt  store.Time       `json:"created_at"`
	ExpiresAt  store.Time       `json:"expires_at"`
	RevokedAt  *store.Time      `json:"revoked_at"`
	State      store.TokenState `json:"state"`
}

// Run lists the tokens.
func (c *tokenListCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	tokens := console.List[store.Token]{
		Headings: "ID,PREFIX,NAME,ALLOWS,CREATED,EXPIRES,STATE",
		Rows: func(token store.Token) [][]string {
			return [][]string{{
				fmt.Sprint(token.ID), token.Prefix, token.Name, strings.Join(token.Operations, ","),
				console.Timestamp(token.CreatedAt.Time), console.Timestamp(token.ExpiresAt.Time), string(token.State(time.Now())),
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
