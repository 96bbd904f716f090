package seal

// HoldReading takes the place of a goroutine that reads the file, until release is called.
func (r *Keyring) HoldReading() (release func()) {
	r.reading <- struct{}{}
	return func() { <-r.reading }
}
