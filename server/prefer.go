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

// prefer finds out what the caller prefers (RFC 7240). What follows gets the preference in one plain form, or none.
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

// isLenient reports whether fields that the request does not know are ignored.
func isLenient(header http.Header) bool { return header.Get(preferHeader) == handlingLenient }

// prefersLenient reports whether the first handling preference is lenient (RFC 7240 section 4.4). Preferences that are
// unknown or cannot be read are ignored.
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
