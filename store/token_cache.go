package store

import (
	"sync"
	"time"
)

const (
	// tokenCacheTime is how long a token is cached. A revocation must take effect within a second.
	tokenCacheTime = 500 * time.Millisecond
	// maxCachedTokens limits the memory of the cache.
	maxCachedTokens = 1000
)

// tokenCache saves a query for each request. Unknown tokens are not cached, so that a new token is accepted at once.
type tokenCache struct {
	mutex  sync.RWMutex
	tokens map[string]cachedToken
}

type cachedToken struct {
	token Token
	read  time.Time
}

func (c *tokenCache) get(digest string) (Token, bool) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	cached, ok := c.tokens[digest]
	return cached.token, ok && time.Since(cached.read) < tokenCacheTime
}

func (c *tokenCache) put(digest string, token Token, read time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.tokens) >= maxCachedTokens {
		clear(c.tokens)
	}
	c.tokens[digest] = cachedToken{token: token, read: read}
}

func (c *tokenCache) clear() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	clear(c.tokens)
}
