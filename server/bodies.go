package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// All of these are numbers of bytes. The costs were measured with the bodies that take the most, and rounded up.
const (
	// smallBody is the size up to which a body is a small one: larger than most, and so small that all that 1,024
	// connections can send are held at once.
	smallBody = 4 << 10
	// firstRead is how much room a body has before anything of it has arrived.
	firstRead = 512

	// parsingCost is for each byte of a body. It is members of one object, with short names, that take the most.
	parsingCost = 32
	// listingCost is for each byte of a body, too, but no more than maxListingCost together.
	listingCost    = 100
	maxListingCost = 2 * maxViolationBytes
	// comparingCost is for a stored record beside one that is asked for, each as large as any, in all the forms that they
	// take until they are compared.
	comparingCost = 32 << 20
	// recordCost is for each byte of a record on its way to the disk and back to the caller.
	recordCost = 6
	// listCost is for each byte of a list of violations on its way to the caller.
	listCost = 3

	// maxSmallHold is what a small body holds at most.
	maxSmallHold    = smallBody * recordCost
	maxSmallHolds   = 1024 * maxSmallHold
	maxLargeHolds   = 40 << 20
	maxSmallParsing = 12 << 20
	maxLargeParsing = 36 << 20
)

// bodies bounds the memory of the bodies in work: 112 MiB for whatever is sent over however many connections. What is
// small has shares of its own, so that it never waits for what is large.
type bodies struct {
	// The holds are for what has arrived, and for what is made of it, until the answer is written. Whoever sends or reads
	// slowly keeps them for long, so that a body for which they do not suffice is refused.
	smallHolds, largeHolds *semaphore.Weighted
	// The others are for what a body takes only while it is parsed and validated. That needs nothing but the processor,
	// so that it is worth waiting for.
	smallParsing, largeParsing *semaphore.Weighted
}

func newBodies() *bodies {
	return &bodies{
		smallHolds:   semaphore.NewWeighted(maxSmallHolds),
		largeHolds:   semaphore.NewWeighted(maxLargeHolds),
		smallParsing: semaphore.NewWeighted(maxSmallParsing),
		largeParsing: semaphore.NewWeighted(maxLargeParsing),
	}
}

// hold is what one body holds.
type hold struct {
	bodies *bodies
	// share is what the bytes are taken from.
	share *semaphore.Weighted
	bytes int64
}

func (b *bodies) hold() *hold { return &hold{bodies: b, share: b.smallHolds} }

// read reads a body to its end. Only what has arrived is counted, so that nobody holds anything by a promise.
func (h *hold) read(body io.Reader) ([]byte, error) {
	var buffer []byte
	for {
		if len(buffer) == cap(buffer) {
			room := min(max(2*cap(buffer), firstRead), maxBodyBytes+firstRead)
			if err := h.resize(int64(room)); err != nil {
				// A caller who is still sending would not see the answer.
				_, _ = io.Copy(io.Discard, body)
				return nil, err
			}
			buffer = append(make([]byte, 0, room), buffer...)
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

// parse does the work that takes the most memory, once others leave enough of it. After that the hold is for what is
// left of the body: the record that is made of it, or the list of its violations.
func (h *hold) parse(ctx context.Context, body []byte, work func() error) error {
	size := int64(len(body))
	parsing := h.bodies.largeParsing
	if size <= smallBody {
		parsing = h.bodies.smallParsing
	}
	cost := size*parsingCost + min(size*listingCost, maxListingCost)
	if err := parsing.Acquire(ctx, cost); err != nil {
		return &refusal{slug: overloaded, header: comeBack(), cause: err}
	}
	defer parsing.Release(cost)
	err := work()
	left := renderedLength(body) * recordCost
	if refused, ok := errors.AsType[*refusal](err); ok {
		left = refused.listLength * listCost
	}
	if overload := h.resize(left); overload != nil {
		return overload
	}
	return err
}

// compare does work with a stored record, which may be much larger than the body in work, once others leave enough
// memory for it.
func (b *bodies) compare(ctx context.Context, work func() error) error {
	if err := b.largeParsing.Acquire(ctx, comparingCost); err != nil {
		return &refusal{slug: overloaded, header: comeBack(), cause: err}
	}
	defer b.largeParsing.Release(comparingCost)
	return work()
}

// renderedLength is the length that a text in JSON has in an answer at most, where some characters are escaped.
func renderedLength(text []byte) int64 {
	length := len(text)
	for _, one := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		length += bytes.Count(text, []byte(one)) * (len(`\u003c`) - len(one))
	}
	return int64(length)
}

// resize changes how much is held, or returns the refusal to. To give some back is never refused: where the share for
// so little has no room, the rest stays in that for more.
func (h *hold) resize(bytes int64) error {
	to := h.bodies.holds(bytes)
	switch {
	case to != h.share && to.TryAcquire(bytes):
		h.share.Release(h.bytes)
		h.share = to
	case bytes <= h.bytes:
		h.share.Release(h.bytes - bytes)
	case to != h.share || !to.TryAcquire(bytes-h.bytes):
		return &refusal{slug: overloaded, header: comeBack()}
	}
	h.bytes = bytes
	return nil
}

// release gives back what is held.
func (h *hold) release() {
	h.share.Release(h.bytes)
	h.bytes = 0
}

// holds is the share that so many bytes are to be taken from.
func (b *bodies) holds(bytes int64) *semaphore.Weighted {
	if bytes <= maxSmallHold {
		return b.smallHolds
	}
	return b.largeHolds
}
