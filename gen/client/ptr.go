package client

// Ptr returns a pointer to a copy of value, for the optional fields of a request.
//
// Deprecated: Use the built-in new, which takes a value since Go 1.26.
func Ptr[T any](value T) *T { return new(value) }
