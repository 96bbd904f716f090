package server

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
)

// validateOnlyParameter is the only query parameter of the contract.
const validateOnlyParameter = "validate_only"

// maxQuotedName is how many bytes of a parameter name a problem quotes.
const maxQuotedName = 64

// validateQuery refuses a query that the contract does not allow, before the body is read, so that a typo in
// validate_only cannot turn a validation into a create.
func validateQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		query, err := url.ParseQuery(c.Request().URL.RawQuery)
		if err != nil {
			// The error would quote a part of the query.
			return &refusal{
				slug: invalidParameter, detail: "The query cannot be read. Write it as ?validate_only=true.",
			}
		}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if detail := wrongParameter(name, query[name]); detail != "" {
				return &refusal{slug: invalidParameter, detail: detail}
			}
		}
		if value, ok := parseBool(query[validateOnlyParameter]); ok {
			exchangeOf(c.Request().Context()).validateOnly = value
			// The generated code knows fewer letter cases.
			c.Request().URL.RawQuery = validateOnlyParameter + "=" + strconv.FormatBool(value)
		}
		return next(c)
	}
}

// wrongParameter returns what is wrong with a query parameter; "" if nothing is.
func wrongParameter(name string, values []string) string {
	if name == validateOnlyParameter {
		if _, ok := parseBool(values); ok {
			return ""
		}
		return fmt.Sprintf("The query parameter %s must appear at most once, as %s=true or %s=false.", name, name, name)
	}
	unknown := fmt.Sprintf("%q is not a query parameter of this operation.", truncate(name, maxQuotedName))
	if meant := contract.MostSimilar(name, []string{validateOnlyParameter}); meant != "" {
		return unknown + " Did you mean " + meant + "?"
	}
	return unknown + " Remove it. To store nothing, use validate_only=true."
}

// parseBool parses the value of a parameter that appears once: true or false, in any letter case.
func parseBool(values []string) (value, ok bool) {
	if len(values) != 1 {
		return false, false
	}
	text := strings.ToLower(values[0])
	return text == "true", text == "true" || text == "false"
}
