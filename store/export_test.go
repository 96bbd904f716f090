package store

import "time"

// NewTokenText returns the text of a new token.
func NewTokenText() string { return newTokenText() }

// CachedTokens returns the number of tokens in the cache.
func (s *Store) CachedTokens() int {
	s.tokens.mutex.RLock()
	defer s.tokens.mutex.RUnlock()
	return len(s.tokens.tokens)
}

// SetLeastTime makes batches keep the deadlines of creates, as those of a shared database do. No create may be in
// progress.
func (s *Store) SetLeastTime(least time.Duration) { s.batcher.leastTime = least }
