package store

import (
	"sync"
	"time"
)

const (
	// tokenCacheTime is how old a cached token may be. A revocation must be in force within one second.
	tokenCacheTime = 500 * time.Millisecond
	// maxCachedTokens bounds the memory of the cache.
	maxCachedTokens = 1000
)

// tokenCache spares the database the look-up of the same few tokens with every request. Unknown tokens are not kept, so
// that a new token is accepted at once.
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
