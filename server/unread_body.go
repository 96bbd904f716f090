package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxUnread is how many bytes of a body are read after its request was refused, and unreadTimeout for how long.
	maxUnread     = 1 << 20
	unreadTimeout = 2 * time.Second
	// maxKeptOpen is how many bytes of such a body a connection may send without being closed.
	maxKeptOpen = 256 << 10
	// maxUnreadBodies is how many such bodies are read at a time; one network gets at most a quarter of that.
	maxUnreadBodies = 256
)

// readUnread reads the rest of the body of a refused request. Many callers send the whole body before they read the
// response; if the connection were closed earlier, they would see a reset instead of the explanation.
func (s *Server) readUnread(c echo.Context) {
	request, current := c.Request(), exchangeOf(c.Request().Context())
	// With "Expect: 100-continue", reading would request the body.
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
