package token

import (
	"sync"
	"time"
)

const (
	// cacheTime is how long a token is cached. A revocation must take effect within a second.
	cacheTime = 500 * time.Millisecond
	// maxCached limits the memory of the cache.
	maxCached = 1000
)

// cache saves a query for each request. Unknown tokens are not cached, so that a new token is accepted at once.
type cache struct {
	mutex  sync.RWMutex
	tokens map[string]cachedToken
}

type cachedToken struct {
	token Token
	read  time.Time
}

func (c *cache) get(digest string) (Token, bool) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	cached, ok := c.tokens[digest]
	return cached.token, ok && time.Since(cached.read) < cacheTime
}

func (c *cache) put(digest string, token Token, read time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.tokens == nil || len(c.tokens) >= maxCached {
		c.tokens = map[string]cachedToken{}
	}
	c.tokens[digest] = cachedToken{token: token, read: read}
}
