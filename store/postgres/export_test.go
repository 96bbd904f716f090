package postgres

import "time"

// SetAbandonTimeout changes how long a commit without a response keeps its connection.
func (d *Database) SetAbandonTimeout(timeout time.Duration) { d.abandonTimeout = timeout }

// MustProve reports whether the next transaction makes its server prove that it commits.
func (d *Database) MustProve() bool { return d.mustProve.Load() }
