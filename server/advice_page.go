package server

import (
	"html/template"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/advice"
)

const advicePath = "/advice/"

// ruleGroup is the rules of advice on one kind of provider.
type ruleGroup struct {
	Kind  string
	Rules []advice.Rule
}

// listAdvice answers the page that lists the rules of advice.
func listAdvice(c echo.Context, pages *template.Template) error {
	return renderPage(c, pages, "advice.html", []ruleGroup{
		{"OAuth2 provider", advice.OAuth2Rules()},
		{"Workspace directory-sync provider", advice.WorkspaceDirectoryRules()},
	})
}
