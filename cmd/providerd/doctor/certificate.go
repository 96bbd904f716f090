package doctor

import (
	"crypto/x509"
	"os"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

const (
	checkOfCertificate = "certificate"
	// certificateNotice is how long before its end a certificate is warned of: one that is renewed by itself is a month
	// old by then.
	certificateNotice = 14 * flags.Day
)

// checkCertificate looks at what the server would show to its callers, if it has a certificate. That a path lacks the
// other one, checkConfiguration finds.
func checkCertificate(certPath, keyPath string) []finding {
	if certPath == "" || keyPath == "" {
		return nil
	}
	pair, err := flags.LoadCertificate(certPath, keyPath)
	if err != nil {
		return []finding{failed(checkOfCertificate, "put a certificate and its key, both in PEM, in their place",
			"the certificate in %q and its key in %q cannot be used: %v", certPath, keyPath, err)}
	}
	found := []finding{checkChain(certPath, pair.Certificate)}
	const everyUser = 0o007
	if info, err := os.Stat(keyPath); err == nil && info.Mode().Perm()&everyUser != 0 {
		found = append(found, failed(checkOfCertificate, "run chmod 600 on it, and have another one signed",
			"every user of the machine can read the private key %s", keyPath))
	}
	return found
}

// checkChain looks when the first certificate of a chain ends.
func checkChain(path string, chain [][]byte) finding {
	const remedy = "renew it; the server reads the files again when they change"
	var ends time.Time
	for _, encoded := range chain {
		certificate, err := x509.ParseCertificate(encoded)
		if err != nil {
			return failed(checkOfCertificate, "put another one in its place", "%s has one that cannot be read: %v", path, err)
		}
		if time.Now().Before(certificate.NotBefore) {
			return failed(checkOfCertificate, "see whether the clock is right", "%s is not valid before %s", path,
				console.Timestamp(certificate.NotBefore))
		}
		if ends.IsZero() || certificate.NotAfter.Before(ends) {
			ends = certificate.NotAfter
		}
	}
	switch left := time.Until(ends); {
	case left <= 0:
		return failed(checkOfCertificate, remedy, "%s is out of date since %s", path, console.Timestamp(ends))
	case left < certificateNotice:
		return warned(checkOfCertificate, remedy, "%s is valid until %s only", path, console.Timestamp(ends))
	default:
		return passed(checkOfCertificate, "%s is valid until %s", path, console.Timestamp(ends))
	}
}
