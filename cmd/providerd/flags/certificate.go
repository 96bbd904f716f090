package flags

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"

	"example.com/providerd/store/files"
)

// LoadCertificate loads a certificate chain and its key, both in PEM.
func LoadCertificate(certPath, keyPath string) (tls.Certificate, error) {
	chain, err := files.ReadSmall(certPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := files.ReadSmall(keyPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key) //nolint:wrapcheck // Its callers name the files.
}

// ReadCertificate returns the first certificate of a PEM file, in DER.
func ReadCertificate(path string) ([]byte, error) {
	text, err := files.ReadSmall(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return block.Bytes, nil
		}
	}
	return nil, fmt.Errorf("%s does not contain a certificate in PEM", path)
}
