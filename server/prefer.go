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

// isLenient tells whether fields that the request does not know are ignored.
func isLenient(header http.Header) bool { return header.Get(preferHeader) == handlingLenient }

// prefersLenient tells whether the first handling preference is lenient (RFC 7240 section 4.4). Preferences that are
// unknown or cannot be read are ignored.
func prefersLenient(fields []string) bool {
	for _, preference := range splitUnquoted(strings.Join(fields, ","), ',') {
		withoutParameters := splitUnquoted(preference, ';')[0]
		name, value, _ := strings.Cut(withoutParameters, "=")
		if strings.EqualFold(strings.TrimSpace(name), "handling") {
			return strings.EqualFold(unquote(strings.TrimSpace(value)), "lenient")
		}
	}
	return false
}

// unquote returns what a quoted string holds (RFC 9110 section 5.6.4), and any other text as it is.
func unquote(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	var value strings.Builder
	for i := 1; i < len(text)-1; i++ {
		if text[i] == '\\' {
			i++
		}
		value.WriteByte(text[i])
	}
	return value.String()
}
