package server

import (
	"sync"
	"time"

	"example.com/providerd/server/listener"
)

// stallLimit is how long a connection may make no progress before another caller gets the memory that it reserves.
const stallLimit = 2 * time.Second

// room is memory that callers share. None of them may keep more than a share of it for as long as it likes, unless that
// is for a single request, so that what is larger than a share can be served at all.
type room struct {
	mutex sync.Mutex
	// free is what nobody has reserved, share the most that one caller may keep.
	free, share  int64
	keptBy       map[string]int64
	reservations map[*reservation]bool
}

func newRoom(size, share int64) *room {
	return &room{free: size, share: share, keptBy: map[string]int64{}, reservations: map[*reservation]bool{}}
}

// reservation is the part of a room that is for one request.
type reservation struct {
	room   *room
	caller string
	// connection is closed if others need the room while it stalls; nil if it must not be.
	connection *listener.Conn
	// The mutex of the room guards what follows: how many bytes are reserved, and how many of them the caller may keep.
	bytes, kept int64
}

// resize changes how much is reserved, and how much of that the caller may keep. It reports whether there is room.
// Connections that stall are closed to make some.
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
		_ = victim.connection.Close()
		victim.set(0, 0)
	}
}

// shrink gives back what is reserved beyond so many bytes, all of which the caller may keep.
func (r *reservation) shrink(bytes int64) {
	r.room.mutex.Lock()
	defer r.room.mutex.Unlock()
	if bytes < r.bytes {
		r.set(bytes, bytes)
	}
}

// longestStalled returns another reservation, of the same caller or of any, whose connection has made no progress for
// longest; nil if none has stalled.
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

// set notes how much is reserved and kept. The caller holds the mutex.
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
