package console

import "time"

// Progress reports how much is done in a line every 5 seconds, and at the end.
type Progress struct {
	messages    *Messages
	what        string
	Done, Total int64
	reported    time.Time
}

// Progress returns a new Progress of something.
func (m *Messages) Progress(what string) *Progress {
	return &Progress{messages: m, what: what, reported: time.Now()}
}

// Update notes that done of total is done.
func (p *Progress) Update(done, total int64) {
	const interval = 5 * time.Second
	if p.Done, p.Total = done, total; time.Since(p.reported) >= interval {
		p.Report()
	}
}

// Report reports what is done.
func (p *Progress) Report() {
	p.reported = time.Now()
	p.messages.Note("%d of %d %s", p.Done, p.Total, p.what)
}
