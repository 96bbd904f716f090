package seal

// HoldReading blocks reads of the file until release is called.
func (r *Keyring) HoldReading() (release func()) {
	r.reading <- struct{}{}
	return func() { <-r.reading }
}
