package store

import (
	"context"

	"gorm.io/gorm"
)

// write runs statements in one durable transaction: when it returns nil, they are on disk; otherwise none of them is.
// It is where every change enters the one writer of the database.
func (s *Store) write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return classify(s.writer.WithContext(ctx).Transaction(statements))
}
