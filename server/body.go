package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
)

// validateBody reads and validates the body before it calls the handler, which gets exactly what was validated.
func validateBody(c echo.Context, op *contract.Operation, bodies *bodies, handler echo.HandlerFunc) error {
	reserved := &exchangeOf(c.Request().Context()).reserved
	*reserved = bodies.reserve(c.Request().Context())
	defer reserved.release()
	if err := accept(c, op, reserved); err != nil {
		// The error is handled here, while its memory is reserved.
		c.Error(err)
		return nil
	}
	return handler(c)
}

// accept reads and validates the body of a request, or returns why it is refused.
func accept(c echo.Context, op *contract.Operation, reserved *bodyReservation) error {
	request := c.Request()
	body, err := reserved.read(request.Body)
	if err != nil {
		return err
	}
	exchangeOf(request.Context()).body = http.NoBody
	if err := listener.MarkWorking(request.Context()); err != nil {
		return unreadable(err)
	}
	defer exchangeOf(request.Context()).spans.validate()()
	return reserved.parse(request.Context(), body, func() error {
		sent, err := op.Read(body)
		if err != nil {
			return err
		}
		lenient := exchangeOf(request.Context()).lenient
		if lenient {
			c.Response().Header().Set(preferenceAppliedHeader, handlingLenient)
		}
		if err := op.Validate(sent, lenient); err != nil {
			return err
		}
		exchangeOf(request.Context()).sent = sent
		return nil
	})
}

// binder gives a handler the members of the validated body.
type binder struct{}

var _ echo.Binder = binder{}

// Bind is called by the generated code, after validateBody.
func (binder) Bind(into any, c echo.Context) error {
	current := exchangeOf(c.Request().Context())
	sent := current.sent
	// The memory can be freed while the request is handled.
	current.sent = contract.Object{}
	if err := sent.Bind(into); err != nil {
		return fmt.Errorf("bind body: %w", err)
	}
	return nil
}

// Sizes are in bytes. Costs were measured with the most expensive bodies, and rounded up.
const (
	// smallBody is the most of a small body, so little that the limit on connections bounds the memory of all of them.
	smallBody = 4 << 10
	// firstRead is the size of the buffer before any of the body has arrived.
	firstRead = 512

	// parsingCost is the memory per byte of a body that is parsed and validated; maxParsingCost is the most of any body.
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

// bodies bounds the memory of the bodies in flight, and of the records of retries: 136 MiB, whatever 1,024 connections
// send. Small bodies never wait for large ones.
type bodies struct {
	// large holds large bodies from the arrival of their first bytes until the response is written. A caller decides how
	// long that takes, so what does not fit is refused instead of queued.
	large *room
	// The semaphores bound the memory for parsing and validation, which finish soon, so that bodies can wait for them.
	smallParsing, largeParsing *semaphore.Weighted
}

func newBodies() *bodies {
	return &bodies{
		large:        newRoom(maxReserved, maxReserved/4),
		smallParsing: semaphore.NewWeighted(maxSmallParsing),
		largeParsing: semaphore.NewWeighted(maxLargeParsing),
	}
}

type bodyReservation struct {
	reservation
	bodies *bodies
	// isLarge is true once memory was reserved. Small bodies reserve none.
	isLarge bool
	// writing is the most memory that the response takes while it is written.
	writing int64
}

func (b *bodies) reserve(ctx context.Context) bodyReservation {
	return bodyReservation{bodies: b, reservation: reservation{
		room: b.large, caller: exchangeOf(ctx).token.Name, connection: listener.FromContext(ctx),
	}}
}

// resize changes how many bytes are reserved, and how many the caller may hold for long, or returns a refusal.
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

// holdRecord reserves memory for the record of a retry, as for a body of its length, if the body needed less.
func (r *bodyReservation) holdRecord(length int64) error {
	return r.resize(max(r.bytes, length*recordCost), max(r.kept, length*writingCost))
}

func (r *bodyReservation) release() { _ = r.resize(0, 0) }

// beginWriting releases the memory that was needed only to build the response.
func (r *bodyReservation) beginWriting() {
	if r.isLarge {
		r.shrink(r.writing)
	}
}

// read reads a body to its end. It reserves memory only for bytes that arrived: announcing a large body takes none.
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
		detail = "A chunk extension of the body is too long. Send the body without chunk extensions."
	case strings.Contains(text, "long trailer"):
		detail = "The trailers of the body are too long. Send it without trailers."
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
