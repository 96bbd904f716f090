package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/listener"
)

// stallLimit is how long a connection may make no progress before another caller may take its memory.
const stallLimit = 2 * time.Second

// room is memory that callers share. A caller may not hold more than its share for as long as it likes, except for a
// single request, so that a body larger than a share can be served.
type room struct {
	mutex sync.Mutex
	// free is how many bytes are not reserved, share how many one caller may hold.
	free, share  int64
	keptBy       map[string]int64
	reservations map[*reservation]bool
}

func newRoom(size, share int64) *room {
	return &room{free: size, share: share, keptBy: map[string]int64{}, reservations: map[*reservation]bool{}}
}

// reservation is the part of a room that one request holds.
type reservation struct {
	room   *room
	caller string
	// connection is closed if it stalls while other callers need the room; nil if it must not be.
	connection *listener.Conn
	// bytes are reserved; the caller may hold kept of them for as long as it likes. The mutex of the room guards both.
	bytes, kept int64
}

// resize changes how many bytes are reserved, and how many of them the caller may hold. It reports whether there is
// room, and closes stalled connections to make some.
func (r *reservation) resize(bytes, kept int64) bool {
	r.room.mutex.Lock()
	defer r.room.mutex.Unlock()
	for {
		others := r.room.keptBy[r.caller] - r.kept
		exceedsShare := kept > r.kept && others > 0 && others+kept > r.room.share
		if !exceedsShare && bytes-r.bytes <= r.room.free {
			r.set(bytes, kept)
			return true
		}
		victim := r.longestStalled(exceedsShare)
		if victim == nil {
			return false
		}
		victim.connection.Abort()
		victim.set(0, 0)
	}
}

// shrink reduces the reservation to a number of bytes, all of which the caller may hold.
func (r *reservation) shrink(bytes int64) {
	r.room.mutex.Lock()
	defer r.room.mutex.Unlock()
	if bytes < r.bytes {
		r.set(bytes, bytes)
	}
}

// longestStalled returns another reservation, of the caller or of any, that stalled for longest; nil if none has.
func (r *reservation) longestStalled(ofCaller bool) (victim *reservation) {
	longest := stallLimit
	for other := range r.room.reservations {
		if other == r || other.connection == nil || ofCaller && other.caller != r.caller {
			continue
		}
		if stalled := other.connection.StalledFor(); stalled >= longest {
			victim, longest = other, stalled
		}
	}
	return victim
}

// set records how much is reserved and held. The caller holds the mutex.
func (r *reservation) set(bytes, kept int64) {
	r.room.free += r.bytes - bytes
	r.room.keptBy[r.caller] += kept - r.kept
	r.bytes, r.kept = bytes, kept
	if r.room.keptBy[r.caller] == 0 {
		delete(r.room.keptBy, r.caller)
	}
	if bytes > 0 {
		r.room.reservations[r] = true
	} else {
		delete(r.room.reservations, r)
	}
}

const (
	// maxUnread is how many bytes of a body are read after its request was refused, and unreadTimeout for how long.
	maxUnread     = 1 << 20
	unreadTimeout = 2 * time.Second
	// maxKeptOpen is how many bytes of such a body a connection may send without being closed.
	maxKeptOpen = 256 << 10
	// maxUnreadBodies is how many such bodies are read at a time; one network gets at most a quarter of that.
	maxUnreadBodies = 256
)

// readUnread reads the rest of the body of a refused request. Many callers send the whole body before they read the
// response; if the connection were closed earlier, they would see a reset instead of the explanation.
func (s *Server) readUnread(c echo.Context) {
	request, current := c.Request(), exchangeOf(c.Request().Context())
	// With "Expect: 100-continue", reading would request the body.
	isExpected := request.Header.Get("Expect") != ""
	hasStopped := errors.Is(current.refused, os.ErrDeadlineExceeded)
	if current.body == http.NoBody || isExpected || hasStopped {
		return
	}
	reserved := reservation{room: s.unreadBodies, caller: networkOf(current.remoteAddress)}
	if !reserved.resize(1, 1) {
		return
	}
	defer reserved.shrink(0)
	if http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(unreadTimeout)) != nil {
		return
	}
	count, err := io.CopyN(io.Discard, current.body, maxUnread)
	if isWhole := errors.Is(err, io.EOF); !isWhole || count > maxKeptOpen {
		c.Response().Header().Set("Connection", "close")
	}
}
