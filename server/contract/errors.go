package contract

// maxViolations is how many violations a response lists.
const maxViolations = 1000

// MalformedError says why a body is not one clean JSON object.
type MalformedError struct {
	// Detail is for the caller, and repeats nothing of what was sent but the names in a pointer.
	Detail string
}

// Error returns the detail.
func (e *MalformedError) Error() string { return e.Detail }

// InvalidError says how a body breaks the contract.
type InvalidError struct {
	// Detail is for the caller.
	Detail string
	// Violations are as many as an answer may list, and Length is that of their list as JSON, in bytes.
	Violations []Violation
	Length     int64
}

// Error returns the detail.
func (e *InvalidError) Error() string { return e.Detail }

// Violation is one rule of the contract that a body breaks, as an answer lists it. Nothing in it repeats a value.
type Violation struct {
	// Code names the rule: one of Document.ViolationCodes.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Pointer says where in the body (RFC 6901).
	Pointer string `json:"pointer"`
}
