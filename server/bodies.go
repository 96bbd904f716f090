package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"

	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
)

// All of these are numbers of bytes. The costs were measured with the bodies that take the most, and rounded up.
const (
	// smallBody is the size up to which a body is a small one: larger than most, and so small that the limit of
	// connections suffices to bound what all of them take.
	smallBody = 4 << 10
	// firstRead is how much memory a body has before anything of it has arrived.
	firstRead = 512

	// parsingCost is for each byte of a body while it is parsed and checked, and maxParsingCost for one of any size, or to
	// compare any two records.
	parsingCost    = 132
	maxParsingCost = 34 << 20
	// recordCost is for each byte of a record from the parsed body to the rendered response, and writingCost while that is
	// written. violationCost is for each byte of a list of violations.
	recordCost    = 6
	writingCost   = 2
	violationCost = 3

	maxReserved     = 64 << 20
	maxSmallParsing = 12 << 20
	maxLargeParsing = 36 << 20
)

// bodies bounds the memory of the bodies in flight: 136 MiB for whatever 1,024 connections send. Small ones never wait
// for large ones.
type bodies struct {
	// large is for what has arrived of large bodies, and for what becomes of it until the response is written. How long a
	// caller keeps what has arrived, and the response, is up to it, so a body that does not fit is refused.
	large *room
	// The semaphores are for what a body takes while it is parsed and checked. That needs nothing but the processor, so
	// it is worth waiting for.
	smallParsing, largeParsing *semaphore.Weighted
}

func newBodies() *bodies {
	return &bodies{
		large:        newRoom(maxReserved, maxReserved/4),
		smallParsing: semaphore.NewWeighted(maxSmallParsing),
		largeParsing: semaphore.NewWeighted(maxLargeParsing),
	}
}

// bodyReservation is the memory of one body.
type bodyReservation struct {
	reservation
	bodies *bodies
	// isLarge is true once memory was reserved, which small bodies do not need.
	isLarge bool
	// writing is how much the response takes at most while it is written.
	writing int64
}

// reserve returns the reservation of a body, of nothing yet.
func (b *bodies) reserve(ctx context.Context) *bodyReservation {
	return &bodyReservation{bodies: b, reservation: reservation{
		room: b.large, caller: exchangeOf(ctx).token.Name, connection: listener.FromContext(ctx),
	}}
}

// resize changes how much is reserved, and how much of that the caller may keep. It returns the refusal of a body that
// does not fit.
func (r *bodyReservation) resize(bytes, kept int64) error {
	switch {
	case bytes > smallBody*recordCost:
		r.isLarge = true
	case !r.isLarge:
		return nil
	}
	if !r.reservation.resize(bytes, kept) {
		return &refusal{slug: overloaded, header: retryAfterSecond()}
	}
	return nil
}

// release gives back what is reserved.
func (r *bodyReservation) release() { _ = r.resize(0, 0) }

// beginWriting gives back what only making the response took.
func (r *bodyReservation) beginWriting() {
	if r.isLarge {
		r.shrink(r.writing)
	}
}

// read reads a body to its end. Memory is reserved only for what has arrived, so that announcing a large body takes
// nothing from others.
func (r *bodyReservation) read(body io.Reader) ([]byte, error) {
	var buffer []byte
	for {
		if len(buffer) == cap(buffer) {
			size := min(max(2*cap(buffer), firstRead), contract.MaxBodyBytes+firstRead)
			if err := r.resize(int64(size), int64(size)); err != nil {
				return nil, err
			}
			buffer = append(make([]byte, 0, size), buffer...)
		}
		count, err := body.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+count]
		switch {
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return nil, unreadable(err)
		}
	}
}

// unreadable is the refusal of a body that is too large or did not arrive whole.
func unreadable(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &refusal{slug: tooLarge}
	}
	return &refusal{slug: malformedJSON, detail: "The body did not arrive whole. Send it again.", cause: err}
}

// parse does the work that takes the most memory, once others leave enough of it. After that the reservation is for the
// response.
func (r *bodyReservation) parse(ctx context.Context, body []byte, work func() error) error {
	parsing := r.bodies.largeParsing
	if len(body) <= smallBody {
		parsing = r.bodies.smallParsing
	}
	err := withMemory(ctx, parsing, min(int64(len(body))*parsingCost, maxParsingCost), work)
	length := renderedLength(body)
	reserved, kept := length*recordCost, length*writingCost
	if err != nil {
		reserved, kept = 0, 0
	}
	if invalid, ok := errors.AsType[*contract.InvalidError](err); ok {
		reserved, kept = invalid.Length*violationCost, invalid.Length*violationCost
	}
	r.writing = kept
	if overload := r.resize(reserved, kept); overload != nil {
		return overload
	}
	return err
}

// compare does work with a stored record, which may be much larger than the body in flight, once others leave enough
// memory for it.
func (b *bodies) compare(ctx context.Context, work func() error) error {
	return withMemory(ctx, b.largeParsing, maxParsingCost, work)
}

func withMemory(ctx context.Context, memory *semaphore.Weighted, cost int64, work func() error) error {
	if err := memory.Acquire(ctx, cost); err != nil {
		return &refusal{slug: overloaded, header: retryAfterSecond(), cause: err}
	}
	defer memory.Release(cost)
	return work()
}

// renderedLength is the length that a text in JSON has in a response at most, where some characters are escaped.
func renderedLength(text []byte) int64 {
	length := len(text)
	for _, character := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		length += bytes.Count(text, []byte(character)) * (len(`\u003c`) - len(character))
	}
	return int64(length)
}
