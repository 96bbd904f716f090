package store

import "time"

// NewTokenText returns the text of a new token.
func NewTokenText() string { return newTokenText() }

// SetLeastTime makes batches keep the deadlines of creates, as those of a shared database do. No create may be in
// progress.
func (s *Store) SetLeastTime(least time.Duration) { s.batcher.leastTime = least }
