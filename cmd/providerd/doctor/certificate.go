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
	// certificateNotice is how long before its expiry a certificate is warned of. Automatic renewal is due long before.
	certificateNotice = 14 * flags.Day
)

// checkCertificate checks the certificate that the server would present, if any. checkConfiguration finds a certificate
// without a key, or a key without a certificate.
func checkCertificate(certPath, keyPath string) []finding {
	if certPath == "" || keyPath == "" {
		return nil
	}
	pair, err := flags.LoadCertificate(certPath, keyPath)
	if err != nil {
		return []finding{failed(checkOfCertificate, "replace them with a PEM certificate and its key",
			"cannot load certificate %q with key %q: %v", certPath, keyPath, err)}
	}
	found := []finding{checkChain(certPath, pair.Certificate)}
	const everyUser = 0o007
	if info, err := os.Stat(keyPath); err == nil && info.Mode().Perm()&everyUser != 0 {
		found = append(found, failed(checkOfCertificate, "run chmod 600 on it, and get a certificate for a new key",
			"every user can read the private key %s", keyPath))
	}
	return found
}

// checkChain checks when the first certificate of a chain expires.
func checkChain(path string, chain [][]byte) finding {
	const remedy = "renew it; the server reloads the files when they change"
	var expires time.Time
	for _, encoded := range chain {
		certificate, err := x509.ParseCertificate(encoded)
		if err != nil {
			return failed(checkOfCertificate, "replace it", "%s has a certificate that cannot be parsed: %v", path, err)
		}
		if time.Now().Before(certificate.NotBefore) {
			return failed(checkOfCertificate, "check the system clock", "%s is not valid before %s", path,
				console.Timestamp(certificate.NotBefore))
		}
		if expires.IsZero() || certificate.NotAfter.Before(expires) {
			expires = certificate.NotAfter
		}
	}
	switch left := time.Until(expires); {
	case left <= 0:
		return failed(checkOfCertificate, remedy, "%s expired at %s", path, console.Timestamp(expires))
	case left < certificateNotice:
		return warned(checkOfCertificate, remedy, "%s expires at %s", path, console.Timestamp(expires))
	default:
		return passed(checkOfCertificate, "%s is valid until %s", path, console.Timestamp(expires))
	}
}
