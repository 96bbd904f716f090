package server

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

const (
	preferHeader            = "Prefer"
	preferenceAppliedHeader = "Preference-Applied"
	handlingLenient         = "handling=lenient"
)

// prefer replaces the Prefer header (RFC 7240) with handling=lenient, or removes it.
func prefer(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Request().Header
		lenient := prefersLenient(header.Values(preferHeader))
		header.Del(preferHeader)
		if lenient {
			header.Set(preferHeader, handlingLenient)
		}
		return next(c)
	}
}

// isLenient reports whether unknown fields are ignored.
func isLenient(header http.Header) bool { return header.Get(preferHeader) == handlingLenient }

// prefersLenient reports whether the first handling preference is lenient (RFC 7240 section 4.4). Unknown and
// malformed preferences are ignored.
func prefersLenient(fields []string) bool {
	for preference := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(name), "handling") {
			value = strings.TrimSpace(value)
			return strings.EqualFold(value, "lenient") || strings.EqualFold(value, `"lenient"`)
		}
	}
	return false
}
