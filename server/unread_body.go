package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxUnread bounds what is read of a body after its request was refused, in bytes, and unreadTimeout how long that
	// takes.
	maxUnread     = 1 << 20
	unreadTimeout = 2 * time.Second
	// maxKeptOpen is how much of a refused body, in bytes, a connection may have sent and be kept open.
	maxKeptOpen = 256 << 10
	// maxUnreadBodies is how many such bodies are read at a time; one address gets at most a quarter of them.
	maxUnreadBodies = 256
)

// readUnread reads on when a request is refused before its body has arrived. Many callers send a body whole before they
// read the response: if the connection ended earlier, they would find it reset instead of the explanation.
func (s *Server) readUnread(c echo.Context) {
	request, current := c.Request(), exchangeOf(c.Request().Context())
	// Reading would ask for a body that waits to be asked for.
	isExpected := request.Header.Get("Expect") != ""
	if current.body == http.NoBody || isExpected {
		return
	}
	reserved := reservation{room: s.unreadBodies, caller: networkOf(current.remoteAddress)}
	if !reserved.resize(1, 1) {
		return
	}
	defer reserved.shrink(0)
	if http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(unreadTimeout)) != nil {
		return
	}
	count, err := io.CopyN(io.Discard, current.body, maxUnread)
	if isWhole := errors.Is(err, io.EOF); !isWhole || count > maxKeptOpen {
		c.Response().Header().Set("Connection", "close")
	}
}
