package contract

// maxViolations limits how many violations a response lists.
const maxViolations = 1000

// MalformedError means that a body is not a single well-formed JSON object.
type MalformedError struct {
	// Detail is for the caller. It repeats nothing that was sent except names in a pointer.
	Detail string
}

// Error returns the detail.
func (e *MalformedError) Error() string { return e.Detail }

// InvalidError means that a body breaks rules of the contract.
type InvalidError struct {
	// Detail is for the caller.
	Detail string
	// Violations holds as many as a response may list, and Length is the length of the list as JSON, in bytes.
	Violations []Violation
	Length     int64
}

// Error returns the detail.
func (e *InvalidError) Error() string { return e.Detail }

// Violation is a rule of the contract that a body breaks, as a response lists it. It repeats no value.
type Violation struct {
	// Code is one of ViolationCodes.
	Code string `json:"code"`
	// Detail is a sentence about the value, or about its absence.
	Detail string `json:"detail"`
	// Pointer is the place in the body (RFC 6901).
	Pointer string `json:"pointer"`
}
