package server

import "github.com/getkin/kin-openapi/openapi3"

// HandWrittenPatterns are those of the contract that no regular expression is compiled for.
func HandWrittenPatterns() []string {
	return []string{textPattern, namePattern, uuidPattern, urisPattern, scriptPattern}
}

// CompilePattern returns the matcher of a pattern.
func CompilePattern(pattern string) (openapi3.RegexMatcher, error) { return compilePattern(pattern) }

// GoPattern is a pattern as Go writes it.
func GoPattern(pattern string) string { return goPattern(pattern) }
