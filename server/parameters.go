package server

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
)

// validateOnlyParameter is the one parameter that the contract has for a query.
const validateOnlyParameter = "validate_only"

// maxQuotedName bounds, in bytes, what a problem repeats of the name of a parameter.
const maxQuotedName = 64

// validateQuery refuses a query that the contract does not allow, before anything of the body is read: what was meant
// to be validated is never stored for a typing error.
func validateQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		query, err := url.ParseQuery(c.Request().URL.RawQuery)
		if err != nil {
			// The error repeats a piece of the query.
			return &refusal{slug: invalidParameter}
		}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if detail := wrongParameter(name, query[name]); detail != "" {
				return &refusal{slug: invalidParameter, detail: detail}
			}
		}
		exchangeOf(c.Request().Context()).validateOnly, _ = parseBool(query[validateOnlyParameter])
		return next(c)
	}
}

// wrongParameter says what is wrong with a parameter of the query; "" if nothing is.
func wrongParameter(name string, values []string) string {
	if name == validateOnlyParameter {
		if _, ok := parseBool(values); ok {
			return ""
		}
		return fmt.Sprintf("The query parameter %s must be sent once at most, as %s=true or %s=false.", name, name, name)
	}
	unknown := fmt.Sprintf("%q is not a query parameter of this operation", cut(name, maxQuotedName))
	if meant := contract.MostSimilar(name, []string{validateOnlyParameter}); meant != "" {
		return unknown + "; did you mean " + meant + "?"
	}
	return unknown + "; leave it out."
}

// parseBool reads the one value of a parameter in its form in JSON, which is the only one of several that Go takes.
func parseBool(values []string) (value, ok bool) {
	if len(values) != 1 {
		return false, false
	}
	value, err := strconv.ParseBool(values[0])
	return value, err == nil && strconv.FormatBool(value) == values[0]
}
