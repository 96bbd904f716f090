package server

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"example.com/providerd/gen/model"
	"example.com/providerd/store"
)

const retryAfterHeader = "Retry-After"

// refusal is an error with its response. Only the log gets the cause.
type refusal struct {
	slug slug
	// detail replaces the detail of the problem kind unless it is empty.
	detail     string
	header     map[string]string
	violations []model.Violation
	// pk is that of the record that a reused idempotency key created; nil for other refusals.
	pk *int64
	// token is why the access token is refused; "" for other refusals.
	token tokenRefusal
	// isLimited is true if the caller exceeded its rate limit.
	isLimited bool
	// cause is only logged.
	cause error
}

// Error describes the refusal for the log.
func (r *refusal) Error() string {
	if r.cause == nil {
		return string(r.slug)
	}
	return fmt.Sprintf("%s: %v", r.slug, r.cause)
}

// Unwrap returns the cause.
func (r *refusal) Unwrap() error { return r.cause }

// isCutOff reports whether a request is refused because its connection ended in the middle of its body.
func (r *refusal) isCutOff() bool {
	return r != nil && (errors.Is(r.cause, io.ErrUnexpectedEOF) || errors.Is(r.cause, syscall.ECONNRESET))
}

// tokenRefusal is why a token is refused.
type tokenRefusal string

const (
	tokenMissing   tokenRefusal = "missing"
	tokenMistyped  tokenRefusal = "mistyped"
	tokenUnknown   tokenRefusal = "unknown"
	tokenExpired                = tokenRefusal(store.TokenExpired)
	tokenRevoked                = tokenRefusal(store.TokenRevoked)
	tokenForbidden tokenRefusal = "forbidden"
)

// retryAfterSecond returns a header that asks the caller to wait one second.
func retryAfterSecond() map[string]string { return map[string]string{retryAfterHeader: "1"} }

// unavailableUntilRepaired returns the refusal of a request that fails until an operator repairs the database. The
// contract requires a Retry-After; a day is longer than programs wait.
func unavailableUntilRepaired(detail string, cause error) *refusal {
	return &refusal{
		slug: storageUnavailable, detail: detail, header: map[string]string{retryAfterHeader: "86400"}, cause: cause,
	}
}
