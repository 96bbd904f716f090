package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"golang.org/x/sync/semaphore"

	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
)

// Sizes are in bytes. Costs were measured with the most expensive bodies, and rounded up.
const (
	// smallBody is the maximum size of a small body: larger than most bodies, but small enough that the limit on
	// connections alone bounds the memory of all small bodies.
	smallBody = 4 << 10
	// firstRead is the size of the buffer before any of the body has arrived.
	firstRead = 512

	// parsingCost is the memory per byte of a body while it is parsed and validated; maxParsingCost is the most that any
	// body takes.
	parsingCost    = 132
	maxParsingCost = 34 << 20
	// recordCost is the memory per byte of a record from the parsed body to the rendered response, and writingCost that
	// while the response is written. violationCost is the memory per byte of a list of violations.
	recordCost    = 6
	writingCost   = 2
	violationCost = 3

	maxReserved     = 64 << 20
	maxSmallParsing = 12 << 20
	maxLargeParsing = 36 << 20
)

// bodies bounds the memory of the bodies in flight: 136 MiB, whatever 1,024 connections send. Small bodies never wait
// for large ones.
type bodies struct {
	// large holds large bodies from the arrival of their first bytes until the response is written. A caller decides how
	// long that takes, so a body that does not fit is refused instead of queued.
	large *room
	// The semaphores bound the memory for parsing and validation. Those only need the processor and finish soon, so
	// bodies wait for them.
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
	// isLarge is true once memory was reserved. Small bodies reserve none.
	isLarge bool
	// writing is the most memory that the response takes while it is written.
	writing int64
}

// reserve returns an empty reservation for a body.
func (b *bodies) reserve(ctx context.Context) *bodyReservation {
	return &bodyReservation{bodies: b, reservation: reservation{
		room: b.large, caller: exchangeOf(ctx).token.Name, connection: listener.FromContext(ctx),
	}}
}

// resize changes how many bytes are reserved, and how many of them the caller may hold for as long as it likes. It
// returns a refusal if they do not fit.
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

// release releases the reservation.
func (r *bodyReservation) release() { _ = r.resize(0, 0) }

// beginWriting releases the memory that was needed only to build the response.
func (r *bodyReservation) beginWriting() {
	if r.isLarge {
		r.shrink(r.writing)
	}
}

// read reads a body to its end. It reserves memory only for bytes that have arrived, so that announcing a large body
// takes no memory from other callers.
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

// unreadable returns the refusal of a body that is too large, badly framed or incomplete.
func unreadable(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &refusal{slug: tooLarge}
	}
	detail, text := "The body is incomplete. Send it again.", err.Error()
	switch {
	case errors.Is(err, http.ErrLineTooLong), strings.Contains(text, "too much non-data"):
		detail = "A chunk of the body has a long extension. Send the body without chunk extensions."
	case strings.Contains(text, "long trailer"):
		detail = "The body has long trailers. Send it without trailers."
	}
	return &refusal{slug: malformedJSON, detail: detail, cause: err}
}

// parse waits for memory and calls parseAndValidate. Afterwards, the reservation covers the response.
func (r *bodyReservation) parse(ctx context.Context, body []byte, parseAndValidate func() error) error {
	parsing := r.bodies.largeParsing
	if len(body) <= smallBody {
		parsing = r.bodies.smallParsing
	}
	err := withMemory(ctx, parsing, min(int64(len(body))*parsingCost, maxParsingCost), parseAndValidate)
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

func withMemory(ctx context.Context, memory *semaphore.Weighted, cost int64, do func() error) error {
	if err := memory.Acquire(ctx, cost); err != nil {
		return &refusal{slug: overloaded, header: retryAfterSecond(), cause: err}
	}
	defer memory.Release(cost)
	return do()
}

// renderedLength returns the maximum length of a JSON text in a response, where some characters are escaped.
func renderedLength(text []byte) int64 {
	length := len(text)
	for _, character := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		length += bytes.Count(text, []byte(character)) * (len(`\u003c`) - len(character))
	}
	return int64(length)
}
