package postgres

import "time"

// SetAbandonTimeout changes how long a commit without a response keeps its connection.
func (d *Database) SetAbandonTimeout(timeout time.Duration) { d.abandonTimeout = timeout }
