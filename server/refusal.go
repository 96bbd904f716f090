package server

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"example.com/providerd/gen/api"
	"example.com/providerd/store"
)

const retryAfterHeader = "Retry-After"

// refusal is an error that knows its answer. What the caller is told and what the log gets are apart.
type refusal struct {
	slug slug
	// detail replaces the sentence of the kind unless it is empty.
	detail     string
	header     map[string]string
	violations []api.Violation
	// pk is that of the record that an idempotency key created; nil if something else is refused.
	pk *int32
	// token is why the caller's token is refused; "" if something else is refused.
	token tokenRefusal
	// isLimited is true if the caller sends more than it may.
	isLimited bool
	// cause is for the log alone.
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

// retryAfterSecond asks the caller to wait a second for the storage.
func retryAfterSecond() map[string]string { return map[string]string{retryAfterHeader: "1"} }

// unavailableUntilRepaired says that the storage refuses until an operator has repaired it. The contract asks for the
// header; a day is longer than any program waits.
func unavailableUntilRepaired(detail string, cause error) *refusal {
	return &refusal{
		slug: storageUnavailable, detail: detail, header: map[string]string{retryAfterHeader: "86400"}, cause: cause,
	}
}
