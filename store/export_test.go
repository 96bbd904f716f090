package store

import "time"

// SetLeastTime makes batches keep the deadlines of creates, as those of a shared database do. No create may be in
// progress.
func (s *Store) SetLeastTime(least time.Duration) { s.Providers.batcher.leastTime = least }
