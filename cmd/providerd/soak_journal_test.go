//go:build slow

package main

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// soakCreate is a create that was acknowledged.
type soakCreate struct {
	pk int32
	// secret is the client secret or the credentials of the answer.
	secret string
}

// soakWait is how long a create took, retries included, and when it was answered.
type soakWait struct{ at, wait time.Duration }

// soakJournal is what callers have been answered.
type soakJournal struct {
	begun time.Time
	mutex sync.Mutex
	// creates are by their idempotency key, which is the name of the provider, too.
	creates map[string]soakCreate
	waits   []soakWait
	// answers counts by what was asked for and answered as it is to be; faults are the others.
	answers  map[string]int
	requests int
	faults   []string
	// handshakes counts by the serial number of the certificate.
	handshakes map[int64]int
}

func newSoakJournal() *soakJournal {
	return &soakJournal{
		begun: time.Now(), creates: map[string]soakCreate{}, answers: map[string]int{}, handshakes: map[int64]int{},
	}
}

// acknowledge notes a create with its key.
func (j *soakJournal) acknowledge(key string, one soakCreate, wait time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if _, known := j.creates[key]; known {
		j.faults = append(j.faults, key+" was sent twice")
	}
	j.creates[key] = one
	j.waits = append(j.waits, soakWait{at: time.Since(j.begun), wait: wait})
}

// answer counts an answer, which is a fault where it is not as it is to be.
func (j *soakJournal) answer(kind, fault string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.requests++
	if fault != "" {
		j.faults = append(j.faults, fmt.Sprintf("%s: %s", kind, fault))
		return
	}
	j.answers[kind]++
}

func (j *soakJournal) shakeHands(serial int64) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.handshakes[serial]++
}

// hasMet tells whether callers have been shown a certificate.
func (j *soakJournal) hasMet(serial int64) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.handshakes[serial] > 0
}

// soFar returns how long the journal goes on, and what was answered until now.
func (j *soakJournal) soFar() (at time.Duration, creates, requests int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return time.Since(j.begun), len(j.creates), j.requests
}

// acknowledged returns a copy of the creates until now.
func (j *soakJournal) acknowledged() map[string]soakCreate {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return maps.Clone(j.creates)
}
