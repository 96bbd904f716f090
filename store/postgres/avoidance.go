package postgres

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// avoidanceTime is how long a server is passed over that does not commit.
const avoidanceTime = 3 * time.Second

var errAvoided = errors.New("this server did not commit; others are asked first")

// avoidance lets new connections pass over the server on which a commit hung last, so that another one of the URL gets
// its turn. An old primary that lost its standbys accepts connections and statements, and never commits.
type avoidance struct {
	mutex   sync.Mutex
	address string
	until   time.Time
}

// avoid passes over the server of a connection for a while.
func (a *avoidance) avoid(address net.Addr) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.address, a.until = address.String(), time.Now().Add(avoidanceTime)
}

func (a *avoidance) isAvoided(address string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.address == address && time.Now().Before(a.until)
}

// wrap makes a function that connects pass over the server.
func (a *avoidance) wrap(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if a.isAvoided(address) {
			return nil, errAvoided
		}
		return dial(ctx, network, address)
	}
}
